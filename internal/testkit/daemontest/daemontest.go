// Package daemontest provides a workspace, a scripted model behind a real HTTP server, and real
// daemons, for tests of the packages through which clients use a daemon.
//
// It removes everything that it creates when the test ends, and it does not use the user's
// configuration.
package daemontest

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// Object is JSON.
type Object = map[string]any

// Main runs the tests of a package, and fails if goroutines are left.
func Main(m *testing.M) {
	// regexp2 keeps a clock goroutine running for a moment after a match with a timeout.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// World is the environment of a test: a workspace, a model and the settings of daemons.
type World struct {
	t     testing.TB
	dir   string
	Root  string            // the workspace, links resolved
	Env   map[string]string // of daemons that are started
	Heard chan struct{}     // one element for each request to the model, up to 100

	mu       sync.Mutex // guards requests
	requests []string
}

// New creates a workspace and a model that plays a cassette. model is the text of the cassette
// without the first line. The models mock/m and mock/n both play it. change may be nil; otherwise it
// changes the configuration.
func New(t testing.TB, model string, change func(config Object)) *World {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{t: t, dir: dir, Root: filepath.Join(dir, "workspace"), Heard: make(chan struct{}, 100)}
	if err := os.Mkdir(w.Root, 0o755); err != nil {
		t.Fatal(err)
	}
	player, err := cassette.Parse([]byte("cassette: 1\n" + model))
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(player.Handler(func(_ string, body []byte) {
		w.mu.Lock()
		w.requests = append(w.requests, string(body))
		w.mu.Unlock()
		select {
		case w.Heard <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(provider.Close)
	config := Object{
		"defaultModel": "mock/m", "chat": Object{"title": false},
		"lsp": false, // no test depends on the language servers of the machine
		"providers": Object{"mock": Object{
			"api": "openai-responses", "url": provider.URL + "/v1", "key": "sk-mock-0123456789", "fetchModels": false,
			"retry": Object{"baseDelayMs": 1, "maxRetries": 1},
			"models": Object{
				"m": Object{"variants": Object{"low": Object{"effort": 1}, "high": Object{"effort": 2}}, "limit": Object{"context": 1000, "output": 100}},
				"n": Object{},
			},
		}},
	}
	if change != nil {
		change(config)
	}
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	w.Env = map[string]string{
		"ECA_CONFIG": string(text), "OLLAMA_API_URL": "http://127.0.0.1:1", "XDG_CONFIG_HOME": filepath.Join(dir, "config"), "PATH": os.Getenv("PATH"),
	}
	return w
}

// Requests returns the bodies of the requests to the model.
func (w *World) Requests() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.requests)
}

// State returns the folder in which daemons store chats.
func (w *World) State() string { return filepath.Join(w.dir, "state") }

// Daemon starts a daemon. The caller must close it.
func (w *World) Daemon() *daemon.Daemon {
	return daemon.New(daemon.Options{
		Getenv: func(k string) string { return w.Env[k] }, StateDir: w.State(), CacheDir: filepath.Join(w.dir, "cache"),
	})
}

// Write writes a file of the workspace and returns its path.
func (w *World) Write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.Root, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}
