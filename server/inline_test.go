package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// newInlineRig is a rig that has started, so that no other messages arrive.
func newInlineRig(t *testing.T, o options) *rig {
	t.Helper()
	r := newRig(t, o)
	r.Await(0, "the start", fake.Ready())
	return r
}

// observedProvider serves a cassette and reports when each request begins and ends, also if the client
// closes it.
func observedProvider(t *testing.T, tape string) (config map[string]any, began, ended <-chan struct{}) {
	t.Helper()
	player, err := cassette.Parse([]byte(tape))
	if err != nil {
		t.Fatal(err)
	}
	play, beginnings, ends := player.Handler(nil), make(chan struct{}, 10), make(chan struct{}, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		beginnings <- struct{}{}
		play.ServeHTTP(w, r)
		ends <- struct{}{}
	}))
	t.Cleanup(srv.Close)
	return map[string]any{
		"providers":  map[string]any{"slow": map[string]any{"api": "openai-chat", "url": srv.URL, "key": "k", "fetchModels": false}},
		"rewrite":    map[string]any{"model": "slow/s"},
		"completion": map[string]any{"model": "slow/s"},
	}, beginnings, ends
}

func rewriteParams(id, prompt string, more map[string]any) map[string]any {
	p := map[string]any{"id": id, "text": "old()\n", "prompt": prompt, "path": nil, "range": map[string]any{
		"start": map[string]any{"line": 2, "character": 0}, "end": map[string]any{"line": 3, "character": 0},
	}}
	merge(p, more)
	return p
}

func rewriteEnded() fake.Expectation {
	return func(heard []fake.Message) fake.Verdict {
		for _, kind := range []string{"finished", "error"} {
			if fake.Contains("rewrite/contentReceived", `"type":"`+kind+`"`)(heard) == fake.Met {
				return fake.Met
			}
		}
		return fake.Unmet
	}
}

// renderRewrite renders the messages since a mark: types, and merged texts.
func renderRewrite(t *testing.T, r *rig, mark int) string {
	t.Helper()
	var out strings.Builder
	for _, m := range r.Since(mark) {
		var p struct {
			RewriteID string
			Content   struct {
				Type, Text, Message string
				TotalTimeMs         *int64
			}
		}
		if err := json.Unmarshal(m.Params, &p); err != nil || m.Method != "rewrite/contentReceived" {
			t.Fatalf("%s: %v", m, err)
		}
		switch c := p.Content; {
		case c.Type == "text":
			out.WriteString(c.Text)
		case c.Type == "finished" && c.TotalTimeMs == nil:
			t.Errorf("finished without a time: %s", m)
		default:
			fmt.Fprintf(&out, "[%s %s%s]", p.RewriteID, c.Type, c.Message)
		}
	}
	return out.String()
}

const rewrites = `
cassette: 1
turns:
  - user: '^plain'
    steps: [{text: "new(1)\nnew(2)"}]
  - user: '^fenced'
    steps: [{reasoning: "let me see", text: "` + "```go\\nnew(1)\\n```\\n" + `"}]
  - user: '^remove'
    steps: [{text: "` + "```\\n```" + `"}]
  - user: '^silent'
    steps: [{text: ""}]
  - user: '^refused'
    steps: [{error: {status: 401, message: "bad key"}}]
  - user: '^cut'
    steps: [{text: "half of", cut: true}]
`

// Covers: rewrite/prompt, rewrite/contentReceived
func TestRewrite(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"openai-responses", "openai-chat"} {
		r := newInlineRig(t, options{model: rewrites, api: api})
		for _, c := range []struct{ prompt, want string }{
			{"plain", "[1 started]new(1)\nnew(2)\n[1 finished]"},
			{"fenced", "[1 started][1 reasoning]new(1)\n[1 finished]"},
			{"remove", "[1 started][1 finished]"},
			{"silent", "[1 errorthe model answered without text]"},
			{"refused", "[1 errormock answered 401 Unauthorized: bad key. The key is providers.mock.key of ECA_CONFIG:1: change it there]"},
			{"cut", "[1 started]half of[1 errormock closed the connection in the middle of its answer]"},
		} {
			mark := r.Mark()
			if res := r.Call("rewrite/prompt", rewriteParams("1", c.prompt, nil)); string(res) != `{"status":"prompting","model":"mock/m"}` {
				t.Errorf("%s: answered %s", c.prompt, res)
			}
			r.Await(mark, "the end of "+c.prompt, rewriteEnded())
			// A stray message after the end would arrive before this answer.
			_, _ = r.TryCall("unknown/thing", nil)
			if got := renderRewrite(t, r, mark); got != c.want {
				t.Errorf("%s, %s: %q, want %q", api, c.prompt, got, c.want)
			}
		}
		talk := r.Conversation()
		if answer, started := strings.Index(talk, `"prompting"`), strings.Index(talk, `"started"`); answer < 0 || answer > started {
			t.Errorf("started before the answer:\n%s", talk)
		}
	}
}

