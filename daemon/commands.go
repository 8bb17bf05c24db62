package daemon

import (
	"context"
	"maps"
	"os"
	"slices"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// newCommands wires the slash commands.
func (d *Daemon) newCommands() *command.Commands {
	return command.New(command.Deps{
		Version:    d.opts.Version,
		Machine:    d.machine(),
		Config:     d.Config,
		Extensions: d.Extensions,
		ConfigHome: config.Home(d.opts.Getenv),
		Secrets:    d.secrets,
		Roots:      func() []string { return d.workspace.Load().Roots() },
		Engine:     d.Engine,
		Store:      d.store,
		Models:     d.models,
		Choice:     d.ModelChoice,
		Doctor:     func(ctx context.Context) doctor.Report { return d.Doctor(ctx, false) },
		Hooks:      func() []hooks.Info { return d.hooks.Load().List() },
		Plugins:    d.Plugins,
		Logins:     d,
		Prompts:    servedPrompts{d},
		RepoMap:    d.maps.show,
		Ask:        func() ask.Client { return d.client.Load().questions },
		TempDir:    os.TempDir(),
		Now:        d.opts.Now,
		NewID:      d.opts.NewID,
	})
}

// Commands lists the slash commands.
func (d *Daemon) Commands() []command.Offer { return d.commands.List() }

// secrets lists texts that nothing may show: those of the configuration, of logins and of
// the environment.
func (d *Daemon) secrets() []string {
	out := d.Config().Secrets()
	entered, _ := d.creds.Load().All() // the error is among the configuration's problems
	for _, c := range entered {
		out = append(out, c.Secrets()...)
	}
	served, _ := d.servedCreds.Load().All() // the same
	out = append(out, servedSecrets(served)...)
	out = append(out, d.network.Proxies().Secrets()...)
	for _, name := range d.variables() {
		if redact.SecretName(name) {
			out = append(out, d.opts.Getenv(name))
		}
	}
	return out
}

// variables names what eca reads from the environment.
func (d *Daemon) variables() []string {
	names := []string{
		"ECA_CONFIG", "HOME", "SHELL", "TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "ECA_CLIENT_CERT", "ECA_CLIENT_KEY", "ECA_CLIENT_KEY_PASSPHRASE",
	}
	for _, name := range slices.Sorted(maps.Keys(d.Config().Providers)) {
		keys, urls := d.Config().Variables(name)
		names = append(append(names, keys...), urls...)
	}
	return names
}

// problem says why a configured provider can not be used; empty if it can.
func (m *models) problem(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.providers()[name]
	if !usable(p.Provider) {
		return "needs " + m.missing(name, p)
	}
	if _, err := m.client(name, p); err != nil {
		return err.Error()
	}
	return ""
}
