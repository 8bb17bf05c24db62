package daemon

import (
	"maps"
	"os"
	"reflect"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// cleaner has the state that redactors needs in addition to the snapshot.
type cleaner struct {
	launchCredentials atomic.Pointer[map[string][]string] // the credentials of the last start of each MCP server
	last              atomic.Pointer[redactors]
}

// setLaunchCredentials replaces the credentials of an MCP server that is about to start.
func (c *cleaner) setLaunchCredentials(server string, credentials []string) {
	for {
		old, next := c.launchCredentials.Load(), map[string][]string{}
		if old != nil {
			maps.Copy(next, *old)
		}
		next[server] = credentials
		if c.launchCredentials.CompareAndSwap(old, &next) {
			return
		}
	}
}

// redactors removes the secrets of one configuration and the credentials that users entered.
type redactors struct {
	cfg               *config.Loaded // each load creates a new one, even if only credentials changed
	launchCredentials *map[string][]string
	serverLogins      uintptr // identifies the logins to MCP servers, which change without a load

	all    *redact.Redactor // for logs
	output *redact.Redactor // for results of tools
}

// Clean removes secrets from log text: all known secrets, and text that looks like one. Before
// Configure it removes only the latter.
func (s *services) Clean(text string) string { return s.redactors().all.String(text) }

// cleanOutput removes credentials from results of tools. It removes less than Clean, because the
// model works with the text.
func (s *services) cleanOutput(text string) string { return s.redactors().output.String(text) }

// Presentable removes credentials, and text that looks like one, from texts about MCP servers that
// are shown to the user. Unlike Clean it keeps the arguments of programs.
func (s *services) Presentable(text string) string { return redact.New().String(s.cleanOutput(text)) }

func (s *services) redactors() *redactors {
	snap := s.current()
	cfg, logins := snap.config, snap.storage.serverCredentials()
	serverLogins := reflect.ValueOf(logins).Pointer()
	launchCredentials := s.cleaner.launchCredentials.Load()
	if out := s.cleaner.last.Load(); out != nil && out.cfg == cfg && out.launchCredentials == launchCredentials && out.serverLogins == serverLogins {
		return out
	}
	out := &redactors{cfg: cfg, launchCredentials: launchCredentials, serverLogins: serverLogins}
	credentials := settings.EnvironmentSecrets(s.opts.Environ())
	if launchCredentials != nil {
		for _, list := range *launchCredentials {
			credentials = append(credentials, list...)
		}
	}
	for _, c := range snap.storage.credentials() {
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
	s.cleaner.last.Store(out)
	return out
}

// defaultEnviron returns the default of Options.Environ: an empty environment if Getenv is set, as in
// tests.
func defaultEnviron(o Options) func() []string {
	if o.Getenv != nil {
		return func() []string { return nil }
	}
	return os.Environ
}

// secrets lists the secrets of the configuration, of logins and of the environment.
func (s *services) secrets(snap *Snapshot) []string {
	out := settings.Secrets(snap.config, s.opts.Getenv)
	out = append(out, settings.LoginSecrets(snap.storage.credentials())...)
	out = append(out, settings.LoginSecrets(snap.storage.serverCredentials())...)
	return append(out, s.network.Proxies().Secrets()...)
}