// The model sees the instruction, the selection, and as many lines of its file as fullFileMaxLines allows.
func TestRewriteContext(t *testing.T) {
	t.Parallel()
	root := tempDir(t)
	path := filepath.Join(root, "main.go")
	file := "top\nold()\nbelow\n" + strings.Repeat("far away\n", 100_000)
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newInlineRig(t, options{model: rewrites, api: "openai-chat", root: root, config: map[string]any{"rewrite": map[string]any{"fullFileMaxLines": 4}}})
	for _, at := range []string{path, "main.go", "file://" + path, filepath.Join(root, "unsaved.go"), root} {
		mark := r.Mark()
		r.Call("rewrite/prompt", rewriteParams("x", "plain", map[string]any{"path": at}))
		r.Await(mark, "the end", rewriteEnded())
		r.mu.Lock()
		var body struct {
			Messages []struct{ Role, Content string }
		}
		err := json.Unmarshal(r.requests[len(r.requests)-1].body, &body)
		r.mu.Unlock()
		if err != nil || len(body.Messages) != 2 || !strings.Contains(body.Messages[0].Content, "[[selection begins]]") {
			t.Fatalf("%v: %+v", err, body)
		}
		var want string
		switch at {
		case filepath.Join(root, "unsaved.go"), root:
			want = fmt.Sprintf("<context label=\"selection in %s\">\nold()\n</context>", at)
		default:
			want = fmt.Sprintf("<context label=%q>\ntop\n[[selection begins]]\nold()\n[[selection ends]]\nbelow\nfar away\n[[99999 lines left out]]\n</context>", path) +
				"\n\n" + fmt.Sprintf("<context label=\"selection in %s\">\nold()\n</context>", path)
		}
		if got := body.Messages[1].Content; got != "plain" {
			t.Errorf("%s: the message is %s", at, got)
		}
		if _, got, _ := strings.Cut(body.Messages[0].Content, "\n\n<context"); "<context"+got != want {
			t.Errorf("%s:\n%s", at, got)
		}
	}
}

// A newer rewrite with the same id takes over; others continue.
func TestRewriteTakesOver(t *testing.T) {
	t.Parallel()
	config, _, ended := observedProvider(t, `
cassette: 1
turns:
  - user: '^first'
    steps: [{text: 'one two', hang: true}]
  - user: '^second'
    steps: [{text: 'three'}]
`)
	r := newInlineRig(t, options{config: config})
	mark := r.Mark()
	r.Call("rewrite/prompt", rewriteParams("a", "first", nil))
	r.Call("rewrite/prompt", rewriteParams("b", "first", nil))
	r.Await(mark, "both", fake.Times(2, "rewrite/contentReceived", `"two"`))
	mark = r.Mark()
	r.Call("rewrite/prompt", rewriteParams("a", "second", nil))
	r.Await(mark, "the end", rewriteEnded())
	<-ended
	<-ended // the first and the second request of rewrite a
	if got := renderRewrite(t, r, mark); got != "[a started]three\n[a finished]" {
		t.Errorf("heard %q", got)
	}
	// The client disconnects: the remaining rewrite ends too.
	r.Notify("exit", nil)
	<-ended
}

func completionParams(more map[string]any) map[string]any {
	p := map[string]any{"docText": "func add() {\n\t\n}\n", "docVersion": 7, "position": map[string]any{"line": 2, "character": 2}}
	merge(p, more)
	return p
}

