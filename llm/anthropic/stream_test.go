package anthropic

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// endpoint is a client of a server that lives as long as the test.
func endpoint(t *testing.T, h http.HandlerFunc) llm.Endpoint {
	srv := httptest.NewServer(h)
	client := &http.Client{}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		srv.Close()
	})
	now := func() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }
	return llm.Endpoint{Provider: "p", URL: srv.URL, Headers: map[string]string{KeyHeader: "sk-planted"}, Client: client, Limits: llm.DefaultLimits(), Now: now}
}

// Events of a search by the API.
const (
	searching   = `{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`
	searchArgs  = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"q\"}"}}`
	searchFound = `{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://a.example/","title":"A","encrypted_content":"X"}]}}`
)

// render shows a delta or an error in short.
func render(d llm.Delta, err error) string {
	if err != nil {
		e := llm.AsError(err)
		return fmt.Sprintf("!%s %s", e.Kind, e.Message)
	}
	switch d.Kind {
	case llm.TextDelta:
		return "t:" + d.Text
	case llm.ReasoningStart:
		return "r+" + d.ID
	case llm.ReasoningDelta:
		return "r:" + d.Text
	case llm.ReasoningEnd:
		return "r-" + d.ID + "=" + d.API + string(d.Opaque)
	case llm.ToolStart:
		return "c+" + d.ID + "=" + d.Name
	case llm.ToolArgs:
		return "c:" + d.Text
	case llm.ToolEnd:
		return "c-" + d.ID + "=" + d.Text
	case llm.UsageDelta:
		out := fmt.Sprintf("u:%d,%d,%d,%d", d.Usage.Input, d.Usage.Output, d.Usage.CacheRead, d.Usage.CacheWrite)
		if d.Usage.WebSearches > 0 {
			out += fmt.Sprintf(",%d", d.Usage.WebSearches)
		}
		return out
	case llm.ServerStart:
		return "s+" + d.ID + "=" + d.Name
	case llm.ServerRun:
		return "s:" + d.ID + "=" + d.Text
	case llm.ServerEnd:
		return "s-" + d.ID + "=" + string(d.Opaque) + " " + strings.Join(d.Result.Outputs, "") + map[bool]string{true: "!"}[d.Result.Failed]
	case llm.SourceDelta:
		return "cites " + d.Text + " " + d.Name
	case llm.StopDelta:
		return "stop:" + string(d.Stop)
	}
	return fmt.Sprintf("?%+v", d)
}

func answers(at llm.Endpoint, req llm.Request) string {
	var out []string
	for d, err := range NewMessages(at).Stream(context.Background(), req) {
		out = append(out, render(d, err))
	}
	return strings.Join(out, "|")
}

// decode renders what a stream decodes from bytes, without HTTP.
func decode(r io.Reader) string {
	var out []string
	s := stream{provider: "p", tools: llm.NewAliases(maxName), Emitter: llm.Emitter{Origin: "p/anthropic", Yield: func(d llm.Delta, err error) bool {
		out = append(out, render(d, err))
		return true
	}}}
	if err := s.read(llm.NewSSEReader(r)); err != nil {
		out = append(out, render(llm.Delta{}, err))
	}
	return strings.Join(out, "|")
}

const whole = `r+block_1|r:Zwei Dateien, |r:größer zuerst.|r-block_1=p/anthropic{"signature":"EqQBCgIYAhIM1gbc"}|` +
	`r+block_2|r-block_2=p/anthropic{"redacted":"EmwKAhgBEgy3va3p"}|t:Ich lese |t:beide – ältere zuerst 🙂|` +
	`c+toolu_01A=eca__read_file|c:{"path": "/w/|c:ä.txt"}|c+toolu_01B=eca__ask_user|` +
	`c-toolu_01A={"path": "/w/ä.txt"}|c-toolu_01B={}|u:21,187,24000,1500|stop:tool_calls`

// The deltas of an answer do not depend on how its bytes are split.
func TestEveryByteBoundary(t *testing.T) {
	needs.Long(t)
	raw, err := os.ReadFile("testdata/answer.sse")
	if err != nil {
		t.Fatal(err)
	}
	crlf := strings.ReplaceAll(string(raw), "\n", "\r\n")
	for _, text := range []string{string(raw), crlf} {
		if got := decode(iotest.OneByteReader(strings.NewReader(text))); got != whole {
			t.Errorf("byte by byte:\ngot  %s\nwant %s", got, whole)
		}
		for i := range text {
			if got := decode(io.MultiReader(strings.NewReader(text[:i]), strings.NewReader(text[i:]))); got != whole {
				t.Fatalf("split at %d:\ngot  %s\nwant %s", i, got, whole)
			}
		}
	}
	at := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for i := range raw {
			_, _ = w.Write(raw[i : i+1])
			w.(http.Flusher).Flush()
		}
	})
	if got := answers(at, llm.Request{Model: "m"}); got != whole {
		t.Errorf("over HTTP:\ngot  %s\nwant %s", got, whole)
	}
}

