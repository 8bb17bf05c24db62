package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// gradeStep grades a step and adds the checks to its report.
func (a *attempt) gradeStep(ctx context.Context, i int, step Step, r ecp.StepResult, out *report.Step) {
	subject := grade.Subject{
		Input: step.Input, Status: string(r.Status), Output: deref(r.PublicOutput), Context: r.Context(), Thought: r.Thought(),
		Logs: deref(r.Logs), Calls: graderCalls(r.ToolCalls), Before: a.earlierCalls,
	}
	if a.workspace != nil {
		subject.Workspace, subject.Changed = a.workspace.dir, a.workspace.changedFiles
	}
	if a.snapshot != nil && len(a.ungraded) > 0 {
		subject.Changed = func() ([]grade.Change, error) { return a.snapshot.changes, a.snapshot.err }
	}
	tools := a.tools
	tools.Command = a.command
	specs := step.Graders
	if !a.opts.Reference {
		specs = slices.Concat(specs, step.Constraints.Checks)
	}
	for _, s := range specs {
		c := s.Grade(ctx, subject, tools)
		if c.Err != nil {
			kind := kindGrader
			if s.Type == grade.LLMJudge {
				kind = kindJudge
			}
			failed := callError(kind, c.Type, "%v", c.Err)
			if ctx.Err() != nil {
				failed = stoppedError(ctx, c.Type, "there was no time left to grade")
			}
			a.fail(ctx, i+1, failed)
			out.Verdict = report.Error
		}
		a.addCheck(out, reportCheck(c))
	}
	if !a.opts.Reference {
		for _, c := range checkConstraints(step.Constraints, r, subject.Calls) {
			a.addCheck(out, c)
		}
	}
	a.earlierCalls = append(a.earlierCalls, subject.Calls...)
}

// addCheck adds a check to the report of a step.
func (a *attempt) addCheck(out *report.Step, c report.Check) {
	out.Checks = append(out.Checks, c)
	if c.Passed || c.Error != "" {
		return
	}
	if out.Verdict == report.Passed {
		out.Verdict = report.Failed
	}
	if a.out.Status == report.Passed {
		a.out.Status = report.Failed
	}
}

// reportCheck converts a check to the form of reports.
func reportCheck(c grade.Check) report.Check {
	out := report.Check{Type: c.Type, Field: c.Field, Passed: c.Passed, Score: c.Score, Reasoning: c.Reasoning, Cached: c.Cached}
	if c.Err != nil {
		out.Error = c.Err.Error()
	}
	for _, v := range c.Votes {
		vote := report.Vote{Passed: v.Passed, Score: v.Score, Reasoning: v.Reasoning}
		if v.Err != nil {
			vote.Error = v.Err.Error()
		}
		out.Votes = append(out.Votes, vote)
	}
	return out
}

// checkConstraints checks the constraints of a step on the agent's answer.
func checkConstraints(c Constraints, r ecp.StepResult, made []grade.Call) (out []report.Check) {
	add := func(field string, passed bool, format string, args ...any) {
		check := report.Check{Type: "constraint", Field: field, Passed: passed, Reasoning: fmt.Sprintf(format, args...)}
		if passed {
			check.Score = 1
		}
		out = append(out, check)
	}
	if len(c.ForbiddenTools) > 0 {
		var used []string
		for _, call := range made {
			if slices.Contains(c.ForbiddenTools, call.Name) && !slices.Contains(used, call.Name) {
				used = append(used, call.Name)
			}
		}
		if len(used) > 0 {
			add("forbidden_tools", false, "Called forbidden tools: %s", strings.Join(used, ", "))
		} else {
			add("forbidden_tools", true, "No forbidden tool was called")
		}
	}
	if c.MaxToolCalls != nil {
		add("max_tool_calls", int64(len(made)) <= *c.MaxToolCalls, "%d tool calls, at most %d allowed", len(made), *c.MaxToolCalls)
	}
	if c.MaxTokens != nil {
		if r.Usage == nil {
			add("max_tokens", false, "The agent did not report its usage")
		} else {
			n := tokenCount(r.Usage)
			add("max_tokens", n <= *c.MaxTokens, "%d tokens, at most %d allowed", n, *c.MaxTokens)
		}
	}
	if c.MaxCostUSD != nil {
		if r.CostUSD == nil {
			add("max_cost_usd", false, "The agent did not report its cost")
		} else {
			add("max_cost_usd", *r.CostUSD <= *c.MaxCostUSD, "%g US dollars, at most %g allowed", *r.CostUSD, *c.MaxCostUSD)
		}
	}
	return out
}

// tokenCount counts all tokens that a step used.
func tokenCount(u ecp.Usage) int64 {
	return ecp.AddTokens(u.Count(ecp.TokensInput), u.Count(ecp.TokensOutput), u.Count(ecp.TokensCacheRead), u.Count(ecp.TokensCacheWrite))
}

// graderCalls converts tool calls for graders, with exact numbers in the arguments. Like the reference, it
// also accepts args as the name of the arguments.
func graderCalls(list []ecp.ToolCall) []grade.Call {
	out := make([]grade.Call, len(list))
	for i, c := range list {
		out[i] = grade.Call{Name: c.Name, Arguments: object(c.Arguments)}
		if len(out[i].Arguments) == 0 {
			out[i].Arguments = object(c.Extra["args"])
		}
	}
	return out
}

// object reads a JSON object; it returns nil if raw is not one.
func object(raw json.RawMessage) (out map[string]any) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&out) != nil {
		return nil
	}
	return out
}

// deref returns what a pointer points to, or the zero value for nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