// Covers: completion/inline
func TestCompletion(t *testing.T) {
	t.Parallel()
	r := newInlineRig(t, options{api: "openai-chat", model: `
cassette: 1
turns:
  - user: 'func add\(\) \{\n\t</before><after>\n\}\n</after>'
    steps: [{reasoning: "hm", text: "return a + b\n"}]
  - user: 'func fenced'
    steps: [{text: "` + "```go\\nreturn 1\\n```" + `"}]
  - user: 'func nothing'
    steps: [{text: ""}]
  - user: 'func blank'
    steps: [{text: "\n \n"}]
  - user: 'func limited'
    steps: [{error: {status: 429, message: "slow down"}}]
  - user: 'func refused'
    steps: [{error: {status: 401, message: "bad key"}}]
  - user: 'func long'
    steps: [{text: "too", stop: length}]
`})
	const want = `{"items":[{"text":%q,"docVersion":7,"range":{"start":{"line":2,"character":2},"end":{"line":2,"character":2}}}]}`
	// Emacs writes two keys its own way (eca-protocol.md 2.2).
	emacs := completionParams(map[string]any{"path": "/x/a.go"})
	emacs["doc-text"], emacs["doc-version"] = emacs["docText"], emacs["docVersion"]
	delete(emacs, "docText")
	delete(emacs, "docVersion")
	for _, params := range []map[string]any{completionParams(nil), emacs} {
		if res := r.Call("completion/inline", params); string(res) != fmt.Sprintf(want, "return a + b") {
			t.Errorf("answered %s", res)
		}
	}
	document := func(name string) map[string]any {
		return completionParams(map[string]any{"docText": "func " + name + "() {\n\t\n}"})
	}
	if res := r.Call("completion/inline", document("fenced")); string(res) != fmt.Sprintf(want, "return 1") {
		t.Errorf("fenced: %s", res)
	}
	// The error object itself has the reason (eca-protocol.md 4.13).
	for name, want := range map[string]string{
		"nothing": `"error":{"code":-32803,"message":"no completion at this position","type":"info"}}`,
		"blank":   `"error":{"code":-32803,"message":"no completion at this position","type":"info"}}`,
		"limited": `"error":{"code":-32803,"message":"mock answered 429 Too Many Requests: slow down","type":"warning"}}`,
		"refused": `"error":{"code":-32803,"message":"mock answered 401 Unauthorized: bad key. The key is providers.mock.key of ECA_CONFIG:1: change it there","type":"error"}}`,
		"long":    `"error":{"code":-32803,"message":"the answer reached the model's output limit and is not complete","type":"error"}}`,
	} {
		if res, err := r.TryCall("completion/inline", document(name)); err == nil {
			t.Errorf("%s: %s", name, res)
		}
		r.AwaitResponse(name, want)
	}
}

// A cancelled completion ends at the provider too.
func TestCompletionCancelled(t *testing.T) {
	t.Parallel()
	config, began, ended := observedProvider(t, "cassette: 1\ndefault:\n  steps:\n    - {text: 'one two', hang: true}\nturns: []\n")
	r := newInlineRig(t, options{config: config})
	cancel := r.Begin("completion/inline", completionParams(nil))
	<-began
	cancel()
	r.AwaitResponse("the answer to a cancelled request", `"code":-32800`)
	<-ended
}

func TestInlineUnknownModels(t *testing.T) {
	t.Parallel()
	r := newInlineRig(t, options{config: map[string]any{
		"rewrite": map[string]any{"model": "nowhere/r"}, "completion": map[string]any{"model": "mock2/c"},
	}})
	mark := r.Mark()
	if _, err := r.TryCall("rewrite/prompt", rewriteParams("1", "x", nil)); err == nil || !strings.Contains(err.Error(), "nowhere/r") {
		t.Errorf("rewrite: %v", err)
	}
	if _, err := r.TryCall("completion/inline", completionParams(nil)); err == nil || !strings.Contains(err.Error(), "mock2/c") {
		t.Errorf("completion: %v", err)
	}
	r.AwaitResponse("the type", `mock2/c`, `"type":"error"`)
	if heard := r.Since(mark); len(heard) > 0 {
		t.Errorf("heard %v", heard)
	}
}

func TestBadInline(t *testing.T) {
	t.Parallel()
	r := newInlineRig(t, options{})
	mark := r.Mark()
	for want, params := range map[string]any{
		"id is missing":                       rewriteParams("", "x", nil),
		"text is missing":                     rewriteParams("1", "x", map[string]any{"text": nil}),
		"prompt is missing":                   rewriteParams("1", "", nil),
		"text must be a string, not a number": rewriteParams("1", "x", map[string]any{"text": 7}),
		"must be an object":                   "x",
	} {
		_, _ = r.TryCall("rewrite/prompt", params)
		r.AwaitResponse(want, `"code":-32602`, "rewrite/prompt: ", want)
	}
	position := func(line, character any) map[string]any {
		return completionParams(map[string]any{"position": map[string]any{"line": line, "character": character}})
	}
	for want, params := range map[string]any{
		"docText must be a string": completionParams(map[string]any{"docText": []any{}}),
		"9:1 of 4 lines":           position(9, 1),
		"0:1 of 4 lines":           position(0, 1),
		"2:0 of 4 lines":           position("2", nil),
		"0:0 of 1 lines":           map[string]any{},
	} {
		_, _ = r.TryCall("completion/inline", params)
		r.AwaitResponse(want, `"code":-32602`, want)
	}
	if heard := r.Since(mark); len(heard) > 0 {
		t.Errorf("heard %v", heard)
	}
}
