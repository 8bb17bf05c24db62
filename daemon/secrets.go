package daemon

import (
	"net/url"
	"os"
	"reflect"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// scrubbers remove the secrets of one configuration and what users entered.
type scrubbers struct {
	cfg    *config.Loaded // each load has its own, also when credentials changed only
	served uintptr        // names the logins to MCP servers, which change without one

	all    *redact.Redactor // for logs
	output *redact.Redactor // for what tools return
}

// Clean removes secrets from what is logged: those that are known now, and what looks like
// one. Before Configure only the latter.
func (d *Daemon) Clean(text string) string { return d.scrub().all.String(text) }

// cleanOutput removes credentials from what tools return. Less counts as one than in logs:
// the text is what the model works with.
func (d *Daemon) cleanOutput(text string) string { return d.scrub().output.String(text) }

// Presentable removes credentials, and what looks like one, from what users are to read of
// their own MCP servers. Arguments of programs, any of which may be secret to a log, stay.
func (d *Daemon) Presentable(text string) string { return redact.New().String(d.cleanOutput(text)) }

func (d *Daemon) scrub() *scrubbers {
	cfg := d.config.Load()
	logins, _ := d.servedCreds.Load().All() // the error is among the configuration's problems
	served := reflect.ValueOf(logins).Pointer()
	if s := d.scrubbers.Load(); s != nil && s.cfg == cfg && s.served == served {
		return s
	}
	s := &scrubbers{cfg: cfg, served: served}
	credentials := d.environmentSecrets()
	entered, _ := d.creds.Load().All() // the error is among the configuration's problems
	for _, c := range entered {
		credentials = append(credentials, c.Key.Reveal(), c.Access.Reveal(), c.Refresh.Reveal())
	}
	credentials = append(credentials, servedSecrets(logins)...)
	if cfg == nil {
		s.all = redact.New(credentials...)
	} else {
		s.all = redact.New(append(d.secrets(), credentials...)...)
		credentials = append(credentials, cfg.Credentials()...)
	}
	s.output = redact.Known(long(credentials)...)
	d.scrubbers.Store(s)
	return s
}

// long leaves out what is too short to be a credential: replaced in outputs, an ordinary
// word would make them useless.
func long(secrets []string) []string {
	const least = 8
	var out []string
	for _, s := range secrets {
		if len(s) >= least && s != "undefined" && strings.IndexByte(s, '/') != 0 {
			out = append(out, s)
		}
	}
	return out
}

// environmentSecrets lists the values of environment variables that children get and whose
// names say that they are secret, and the passwords in addresses.
func (d *Daemon) environmentSecrets() []string {
	var out []string
	for _, pair := range d.opts.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		if redact.SecretName(name) {
			out = append(out, value)
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok {
				out = append(out, password)
			}
		}
	}
	return out
}

// environ is the default of Options.Environ: none where a test has an environment of its
// own.
func environ(o Options) func() []string {
	if o.Getenv != nil {
		return func() []string { return nil }
	}
	return os.Environ
}
