package google

import (
	"bytes"
	"context"
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

// endpointOf is a provider p at a URL, with a key.
func endpointOf(t *testing.T, url string) llm.Endpoint {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	return llm.Endpoint{Provider: "p", URL: url, Client: client, Headers: map[string]string{KeyHeader: "secret-key"}, Limits: llm.DefaultLimits(), Now: time.Now}
}

// answer renders what a model decodes from an HTTP answer.
func answer(t *testing.T, serve http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(serve)
	defer srv.Close()
	defer srv.CloseClientConnections()
	var out deltas
	for d, err := range New(endpointOf(t, srv.URL)).Stream(context.Background(), llm.Request{Model: "m"}) {
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
		say("r-%s%s", d.API, d.Opaque)
	case d.Kind == llm.ToolStart:
		say("c+%s=%s", d.ID, d.Name)
	case d.Kind == llm.ToolArgs:
		say("c:%s=%s", d.ID, d.Text)
	case d.Kind == llm.ToolEnd:
		say("c-%s=%s", d.ID, d.Text)
	case d.Kind == llm.UsageDelta:
		say("u:%d,%d,%d", d.Usage.Input, d.Usage.Output, d.Usage.CacheRead)
	case d.Kind == llm.StopDelta:
		say("stop:%s", d.Stop)
	}
}

func (o *deltas) String() string { return strings.Join(*o, "|") }

// read renders what comes of a body.
func read(body string) string {
	var out deltas
	s := stream{provider: "p", Emitter: llm.Emitter{Origin: "p/google", Yield: func(d llm.Delta, err error) bool {
		out.add(d, err)
		return true
	}}}
	if err := s.read(llm.NewSSEReader(strings.NewReader(body))); err != nil {
		out.add(llm.Delta{}, err)
	}
	return out.String()
}

const eventStream = "text/event-stream"

func respond(contentType string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}
}

// A whole turn, cut at every byte, on the wire and in the reader.
func TestTurnInPieces(t *testing.T) {
	raw, err := os.ReadFile("testdata/turn.sse")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"r+", "r:**Looking around**\n\nThe user wants to know what is in a.txt — ", "r:so I read it.", "r-p/google", "t:Ich schaue ", "t:nach: «ü»",
		"r+", `r-p/google[{"on":"call","signature":"c2VhbGVk"}]`,
		"c+call_1=eca__read_file", `c:call_1={"path":"/ws/a.txt"}`, `c-call_1={"path":"/ws/a.txt"}`,
		"c+call_2=eca__grep", `c:call_2={"pattern":"ü","limit":3}`, `c-call_2={"pattern":"ü","limit":3}`,
		"u:186,110,1024", "stop:tool_calls",
	}, "|")
	got := answer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.String() != "/v1beta/models/m:streamGenerateContent?alt=sse" || r.Header.Get(KeyHeader) != "secret-key" {
			t.Errorf("asked %s with key %q", r.URL, r.Header.Get(KeyHeader))
		}
		w.Header().Set("Content-Type", eventStream)
		for i := range raw {
			_, _ = w.Write(raw[i : i+1])
			w.(http.Flusher).Flush()
		}
	})
	if got != want {
		t.Errorf("byte by byte:\ngot  %s\nwant %s", got, want)
	}
	for cut := range raw {
		var out deltas
		s := stream{provider: "p", Emitter: llm.Emitter{Origin: "p/google", Yield: func(d llm.Delta, err error) bool {
			out.add(d, err)
			return true
		}}}
		pieces := io.MultiReader(bytes.NewReader(raw[:cut]), bytes.NewReader(raw[cut:]))
		if err := s.read(llm.NewSSEReader(pieces)); err != nil || out.String() != want {
			t.Fatalf("cut at %d: %s, %v", cut, out.String(), err)
		}
	}
}

