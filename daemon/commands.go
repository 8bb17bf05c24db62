package daemon

import (
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/internal/redact"
)

// newCommands wires the slash commands.
func (d *Daemon) newCommands() *command.Commands {
	return command.New(command.Deps{
		Version: d.opts.Version,
		Machine: d.machine(),
		Config:  d.Config,
		Secrets: d.secrets,
		Roots:   func() []string { return d.workspace.Load().Roots() },
		Engine:  d.Engine,
		Store:   d.store,
		Models:  d.models,
		Choice:  d.ModelChoice,
		Status:  d.status,
		RepoMap: d.maps.show,
		TempDir: os.TempDir(),
		Now:     d.opts.Now,
		NewID:   d.opts.NewID,
	})
}

// Commands lists the slash commands.
func (d *Daemon) Commands() []command.Info { return d.commands.List() }

// secrets lists texts that nothing may show: those of the configuration, of logins and of
// the environment.
func (d *Daemon) secrets() []string {
	out := d.Config().Secrets()
	entered, _ := d.creds.Load().All() // the error is among the configuration's problems
	for _, c := range entered {
		out = append(out, c.Key.Reveal())
	}
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
		"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
	}
	for _, name := range slices.Sorted(maps.Keys(d.Config().Providers)) {
		upper := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		names = append(names, upper+"_API_KEY", upper+"_API_URL")
	}
	return names
}

// status describes the program for /doctor.
func (d *Daemon) status() command.Status {
	cfg := d.Config()
	st := command.Status{
		Command: d.opts.Command,
		Default: d.models.defaultID(), StoreFile: d.store.Path(),
	}
	origin, _ := cfg.Origin("defaultModel")
	switch {
	case st.Default == "":
		st.Why = "no provider that can be used has a model"
	case st.Default == cfg.DefaultModel:
		st.Why = "defaultModel in " + origin.String()
	case cfg.DefaultModel != "":
		st.Why = "the configured " + cfg.DefaultModel + " can not be used"
	case st.Default == demoModel:
		st.Why = "no provider can be used"
	default:
		st.Why = "defaultModel is not set; chosen among those that can be used"
	}
	for _, p := range d.models.describe() {
		if p.Configured {
			st.Providers = append(st.Providers, command.ProviderStatus{Name: p.ID, API: p.API, Problem: d.models.problem(p.ID)})
		}
	}
	for _, name := range d.variables() {
		value := d.opts.Getenv(name)
		if value == "" {
			continue
		}
		if name == "ECA_CONFIG" || redact.SecretName(name) {
			value = ""
		}
		st.Environment = append(st.Environment, command.Variable{Name: name, Value: value})
	}
	return st
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
