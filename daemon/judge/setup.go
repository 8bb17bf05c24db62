package judge

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// Options configure a Judge. All fields except Getenv are optional.
type Options struct {
	Model      string            // for graders that name no model; empty: $ECP_LLM_JUDGE_MODEL, or gpt-4o-mini
	Notify     func(text string) // receives a line about each failure and long wait
	Getenv     func(string) string
	Environ    func() []string // default: os.Environ
	Version    string          // of the program
	CatalogURL string          // where to fetch the public catalogue of models; empty: nowhere
	Keychain   auth.Keychain   // has the user's logins that are not in files
	Supervisor string          // executable that supervises commands of the configuration; empty: none
	Log        *slog.Logger    // default: nothing is logged
}

func withDefaults(o Options) Options {
	if o.Environ == nil {
		o.Environ = os.Environ
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// maxCommandWait is how long the first question waits for commands of the configuration.
const maxCommandWait = 2 * time.Second

// setup is what a judge takes from the user's configuration: the models, the budget of the day, and
// the journal in which requests are recorded.
type setup struct {
	opts     Options
	stateDir string
	network  *netclient.Network
	children *proc.Pool
	commands *config.Commands
	creds    *auth.Store
	journal  *journal.Journal
	ledger   *spending.Ledger
	models   *providers.Models

	reading sync.Mutex // held while the configuration is read
	current atomic.Pointer[state]
}

// state is one reading of the configuration.
type state struct {
	config   *config.Loaded
	variants *catalog.Variants
}

func newSetup(o Options) *setup {
	s := &setup{opts: o, stateDir: settings.StateDir(o.Getenv), network: netclient.New(o.Getenv), children: proc.NewPool(o.Supervisor, 1)}
	s.commands = config.NewCommands(settings.Commands{Children: s.children, Getenv: o.Getenv}.Run, config.CommandTime)
	cacheDir := settings.CacheDir(o.Getenv)
	cfg := s.load()
	if cfg.Conformance().Offline { // as the daemon does
		s.stateDir = filepath.Join(cacheDir, "state")
	}
	s.creds = auth.New(s.stateDir, o.Keychain)
	s.journal = journal.New(s.stateDir, journal.Options{
		Clean: s.clean, Log: o.Log,
		Enabled: func() bool { return s.current.Load().config.Journal.Enabled },
		Limits: func() journal.Limits {
			j := s.current.Load().config.Journal
			return journal.Limits{Bytes: int64(j.MaxSizeMb) << 20, Age: time.Duration(j.RetentionDays) * 24 * time.Hour}
		},
	})
	s.use(cfg)
	s.ledger = spending.New(s.stateDir, time.Now, o.Log)
	s.models = providers.New(providers.Options{
		Current: func() (*config.Loaded, *catalog.Variants) {
			current := s.current.Load()
			return current.config, current.variants
		},
		Credentials:   func() *auth.Store { return s.creds },
		AwaitCommands: s.awaitCommands, Changed: func() {}, Network: s.network, Record: s.journal.Model,
		Getenv: o.Getenv, CacheDir: cacheDir, CatalogURL: o.CatalogURL, Version: o.Version,
		Log: o.Log, Now: time.Now, Sleep: llm.Sleep,
	})
	return s
}

// load reads the user's own configuration.
func (s *setup) load() *config.Loaded {
	in := config.Inputs{
		Getenv: s.opts.Getenv, ConfigHome: config.Home(s.opts.Getenv), Commands: s.commands, CommandWait: maxCommandWait,
	}
	if current := s.current.Load(); current != nil {
		in.Previous = current.config
	}
	return config.Load(in)
}

// use makes a configuration the current one, and applies its logins and certificates.
func (s *setup) use(cfg *config.Loaded) {
	settings.UseLoginStore(cfg, s.creds)
	s.network.Use(settings.Certificates(cfg, s.opts.Getenv))
	s.current.Store(&state{cfg, settings.Variants(cfg)})
}

// awaitCommands waits until the commands of the configuration are done, and applies their results.
func (s *setup) awaitCommands(ctx context.Context) {
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.current.Load().config.Pending {
		s.commands.Wait(ctx)
		s.use(s.load())
	}
}

// clean removes secrets from recorded text.
func (s *setup) clean(text string) string {
	secrets := settings.EnvironmentSecrets(s.opts.Environ())
	secrets = append(secrets, s.network.Proxies().Secrets()...)
	if logins, err := s.creds.All(); err == nil {
		secrets = append(secrets, settings.LoginSecrets(logins)...)
	}
	if current := s.current.Load(); current != nil {
		secrets = append(secrets, settings.Secrets(current.config, s.opts.Getenv)...)
	}
	return redact.New(secrets...).String(text)
}

func (s *setup) close() {
	s.commands.Close()
	s.creds.Close()
	s.network.Close()
	s.journal.Close()
	s.ledger.Close()
	s.children.Close()
}
