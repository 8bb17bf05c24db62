package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// No more calls run than the budget allows, even concurrent ones; running calls may end.
func TestMaxToolCalls(t *testing.T) {
	write := func(i int) string {
		return fmt.Sprintf(`{id: w%d, tool: eca__write_file, arguments: {path: "${workspace}/f%d", content: x}}`, i, i)
	}
	var atOnce, inTurn []string
	for i := range 8 {
		atOnce = append(atOnce, write(i))
		inTurn = append(inTurn, "      - calls: ["+write(i)+"]")
	}
	for name, model := range map[string]string{
		"at once":                "turns:\n  - {user: go, steps: [{text: working, calls: [" + strings.Join(atOnce, ", ") + "]}, {text: all done}]}\n  - {user: more, steps: [{text: later}]}",
		"one after the other":    "turns:\n  - user: go\n    steps:\n" + strings.Join(inTurn, "\n") + "\n      - {text: all done}\n  - {user: more, steps: [{text: later}]}",
		"as many as are allowed": "turns:\n  - {user: go, steps: [{calls: [" + strings.Join(atOnce[:3], ", ") + "]}, {text: all done}]}\n  - {user: more, steps: [{text: later}]}",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options{model: model})
			c := r.connect()
			c.initialize(map[string]any{"approval": "all", "budgets": map[string]any{"max_tool_calls": 3}})
			step := c.step("go")
			status, stop := ecp.Paused, ecp.StopToolCalls
			if name == "as many as are allowed" {
				status, stop = ecp.Done, ecp.StopEnd
			} else {
				checkContains(t, *step.EvaluationContext, "Not run: write_file")
			}
			if step.Status != status || step.StopReason != stop || len(step.ToolCalls) != 3 {
				t.Errorf("%+v", step)
			}
			made := 0
			for i := range 8 {
				if r.exists(fmt.Sprint("f", i)) {
					made++
				}
			}
			for _, call := range step.ToolCalls {
				if extraValue[bool](t, call, ecp.CallIsError) {
					t.Errorf("a call within the budget did not end: %+v", call)
				}
			}
			if made != 3 || !r.exists("f2") {
				t.Errorf("%d calls ran, or not the first", made)
			}
			if out := *c.step("more").PublicOutput; out != "later" { // with its own budget
				t.Errorf("%q", out)
			}
		})
	}
}

// Calls of subagents count too.
func TestSubagentsBudget(t *testing.T) {
	r := newRig(t, options{model: `
turns:
  - {user: delegate, steps: [{calls: [{id: s1, tool: eca__spawn_agent, arguments: {agent: general, task: "make the files", activity: making}}]}, {text: delegated}]}
  - user: "make the files"
    steps:
      - calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one", content: "x"}}]
      - calls: [{id: w2, tool: eca__write_file, arguments: {path: "${workspace}/two", content: "x"}}]
      - {text: made}
`})
	c := r.connect()
	c.initialize(map[string]any{"approval": "all", "budgets": map[string]any{"max_tool_calls": 2}})
	step := c.step("delegate")
	if step.Status != ecp.Paused || step.StopReason != ecp.StopToolCalls || !r.exists("one") || r.exists("two") {
		t.Errorf("%+v", step)
	}
}

// When the cost reaches max_cost_usd, no more calls run.
func TestMaxCost(t *testing.T) {
	model := `
turns:
  - steps:
      - {calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/one", content: "x"}}], usage: {input: 1000, output: 0}}
      - {calls: [{id: w2, tool: eca__write_file, arguments: {path: "${workspace}/two", content: "x"}}], usage: {input: 1000, output: 0}}
      - {text: done, usage: {input: 1000, output: 0}}
`
	r := newRig(t, options{model: model})
	c := r.connect()
	c.initialize(map[string]any{"approval": "all", "budgets": map[string]any{"max_cost_usd": 0.15}})
	step := c.step("go") // $0.1 for each answer
	if step.Status != ecp.Paused || step.StopReason != ecp.StopCost || !r.exists("one") || r.exists("two") {
		t.Errorf("%+v", step)
	}
	if *step.CostUSD < 0.19 || *step.CostUSD > 0.21 || r.requestCount() != 2 {
		t.Errorf("cost %v, %d requests", *step.CostUSD, r.requestCount())
	}
	r = newRig(t, options{model: model})
	c = r.connect()
	c.initialize(map[string]any{"model": "mock/n", "approval": "all", "budgets": map[string]any{"max_cost_usd": 0.15}})
	step = c.step("go")
	if step.Status != ecp.Done || step.Model != "mock/n" || object(t, step.Extra["metadata"])["cost_known"] != false {
		t.Errorf("%+v", step)
	}
	checkContains(t, *step.Logs, "the price of mock/n is unknown")
}

