package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/agent"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Any input gets the answer that the protocol requires, or none, and the agent keeps running
// (docs/contracts/ecp.md 1.3, 1.4).
func TestLines(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	for _, l := range []struct{ line, want string }{
		{`{`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`hello`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{"\"\xff\"", `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,`},
		{`17`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`{"jsonrpc":"1.0","method":"agent/reset","id":4}`, `{"jsonrpc":"2.0","id":4,"error":{"code":-32600,`},
		{`{"jsonrpc":"2.0","method":"agent/none","id":"ä"}`, `{"jsonrpc":"2.0","id":"\u00e4","error":{"code":-32601,"message":"Unknown method: agent/none"`},
		{`{"jsonrpc":"2.0","method":"agent/step","params":[],"id":1.0}`, `{"jsonrpc":"2.0","id":1.0,"error":{"code":-32602,`},
		{`{"jsonrpc":"2.0","method":"agent/step","params":{"input":3},"id":12345678901234567890}`, `{"jsonrpc":"2.0","id":12345678901234567890,"error":{"code":-32602,`},
		{`{"jsonrpc":"2.0","method":"agent/step","id":null}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32602,`},
		{`[]`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{`[1,{"jsonrpc":"2.0","method":"agent/reset","id":9},{"jsonrpc":"2.0","method":"agent/reset"}]`, `[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request: the message must be an object"}},{"jsonrpc":"2.0","id":9,"result":true}]`},
		{"\r", ""},
		{"  ", ""},
		{`{"jsonrpc":"2.0","method":"agent/none"}`, ""},             // a notification
		{`{"jsonrpc":"2.0","method":"agent/step","params":[]}`, ""}, // an invalid notification
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, ""},                // an answer to nothing
		{`[{"jsonrpc":"2.0","method":"agent/reset"}]`, ""},          // only notifications
		{`{"jsonrpc":"2.0","method":"agent/reset","id":1}` + "\r", `{"jsonrpc":"2.0","id":1,"result":true}`},
	} {
		c.send(l.line)
		if l.want == "" {
			continue
		}
		if got := c.line(); !strings.HasPrefix(got, l.want) {
			t.Errorf("%q:\ngot  %s\nwant %s", l.line, got, l.want)
		}
	}
	if id := c.call(ecp.MethodReset, nil).ID; string(id) != "1" {
		t.Errorf("%s", id) // an answer to a notification would have another id
	}
}

// A line that is too long is skipped; later lines are understood.
func TestLongLine(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	chunk := strings.Repeat("x", 1<<20)
	for range 3 * agent.MaxMessage / len(chunk) {
		if _, err := io.WriteString(c.in, chunk); err != nil {
			t.Fatal(err)
		}
	}
	c.send("")
	checkContains(t, c.line(), "-32700", fmt.Sprint(agent.MaxMessage))
	if out := *c.step(strings.Repeat("y", 1<<20)).PublicOutput; out != "ok" {
		t.Errorf("%q", out)
	}
}

// Concurrent steps are executed one after the other, in the order of their arrival.
func TestConcurrentSteps(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - {user: "^one$", steps: [{text: first}]}
  - {user: "^two$", steps: [{text: second}]}
  - {user: "^three$", steps: [{text: third}]}
`})
	c := r.connect()
	var ids []int
	for _, input := range []string{"one", "two", "three"} {
		ids = append(ids, c.begin(ecp.MethodStep, map[string]any{"input": input}))
	}
	for i, want := range []string{"first", "second", "third"} {
		if got := *c.result(c.answer(ids[i])).PublicOutput; got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	checkContains(t, r.lastRequest(), "first", "second")
}

// A runtime with too many open calls gets an error.
func TestTooManyCalls(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: \"x \", hang: true}]}"})
	c := r.connect()
	for range 100 {
		c.begin(ecp.MethodStep, map[string]any{"input": "hang"})
	}
	for range 100 - 64 {
		checkContains(t, c.line(), "too many calls are waiting")
	}
	c.send(`{"jsonrpc":"2.0","method":"agent/reset","id":"r"}`)
	for range 64 {
		checkContains(t, c.line(), `"stop_reason":"cancelled"`)
	}
	checkContains(t, c.line(), `"id":"r","result":true`)
}

// After the end of the input, open calls end, and then the agent ends.
func TestEndOfInput(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	id := c.begin(ecp.MethodReset, nil)
	if _, err := io.WriteString(c.in, `{"jsonrpc":"2.0","method":"agent/none","id":2}`); err != nil { // without a line end
		t.Fatal(err)
	}
	_ = c.in.Close()
	got := c.line() + c.line()
	checkContains(t, got, fmt.Sprintf(`"id":%d,"result":true`, id), `"id":2,"error"`)
	if err := <-c.done; err != nil {
		t.Error(err)
	}
}

// A step that does not end when the runtime disconnects is stopped.
func TestRuntimeDisconnects(t *testing.T) {
	for _, how := range []string{"end of input", "signal", "closed output"} {
		t.Run(how, func(t *testing.T) {
			r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: \"so far \", hang: true}]}"})
			toAgent, in := pipe(t)
			out, fromAgent := pipe(t)
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			done := make(chan error, 1)
			go func() { done <- r.agent.Serve(ctx, toAgent, fromAgent) }()
			if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"agent/step","params":{"input":"x"},"id":1}`+"\n"); err != nil {
				t.Fatal(err)
			}
			r.awaitRequest()
			switch how {
			case "end of input":
				_ = in.Close()
			case "signal":
				stop()
			case "closed output":
				_ = out.Close()
				if _, err := io.WriteString(in, "{\n"); err != nil { // a message that gets an answer
					t.Fatal(err)
				}
			}
			if err := <-done; (err != nil) != (how == "closed output") {
				t.Error(err)
			}
			for _, f := range []*os.File{in, out, toAgent, fromAgent} {
				_ = f.Close()
			}
		})
	}
}

