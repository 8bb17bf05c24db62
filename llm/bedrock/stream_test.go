package bedrock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/aws/smithy-go/eventstream"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script encodes a stream: one event per line, its name and its payload. A name that
// begins with ! is an exception, one that begins with * an error without payload.
func script(t testing.TB, lines string) []byte {
	t.Helper()
	var out []eventstream.Message
	for line := range strings.Lines(lines) {
		name, payload, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case name == "":
		case name[0] == '!':
			out = append(out, textMessage(payload, ":message-type", "exception", ":exception-type", name[1:], ":content-type", "application/json"))
		case name[0] == '*':
			out = append(out, textMessage("", ":message-type", "error", ":error-code", name[1:], ":error-message", payload))
		default:
			out = append(out, textMessage(payload, ":message-type", "event", ":event-type", name, ":content-type", "application/json"))
		}
	}
	return wire(t, out...)
}

// collector renders deltas.
type collector []string

func (c *collector) add(d llm.Delta, err error) bool {
	var s string
	switch {
	case err != nil:
		e := llm.AsError(err)
		s = fmt.Sprintf("!%s %s", e.Kind, e.Message)
	case d.Kind == llm.TextDelta:
		s = "t:" + d.Text
	case d.Kind == llm.ReasoningStart:
		s = "r+" + d.ID
	case d.Kind == llm.ReasoningDelta:
		s = "r:" + d.Text
	case d.Kind == llm.ReasoningEnd:
		s = "r-" + d.API + string(d.Opaque)
	case d.Kind == llm.ToolStart:
		s = "c+" + d.ID + "=" + d.Name
	case d.Kind == llm.ToolArgs:
		s = "c:" + d.Text
	case d.Kind == llm.ToolEnd:
		s = "c-" + d.ID + "=" + d.Text
	case d.Kind == llm.UsageDelta:
		s = fmt.Sprintf("u:%d,%d,%d,%d", d.Usage.Input, d.Usage.Output, d.Usage.CacheRead, d.Usage.CacheWrite)
	case d.Kind == llm.StopDelta:
		s = "stop:" + string(d.Stop)
	}
	*c = append(*c, s)
	return true
}

func (c *collector) String() string { return strings.Join(*c, "|") }

// read renders what is made of the bytes of an answer.
func read(r io.Reader) string {
	var c collector
	s := stream{Emitter: llm.Emitter{Origin: "p/bedrock/anthropic", Yield: c.add}, provider: "p", open: map[int]*block{}, ids: map[string]bool{}}
	if err := s.read(newEventReader(r)); err != nil {
		c.add(llm.Delta{}, err)
	}
	return c.String()
}

// Two tool calls after reasoning and text, as Claude streams them.
const turn = `
messageStart {"role":"assistant","p":"abcd"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"I should "}},"p":"ab"}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"text":"look."}}}
contentBlockDelta {"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"c2ln"}}}
contentBlockStop {"contentBlockIndex":0}
contentBlockDelta {"contentBlockIndex":1,"delta":{"reasoningContent":{"redactedContent":"aGlk"}}}
contentBlockStop {"contentBlockIndex":1}
contentBlockDelta {"contentBlockIndex":2,"delta":{"text":"Grüße, "}}
contentBlockDelta {"contentBlockIndex":2,"delta":{"text":"日本"}}
contentBlockStop {"contentBlockIndex":2}
contentBlockStart {"contentBlockIndex":3,"start":{"toolUse":{"toolUseId":"tooluse_a","name":"eca__read_file"}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolUse":{"input":""}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolUse":{"input":"{\"path\": "}}}
contentBlockDelta {"contentBlockIndex":3,"delta":{"toolUse":{"input":"\"/a\"}"}}}
contentBlockStop {"contentBlockIndex":3}
contentBlockStart {"contentBlockIndex":4,"start":{"toolUse":{"toolUseId":"tooluse_b","name":"eca__ask"}}}
contentBlockStop {"contentBlockIndex":4}
messageStop {"stopReason":"tool_use"}
metadata {"metrics":{"latencyMs":1200},"usage":{"inputTokens":12,"outputTokens":34,"totalTokens":10046,"cacheReadInputTokens":9000,"cacheWriteInputTokens":1000}}
`

