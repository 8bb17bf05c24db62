package ollama

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers /api/show with shown, and /api/chat with chat. It notes the requests.
type server struct {
	*httptest.Server
	shown    string
	requests []string
}

func newServer(t *testing.T, shown string, chat http.HandlerFunc) *server {
	t.Helper()
	s := &server{shown: shown}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.requests = append(s.requests, r.URL.Path+" "+string(body))
		switch {
		case r.URL.Path != "/api/show":
			chat(w, r)
		case s.shown == "":
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(s.shown))
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s
}

func (s *server) endpoint(t *testing.T) llm.Endpoint {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return llm.Endpoint{Provider: "p", URL: s.URL + "/", Client: client, Limits: llm.DefaultLimits(), Now: time.Now}
}

func answer(m *Model, req llm.Request) string {
	var out deltas
	for d, err := range m.Stream(context.Background(), req) {
		out.add(d, err)
	}
	return out.String()
}

// deltas renders an answer.
type deltas []string

func (o *deltas) add(d llm.Delta, err error) {
	say := func(format string, args ...any) { *o = append(*o, fmt.Sprintf(format, args...)) }
	switch {
	case err != nil:
		say("!%s %s", llm.AsError(err).Kind, err)
	case d.Kind == llm.TextDelta:
		say("t:%s", d.Text)
	case d.Kind == llm.ReasoningStart:
		say("r+")
	case d.Kind == llm.ReasoningDelta:
		say("r:%s", d.Text)
	case d.Kind == llm.ReasoningEnd:
		say("r-%s", d.API)
	case d.Kind == llm.ToolStart:
		say("c+%s=%s", d.ID, d.Name)
	case d.Kind == llm.ToolArgs:
		say("c:%s=%s", d.ID, d.Text)
	case d.Kind == llm.ToolEnd:
		say("c-%s=%s", d.ID, d.Text)
	case d.Kind == llm.UsageDelta:
		say("u:%d,%d", d.Usage.Input, d.Usage.Output)
	case d.Kind == llm.StopDelta:
		say("stop:%s", d.Stop)
	}
}

func (o *deltas) String() string { return strings.Join(*o, "|") }

func read(r io.Reader) string {
	var out deltas
	s := stream{provider: "p", Emitter: llm.Emitter{Origin: "p/ollama", Yield: func(d llm.Delta, err error) bool {
		out.add(d, err)
		return true
	}}}
	if err := s.read(llm.NewNDJSONReader(r)); err != nil {
		out.add(llm.Delta{}, err)
	}
	return out.String()
}

const ndjson = "application/x-ndjson"

func respond(contentType string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// A whole turn, cut at every byte, on the wire and in the reader.
func TestTurnInPieces(t *testing.T) {
	raw, err := os.ReadFile("testdata/turn.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	call := func(id, name, args string) string {
		return fmt.Sprintf("c+%s=%s|c-%s=%s", id, name, id, args)
	}
	want := strings.Join([]string{
		"r+", "r:The user wants ", "r:both files.", "r-p/ollama", "t:Ich lese «ü».",
		call("call_1", "eca__read_file", `{"path":"/ws/a.txt"}`), call("call_x", "eca__read_file", `{"path":"/ws/b.txt"}`), call("call_3", "eca__grep", `{"pattern":"ü"}`),
		"u:169,45", "stop:tool_calls",
	}, "|")
	s := newServer(t, "", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", ndjson)
		for i := range raw {
			_, _ = w.Write(raw[i : i+1])
			w.(http.Flusher).Flush()
		}
	})
	if got := answer(New(s.endpoint(t), ""), llm.Request{Model: "m"}); got != want {
		t.Errorf("byte by byte:\ngot  %s\nwant %s", got, want)
	}
	for cut := range raw {
		if got := read(io.MultiReader(bytes.NewReader(raw[:cut]), bytes.NewReader(raw[cut:]))); got != want {
			t.Fatalf("cut at %d: %s", cut, got)
		}
	}
}

const done = `{"message":{"content":""},"done":true,"done_reason":"stop","prompt_eval_count":3,"eval_count":2}` + "\n"