func event(parts, rest string) string {
	return `data: {"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + rest + "}]}\n\n"
}

func finish(reason string) string { return event("", `,"finishReason":"`+reason+`"`) }

func TestStream(t *testing.T) {
	const call = `{"functionCall":{"name":"f","args":{}}}`
	for name, c := range map[string]struct{ body, want string }{
		"text":                       {event(`{"text":"a"}`, "") + finish("STOP"), "t:a|u:0,0,0|stop:end"},
		"at the limit":               {event(`{"text":"a"}`, `,"finishReason":"MAX_TOKENS"`), "t:a|u:0,0,0|stop:length"},
		"call at the limit":          {event(call, `,"finishReason":"MAX_TOKENS"`), "c+call_1=f|c:call_1={}|c-call_1={}|u:0,0,0|stop:tool_calls"},
		"safety":                     {event(`{"text":"a"}`, "") + finish("SAFETY"), "t:a|u:0,0,0|stop:refusal"},
		"recitation":                 {finish("RECITATION"), "u:0,0,0|stop:refusal"},
		"refusal after a call":       {event(call, "") + finish("PROHIBITED_CONTENT"), "u:0,0,0|stop:refusal"},
		"unspecified is no reason":   {event("", `,"finishReason":"FINISH_REASON_UNSPECIFIED"`) + finish("STOP"), "u:0,0,0|stop:end"},
		"malformed call":             {event("", `,"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"print(x)"`), "!premature_stop p broke off the answer (MALFORMED_FUNCTION_CALL: print(x))"},
		"reason of another time":     {finish("NEWS"), "!unknown p broke off the answer (NEWS)"},
		"blocked":                    {`data: {"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}}` + "\n\n", "!bad_request p blocked the request (PROHIBITED_CONTENT)"},
		"ids, one twice":             {event(`{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"id":"x","name":"g","args":null}}`, `,"finishReason":"STOP"`), "c+x=f|c:x={}|c-x={}|c+call_2=g|c:call_2={}|c-call_2={}|u:0,0,0|stop:tool_calls"},
		"made-up id is taken":        {event(`{"functionCall":{"id":"call_2","name":"f"}},`+call, `,"finishReason":"STOP"`), "c+call_2=f|c:call_2={}|c-call_2={}|c+call_3=f|c:call_3={}|c-call_3={}|u:0,0,0|stop:tool_calls"},
		"arguments of another kind":  {event(`{"functionCall":{"name":"f","args":"{\"a"}}`, `,"finishReason":"STOP"`), `c+call_1=f|c:call_1="{\"a"|c-call_1="{\"a"|u:0,0,0|stop:tool_calls`},
		"signed thought":             {event(`{"text":"x","thought":true,"thoughtSignature":"s"},`+call, `,"finishReason":"STOP"`), `r+|r:x|r-p/google[{"on":"thought","signature":"s"}]|c+call_1=f|c:call_1={}|c-call_1={}|u:0,0,0|stop:tool_calls`},
		"signed text before a call":  {event(`{"text":"a","thoughtSignature":"s"},`+call, `,"finishReason":"STOP"`), `t:a|r+|r-p/google[{"on":"text","signature":"s"}]|c+call_1=f|c:call_1={}|c-call_1={}|u:0,0,0|stop:tool_calls`},
		"signature after its call":   {event(call, "") + event(`{"text":"","thoughtSignature":"s"}`, `,"finishReason":"STOP"`), `r+|r-p/google[{"on":"call","signature":"s"}]|c+call_1=f|c:call_1={}|c-call_1={}|u:0,0,0|stop:tool_calls`},
		"calls around a thought":     {event(call+`,{"text":"x","thought":true},{"functionCall":{"name":"g"},"thoughtSignature":"s"}`, `,"finishReason":"STOP"`), `c+call_1=f|c:call_1={}|c-call_1={}|r+|r:x|r-p/google[{"on":"call","call":1,"signature":"s"}]|c+call_2=g|c:call_2={}|c-call_2={}|u:0,0,0|stop:tool_calls`},
		"signed end of an answer":    {event(`{"text":"a"}`, "") + event(`{"text":"","thoughtSignature":"s"}`, `,"finishReason":"STOP"`), "t:a|u:0,0,0|stop:end"},
		"parts of another time":      {event(`{"executableCode":{"code":"1"}},{"text":"a"}`, `,"finishReason":"STOP"`), "t:a|u:0,0,0|stop:end"},
		"nothing":                    {"", "!unknown EOF"},
		"cut after text":             {event(`{"text":"a"}`, ""), "t:a|!unknown EOF"},
		"cut after a call":           {event(call, ""), "!unknown EOF"},
		"garbage":                    {"data: <html>\n\n", `!malformed p sent something in its stream that is not of this API: "<html>"`},
		"error":                      {event(`{"text":"a"}`, "") + `data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}` + "\n\n", "t:a|!overloaded p answered 503 Service Unavailable: The model is overloaded."},
		"error without a code":       {`data: {"error":"boom"}` + "\n\n", "!overloaded p answered 500 Internal Server Error: boom"},
		"usage as text":              {event(`{"text":"a"}`, "") + finish("STOP") + `data: {"usageMetadata":{"promptTokenCount":"5","candidatesTokenCount":2}}` + "\n\n", "t:a|u:0,0,0|stop:end"},
		"usage of another kind":      {`data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":[1]}` + "\n\n", "t:a|u:0,0,0|stop:end"},
		"odd after the end":          {event(`{"text":"a"}`, "") + finish("STOP") + `data: {"candidates":7}` + "\n\n", "t:a|u:0,0,0|stop:end"},
		"more cached than the whole": {`data: {"usageMetadata":{"promptTokenCount":5,"cachedContentTokenCount":9}}` + "\n\n" + finish("STOP"), "u:0,0,9|stop:end"},
	} {
		if got := read(c.body); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestFaults(t *testing.T) {
	rpc := func(code int, status, message, details string) http.HandlerFunc {
		return respond("application/json; charset=UTF-8", code, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, details))
	}
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"too long":       {rpc(400, "INVALID_ARGUMENT", "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).", ""), "!context_overflow p answered 400 Bad Request: The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."},
		"bad request":    {rpc(400, "INVALID_ARGUMENT", "Request contains an invalid argument.", ""), "!bad_request p answered 400 Bad Request: Request contains an invalid argument."},
		"bad key":        {rpc(400, "INVALID_ARGUMENT", "API key secret-key not valid.", `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`), "!auth p answered 400 Bad Request: API key [REDACTED] not valid."},
		"no key":         {rpc(401, "UNAUTHENTICATED", "No key.", ""), "!auth p answered 401 Unauthorized: No key."},
		"forbidden":      {rpc(403, "PERMISSION_DENIED", "No.", ""), "!auth p answered 403 Forbidden: No."},
		"no such model":  {rpc(404, "NOT_FOUND", "models/m is not found", ""), "!bad_request p answered 404 Not Found: models/m is not found"},
		"timeout":        {rpc(408, "X", "slow", ""), "!overloaded p answered 408 Request Timeout: slow"},
		"too large":      {rpc(413, "X", "large", ""), "!context_overflow p answered 413 Request Entity Too Large: large"},
		"rate limit":     {rpc(429, "RESOURCE_EXHAUSTED", "Quota.", `{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"31.2s"}`), "!rate_limited p answered 429 Too Many Requests: Quota. (try again in 32s)"},
		"rate, no delay": {rpc(429, "RESOURCE_EXHAUSTED", "Quota.", ""), "!rate_limited p answered 429 Too Many Requests: Quota."},
		"in a list":      {respond("application/json", 503, `[{"error":{"code":503,"message":"down"}}]`), "!overloaded p answered 503 Service Unavailable: down"},
		"server error":   {rpc(500, "INTERNAL", "oops", ""), "!overloaded p answered 500 Internal Server Error: oops"},
		"overloaded":     {respond("text/plain", 529, "busy"), "!overloaded p answered 529"},
		"not a stream":   {respond("text/html", 200, "<h1>Log in</h1>"), "!protocol p answered with a web page (text/html), which is not its API: \"Log in\""},
		"garbage":        {respond(eventStream, 200, "data: ???\n\n"), `!malformed p sent something in its stream that is not of this API: "???"`},
		"empty":          {respond(eventStream, 200, ""), "!premature_stop p answered 200 OK with nothing: the body is empty"},
		"cut":            {respond(eventStream, 200, event(`{"text":"a"}`, "")), "t:a|!premature_stop p ended the answer before it was complete"},
		"connection cut": {func(w http.ResponseWriter, r *http.Request) {
			respond(eventStream, 200, event(`{"functionCall":{"name":"f"}}`, "")+"data: {")(w, r)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "!premature_stop p closed the connection in the middle of its answer"},
	} {
		if got := answer(t, c.serve); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func TestListModels(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch at := r.URL.Path + "?" + r.URL.Query().Get("pageToken"); {
		case r.Header.Get(KeyHeader) != "secret-key" || strings.Contains(r.URL.String(), "secret"):
			w.WriteHeader(http.StatusForbidden)
		case at == "/v1beta/models?":
			_, _ = w.Write([]byte(`{"models":[
				{"name":"models/gemini-3-pro","inputTokenLimit":1048576,"outputTokenLimit":65536,"supportedGenerationMethods":["generateContent","countTokens"],"thinking":true},
				{"name":"models/gemini-3-image-preview","supportedGenerationMethods":["generateContent"]},
				{"name":"models/embedding-001","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"a b"}`))
		case at == "/v1beta/models?a b":
			_, _ = w.Write([]byte(`{"models":[{"name":"models/gemma-4","supportedGenerationMethods":["generateContent"]}]}`))
		case strings.HasPrefix(at, "/endless"):
			_, _ = w.Write([]byte(`{"nextPageToken":"x"}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer srv.Close()
	list, err := ListModels(context.Background(), endpointOf(t, srv.URL))
	pro := list["gemini-3-pro"]
	if err != nil || len(list) != 2 || pro.Context.Value != 1048576 || pro.Output.Value != 65536 || !pro.Reasoning.Value {
		t.Errorf("%+v, %v", list, err)
	}
	if gemma, ok := list["gemma-4"]; !ok || gemma.Context.Known() || !gemma.Reasoning.Known() || gemma.Reasoning.Value {
		t.Errorf("%+v", gemma)
	}
	for path, want := range map[string]string{"/endless/v1": "has too many pages", "/nowhere": "404"} {
		if _, err := ListModels(context.Background(), endpointOf(t, srv.URL+path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestEndpoint(t *testing.T) {
	for _, c := range []struct{ base, model, want string }{
		{"https://x.example", "m", "https://x.example/v1beta/models/m"},
		{"https://x.example/", "models/m", "https://x.example/v1beta/models/m"},
		{"https://x.example/v1/", "tunedModels/a b", "https://x.example/v1/tunedModels/a%20b"},
		{"https://x.example/v1?team=7", "../m?x", "https://x.example/v1/models/..%2Fm%3Fx?team=7"},
	} {
		if got, err := endpoint(c.base, nil, modelPath(c.model)); got != c.want || err != nil {
			t.Errorf("%s %s: %s, %v", c.base, c.model, got, err)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(event(`{"text":"a","thought":true,"thoughtSignature":"s"},{"functionCall":{"name":"f"}}`, "") + finish("STOP"))
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
		if err := s.read(llm.NewSSEReader(strings.NewReader(body))); (err == nil) != (ended == 1) {
			t.Errorf("%d ends and error %v", ended, err)
		}
	})
}