const wantTurn = `r+reasoning_1|r:I should |r:look.|r-p/bedrock/anthropic{"reasoningText":{"signature":"c2ln","text":"I should look."}}|` +
	`r+reasoning_2|r-p/bedrock/anthropic{"redactedContent":"aGlk"}|t:Grüße, |t:日本|` +
	`c+tooluse_a=eca__read_file|c:{"path": |c:"/a"}|c-tooluse_a={"path": "/a"}|c+tooluse_b=eca__ask|c-tooluse_b=|u:12,34,9000,1000|stop:tool_calls`

func TestEverySplit(t *testing.T) {
	needs.Long(t)
	body := script(t, turn)
	for n := range body {
		if got := read(io.MultiReader(bytes.NewReader(body[:n]), bytes.NewReader(body[n:]))); got != wantTurn {
			t.Fatalf("split at %d:\ngot  %s\nwant %s", n, got, wantTurn)
		}
	}
	if got := read(iotest.OneByteReader(bytes.NewReader(body))); got != wantTurn {
		t.Errorf("byte by byte:\ngot  %s\nwant %s", got, wantTurn)
	}
}

// If the answer is cut, the reader returns the deltas before the cut and an error. If only the
// usage is missing, there is no error.
func TestEveryCut(t *testing.T) {
	body := script(t, turn)
	whole := len(script(t, turn[:strings.Index(turn, "metadata")]))
	for n := range body {
		got := read(bytes.NewReader(body[:n]))
		shown, end, _ := strings.Cut(got, "!")
		switch {
		case !strings.HasPrefix(wantTurn, strings.TrimSuffix(shown, "|")) && n < whole:
			t.Fatalf("cut at %d: %s", n, got)
		case n < whole && !strings.Contains(end, "EOF"):
			t.Fatalf("the answer was cut at %d, and the reader returned no error: %s", n, got)
		case n >= whole && !strings.HasSuffix(got, "|c-tooluse_b=|stop:tool_calls"):
			t.Fatalf("without its usage: %s", got)
		}
	}
}

