package daemon

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/llm"
)

// Options are what differs between a real start and a test.
type Options struct {
	Getenv     func(string) string // default: os.Getenv
	Environ    func() []string     // default: os.Environ, or nothing if Getenv is set
	ConfigFile string              // --config-file
	StateDir   string              // default: $XDG_STATE_HOME/eca or ~/.local/state/eca
	CacheDir   string              // default: $XDG_CACHE_HOME/eca or ~/.cache/eca
	RecordDir  string              // --record; empty records nothing
	CatalogURL string              // where to fetch the public catalogue of models; empty: nowhere
	Executable string              // our own path, for children
	Version    string              // of eca, for /doctor and exported chats
	Command    []string            // how eca was started, for /doctor
	Keychain   auth.Keychain       // where secrets are kept, if it takes them; nil: in a file
	Supervisor string              // executable that supervises children (proc.NewPool); empty: none
	NoCommands bool                // ${cmd:...} of the configuration are not run; a mark stands for what they print
	Log        *slog.Logger        // default: slog.Default
	Now        func() time.Time    // default: time.Now
	NewID      func() string       // default: random UUIDs

	// RetryTotal bounds how long a request is waited for and repeated until it is answered, where the
	// configuration does not say how often; 0 means unbounded.
	RetryTotal time.Duration

	// Unasked replaces toolCall.unasked of the user's configuration; empty: it counts.
	Unasked string

	// TurnBudget replaces the limits of budget.turn of the user's configuration that are of the same
	// kinds: money, tokens, time.
	TurnBudget []string

	// OnlyCommandQuestions says that the client is asked about what the sandbox stopped or moved
	// away, and nothing else: models cannot ask the user, and trust is not asked for.
	OnlyCommandQuestions bool

	// Ephemeral keeps chats, and the records of calls, in a folder that is removed by Close.
	Ephemeral bool

	// WrapStore replaces the store of chats by one that uses it; nil keeps it as it is.
	WrapStore func(chat.Store) chat.Store

	// OpenURL has the user's browser open a URL; nil: not possible.
	OpenURL func(ctx context.Context, url string) error

	// Sleep waits between questions whether a login is done, and until a file of the
	// configuration counts as removed; default: for real.
	Sleep  func(context.Context, time.Duration) error
	Random func() float64 // in [0,1), spreads the waits before retries; default: random
}

// ownFolders are eca's own folders: what is in them decides what eca does and what it may.
// discarded is the one of what is not kept, or empty.
func (o Options) ownFolders(discarded string) (dirs []string) {
	for _, dir := range []string{config.Home(o.Getenv), o.StateDir, o.CacheDir, discarded} {
		if abs, err := filepath.Abs(dir); err == nil && dir != "" {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

// ownFiles are likewise files elsewhere.
func (o Options) ownFiles() []string {
	if o.ConfigFile == "" {
		return nil
	}
	abs, err := filepath.Abs(o.ConfigFile)
	if err != nil {
		return nil
	}
	return []string{abs}
}

// withDefaults fills in what is left to us.
func withDefaults(o Options) Options {
	if o.Environ == nil {
		o.Environ = environ(o)
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.WrapStore == nil {
		o.WrapStore = func(s chat.Store) chat.Store { return s }
	}
	if o.OpenURL == nil {
		o.OpenURL = func(context.Context, string) error { return errors.New("there is no browser") }
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Sleep == nil {
		o.Sleep = llm.Sleep
	}
	if o.StateDir == "" {
		o.StateDir = settings.StateDir(o.Getenv)
	}
	if o.CacheDir == "" {
		o.CacheDir = settings.CacheDir(o.Getenv)
	}
	return o
}
