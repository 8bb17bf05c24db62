package server_test

import (
	"context"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/server"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

func TestMain(m *testing.M) {
	// The pattern matcher keeps a clock running for a moment after a match with a time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// rig is a daemon with a fake editor on real pipes and a scripted provider behind real HTTP.
type rig struct {
	*fake.Editor
	root   string // workspace folder
	state  string
	daemon *daemon.Daemon

	mu       sync.Mutex // guards requests
	requests []request
}

type request struct {
	path string
	body []byte
}

// options of a rig.
type options struct {
	model  string         // cassette
	config map[string]any // merged over the rig's own
	api    string         // openai-responses unless set
	state  string         // keeps the store of an earlier rig
	record string         // a folder for recordings
	root   string
	init   map[string]any
	env    map[string]string               // in addition to the rig's own
	wrap   func(http.Handler) http.Handler // around the provider
	closed bool                            // do not open: the test does the handshake
	store  func(chat.Store) chat.Store     // around the store of chats

	providers func(url string) map[string]any // in addition to mock, on the same server
}

// noServer is an address without a server, instead of one that may run on this machine.
const noServer = "http://127.0.0.1:1"

func newRig(t testing.TB, o options) *rig {
	t.Helper()
	r := newHost(t, o)
	r.Editor = connect(t, r.daemon)
	if !o.closed {
		r.Open(r.root, o.init)
	}
	return r
}

// newHost is a rig without an editor.
func newHost(t testing.TB, o options) *rig {
	t.Helper()
	r := &rig{root: o.root, state: o.state}
	if r.root == "" {
		r.root = tempDir(t)
	}
	if r.state == "" {
		r.state = tempDir(t)
	}
	if o.model == "" {
		o.model = "cassette: 1\nturns: []\n"
	}
	if o.api == "" {
		o.api = "openai-responses"
	}
	player, err := cassette.Parse([]byte(o.model))
	if err != nil {
		t.Fatal(err)
	}
	handler := player.Handler(func(path string, body []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, request{path, body})
	})
	if o.wrap != nil {
		handler = o.wrap(handler)
	}
	provider := httptest.NewServer(handler)
	t.Cleanup(provider.Close)
	cfg := map[string]any{
		"providers": map[string]any{"mock": map[string]any{
			"api": o.api, "url": provider.URL + "/v1", "key": "sk-mock", "fetchModels": false,
			"retry":  map[string]any{"baseDelayMs": 1, "maxRetries": 2},
			"models": map[string]any{"m": map[string]any{"imageInput": true, "limit": map[string]any{"context": 1000, "output": 100}, "cost": map[string]any{"input": 100, "output": 200}}},
		}},
		"defaultModel": "mock/m",
		"chat":         map[string]any{"title": false},
	}
	if o.providers != nil {
		merge(cfg, map[string]any{"providers": o.providers(provider.URL + "/v1")})
	}
	merge(cfg, o.config)
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ECA_CONFIG": string(raw), "OLLAMA_API_URL": noServer, "XDG_CONFIG_HOME": filepath.Join(r.state, "config")}
	maps.Copy(env, o.env)
	began := time.Now()
	noon := time.Date(began.Year(), began.Month(), began.Day(), 12, 0, 0, 0, time.Local)
	r.daemon = daemon.New(daemon.Options{
		Getenv: func(k string) string { return env[k] }, StateDir: r.state, CacheDir: filepath.Join(r.state, "cache"), RecordDir: o.record,
		Random:    func() float64 { return 0.5 },                           // waits are shown
		Now:       func() time.Time { return noon.Add(time.Since(began)) }, // no day ends during a test
		WrapStore: o.store,
	})
	return r
}

// connect serves the daemon to a fake editor over pipes of the system.
func connect(t testing.TB, d *daemon.Daemon, traces ...func(incoming bool, body []byte)) *fake.Editor {
	t.Helper()
	out, in, done := serve(t, d, traces...)
	t.Cleanup(func() {
		_ = in.Close()
		<-done
	})
	return fake.Connect(t, out, in)
}

// host is a daemon, or a test double for one.
type host interface {
	server.Host
	Close()
}

// serve serves the daemon over pipes of the system: a client reads from out and writes to in. All
// messages are checked against the rules. done is closed when the daemon has ended.
func serve(t testing.TB, d host, traces ...func(incoming bool, body []byte)) (out, in *os.File, done <-chan struct{}) {
	t.Helper()
	toServerR, toServerW := pipe(t)
	toEditorR, toEditorW := pipe(t)
	rules, ended := newRules(t), make(chan struct{})
	go func() {
		defer close(ended)
		trace := func(incoming bool, body []byte) {
			for _, trace := range append(traces, rules.trace) {
				trace(incoming, body)
			}
		}
		o := server.Options{Host: d, Version: "test", Trace: trace}
		if err := server.Serve(context.Background(), toServerR, rules.watchWrites(toEditorW), o); err != nil {
			t.Error(err)
		}
		d.Close()
		_ = toServerR.Close()
		_ = toEditorW.Close()
	}()
	return toEditorR, toServerW, ended
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// tempDir is t.TempDir with links resolved, like the paths in results.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func merge(base, over map[string]any) {
	for k, v := range over {
		if sub, ok := v.(map[string]any); ok {
			if b, ok := base[k].(map[string]any); ok {
				merge(b, sub)
				continue
			}
		}
		base[k] = v
	}
}

// TestScenarios runs testdata/*.txtar. Sections:
//
//	model.yaml      the provider's script (see llm/cassette)
//	initialize.json parameters of initialize over the editor's own
//	config.json     configuration over the rig's own; "api" chooses the wire format
//	mcp.json        what an MCP server says (scriptedMCP); $MCP in the configuration is its address
//	ws/*            files of the workspace
//	script          what the editor does, see step
//	want            golden: what the editor hears
//	requests        golden, optional: what the model is sent
//	served          golden, optional: what the MCP server hears
//	after/*         golden: files of the workspace afterwards
func TestScenarios(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	testkit.RunCases(t, "testdata/*.txtar", *update, func(t *testing.T, c *testkit.Case) {
		o := withJournalCheck(t, options{model: c.Section("model.yaml"), root: tempDir(t)})
		if s := c.Section("config.json"); s != "" {
			if err := json.Unmarshal([]byte(s), &o.config); err != nil {
				t.Fatal(err)
			}
			o.api, _ = o.config["api"].(string)
			delete(o.config, "api")
		}
		if s := c.Section("initialize.json"); s != "" {
			if err := json.Unmarshal([]byte(s), &o.init); err != nil {
				t.Fatal(err)
			}
		}
		c.Unpack("ws/", o.root)
		served := scriptedMCP(t, c.Section("mcp.json"), o.config)
		r := newRig(t, o)
		r.Await(0, "the start", fake.Ready())
		mark := r.Mark()
		transcript := &transcript{rig: r, served: served, mark: mark, names: map[string]string{}}
		for line := range strings.Lines(c.Section("script")) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				transcript.step(t, line)
			}
		}
		c.Golden("want", transcript.render(t), true)
		c.Golden("requests", transcript.renderRequests(t), false)
		c.Golden("served", transcript.normal(served.conversation()), false)
		if s := c.Section("script"); transcript.chat != "" && !strings.Contains(s, "delete") {
			checkReplay(t, r, transcript.chat, r.Since(mark))
		}
		for _, path := range []string{"a.txt", "new.txt"} {
			data, err := os.ReadFile(filepath.Join(r.root, path))
			if err == nil {
				c.Golden("after/"+path, string(data), false)
			}
		}
	})
}
