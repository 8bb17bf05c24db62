package e2a

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func asJSON(t testing.TB, v any) string {
	t.Helper()
	out, err := encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestPromptParams has a row for each rule of contract 4, and our decisions in 9.
func TestPromptParams(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"another method", `{"method":"chat.send","session_id":"s","params":{"text":"hi"},"acp_meta":{"a":1}}`, `{"text":"hi"}`},
		{"no method", `{"params":{"text":"hi"}}`, `{"text":"hi"}`},
		{"prompt stays", `{"method":"session/prompt","session_id":"s","params":{"prompt":[1],"text":"hi"},"acp_meta":{"a":1}}`, `{"_meta":{"a":1},"prompt":[1],"session_id":"s","text":"hi"}`},
		{"prompt null stays", `{"method":"session/prompt","params":{"prompt":null,"text":"hi"}}`, `{"prompt":null,"text":"hi"}`},
		{"content blocks", `{"method":"session/prompt","params":{"content_blocks":[{"type":"image"}],"text":"hi"}}`, `{"content_blocks":[{"type":"image"}],"prompt":[{"type":"image"}],"text":"hi"}`},
		{"no blocks", `{"method":"session/prompt","params":{"content_blocks":[],"text":"hi"}}`, `{"content_blocks":[],"prompt":[{"text":"hi","type":"text"}],"text":"hi"}`},
		{"text before content", `{"method":"session/prompt","params":{"query":"q","content":"c","text":"t"}}`, `{"content":"c","prompt":[{"text":"t","type":"text"}],"query":"q","text":"t"}`},
		{"the first string", `{"method":"session/prompt","params":{"text":[1],"content":"","query":"q"}}`, `{"content":"","prompt":[{"text":"q","type":"text"}],"query":"q","text":[1]}`},
		{"nothing to say", `{"method":"session/prompt","params":{}}`, `{}`},
		{"session is there", `{"method":"session/prompt","session_id":"s","params":{"session_id":null}}`, `{"session_id":null}`},
		{"session empty", `{"method":"session/prompt","session_id":"","params":{}}`, `{}`},
		{"meta merges", `{"method":"session/prompt","params":{"_meta":{"a":1,"b":2}},"acp_meta":{"a":3}}`, `{"_meta":{"a":3,"b":2}}`},
		{"meta that is none", `{"method":"session/prompt","params":{"_meta":"x"},"acp_meta":{"a":3}}`, `{"_meta":{"a":3}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := DecodeEnvelope([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			before := asJSON(t, e)
			if got := asJSON(t, ACPPromptParams(e)); got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
			if after := asJSON(t, e); after != before {
				t.Errorf("the envelope changed\n%s", cmp.Diff(before, after))
			}
		})
	}
}

var noon = time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)

// TestACP goes there and back (contract 5.1, 5.3).
func TestACP(t *testing.T) {
	params := object(t, `{"sessionId":"s1","prompt":[{"type":"image","mimeType":"image/png"}],"_meta":{"trace":"x"}}`)
	e := FromACP(ACPCall{Method: MethodPrompt, Params: params, ID: json.Number("42"), Channel: "zed", RequestID: "r", Now: noon, Details: map[string]any{"kind": "mine"}})
	var empty Envelope
	if err := json.Unmarshal([]byte(emptyEnvelope), &empty); err != nil {
		t.Fatal(err)
	}
	const want = `{"acp_meta":{"trace":"x"},"channel":"zed","is_stream":true,"jsonrpc_id":42,"method":"session/prompt",` +
		`"params":{"_meta":{"trace":"x"},"prompt":[{"mimeType":"image/png","type":"image"}],"sessionId":"s1"},` +
		`"provenance":{"converted_at":"2026-03-28T12:00:00+00:00","converter":"eca/e2a.FromACP","details":{"jsonrpc_id":42,"jsonrpc_method":"session/prompt","kind":"mine"},"source_protocol":"acp"},` +
		`"request_id":"r","session_id":"s1","timestamp":"2026-03-28T12:00:00+00:00"}`
	if got := members(t, e, empty); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	for _, c := range []struct{ session, params, want string }{
		{"", `{"sessionId":"a","session_id":"b"}`, "a"}, {"", `{"session_id":"b"}`, "b"}, {"", `{"session_id":5}`, ""}, {"x", `{"sessionId":"a"}`, "x"}, {"", `{}`, ""},
	} {
		e := FromACP(ACPCall{Method: "session/cancel", Params: object(t, c.params), SessionID: c.session, Now: noon})
		if got := deref(e.SessionID); got != c.want || e.IsStream {
			t.Errorf("%s: session %q, want %q", c.params, got, c.want)
		}
	}
	for _, c := range []struct {
		in   string
		wire Wire
		want string
	}{
		{
			`{"method":"session/prompt","jsonrpc_id":42,"session_id":"s","params":{"content_blocks":[{"type":"image","mime_type":"image/png"}]}}`, AsReference,
			`{"id":42,"jsonrpc":"2.0","method":"session/prompt","params":{"content_blocks":[{"mime_type":"image/png","type":"image"}],"prompt":[{"mime_type":"image/png","type":"image"}],"session_id":"s"}}`,
		},
		{
			`{"method":"session/prompt","jsonrpc_id":"x","session_id":"s","params":{"prompt":[{"type":"resource","resource":{"mime_type":"a","session_id":"kept"}}],"_meta":{"mime_type":"kept","session_id":"kept"}}}`, AsACP,
			`{"id":"x","jsonrpc":"2.0","method":"session/prompt","params":{"_meta":{"mime_type":"kept","session_id":"kept"},"prompt":[{"resource":{"mimeType":"a","session_id":"kept"},"type":"resource"}],"sessionId":"s"}}`,
		},
		{`{"method":"session/cancel","params":{"session_id":"s"}}`, AsReference, `{"id":null,"jsonrpc":"2.0","method":"session/cancel","params":{"session_id":"s"}}`},
		{`{"method":"session/cancel","params":{"session_id":"s"}}`, AsACP, `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}`},
		{`{"method":"ext","ext_method":"_x/y"}`, AsReference, `{"id":null,"jsonrpc":"2.0","method":"_x/y","params":{}}`},
		{`{"method":"ext","ext_method":""}`, AsReference, `{"id":null,"jsonrpc":"2.0","method":"ext","params":{}}`},
		{`{}`, AsReference, `{"id":null,"jsonrpc":"2.0","method":null,"params":{}}`},
	} {
		e, err := DecodeEnvelope([]byte(c.in))
		if err != nil {
			t.Fatal(err)
		}
		if got := asJSON(t, ToACPCall(e, c.wire)); got != c.want {
			t.Errorf("\n got %s\nwant %s", got, c.want)
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// TestACPResponses has a row for each rule of contract 5.4; - is none.
func TestACPResponses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"projection", `{"jsonrpc_id":1,"response_kind":"e2a.chunk","projections":{"acp":{"jsonrpc":"2.0","result":{"a":1}}}}`, `{"id":1,"jsonrpc":"2.0","result":{"a":1}}`},
		{"projection with an id", `{"jsonrpc_id":1,"projections":{"acp":{"jsonrpc":"2.0","id":null,"error":{}}}}`, `{"error":{},"id":null,"jsonrpc":"2.0"}`},
		{"projection of nothing", `{"projections":{"acp":{"jsonrpc":"2.0"}}}`, `-`},
		{"projection of another version", `{"projections":{"acp":{"jsonrpc":"1.0","result":1}}}`, `-`},
		{"prompt result", `{"jsonrpc_id":"x","response_kind":"acp.prompt_result","body":{"stopReason":"end_turn"}}`, `{"id":"x","jsonrpc":"2.0","result":{"stopReason":"end_turn"}}`},
		{"error of ACP", `{"jsonrpc_id":2,"response_kind":"acp.jsonrpc_error","body":{"code":-32000,"message":"m"}}`, `{"error":{"code":-32000,"message":"m"},"id":2,"jsonrpc":"2.0"}`},
		{"error", `{"jsonrpc_id":2,"response_kind":"e2a.error","body":{"code":-32001,"message":"m"}}`, `{"error":{"code":-32001,"message":"m"},"id":2,"jsonrpc":"2.0"}`},
		{"error with a name", `{"response_kind":"e2a.error","body":{"code":"E2A.X","message":null,"details":{"a":1},"external":{"protocol":"a2a"}}}`, `{"error":{"code":-32603,"data":{"details":{"a":1},"e2a_code":"E2A.X","external":{"protocol":"a2a"}},"message":""},"id":null,"jsonrpc":"2.0"}`},
		{"error with a boolean", `{"response_kind":"e2a.error","body":{"code":true}}`, `{"error":{"code":-32603,"data":{"e2a_code":true},"message":""},"id":null,"jsonrpc":"2.0"}`},
		{"error of nothing", `{"response_kind":"e2a.error"}`, `{"error":{"code":-32603,"message":""},"id":null,"jsonrpc":"2.0"}`},
		{"chunk", `{"response_kind":"e2a.chunk"}`, `-`},
		{"update", `{"response_kind":"acp.session_update"}`, `-`},
		{"task", `{"response_kind":"a2a.task"}`, `-`},
		{"complete", `{"response_kind":"e2a.complete","is_final":true,"jsonrpc_id":3,"body":{"result":{"stop_reason":"cancelled"}}}`, `{"id":3,"jsonrpc":"2.0","result":{"stopReason":"cancelled"}}`},
		{"complete of nothing", `{"response_kind":"e2a.complete","is_final":true}`, `{"id":null,"jsonrpc":"2.0","result":{"stopReason":"end_turn"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := DecodeResponse([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			got := "-"
			if v, ok := ToACPResponse(r, true); ok {
				got = asJSON(t, v)
			}
			if got != c.want {
				t.Errorf("\n got %s\nwant %s", got, c.want)
			}
		})
	}
	if _, ok := ToACPResponse(Response{Kind: KindComplete, IsFinal: true}, false); ok {
		t.Error("the reference makes none of a complete")
	}
}

// TestA2A: contract 5.2 and 5.5.
func TestA2A(t *testing.T) {
	e := FromA2A(A2AMessage{
		TaskID: "t", ContextID: "c", RequestID: "r", Stream: true, Now: noon, Metadata: map[string]any{"a": "b"},
		Configuration: object(t, `{"acceptedOutputModes":["text/plain",1]}`),
		Message: object(t, `{"messageId":"m","parts":[{"text":"hi"},{"url":"https://x/y","filename":"y","mediaType":"text/html"},{"raw":"AA==","mediaType":"image/png"},
			{"raw":"BB==","mediaType":"application/zip","filename":"z"},{"data":{"k":[1]}},{"file":{"bytes":"CC==","mimeType":"image/gif"}},{"file":{"uri":"file:///a"}},5,{}]}`),
	})
	const blocks = `[{"text":"hi","type":"text"},{"mime_type":"text/html","name":"y","type":"resource_link","uri":"https://x/y"},{"data":"AA==","mime_type":"image/png","type":"image"},` +
		`{"resource":{"blob":"BB==","mime_type":"application/zip","uri":"z"},"type":"resource"},{"text":"{\"k\":[1]}","type":"text"},{"data":"CC==","mime_type":"image/gif","type":"image"},` +
		`{"name":"file:///a","type":"resource_link","uri":"file:///a"}]`
	if got := asJSON(t, e.Params["content_blocks"]); got != blocks {
		t.Errorf("\n got %s\nwant %s", got, blocks)
	}
	if got := asJSON(t, ACPPromptParams(e)["prompt"]); got != blocks {
		t.Errorf("the prompt is %s", got)
	}
	got := strings.Join([]string{*e.Method, *e.TaskID, *e.ContextID, *e.SessionID, *e.MessageID, e.Provenance.SourceProtocol, fmt.Sprint(e.ExpectedOutputModes, e.A2AMetadata, e.IsStream, e.Provenance.Details)}, " ")
	if want := "session/prompt t c c m a2a [text/plain 1] map[a:b] true map[abstract_operation:SendMessage kind:a2a_send_message]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, c := range []struct{ in, want string }{
		{`{"response_kind":"a2a.stream_event","body":{"branch":"status_update","payload":{"taskId":"t"}}}`, `{"statusUpdate":{"taskId":"t"}}`},
		{`{"response_kind":"a2a.stream_event","body":{"branch":"artifact_update","payload":{}}}`, `{"artifactUpdate":{}}`},
		{`{"response_kind":"a2a.stream_event","body":{"branch":"task","payload":{"id":1}},"projections":{"a2a":{"message":{"x":1}}}}`, `{"message":{"x":1}}`},
		{`{"response_kind":"a2a.stream_event","body":{"branch":"task","payload":{"id":1}},"projections":{"a2a":{"message":{},"task":{}}}}`, `{"task":{"id":1}}`},
		{`{"response_kind":"a2a.stream_event","body":{"branch":"other","payload":{}}}`, `-`},
		{`{"response_kind":"a2a.stream_event","body":{"branch":"task","payload":"x"}}`, `-`},
		{`{"response_kind":"a2a.task","body":{"branch":"task","payload":{}}}`, `-`},
	} {
		r, err := DecodeResponse([]byte(c.in))
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if v, ok := ToA2AEvent(r); ok {
			got = asJSON(t, v)
		}
		if got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.in, got, c.want)
		}
	}
}