// A step that takes too long is answered with the results so far: because of its own budget, and
// before the runtime's limit.
func TestTimeLimits(t *testing.T) {
	for name, c := range map[string]struct {
		o       options
		budgets map[string]any
	}{
		"budget":          {options{}, map[string]any{"timeout_s": 0.5}},
		"runtime's limit": {options{limit: time.Second}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.model = "turns:\n  - {user: slow, steps: [{text: \"so far \", hang: true}]}\n  - {user: fast, steps: [{text: quick}]}\n"
			r := newRig(t, c.o)
			rt := r.connect()
			rt.initialize(map[string]any{"budgets": c.budgets})
			step := rt.stepAtTimeLimit("slow")
			if step.Status != ecp.Paused || step.StopReason != ecp.StopTime {
				t.Errorf("%+v", step)
			}
			checkContains(t, *step.EvaluationContext, "Stop reason: timeout")
		})
	}
}

// A command that still runs at the time limit is ended, and its duration is reported.
func TestTimeLimitEndsCommand(t *testing.T) {
	needs.Long(t)
	r := newRig(t, options{model: `
turns:
  - {user: wait, steps: [{calls: [{id: s, tool: eca__shell_command, arguments: {command: "echo begun > begun; sleep 300"}}]}, {text: done}]}
`})
	c := r.connect()
	c.initialize(map[string]any{"approval": "all", "budgets": map[string]any{"timeout_s": 3}})
	step := c.stepAtTimeLimit("wait")
	if step.Status != ecp.Paused || step.StopReason != ecp.StopTime {
		t.Errorf("%+v", step)
	}
	if !r.exists("begun") {
		return // on a very busy machine, the command did not start in time
	}
	if ms := extraValue[int64](t, step.ToolCalls[0], ecp.CallDuration); ms <= 0 || ms != step.Timing.ToolMS {
		t.Errorf("%d ms: %+v", ms, step.Timing)
	}
}

// Models are offered the tools that initialize allows.
func TestTools(t *testing.T) {
	for name, c := range map[string]struct {
		tools   map[string]any
		offered string // of read_file, write_file and grep
		note    string
	}{
		"all":           {nil, "read_file write_file grep", ""},
		"allow":         {map[string]any{"allow": []string{"read_file", "eca__grep"}}, "read_file grep", ""},
		"deny":          {map[string]any{"deny": []string{"grep"}}, "read_file write_file", ""},
		"deny wins":     {map[string]any{"allow": []string{"read_file", "grep"}, "deny": []string{"grep"}}, "read_file", ""},
		"unknown names": {map[string]any{"allow": []string{"read_file", "grep", "grepp"}}, "read_file grep", "names unknown tools: grepp"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, options{model: `
turns:
  - steps:
      - calls: [{id: g, tool: eca__grep, arguments: {pattern: x}}, {id: w, tool: eca__write_file, arguments: {path: "${workspace}/w", content: x}}]
      - {text: ok}
`})
			rt := r.connect()
			rt.initialize(map[string]any{"tools": c.tools, "approval": "all"})
			step := rt.step("go")
			var offered []string
			for _, tool := range []string{"read_file", "write_file", "grep"} {
				if strings.Contains(r.lastRequest(), `"name":"eca__`+tool+`"`) {
					// The request also has the model's own calls; only a definition has a
					// description.
					if definition(t, r.lastRequest(), "eca__"+tool) {
						offered = append(offered, tool)
					}
				}
			}
			if got := strings.Join(offered, " "); got != c.offered {
				t.Errorf("offered: %s, not %s", got, c.offered)
			}
			if r.exists("w") != strings.Contains(c.offered, "write_file") {
				t.Errorf("write_file ran: %v, although offered are %s", r.exists("w"), c.offered)
			}
			checkContains(t, *step.Logs, c.note)
			if a, b := step.ToolCalls[0].Name, step.ToolCalls[1].Name; a+b != "grepwrite_file" && a+b != "write_filegrep" {
				t.Errorf("the step reports the calls as %s and %s, want grep and write_file", a, b)
			}
		})
	}
}

// definition reports whether a request offers a tool.
func definition(t *testing.T, body, name string) bool {
	t.Helper()
	for _, tool := range object(t, []byte(body))["tools"].([]any) {
		if tool.(map[string]any)["name"] == name {
			return true
		}
	}
	return false
}

// The tool rules of one scenario do not affect the next.
func TestToolRulesEndWithScenario(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	c.initialize(map[string]any{"tools": map[string]any{"allow": []string{"read_file"}}})
	c.step("go")
	c.initialize(map[string]any{})
	c.step("go")
	if !definition(t, r.lastRequest(), "eca__grep") {
		t.Error("the tools that the last scenario excluded are still not offered")
	}
}

// A step fails before the model is asked if a denied tool does not exist, because nothing would be denied.
func TestDeniedToolThatDoesNotExist(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	for name, want := range map[string]string{
		"grepp": `config.tools.deny: there is no tool "grepp"; did you mean grep?`,
		"Bash":  "did you mean eca__shell_command?",
		"eca":   `there is no tool "eca"`,
	} {
		c.initialize(map[string]any{"tools": map[string]any{"deny": []string{"read_file", name}}})
		if e := c.callError(ecp.MethodStep, map[string]any{"input": "go"}); e.Code != ecp.CodeFailed || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %+v, want %s", name, e, want)
		}
	}
	c.initialize(map[string]any{"tools": map[string]any{"deny": []string{"read_file", "eca__grep", "ask_user"}}})
	c.step("go")
}
