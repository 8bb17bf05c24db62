package runtime

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Limits apply to the agent's reports; an agent that reports nothing violates them.
func TestLimits(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	dollars := func(f float64) *float64 { return &f }
	made := []grade.Call{{Name: "rm"}, {Name: "ls"}, {Name: "rm"}}
	for name, c := range map[string]struct {
		c    Constraints
		r    ecp.StepResult
		want report.Check
	}{
		"forbidden":     {Constraints{ForbiddenTools: []string{"rm", "mv"}}, ecp.StepResult{}, report.Check{Field: "forbidden_tools", Reasoning: "Called forbidden tools: rm"}},
		"not forbidden": {Constraints{ForbiddenTools: []string{"mv"}}, ecp.StepResult{}, report.Check{Field: "forbidden_tools", Passed: true, Score: 1, Reasoning: "No forbidden tool was called"}},
		"calls":         {Constraints{MaxToolCalls: n(2)}, ecp.StepResult{}, report.Check{Field: "max_tool_calls", Reasoning: "3 tool calls, at most 2 allowed"}},
		"tokens":        {Constraints{MaxTokens: n(6)}, ecp.StepResult{Usage: ecp.NewUsage(map[string]int64{ecp.TokensInput: 1, ecp.TokensOutput: 2, ecp.TokensCacheRead: 3, ecp.TokensReasoning: 9})}, report.Check{Field: "max_tokens", Passed: true, Score: 1, Reasoning: "6 tokens, at most 6 allowed"}},
		"no tokens":     {Constraints{MaxTokens: n(6)}, ecp.StepResult{}, report.Check{Field: "max_tokens", Reasoning: "The agent did not report its usage"}},
		"cost":          {Constraints{MaxCostUSD: dollars(0.5)}, ecp.StepResult{CostUSD: dollars(0.75)}, report.Check{Field: "max_cost_usd", Reasoning: "0.75 US dollars, at most 0.5 allowed"}},
		"no cost":       {Constraints{MaxCostUSD: dollars(0)}, ecp.StepResult{}, report.Check{Field: "max_cost_usd", Reasoning: "The agent did not report its cost"}},
	} {
		c.want.Type = "constraint"
		if diff := cmp.Diff([]report.Check{c.want}, checkConstraints(c.c, c.r, made)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for want, u := range map[int64]ecp.Usage{
		3:             ecp.NewUsage(map[string]int64{ecp.TokensInput: 3, ecp.TokensCacheRead: -100}), // negative counts do not reduce the sum
		math.MaxInt64: ecp.NewUsage(map[string]int64{ecp.TokensInput: math.MaxInt64, ecp.TokensOutput: math.MaxInt64}),
	} {
		if got := tokenCount(u); got != want {
			t.Errorf("%+v: %d", u, got)
		}
	}
}

// Arguments are read exactly, also under their other name.
func TestCalls(t *testing.T) {
	var list []ecp.ToolCall
	if err := json.Unmarshal([]byte(`[{"name":"a","arguments":{"n":9007199254740993}},{"name":"b","args":{"x":1}},{"name":"c","args":"text"},{"name":"d","arguments":{},"args":{"y":2}}]`), &list); err != nil {
		t.Fatal(err)
	}
	want := []grade.Call{
		{Name: "a", Arguments: map[string]any{"n": json.Number("9007199254740993")}},
		{Name: "b", Arguments: map[string]any{"x": json.Number("1")}},
		{Name: "c"},
		{Name: "d", Arguments: map[string]any{"y": json.Number("2")}},
	}
	if diff := cmp.Diff(want, graderCalls(list)); diff != "" {
		t.Error(diff)
	}
}