func TestEvents(t *testing.T) {
	const usage = `metadata {"usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}`
	const hello = `contentBlockDelta {"contentBlockIndex":0,"delta":{"text":"hello"}}` + "\n"
	stop := func(reason string) string {
		return `messageStop {"stopReason":"` + reason + `"}` + "\n" + usage
	}
	start := func(i int, id string) string {
		return fmt.Sprintf(`contentBlockStart {"contentBlockIndex":%d,"start":{"toolUse":{"toolUseId":"%s","name":"f"}}}`+"\n", i, id)
	}
	for name, c := range map[string]struct{ script, want string }{
		"text":                {hello + stop("end_turn"), "t:hello|u:1,2,0,0|stop:end"},
		"stop sequence":       {hello + stop("stop_sequence"), "t:hello|u:1,2,0,0|stop:end"},
		"length":              {hello + stop("max_tokens"), "t:hello|u:1,2,0,0|stop:length"},
		"window is full":      {hello + stop("model_context_window_exceeded"), "t:hello|u:1,2,0,0|!context_overflow p stopped: the conversation and the answer exceed the model's context"},
		"guardrail":           {hello + stop("guardrail_intervened"), "t:hello|u:1,2,0,0|stop:refusal"},
		"filtered":            {hello + stop("content_filtered"), "t:hello|u:1,2,0,0|stop:refusal"},
		"a new reason":        {hello + stop("because"), "t:hello|u:1,2,0,0|stop:end"},
		"usage as text":       {hello + "messageStop {}\n" + `metadata {"usage":{"inputTokens":"1","outputTokens":2}}` + "\n", "t:hello|stop:end"},
		"negative usage":      {hello + "messageStop {}\n" + `metadata {"usage":{"inputTokens":1,"outputTokens":-2}}` + "\n", "t:hello|stop:end"},
		"odd last event":      {hello + "messageStop {}\n" + `metadata {"usage":{},"contentBlockIndex":"x"}` + "\n", "t:hello|stop:end"},
		"no reason":           {hello + "messageStop {}\n" + usage, "t:hello|u:1,2,0,0|stop:end"},
		"nonsense":            {hello + stop("malformed_model_output"), "t:hello|u:1,2,0,0|!premature_stop p: the model stopped after malformed output (malformed_model_output)"},
		"malformed call":      {start(0, "a") + stop("malformed_tool_use"), "c+a=f|c-a=|u:1,2,0,0|stop:tool_calls"},
		"calls left open":     {start(1, "a") + start(0, "b") + stop("tool_use"), "c+a=f|c+b=f|c-b=|c-a=|u:1,2,0,0|stop:tool_calls"},
		"ids repeat":          {start(0, "a") + start(1, "a") + start(2, "") + stop("tool_use"), "c+a=f|c+acall_1=f|c+call_2=f|c-a=|c-acall_1=|c-call_2=|u:1,2,0,0|stop:tool_calls"},
		"input of no call":    {`contentBlockDelta {"contentBlockIndex":7,"delta":{"toolUse":{"input":"x"}}}` + "\n" + hello + stop("end_turn"), "t:hello|u:1,2,0,0|stop:end"},
		"unsigned reasoning":  {`contentBlockDelta {"delta":{"reasoningContent":{"text":"x"}}}` + "\n" + stop("end_turn"), "r+reasoning_1|r:x|r-p/bedrock/anthropic|u:1,2,0,0|stop:end"},
		"new events":          {"somethingNew {}\n" + hello + `contentBlockDelta {"delta":{"citation":{"title":"x"}}}` + "\n" + stop("end_turn"), "t:hello|u:1,2,0,0|stop:end"},
		"usage before stop":   {hello + usage, "t:hello|!unknown EOF"},
		"no JSON":             {hello + "contentBlockDelta <html>", "t:hello|!malformed p sent an event that cannot be read"},
		"throttled":           {hello + `!throttlingException {"message":"Too many tokens, please wait before trying again."}`, "t:hello|!rate_limited p failed: Too many tokens, please wait before trying again. (throttlingException)"},
		"model failed":        {hello + `!modelStreamErrorException {"message":"boom","originalStatusCode":500}`, "t:hello|!overloaded p failed: boom (modelStreamErrorException)"},
		"unavailable":         {`!serviceUnavailableException {"message":"busy"}`, "!overloaded p failed: busy (serviceUnavailableException)"},
		"internal":            {`!internalServerException {"message":"oops"}`, "!overloaded p failed: oops (internalServerException)"},
		"too long":            {`!validationException {"message":"The model returned the following errors: Input is too long for requested model."}`, "!context_overflow p failed: The model returned the following errors: Input is too long for requested model. (validationException)"},
		"too long for model":  {`!modelStreamErrorException {"message":"prompt is too long: 210000 tokens > 200000 maximum"}`, "!context_overflow p failed: prompt is too long: 210000 tokens > 200000 maximum (modelStreamErrorException)"},
		"invalid":             {`!validationException {"message":"Malformed input request"}`, "!bad_request p failed: Malformed input request (validationException)"},
		"denied":              {`!accessDeniedException {"Message":"no"}`, "!auth p failed: no (accessDeniedException)"},
		"unmodelled error":    {hello + "*InternalFailure something broke", "t:hello|!unknown p failed: something broke (InternalFailure)"},
		"error without words": {"*Strange", "!unknown p failed: no further explanation (Strange)"},
	} {
		if got := read(bytes.NewReader(script(t, c.script))); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// answers renders what the client decodes from an HTTP answer.
func answers(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	defer srv.Close()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	at := llm.Endpoint{
		Provider: "p", URL: srv.URL, Client: client, Limits: llm.DefaultLimits(), Now: time.Now,
		Headers: map[string]string{"Authorization": "Bearer planted-secret"},
	}
	var c collector
	for d, err := range New(at, AWS{}).Stream(context.Background(), llm.Request{Model: "anthropic.claude-sonnet-4-5-v1:0"}) {
		c.add(d, err)
	}
	return c.String()
}

func TestFaults(t *testing.T) {
	status := func(code int, errorType, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", errorType)
			w.Header().Set("Content-Type", "application/json")
			if errorType == "slow" {
				w.Header().Set("Retry-After", "7")
			}
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	sends := func(contentType string, body []byte, abort bool) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = w.Write(body)
			if abort {
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			}
		}
	}
	const binary = "application/vnd.amazon.eventstream"
	text := script(t, `contentBlockDelta {"delta":{"text":"a"}}`)
	call := script(t, `contentBlockStart {"start":{"toolUse":{"toolUseId":"1","name":"f"}}}`)
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"overflow":         {status(400, "ValidationException", `{"message":"Input is too long for requested model."}`), "!context_overflow p answered 400 Bad Request: Input is too long for requested model."},
		"overflow of both": {status(400, "ValidationException", "{\"message\":\"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000\"}"), "!context_overflow p answered 400 Bad Request: input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"},
		"invalid":          {status(400, "ValidationException", `{"message":"The maximum tokens you requested exceeds the model limit of 4096."}`), "!bad_request p answered 400 Bad Request: The maximum tokens you requested exceeds the model limit of 4096."},
		"401":              {status(401, "", `{}`), "!auth p answered 401 Unauthorized: {}"},
		"403":              {status(403, "AccessDeniedException", `{"Message":"Bearer planted-secret is no key"}`), "!auth p answered 403 Forbidden: Bearer [REDACTED] is no key"},
		"404":              {status(404, "ResourceNotFoundException", `{"message":"This model version has reached the end of its life."}`), "!bad_request p answered 404 Not Found: This model version has reached the end of its life."},
		"408":              {status(408, "ModelTimeoutException", `{"message":"late"}`), "!overloaded p answered 408 Request Timeout: late"},
		"413":              {status(413, "", ``), "!context_overflow p answered 413 Request Entity Too Large: no further explanation"},
		"424":              {status(424, "ModelErrorException", `{"message":"the model failed"}`), "!overloaded p answered 424 Failed Dependency: the model failed"},
		"429":              {status(429, "ThrottlingException", `{"message":"Too many tokens, please wait before trying again."}`), "!rate_limited p answered 429 Too Many Requests: Too many tokens, please wait before trying again."},
		"429 with a delay": {status(429, "slow", `{"message":"wait"}`), "!rate_limited p answered 429 Too Many Requests: wait (try again in 7s)"},
		"500":              {status(500, "InternalServerException", `{"message":"oops"}`), "!overloaded p answered 500 Internal Server Error: oops"},
		"529":              {status(529, "", `busy`), "!overloaded p answered 529: busy"},
		"html":             {sends("text/html", []byte("<h1>Welcome</h1>"), false), "!protocol p answered with a web page (text/html), which is not its API: \"Welcome\""},
		"garbage":          {sends(binary, []byte("data: {\"choices\":[]}\n\n"), false), "!malformed p: the event stream is corrupt: the checksum of a message's lengths is wrong"},
		"nothing":          {sends(binary, nil, false), "!premature_stop p answered 200 OK with nothing: the body is empty"},
		"ended early":      {sends(binary, text, false), "t:a|!premature_stop p ended the answer before it was complete"},
		"cut":              {sends(binary, text, true), "t:a|!premature_stop p closed the connection in the middle of its answer"},
		"cut in a message": {sends(binary, text[:len(text)-1], false), "!premature_stop p closed the connection in the middle of its answer"},
		"cut in a call":    {sends(binary, call, true), "c+1=f|!premature_stop p closed the connection in the middle of its answer"},
	} {
		if got := answers(t, c.serve); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add(turn)
	f.Add("messageStop {}\n!throttlingException {}")
	f.Fuzz(func(t *testing.T, lines string) {
		terminal := 0
		s := stream{provider: "p", open: map[int]*block{}, ids: map[string]bool{}, Emitter: llm.Emitter{Yield: func(d llm.Delta, _ error) bool {
			if terminal > 0 {
				t.Errorf("a delta after the end: %+v", d)
			}
			if d.Kind == llm.StopDelta {
				terminal++
			}
			return true
		}}}
		body := script(t, lines)
		if err := s.read(newEventReader(bytes.NewReader(body))); (err == nil) != (terminal == 1) {
			t.Errorf("%d terminal deltas and error %v", terminal, err)
		}
	})
}
