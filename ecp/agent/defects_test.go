package agent_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

// TestDefects: each comment states a defect of the reference's agents (docs/ecp-defects.md, same
// numbers); the subtest shows that eca's agent does not have it.
func TestDefects(t *testing.T) {
	const say = "turns: []\ndefault: {steps: [{text: ok}]}"

	// A server that is never reset leaks one scenario's messages into the next.
	t.Run("01", func(t *testing.T) {
		r := newRig(t, options{model: say})
		s := r.site(httpguard.Options{})
		for _, input := range []string{"of the first scenario", "of the second"} {
			s.do("POST", "/ecp", `{"jsonrpc":"2.0","method":"agent/initialize","params":{"config":{}},"id":1}`, nil)
			s.do("POST", "/ecp", `{"jsonrpc":"2.0","method":"agent/step","params":{"input":"`+input+`"},"id":2}`, nil)
		}
		if strings.Contains(r.lastRequest(), "of the first scenario") {
			t.Error("the model receives the first scenario in the second")
		}
	})

	// Codes differ between transports, and notifications, answers and empty batches are answered
	// wrongly.
	t.Run("25", func(t *testing.T) {
		r := newRig(t, options{model: say})
		s, c := r.site(httpguard.Options{}), r.connect()
		for _, line := range []string{"{", "[]", "7", `{"jsonrpc":"2.0","method":"x","id":1}`, `{"jsonrpc":"2.0","method":"agent/step","params":7,"id":1}`} {
			c.send(line)
			if here, there := c.line(), s.do("POST", "/ecp", line, nil).body; here != there {
				t.Errorf("%s: %s over pipes, %s over HTTP", line, here, there)
			}
		}
		for _, line := range []string{`{"jsonrpc":"2.0","method":"x"}`, `{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","method":"agent/step","params":7}`} {
			if a := s.do("POST", "/ecp", line, nil); a.status != 202 || a.body != "" {
				t.Errorf("%s: %d %s", line, a.status, a.body)
			}
		}
	})

	// Two agents in one process share their state.
	t.Run("26", func(t *testing.T) {
		one, two := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: one}]}"}), newRig(t, options{model: "turns: []\ndefault: {steps: [{text: two}]}"})
		c, d := one.connect(), two.connect()
		c.initialize(map[string]any{"tools": map[string]any{"allow": []string{"read_file"}}})
		d.initialize(nil)
		if a, b := *c.step("x").PublicOutput, *d.step("x").PublicOutput; a != "one" || b != "two" || !definition(t, two.lastRequest(), "eca__grep") {
			t.Errorf("%q, %q", a, b)
		}
	})

	// Threads of a server interfere, because the agent has no locks.
	t.Run("26 at once", func(t *testing.T) {
		var tape strings.Builder
		tape.WriteString("turns:\n")
		for i := range 12 {
			fmt.Fprintf(&tape, "  - {user: \"^question %d$\", steps: [{text: \"question %[1]d\"}]}\n", i)
		}
		r := newRig(t, options{model: tape.String()})
		s := r.site(httpguard.Options{})
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				input := fmt.Sprintf("question %d", i)
				a := s.do("POST", "/ecp", fmt.Sprintf(`{"jsonrpc":"2.0","method":"agent/step","params":{"input":%q},"id":"id %d"}`, input, i), nil)
				res, err := ecp.ParseResponse([]byte(a.body))
				if err != nil || a.status != 200 || string(res.ID) != fmt.Sprintf(`"id %d"`, i) || !strings.Contains(string(res.Result), `"public_output":"`+input+`"`) {
					t.Errorf("%d: %d %v %s", i, a.status, err, a.body)
				}
			})
		}
		all.Wait()
	})

	// Chunked bodies are lost, foreign hosts are served, OPTIONS and HEAD are unknown.
	t.Run("27", func(t *testing.T) {
		r := newRig(t, options{model: say})
		s := r.site(httpguard.Options{})
		for method, status := range map[string]int{"OPTIONS": 405, "HEAD": 405, "PATCH": 405} {
			if a := s.do(method, "/ecp", "", nil); a.status != status {
				t.Errorf("%s: %d", method, a.status)
			}
		}
		if a := s.do("POST", "/ecp", resetCall, map[string]string{"Host": "attacker.example"}); a.status != 403 {
			t.Errorf("foreign host: %d", a.status)
		}
	})

	// Values that are not numbers get into the JSON.
	t.Run("28", func(t *testing.T) {
		r := newRig(t, options{model: "turns: []\ndefault: {steps: [{calls: [{id: n, tool: eca__read_file, rawArguments: '{\"path\": NaN}'}]}, {text: \"NaN \\u0001 \\u2028\"}]}"})
		c := r.connect()
		c.send(`{"jsonrpc":"2.0","method":"agent/step","params":{"input":"\ud800"},"id":1}`)
		line := c.line()
		res, err := ecp.ParseResponse([]byte(line))
		if err != nil || !json.Valid([]byte(line)) {
			t.Fatalf("%v: %s", err, line)
		}
		if step := checkComplete(t, res.Result); !strings.Contains(string(step.ToolCalls[0].Arguments), "raw") {
			t.Errorf("%+v", step)
		}
	})

	// Web pages can run programs.
	t.Run("29", func(t *testing.T) {
		r := newRig(t, options{model: say})
		s := r.site(httpguard.Options{})
		for name, header := range map[string]map[string]string{
			"foreign page": {"Origin": "https://evil.example", "Content-Type": "text/plain"},
			"form":         {"Content-Type": "application/x-www-form-urlencoded"},
			"sandboxed":    {"Origin": "null"},
		} {
			if a := s.do("POST", "/ecp", `{"jsonrpc":"2.0","method":"agent/step","params":{"input":"x"},"id":1}`, header); a.status < 400 || r.requestCount() > 0 {
				t.Errorf("%s: %d", name, a.status)
			}
		}
	})

	// A request for a folder, or for an unknown address, ends the server.
	t.Run("30", func(t *testing.T) {
		r := newRig(t, options{model: say})
		s := r.site(httpguard.Options{})
		for _, path := range []string{"/", "/src", "/src/", "//", "/ecp/..", "/..%2f..%2fetc/passwd", "/%00", "/ecp%00", "/ecp/%ff", "/" + strings.Repeat("a/", 2000)} {
			for _, method := range []string{"GET", "POST"} {
				if a := s.do(method, path, resetCall, nil); a.status != 404 || strings.Contains(a.body, "root:") {
					t.Errorf("%s %.30s: %d %.80s", method, path, a.status, a.body)
				}
			}
		}
		if a := s.do("POST", "/ecp", resetCall, nil); a.status != 200 || a.body != isTrue {
			t.Errorf("the server does not answer the next request: %d %s", a.status, a.body)
		}
	})
}