// If an answer is cut, the deltas are the beginning of those of the whole answer, followed by an
// error. An answer that is cut after its reason to stop counts as whole.
func TestCutAnywhere(t *testing.T) {
	needs.Long(t)
	raw, err := os.ReadFile("testdata/answer.sse")
	if err != nil {
		t.Fatal(err)
	}
	reason := strings.Index(string(raw), "event: message_stop")
	for i := range raw {
		got := decode(strings.NewReader(string(raw[:i])))
		if i >= reason {
			if got != whole {
				t.Fatalf("cut at %d, after the reason to stop: %s", i, got)
			}
			continue
		}
		deltas, end, _ := strings.Cut(got, "!")
		if !strings.HasPrefix(whole, deltas) || end != "unknown EOF" {
			t.Fatalf("cut at %d: %s", i, got)
		}
	}
}

func events(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }

func TestEvents(t *testing.T) {
	const (
		stop = `{"type":"message_stop"}`
		text = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`
		call = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"i","name":"f","input":{}}}`
		args = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`
		end  = `{"type":"content_block_stop","index":0}`
	)
	reason := func(r string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + r + `"},"usage":{"output_tokens":2}}`
	}
	for name, c := range map[string]struct{ body, want string }{
		"end_turn":      {events(text, reason("end_turn"), stop), "t:a|u:0,2,0,0|stop:end"},
		"stop_sequence": {events(text, reason("stop_sequence"), stop), "t:a|u:0,2,0,0|stop:end"},
		"max_tokens":    {events(text, reason("max_tokens"), stop), "t:a|u:0,2,0,0|stop:length"},
		"a search": {
			events(searching, searchArgs, end, searchFound, `{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://a.example/","title":"A"}}}`,
				`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"a"}}`,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2,"server_tool_use":{"web_search_requests":1}}}`, stop),
			`s+s=web_search|s:s={"query":"q"}|s-s=[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://a.example/","title":"A","encrypted_content":"X"}]}] A` + "\n" + `https://a.example/|cites https://a.example/ A|t:a|u:0,2,0,0,1|stop:end`,
		},
		"a search that pauses": {
			events(searching, searchArgs, end, reason("pause_turn"), stop),
			`s+s=web_search|s:s={"query":"q"}|s-s=[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}}] |u:0,2,0,0|stop:paused`,
		},
		"the result after a pause": {
			events(searchFound, text, reason("end_turn"), stop),
			`s+s=web_search|s:s={}|s-s=[{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://a.example/","title":"A","encrypted_content":"X"}]}] A` + "\n" + `https://a.example/|t:a|u:0,2,0,0|stop:end`,
		},
		"a search that fails": {
			events(searching, searchArgs, end, `{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}}`, text, reason("end_turn"), stop),
			`s+s=web_search|s:s={"query":"q"}|s-s=[{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"s","content":{"type":"web_search_tool_result_error","error_code":"max_uses_exceeded"}}] The search failed. max_uses_exceeded!|t:a|u:0,2,0,0|stop:end`,
		},
		"refusal":              {events(text, reason("refusal"), stop), "t:a|u:0,2,0,0|stop:refusal"},
		"pause_turn":           {events(text, reason("pause_turn"), stop), "t:a|u:0,2,0,0|stop:paused"},
		"full context":         {events(text, reason("model_context_window_exceeded"), stop), "t:a|u:0,2,0,0|!context_overflow p stopped: the conversation and the answer exceed the model's context"},
		"end_turn with call":   {events(call, end, reason("end_turn"), stop), "c+i=f|c-i={}|u:0,2,0,0|stop:tool_calls"},
		"cut call":             {events(call, args, end, reason("max_tokens"), stop), `c+i=f|c:{"a":|c-i={"a":|u:0,2,0,0|stop:length`},
		"call cut at start":    {events(call, end, reason("max_tokens"), stop), "c+i=f|u:0,2,0,0|stop:length"},
		"call that never ends": {events(call, reason("tool_use"), stop), "c+i=f|u:0,2,0,0|stop:tool_calls"},
		"arguments at start": {
			events(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"i","name":"f","input":{"a":1}}}`, end, reason("tool_use"), stop),
			`c+i=f|c-i={"a":1}|u:0,2,0,0|stop:tool_calls`,
		},
		"ids repeated, all index 0": {events(call, args, call, args, reason("tool_use"), stop), `c+i=f|c:{"a":|c+block_2=f|c:{"a":|c-i={"a":|c-block_2={"a":|u:0,2,0,0|stop:tool_calls`},
		"thinking without signature": {
			events(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"x"}}`, end, reason("end_turn"), stop),
			"r+block_1|r:x|r-block_1=p/anthropic{}|u:0,2,0,0|stop:end",
		},
		"thinking that text ends": {
			events(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"x"}}`, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`, reason("end_turn"), stop),
			"r+block_1|r:x|r-block_1=p/anthropic{}|t:a|u:0,2,0,0|stop:end",
		},
		"server tools":     {events(`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}`, args, end, text, reason("end_turn"), stop), `s+s=web_search|s:s={}|t:a|u:0,2,0,0|stop:end`},
		"usage at end":     {events(text, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"output_tokens":2,"cache_read_input_tokens":5}}`, stop), "t:a|u:9,2,5,0|stop:end"},
		"usage as text":    {events(`{"type":"message_start","message":{"usage":{"input_tokens":9}}}`, text, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":9,"output_tokens":"2"}}`, stop), "t:a|u:0,0,0,0|stop:end"},
		"usage at start":   {events(`{"type":"message_start","message":{"usage":{"input_tokens":-9}}}`, text, reason("end_turn"), stop), "t:a|u:0,0,0,0|stop:end"},
		"usage of a kind":  {events(text, `{"type":"message_delta","usage":7,"delta":{"stop_reason":"end_turn"}}`, stop), "t:a|u:0,0,0,0|stop:end"},
		"odd at the end":   {events(text, reason("end_turn"), "oops", stop), "t:a|u:0,2,0,0|stop:end"},
		"[DONE] too":       {events(text, reason("end_turn"), stop, "[DONE]"), "t:a|u:0,2,0,0|stop:end"},
		"unknown events":   {events(`{"type":"news","index":"x","delta":[]}`, text, reason("end_turn"), stop), "t:a|u:0,2,0,0|stop:end"},
		"no reason":        {events(text, stop), "t:a|!premature_stop p ended the answer without a stop reason"},
		"overloaded":       {events(text, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`), "t:a|!overloaded p failed: Overloaded"},
		"rate limited":     {events(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), "!rate_limited p failed: slow"},
		"internal":         {events(`{"type":"error","error":{"type":"api_error","message":"boom"}}`), "!overloaded p failed: boom"},
		"too long":         {events(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 tokens > 1 maximum"}}`), "!context_overflow p failed: prompt is too long: 2 tokens > 1 maximum"},
		"foreign error":    {events(`{"error":{"message":"GPU fell off","type":"server_error","code":500}}`), "!overloaded p failed: GPU fell off"},
		"text of an error": {events(text, `{"error":"GPU fell off"}`), "t:a|!unknown p failed: GPU fell off"},
		"bad request":      {events(`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`), "!bad_request p failed: no"},
		"key revoked":      {events(`{"type":"error","error":{"type":"permission_error","message":"no"}}`), "!auth p failed: no"},
		"error of no kind": {events(`{"type":"error","error":null}`), "!unknown p failed without an error message"},
		"garbage":          {events("<html>"), `!malformed p sent something in its stream that is not of this API: "<html>"`},
	} {
		if got := decode(strings.NewReader(c.body)); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// Faults of the server become the errors that the user sees.
func TestFaults(t *testing.T) {
	apiError := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	for name, c := range map[string]struct {
		status  int
		headers map[string]string
		body    string
		want    string
	}{
		"400":             {400, nil, apiError("invalid_request_error", "max_tokens: Field required"), "!bad_request p answered 400 Bad Request: max_tokens: Field required"},
		"400 too long":    {400, nil, apiError("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), "!context_overflow p answered 400 Bad Request: prompt is too long: 208310 tokens > 200000 maximum"},
		"400 with answer": {400, nil, apiError("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"), "!context_overflow p answered 400 Bad Request: input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000"},
		"401":             {401, nil, apiError("authentication_error", "invalid x-api-key sk-planted"), "!auth p answered 401 Unauthorized: invalid x-api-key [REDACTED]"},
		"403":             {403, nil, apiError("permission_error", "no"), "!auth p answered 403 Forbidden: no"},
		"404":             {404, nil, apiError("not_found_error", "model: claude-x"), "!bad_request p answered 404 Not Found: model: claude-x"},
		"408":             {408, nil, "", "!overloaded p answered 408 Request Timeout: no further explanation"},
		"413":             {413, nil, apiError("request_too_large", "Request exceeds the maximum size"), "!context_overflow p answered 413 Request Entity Too Large: Request exceeds the maximum size"},
		"429":             {429, nil, apiError("rate_limit_error", "slow"), "!rate_limited p answered 429 Too Many Requests: slow"},
		"429 with delay":  {429, map[string]string{"Retry-After": "12"}, apiError("rate_limit_error", "slow"), "!rate_limited p answered 429 Too Many Requests: slow (try again in 12s)"},
		"429 with reset": {429, map[string]string{
			"Anthropic-Ratelimit-Input-Tokens-Remaining": "0", "Anthropic-Ratelimit-Input-Tokens-Reset": "2026-11-21T12:00:40Z",
			"Anthropic-Ratelimit-Requests-Remaining": "7", "Anthropic-Ratelimit-Requests-Reset": "2026-11-21T13:00:00Z",
		}, apiError("rate_limit_error", "slow"), "!rate_limited p answered 429 Too Many Requests: slow (try again in 41s)"},
		"500":                 {500, nil, apiError("api_error", "Internal server error"), "!overloaded p answered 500 Internal Server Error: Internal server error"},
		"529":                 {529, nil, apiError("overloaded_error", "Overloaded"), "!overloaded p answered 529: Overloaded"},
		"529 of a gateway":    {529, nil, "<html>busy</html>", "!overloaded p answered 529: a web page (text/html), which is not its API: \"busy\""},
		"json":                {200, map[string]string{"Content-Type": "application/json"}, apiError("api_error", "no stream"), "!protocol p did not stream but answered with application/json: no stream"},
		"html":                {200, map[string]string{"Content-Type": "text/html"}, "<h1>Log in</h1>", "!protocol p answered with a web page (text/html), which is not its API: \"Log in\""},
		"mislabelled":         {200, map[string]string{"Content-Type": "text/plain"}, events(`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`), "u:0,0,0,0|stop:end"},
		"whole":               {200, nil, `{"content":[{"text":"a"},{"type":"tool_use","id":"i","name":"f","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":1}}`, `t:a|c+i=f|c-i={"x":1}|u:3,1,0,0|stop:tool_calls`},
		"whole, no reason":    {200, nil, `{"content":[{"text":"a"}]}`, "t:a|u:0,0,0,0|stop:end"},
		"whole error":         {200, nil, apiError("api_error", "no stream"), "!protocol p did not stream but answered: no stream"},
		"empty":               {200, nil, "", "!premature_stop p answered 200 OK with nothing: the body is empty"},
		"cut before anything": {200, nil, events(`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`), "!premature_stop p ended the answer before it was complete"},
		"cut in a call":       {200, nil, events(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"i","name":"f"}}`), "c+i=f|!premature_stop p ended the answer before it was complete"},
	} {
		at := endpoint(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for k, v := range c.headers {
				w.Header().Set(k, v)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		})
		if got := answers(at, llm.Request{Model: "m"}); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// A consumer that stops gets nothing more, and the request is closed.
func TestConsumerStops(t *testing.T) {
	closed := make(chan struct{})
	at := endpoint(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(closed)
	})
	for d, err := range NewMessages(at).Stream(context.Background(), llm.Request{Model: "m"}) {
		if err != nil || d.Text != "a" {
			t.Errorf("%+v %v", d, err)
		}
		break
	}
	<-closed
}

func FuzzStream(f *testing.F) {
	if raw, err := os.ReadFile("testdata/answer.sse"); err == nil {
		f.Add(string(raw))
	}
	f.Add(events(`{"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","input":[]}}`, `{"type":"message_delta","delta":{"stop_reason":"x"}}`))
	f.Fuzz(func(t *testing.T, body string) {
		stops := 0
		open, ids := map[string]bool{}, map[string]bool{}
		s := stream{provider: "p", tools: llm.NewAliases(maxName), Emitter: llm.Emitter{Origin: "o", Yield: func(d llm.Delta, _ error) bool {
			if stops > 0 {
				t.Errorf("a delta after the end: %+v", d)
			}
			switch d.Kind {
			case llm.StopDelta:
				stops++
			case llm.ReasoningStart, llm.ToolStart:
				if ids[d.ID] {
					t.Errorf("id %q begins twice", d.ID)
				}
				open[d.ID], ids[d.ID] = true, true
			case llm.ReasoningDelta, llm.ToolArgs:
				if !open[d.ID] {
					t.Errorf("%+v of a block that is not open", d)
				}
			case llm.ReasoningEnd, llm.ToolEnd:
				if !open[d.ID] {
					t.Errorf("%+v of a block that is not open", d)
				}
				delete(open, d.ID)
			}
			return true
		}}}
		if err := s.answer(strings.NewReader(body)); (err == nil) != (stops == 1) {
			t.Errorf("%d terminal deltas and error %v", stops, err)
		}
	})
}
