package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/txtest"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/server"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

func TestMain(m *testing.M) {
	// The pattern matcher keeps one clock for a moment after a match with a time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// rig is a daemon with a fake editor on real pipes and a scripted provider behind
// real HTTP.
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
	root   string
	init   map[string]any
	env    map[string]string               // beside the rig's own
	wrap   func(http.Handler) http.Handler // around the provider
	closed bool                            // do not open: the test does the handshake itself

	providers func(url string) map[string]any // beside mock, on the same server
}

// noServer is where nothing answers, in place of what may run on this machine.
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
	r.daemon = daemon.New(daemon.Options{
		Getenv: func(k string) string { return env[k] }, StateDir: r.state, CacheDir: filepath.Join(r.state, "cache"),
		Random: func() float64 { return 0.5 }, // waits are shown
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

// host is a daemon, or a test's stand-in for one.
type host interface {
	server.Host
	Close()
}

// serve serves the daemon over pipes of the system: a client reads from out and writes
// to in. All that goes over them is held to the rules. done is closed when the daemon
// has ended.
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

// tempDir is t.TempDir with links resolved, as paths in results are.
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
	needs.POSIX(t)
	txtest.Run(t, "testdata/*.txtar", *update, func(t *testing.T, c *txtest.Case) {
		o := recorded(t, options{model: c.Section("model.yaml"), root: tempDir(t)})
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

// transcript drives a rig and renders what was heard, with ids and times made equal.
type transcript struct {
	*rig
	served *scripted
	mark   int
	chat   string
	with   json.RawMessage // contexts of the next prompt
	lines  []string        // answers to requests, by the number of messages heard before
	names  map[string]string
}

// step runs one line of a script:
//
//	prompt TEXT         chat/prompt without a chat id the first time, then on that chat
//	promptas ID TEXT    chat/prompt with an id
//	with JSON           contexts of the next prompt
//	finished N          wait until N turns have ended
//	await TYPE PIECE... wait for a content
//	approve ID | approve-session ID | reject ID | reject-go-on ID
//	call METHOD JSON    any request
//	notify METHOD JSON  any notification
//	heard METHOD PIECE... wait for any message
//	served TEXT         wait until the MCP server has heard it
//	answer METHOD JSON  how requests of the daemon are answered from now on
//	answers METHOD LIST how they are answered, one after the other
//	stop | trust TEXT | delete
func (s *transcript) step(t *testing.T, line string) {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	prompt := func(params map[string]any) {
		var res struct{ ChatID string }
		raw := s.Call("chat/prompt", params)
		if err := json.Unmarshal(raw, &res); err != nil {
			t.Fatal(err)
		}
		s.chat = res.ChatID
		s.lines = append(s.lines, "result "+string(raw))
	}
	params := map[string]any{"message": rest}
	if s.chat != "" {
		params["chatId"] = s.chat
	}
	if s.with != nil && verb != "with" {
		params["contexts"], s.with = s.with, nil
	}
	decide := func(method string, extra map[string]any) {
		p := map[string]any{"chatId": s.chat, "toolCallId": rest}
		merge(p, extra)
		s.Notify(method, p)
	}
	switch verb {
	case "with":
		s.with = json.RawMessage(strings.ReplaceAll(rest, "$WS", s.root))
	case "prompt":
		prompt(params)
	case "trust":
		params["trust"] = true
		prompt(params)
	case "promptas":
		id, text, _ := strings.Cut(rest, " ")
		prompt(map[string]any{"chatId": id, "message": text})
	case "finished":
		n := 0
		fmt.Sscan(rest, &n)
		s.Await(s.mark, line, fake.Times(n, "chat/contentReceived", `"state":"finished"`))
	case "await":
		kind, pieces, _ := strings.Cut(rest, " ")
		s.Await(s.mark, line, fake.Content(kind, strings.Fields(pieces)...))
	case "call":
		method, params, _ := strings.Cut(rest, " ")
		s.lines = append(s.lines, "result "+string(s.Call(method, json.RawMessage(strings.ReplaceAll(params, "$WS", s.root)))))
	case "notify":
		method, params, _ := strings.Cut(rest, " ")
		s.Notify(method, json.RawMessage(strings.ReplaceAll(params, "$WS", s.root)))
	case "served":
		s.served.await(rest)
	case "heard":
		method, pieces, _ := strings.Cut(rest, " ")
		s.Await(0, line, fake.Contains(method, strings.Fields(pieces)...))
	case "answer":
		method, result, _ := strings.Cut(rest, " ")
		s.Answer(method, func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(result), nil })
	case "answers":
		method, results, _ := strings.Cut(rest, " ")
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(results), &list); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		s.Answer(method, func(context.Context, json.RawMessage) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if len(list) == 0 {
				return nil, errors.New("no answer is left")
			}
			next := list[0]
			list = list[1:]
			return next, nil
		})
	case "approve":
		decide("chat/toolCallApprove", nil)
	case "approve-session":
		decide("chat/toolCallApprove", map[string]any{"save": "session"})
	case "reject":
		decide("chat/toolCallReject", nil)
	case "reject-go-on":
		decide("chat/toolCallReject", map[string]any{"goOn": true})
	case "stop":
		s.Notify("chat/promptStop", map[string]any{"chatId": s.chat})
	case "delete":
		s.lines = append(s.lines, "result "+string(s.Call("chat/delete", map[string]any{"chatId": s.chat})))
	default:
		t.Fatalf("unknown step %q", line)
	}
}

// render returns what was heard, one line each: deltas are merged, since how they
// are cut is a matter of timing.
func (s *transcript) render(t *testing.T) string {
	t.Helper()
	var out []map[string]any
	for _, m := range s.Since(s.mark) {
		scoped := m.Method == "config/updated" && strings.Contains(string(m.Params), `"chatId"`)
		if !strings.HasPrefix(m.Method, "chat/") && !scoped {
			continue
		}
		var p map[string]any
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		p["method"] = strings.TrimPrefix(m.Method, "chat/")
		if n := len(out); n > 0 && mergeDelta(out[n-1], p) {
			continue
		}
		out = append(out, p)
	}
	var b strings.Builder
	for _, l := range s.lines {
		b.WriteString(s.normal(l) + "\n")
	}
	for _, p := range settle(out) {
		method := p["method"]
		delete(p, "method")
		if c, ok := p["content"].(map[string]any); ok {
			for _, k := range []string{"totalTimeMs"} {
				if _, ok := c[k]; ok {
					c[k] = 0
				}
			}
			delete(c, "contextBreakdown") // tested by itself
		}
		raw, err := marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", method, s.normal(raw))
	}
	return b.String()
}

// mergeDelta adds a delta to the message before it.
func mergeDelta(last, next map[string]any) bool {
	a, ok1 := last["content"].(map[string]any)
	b, ok2 := next["content"].(map[string]any)
	if !ok1 || !ok2 || a["type"] != b["type"] || last["role"] != next["role"] || a["id"] != b["id"] || last["chatId"] != next["chatId"] {
		return false
	}
	field := map[any]string{"text": "text", "reasonText": "text", "toolCallPrepare": "argumentsText"}[a["type"]]
	if field == "" || a["type"] == "text" && last["role"] != "assistant" {
		return false
	}
	a[field] = a[field].(string) + b[field].(string)
	return true
}

func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSpace(b.String()), err
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// What /context shows depends a little on the names of folders; TestContextPicture has
// the numbers.
var picture = regexp.MustCompile(`(?:[🟦🟪🟨🟫🟧🟥🟩⬜]{10}\\n){10}`)

var estimates = regexp.MustCompile(`(- [🟦🟪🟨🟫🟧🟥🟩] [^:\\]+): [\d,]+( \([\d.]+%\))?`)

var clock = regexp.MustCompile(`Resuming at \d\d:\d\d`)

// normal replaces what differs from run to run.
func (s *transcript) normal(line string) string {
	line = strings.ReplaceAll(line, s.root, "$WS")
	line = picture.ReplaceAllString(line, "(picture)\\n")
	line = estimates.ReplaceAllString(line, "$1: N")
	line = clock.ReplaceAllString(line, "Resuming at 00:00")
	return uuids.ReplaceAllStringFunc(line, func(id string) string {
		if s.names[id] == "" {
			s.names[id] = fmt.Sprintf("id-%d", len(s.names)+1)
		}
		return s.names[id]
	})
}

// renderRequests returns what the model was sent, without prompts and tools.
func (s *transcript) renderRequests(t *testing.T) string {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.requests {
		var body map[string]any
		if err := json.Unmarshal(r.body, &body); err != nil {
			t.Fatal(err)
		}
		for _, k := range []string{"instructions", "system", "systemInstruction", "tools", "toolConfig", "prompt_cache_key", "model", "store", "stream", "stream_options", "include", "parallel_tool_calls"} {
			delete(body, k)
		}
		if msgs, ok := body["messages"].([]any); ok && len(msgs) > 0 {
			if first, _ := msgs[0].(map[string]any); first["role"] == "system" {
				body["messages"] = msgs[1:]
			}
		}
		raw, err := marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", r.path, s.normal(raw))
	}
	return b.String()
}
