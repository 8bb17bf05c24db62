package daemon

import (
	"os"
	"reflect"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
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
func (s *services) Clean(text string) string { return s.scrub().all.String(text) }

// cleanOutput removes credentials from what tools return. Less counts as one than in logs:
// the text is what the model works with.
func (s *services) cleanOutput(text string) string { return s.scrub().output.String(text) }

// Presentable removes credentials, and what looks like one, from what users are to read of
// their own MCP servers. Arguments of programs, any of which may be secret to a log, stay.
func (s *services) Presentable(text string) string { return redact.New().String(s.cleanOutput(text)) }

func (s *services) scrub() *scrubbers {
	snap := s.current()
	cfg, logins := snap.config, snap.storage.enteredForServers()
	served := reflect.ValueOf(logins).Pointer()
	if out := s.scrubbers.Load(); out != nil && out.cfg == cfg && out.served == served {
		return out
	}
	out := &scrubbers{cfg: cfg, served: served}
	credentials := settings.EnvironmentSecrets(s.opts.Environ())
	for _, c := range snap.storage.entered() {
		credentials = append(credentials, c.Key.Reveal(), c.Access.Reveal(), c.Refresh.Reveal())
	}
	credentials = append(credentials, settings.LoginSecrets(logins)...)
	if cfg == nil {
		out.all = redact.New(credentials...)
	} else {
		out.all = redact.New(append(s.secrets(snap), credentials...)...)
		credentials = append(credentials, cfg.Credentials()...)
	}
	out.output = redact.Credentials(credentials...)
	s.scrubbers.Store(out)
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

// secrets lists texts that nothing may show: those of the configuration, of logins and of
// the environment.
func (s *services) secrets(snap *Snapshot) []string {
	out := settings.Secrets(snap.config, s.opts.Getenv)
	out = append(out, settings.LoginSecrets(snap.storage.entered())...)
	out = append(out, settings.LoginSecrets(snap.storage.enteredForServers())...)
	return append(out, s.network.Proxies().Secrets()...)
}
