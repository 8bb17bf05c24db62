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
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/llm"
)

// Options has the dependencies and settings that differ between a real start and a test, and between
// commands. It has more than 25 fields because each is set alone by some command or test.
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
	Keychain   auth.Keychain       // stores secrets if it accepts them; nil: they are stored in a file
	Supervisor string              // executable that supervises children (proc.NewPool); empty: none
	Log        *slog.Logger        // default: slog.Default
	Now        func() time.Time    // default: time.Now
	NewID      func() string       // default: random UUIDs

	// CommandTime limits each ${cmd:...} of the configuration; default: config.CommandTime. If it is
	// negative, none runs, and a mark replaces the output.
	CommandTime time.Duration

	// RetryTotal is how long after its beginning a request may be retried, unless the configuration
	// sets the number of retries; 0 means no limit. The last attempt may take longer.
	RetryTotal time.Duration

	// Unasked replaces toolCall.unasked of the user's configuration unless it is empty.
	Unasked string

	// TurnBudget replaces the limits of budget.turn of the user's configuration that are of the same
	// kinds: money, tokens, time.
	TurnBudget []string

	// OnlyCommandQuestions limits the questions to the client to those about what the sandbox
	// stopped or moved away: models cannot ask the user, and eca does not ask for trust.
	OnlyCommandQuestions bool

	// Ephemeral keeps chats, and the records of calls, in a folder that is removed by Close.
	Ephemeral bool

	// ReadChats means that chats are only read: the chat store is not converted to the format of this
	// version, and searches index them in memory if nothing can be written.
	ReadChats bool

	// WrapStore wraps the chat store; nil means no wrapper.
	WrapStore func(chat.Store) chat.Store

	// OpenURL opens a URL in the user's browser; nil: not possible.
	OpenURL func(ctx context.Context, url string) error

	// Sleep waits between polls for the end of a login, and until a missing configuration file
	// counts as removed; default: llm.Sleep.
	Sleep  func(context.Context, time.Duration) error
	Random func() float64 // in [0,1), the jitter of retry delays; default: random
}

func (o Options) openStore(dir string) *store.Store {
	if o.ReadChats {
		return store.NewReader(dir)
	}
	return store.New(dir)
}

// ownFolders returns eca's own folders, whose content decides what eca does and is allowed to do.
// ephemeralDir is the folder of --ephemeral, or empty.
func (o Options) ownFolders(ephemeralDir string) (dirs []string) {
	for _, dir := range []string{config.Home(o.Getenv), o.StateDir, o.CacheDir, ephemeralDir} {
		if abs, err := filepath.Abs(dir); err == nil && dir != "" {
			dirs = append(dirs, abs)
		}
	}
	return dirs
}

// ownFiles returns eca's own files in other folders.
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

// withDefaults fills in the defaults of fields that are not set.
func withDefaults(o Options) Options {
	if o.Environ == nil {
		o.Environ = defaultEnviron(o)
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
