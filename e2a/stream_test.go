package e2a

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// asJSON returns the JSON of a value with the members of objects sorted.
func asJSON(t testing.TB, v any) string {
	t.Helper()
	out, err := jsonrpc.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.UseNumber()
	var sorted any
	if err := dec.Decode(&sorted); err != nil {
		t.Fatal(err)
	}
	if out, err = jsonrpc.Marshal(sorted); err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestPromptParams has a row for each rule of e2a.md 4, and for eca's decisions (e2a.md 9).
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

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// stream returns a stream with numbered frames.
func stream(e Envelope) *Stream {
	n := 0
	return NewStream(e, func() string { n++; return fmt.Sprint("id", n) }, func() time.Time { return noon })
}

// Frames repeat the members of the envelope and have increasing sequence numbers, and no frame
// follows the final one (e2a.md 6).
func TestStream(t *testing.T) {
	e, err := DecodeEnvelope([]byte(`{"request_id":"req_1","jsonrpc_id":7,"session_id":"s","channel":"web","method":"chat.send","is_stream":true,"user_id":"u","agent_ref":{"a":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	s := stream(e)
	var frames []Response
	for _, make := range []func() (Response, error){
		func() (Response, error) { return s.Chunk(map[string]any{"delta_kind": DeltaText, "delta": "Hello"}) },
		func() (Response, error) {
			return s.Chunk(map[string]any{"delta_kind": DeltaText, "delta": " world", "more": 1})
		},
		func() (Response, error) { return s.Complete(map[string]any{"content": "Hello world"}) },
	} {
		r, err := make()
		if err != nil {
			t.Fatal(err)
		}
		frames = append(frames, r)
	}
	for i, r := range frames {
		if r.Sequence != int64(i) || deref(r.RequestID) != "req_1" || deref(r.Channel) != "web" || r.JSONRPCID == nil || string(r.AgentRef) != `{"a":1}` || !r.IsStream {
			t.Errorf("frame %d: %s", i, asJSON(t, r))
		}
	}
	if got := asJSON(t, frames[1].Body); got != `{"delta":" world","delta_kind":"text","more":1}` {
		t.Error(got)
	}
	if !s.Ended() {
		t.Error("the final frame was made")
	}
	if _, err := s.Fail("x", "y", struct{}{}); !errors.Is(err, ErrFinal) {
		t.Errorf("a frame behind the final one: %v", err)
	}
	failed := stream(e)
	if r, err := failed.Fail("E2A.X", "it broke", struct{}{}); err != nil || r.Status != Failed || !r.IsFinal || asJSON(t, r.Body) != `{"code":"E2A.X","details":{},"message":"it broke"}` {
		t.Errorf("%s, %v", asJSON(t, r), err)
	}
}

// The lists of names have as many entries as the specification.
func TestNames(t *testing.T) {
	for name, got := range map[string]int{
		"kinds 13": len(ResponseKinds()),
	} {
		if !strings.HasSuffix(name, fmt.Sprint(" ", got)) {
			t.Errorf("%s: %d", name, got)
		}
	}
}