// A runtime that does not read blocks only itself.
func TestSlowReader(t *testing.T) {
	needs.Long(t)
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: \"many words \", repeat: 20000}]}"})
	c := r.connect()
	const steps = 4 // each answer is larger than a pipe
	for range steps {
		c.begin(ecp.MethodStep, map[string]any{"input": "x"})
	}
	for range steps { // all steps continue although the runtime does not read
		r.awaitRequest()
	}
	for i := range steps {
		if out := *c.result(c.answer(i + 1)).PublicOutput; len(out) != 11*20000 {
			t.Errorf("%d bytes", len(out))
		}
	}
	for range steps {
		c.begin(ecp.MethodStep, map[string]any{"input": "x"})
	}
	for range steps {
		r.awaitRequest()
	}
	c.stop() // although an answer is stuck
	<-c.done
}

// brokenReader fails after its data.
type brokenReader struct{ io.Reader }

func (b brokenReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("the pipe broke")
	}
	return n, err
}

func TestBrokenInput(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	var out bytes.Buffer
	err := r.agent.Serve(context.Background(), brokenReader{strings.NewReader(`{"jsonrpc":"2.0","method":"agent/reset","id":1}` + "\n")}, &out)
	if err == nil || !strings.Contains(err.Error(), "the pipe broke") || !strings.Contains(out.String(), `"result":true`) {
		t.Errorf("%v, %s", err, out.String())
	}
}

// A closed agent refuses calls, and says why.
func TestClosedAgent(t *testing.T) {
	r := newRig(t, options{model: "turns: []"})
	c := r.connect()
	c.initialize(nil)
	r.agent.Close()
	checkContains(t, c.callError(ecp.MethodStep, map[string]any{"input": "x"}).Message, "shutting down")
}

// For any input bytes, each output line is an answer, and the agent still knows its methods.
func FuzzServe(f *testing.F) {
	for _, seed := range []string{
		"{}\n[]\n\n", `{"jsonrpc":"2.0","method":"agent/reset","id":[]}` + "\n", `[{"jsonrpc":"2.0","method":"x","id":1},[[]],{}]` + "\n",
		`{"jsonrpc":"2.0","method":"agent/initialize","params":{"config":{"tools":{"allow":["x"]},"budgets":{"timeout_s":1e300}}},"id":"1"}` + "\n",
		"\x00\xff\n\"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"agent/reset\"}",
	} {
		f.Add([]byte(seed))
	}
	r := newRig(f, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	f.Fuzz(func(t *testing.T, in []byte) {
		var out bytes.Buffer
		last := `{"jsonrpc":"2.0","method":"agent/none","id":"the last"}`
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := r.agent.Serve(ctx, strings.NewReader(string(in)+"\n"+last), &out); err != nil {
			t.Fatal(err)
		}
		found := false
		for line := range strings.SplitSeq(strings.TrimSuffix(out.String(), "\n"), "\n") {
			var list []json.RawMessage
			if json.Unmarshal([]byte(line), &list) != nil {
				list = []json.RawMessage{json.RawMessage(line)}
			}
			for _, raw := range list {
				res, err := ecp.ParseResponse(raw)
				if err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				found = found || string(res.ID) == `"the last"`
			}
		}
		if !found {
			t.Fatalf("%q: the last call is not answered: %s", in, out.String())
		}
	})
}