// stream makes a stream whose frames are numbered.
func stream(e Envelope) *Stream {
	n := 0
	return NewStream(e, func() string { n++; return fmt.Sprint("id", n) }, func() time.Time { return noon })
}

// TestStream: the seed's example 12.8, and what may not follow it.
func TestStream(t *testing.T) {
	e, err := DecodeEnvelope([]byte(`{"request_id":"req_1","jsonrpc_id":7,"session_id":"s","channel":"web","method":"chat.send","is_stream":true,"user_id":"u","agent_ref":{"a":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := stream(e)
	var frames []Response
	for _, make := range []func() (Response, error){
		func() (Response, error) { return s.Chunk(DeltaText, "Hello", nil) },
		func() (Response, error) { return s.Chunk(DeltaText, " world", map[string]any{"delta": "x", "more": 1}) },
		func() (Response, error) { return s.Complete(map[string]any{"content": "Hello world"}) },
	} {
		r, err := make()
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, r)
	}
	var check Checker
	for i, r := range frames {
		if err := check.Check(r); err != nil {
			t.Error(err)
		}
		if r.Sequence != int64(i) || deref(r.RequestID) != "req_1" || deref(r.Channel) != "web" || r.JSONRPCID == nil || r.AgentRef["a"] == nil || !r.IsStream {
			t.Errorf("frame %d: %s", i, asJSON(t, r))
		}
	}
	if got := asJSON(t, frames[1].Body); got != `{"delta":" world","delta_kind":"text","more":1}` {
		t.Error(got)
	}
	if len(check.Open()) != 0 || !s.Ended() {
		t.Errorf("open: %v", check.Open())
	}
	if _, err := s.Fail("x", "y", nil); !errors.Is(err, ErrFinal) {
		t.Errorf("a frame behind the final one: %v", err)
	}
	failed := stream(e)
	if r, err := failed.Fail("E2A.X", "it broke", nil); err != nil || r.Status != Failed || !r.IsFinal || asJSON(t, r.Body) != `{"code":"E2A.X","details":{},"message":"it broke"}` {
		t.Errorf("%s, %v", asJSON(t, r), err)
	}
}

// TestChecker breaks each invariant.
func TestChecker(t *testing.T) {
	id, at := "r", "2026-03-28T12:00:00Z"
	good := Response{ProtocolVersion: ProtocolVersion, ResponseID: "a", RequestID: &id, Status: InProgress, Kind: KindChunk, Timestamp: &at}
	var c Checker
	if err := c.Check(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Response){
		"version":     func(r *Response) { r.ProtocolVersion = "2.0" },
		"no request":  func(r *Response) { r.RequestID = nil },
		"no id":       func(r *Response) { r.ResponseID = "" },
		"same id":     func(r *Response) { r.ResponseID = "a" },
		"gap":         func(r *Response) { r.Sequence = 2 },
		"again":       func(r *Response) { r.Sequence = 0 },
		"no time":     func(r *Response) { r.Timestamp = nil },
		"bad time":    func(r *Response) { bad := "noon"; r.Timestamp = &bad },
		"failed kind": func(r *Response) { r.Status, r.IsFinal = Failed, true },
		"final":       func(r *Response) { r.IsFinal = true },
		"kind":        func(r *Response) { r.Kind = "e2a.other" },
	} {
		r := good
		r.ResponseID, r.Sequence = "b", 1
		change(&r)
		if err := c.Check(r); err == nil {
			t.Errorf("%s was not found", name)
		}
	}
	if open := c.Open(); len(open) != 1 || open[0] != "r" {
		t.Errorf("open: %v", open)
	}
	last := good
	last.ResponseID, last.Sequence, last.IsFinal, last.Status, last.Kind = "b", 1, true, Succeeded, KindComplete
	if err := c.Check(last); err != nil {
		t.Error(err)
	}
	last.ResponseID, last.Sequence = "c", 2
	if err := c.Check(last); err == nil {
		t.Error("a frame behind the final one was not found")
	}
}

func TestSecretsAreNotLogged(t *testing.T) {
	e, err := DecodeEnvelope([]byte(`{"auth":{"bearer_token":"SECRET-1","api_key_ref":"ref","extra_headers":{"X-Key":"SECRET-2"},"_meta":{"k":"SECRET-3"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := asJSON(t, e.Redacted()); strings.Contains(got, "SECRET") || !strings.Contains(got, "X-Key") || !strings.Contains(got, `"ref"`) {
		t.Error(got)
	}
	if *e.Auth.BearerToken != "SECRET-1" || e.Auth.ExtraHeaders["X-Key"] != "SECRET-2" {
		t.Error("the envelope changed")
	}
	r, err := stream(e).Chunk(DeltaText, "SECRET-4", nil)
	if err != nil {
		t.Fatal(err)
	}
	line, err := r.LogLine()
	if err != nil || strings.Contains(string(line), "SECRET") || !strings.HasPrefix(string(line), `{"request_id":null,"response_id":"id1","sequence":0,"is_final":false,"status":"in_progress","response_kind":"e2a.chunk","timestamp":"2026`) {
		t.Errorf("%s, %v", line, err)
	}
	if (Envelope{}).Redacted().Auth != nil {
		t.Error("there was no auth")
	}
}

// The lists are the contract's (section 2).
func TestNames(t *testing.T) {
	for name, got := range map[string]int{
		"kinds 13": len(ResponseKinds()), "client 13": len(CompatACPClientMethods()), "agent 10": len(CompatACPAgentMethods()),
		"notifications 3": len(CompatACPNotifications()), "updates 12": len(CompatSessionUpdates()), "branches 4": len(A2ABranches()),
	} {
		if !strings.HasSuffix(name, fmt.Sprint(" ", got)) {
			t.Errorf("%s: %d", name, got)
		}
	}
}