func TestStream(t *testing.T) {
	const a = `{"message":{"content":"a"},"done":false}` + "\n"
	calls := func(calls string) string { return `{"message":{"content":"","tool_calls":[` + calls + `]}}` + "\n" }
	for name, c := range map[string]struct{ body, want string }{
		"text":                   {a + "\n\r\n" + done, "t:a|u:3,2|stop:end"},
		"no last newline":        {a + strings.TrimSpace(done), "t:a|u:3,2|stop:end"},
		"all in the last line":   {`{"message":{"content":"a","thinking":"x"},"done":true}`, "r+|r:x|r-p/ollama|t:a|stop:end"},
		"count as text":          {a + `{"done":true,"prompt_eval_count":"3","eval_count":2}`, "t:a|stop:end"},
		"negative count":         {a + `{"done":true,"prompt_eval_count":3,"eval_count":-2}`, "t:a|stop:end"},
		"length":                 {a + `{"done":true,"done_reason":"length"}`, "t:a|stop:length"},
		"only loaded":            {`{"done":true,"done_reason":"load"}`, "stop:end"},
		"thinking to the end":    {`{"message":{"thinking":"x"}}` + "\n" + done, "r+|r:x|r-p/ollama|u:3,2|stop:end"},
		"ids repeated":           {calls(`{"id":"x","function":{"name":"f"}},{"id":"x","function":{"name":"g","arguments":null}}`) + done, "c+x=f|c-x={}|c+call_2=g|c-call_2={}|u:3,2|stop:tool_calls"},
		"arguments in a string":  {calls(`{"function":{"name":"f","arguments":"{\"a\":1"}}`) + done, `c+call_1=f|c-call_1={"a":1|u:3,2|stop:tool_calls`},
		"after the end":          {done + a, "u:3,2|stop:end"},
		"nothing":                {"", "!unknown EOF"},
		"cut":                    {a, "t:a|stop:unmarked"},
		"cut in a line":          {a + done[:20], "t:a|stop:unmarked"},
		"cut after a call":       {calls(`{"function":{"name":"f"}}`), "c+call_1=f|c-call_1={}|stop:tool_calls"},
		"cut while thinking":     {`{"message":{"thinking":"x"}}` + "\n", "r+|r:x|!unknown EOF"},
		"as events of a proxy":   {": hello\nevent: message\ndata: " + a + "\ndata:" + done + "\ndata: [DONE]\n", "t:a|u:3,2|stop:end"},
		"only a reason at last":  {"data: " + a + "\ndata: {\"done_reason\":\"stop\"}\n\n", "t:a|stop:end"},
		"garbage":                {"<html>\n", `!malformed p sent something in its stream that is not of this API: "<html>"`},
		"error":                  {a + `{"error":"an error was encountered while running the model"}` + "\n", "t:a|!overloaded p failed: an error was encountered while running the model"},
		"error of another shape": {`{"error":{"message":"boom"}}` + "\n", "!overloaded p failed: boom"},
		"too long":               {`{"error":"request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"}`, "!context_overflow p failed: request (9000 tokens) exceeds the available context size (8192 tokens), try increasing it"},
	} {
		if got := read(strings.NewReader(c.body)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	fail := func(code int, message string) http.HandlerFunc {
		return respond("application/json", code, fmt.Sprintf(`{"error":%q}`, message))
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"too long":         {fail(400, "the prompt is longer than the context length currently available to the model"), "!context_overflow p answered 400 Bad Request: the prompt is longer"},
		"too long, as 500": {fail(500, "input exceeds the available context size"), "!context_overflow p answered 500"},
		"bad request":      {fail(400, "invalid options: num_ctx"), "!bad_request p answered 400 Bad Request: invalid options: num_ctx"},
		"not signed in":    {fail(401, "unauthorized"), "!auth p answered 401 Unauthorized: unauthorized"},
		"forbidden":        {fail(403, "cloud models are disabled"), "!auth p answered 403"},
		"no such model":    {fail(404, `model "x" not found, try pulling it first`), `!bad_request p answered 404 Not Found: model "x" not found, try pulling it first (ollama pull gets a model)`},
		"timeout":          {fail(408, "slow"), "!overloaded p answered 408"},
		"too large":        {fail(413, "large"), "!context_overflow p answered 413"},
		"rate limit":       {fail(429, "too many requests"), "!rate_limited p answered 429"},
		"no memory":        {fail(500, "model requires more system memory (7.5 GiB) than is available (5.2 GiB)"), "!bad_request p answered 500 Internal Server Error: model requires more system memory (7.5 GiB) than is available (5.2 GiB). Choose a smaller model"},
		"runner died":      {fail(500, "llama runner process has terminated: signal: killed"), "!overloaded p answered 500"},
		"busy":             {fail(503, "server busy, please try again.  maximum pending requests exceeded"), "!overloaded p answered 503"},
		"overloaded":       {fail(529, "busy"), "!overloaded p answered 529"},
		"not a stream":     {respond("text/html", 200, "<h1>Log in</h1>"), "!protocol p answered with a web page (text/html), which is not its API: \"Log in\""},
		"garbage":          {respond(ndjson, 200, "???\n"), `!malformed p sent something in its stream that is not of this API: "???"`},
		"huge line":        {respond(ndjson, 200, strings.Repeat("x", 17<<20)), "!protocol p: an event of the stream is larger than 16 MiB"},
		"cut":              {respond(ndjson, 200, `{"message":{"content":"a"}}`+"\n"), "t:a|stop:unmarked"},
		"connection cut": {func(w http.ResponseWriter, r *http.Request) {
			respond(ndjson, 200, `{"message":{"tool_calls":[{"function":{"name":"f"}}]}}`+"\n{")(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "c+call_1=f|c-call_1={}|!premature_stop p closed the connection in the middle of its answer"},
	} {
		s := newServer(t, "", c.serve)
		if got := answer(New(s.endpoint(t), ""), llm.Request{Model: "m"}); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// The abilities of a model are requested once, and again after a failure.
func TestTraitsAreAskedOnce(t *testing.T) {
	broken := false
	s := newServer(t, `{"capabilities":["completion"],"model_info":{"qwen3.context_length":4096}}`, func(w http.ResponseWriter, r *http.Request) {
		if broken {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		respond(ndjson, 200, done)(w, r)
	})
	m := New(s.endpoint(t), "/own")
	req := llm.Request{Model: "m", Reasoning: true, Tools: []llm.ToolSpec{{Name: "f", Schema: json.RawMessage(`{}`)}}}
	for _, broken = range []bool{false, true, false} {
		answer(m, req)
	}
	const show, own = `/api/show {"model":"m"}`, `/own {"model":"m","messages":null,"stream":true,"truncate":false,"shift":false,"options":{"num_ctx":4096}}`
	if got, want := strings.Join(s.requests, "\n"), strings.Join([]string{show, own, own, show, own}, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestListModels(t *testing.T) {
	show := map[string]string{
		"qwen3:8b":     `{"capabilities":["completion","tools","thinking"],"model_info":{"general.architecture":"qwen3","qwen3.context_length":40960}}`,
		"llava":        `{"capabilities":["completion","vision"],"model_info":{"llama.context_length":4096}}`,
		"own":          `{"capabilities":["completion"],"parameters":"stop    \"x y\"\nnum_ctx                        65536\n","model_info":{"llama.context_length":131072}}`,
		"gpt-oss:20bC": `{"capabilities":["completion"],"remote_host":"https://ollama.com","model_info":{"gptoss.context_length":131072}}`,
		"nomic":        `{"capabilities":["embedding"]}`,
		"old":          `{"model_info":{"llama.context_length":"many"}}`,
		"broken":       `{`,
	}
	tags := []string{}
	for name := range show {
		tags = append(tags, fmt.Sprintf(`{"name":%q,"model":%q}`, name, name))
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Model string }
		switch _ = json.NewDecoder(r.Body).Decode(&in); r.URL.Path {
		case "/api/tags":
			_, _ = w.Write([]byte(`{"models":[` + strings.Join(tags, ",") + `]}`))
		case "/api/show":
			_, _ = w.Write([]byte(show[in.Model]))
		}
	}))
	defer srv.Close()
	at := (&server{Server: srv}).endpoint(t)
	list, err := ListModels(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"qwen3:8b": "32768 true false true", "llava": "4096 false true false", "own": "65536 false false false", "gpt-oss:20bC": "131072 false false false",
		"old": "0 false false false", "broken": "0 false false false",
	} {
		f, ok := list[name]
		if got := fmt.Sprint(f.Context.Value, f.Reasoning.Value, f.Images.Value, f.Tools.Value); !ok || got != want {
			t.Errorf("%s: %s", name, got)
		}
		delete(list, name)
	}
	if len(list) > 0 {
		t.Errorf("ListModels also returned: %v", list)
	}
	srv.Close()
	if _, err := ListModels(context.Background(), at); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("from a server that has ended: %v", err)
	}
}

func FuzzStream(f *testing.F) {
	f.Add(`{"message":{"thinking":"x","content":"a","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}` + "\n" + done)
	f.Fuzz(func(t *testing.T, body string) {
		open, ended := map[string]bool{}, 0
		s := stream{provider: "p", Emitter: llm.Emitter{Yield: func(d llm.Delta, _ error) bool {
			if ended > 0 {
				t.Errorf("a delta after the end: %+v", d)
			}
			switch d.Kind {
			case llm.ReasoningStart, llm.ToolStart:
				if open[d.ID] {
					t.Errorf("%s begins twice", d.ID)
				}
				open[d.ID] = true
			case llm.StopDelta:
				ended++
			}
			return true
		}}}
		if err := s.read(llm.NewNDJSONReader(strings.NewReader(body))); (err == nil) != (ended == 1) {
			t.Errorf("%d ends and error %v", ended, err)
		}
	})
}
