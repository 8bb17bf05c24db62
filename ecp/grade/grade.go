// Package grade grades an agent's work by the expectations in a manifest (ECP, graders).
//
// It owns the graders: text, tool calls, trajectories, files, commands, and a model as a judge. A
// grader is data (Spec) that is validated before the run (Check). Grading is a function of that data
// and of one step (Subject). Only commands and judges have side effects, through the functions in
// Tools.
//
// Guarantees: a grader never panics on an agent's output; pattern matching has a time limit; if a step
// cannot be judged, the result is an error and not a failed check. Texts and tool calls match exactly
// as in the reference, except for the differences that Tools.Reference turns off.
//
// It does not read manifests, does not talk to agents, and has no state between calls.
package grade

import (
	"context"
	"fmt"
	"time"
)

// Types of graders. The first three are those of manifest v1.
const (
	TextMatch  = "text_match"
	LLMJudge   = "llm_judge"
	ToolUsage  = "tool_usage"
	ToolCount  = "tool_count"
	Trajectory = "trajectory"
	File       = "file"
	Changes    = "changes"
	Command    = "command"
	Reward     = "reward"
	SWEBench   = "swebench"
	Status     = "status"
)

// Fields of a step that text graders and judges can use.
const (
	PublicOutput      = "public_output"
	EvaluationContext = "evaluation_context"
	PrivateThought    = "private_thought"
	Logs              = "logs" // not in manifest v1
)

// Spec is a grader of the manifest. Each Type uses some of the fields; Check reports missing ones.
// It has more than 25 fields because the manifest has those of all types in one object.
type Spec struct {
	Type      string
	Field     string // PublicOutput and so on
	Condition string // contains, equals, does_not_contain, regex
	Value     *string
	Pattern   string
	Prompt    string // the criteria of a judge
	Assertion string // unused, as in the reference
	ToolName  string
	Arguments map[string]any

	// The following fields are not in manifest v1; they come from constraints.checks.

	Not        bool     // of TextMatch and ToolUsage: inverts the result
	IgnoreCase bool     // of TextMatch
	Match      string   // of ToolUsage: top (as v1), deep, exact or regex
	Min, Max   *int64   // of ToolCount: the number of calls
	Tools      []string // of Trajectory: names of tools in order
	Mode       string   // of Trajectory: strict, unordered, subset, superset or in_order
	Scope      string   // of ToolCount and Trajectory: step, or scenario (all steps up to this one)
	Path       string   // of File, relative to the workspace
	Exists     *bool    // of File
	Only       []string // of Changes: globs, one of which each changed file must match
	Includes   []string // of Changes: globs that must each match a change
	Run        string   // of Command, Reward and SWEBench: shell command, run in the workspace
	ExitCode   int64    // of Command
	TimeoutS   float64  // of Command, Reward and SWEBench; seconds
	Want       string   // of Status: done or paused
	Votes      int64    // of LLMJudge
	Threshold  *float64 // of LLMJudge: the minimum score to pass, 0 to 1; of Reward: the minimum reward
	Model      string   // of LLMJudge: provider/model
	Parser     string   `json:",omitempty"` // of SWEBench: one of LogParsers
	FailToPass []string `json:",omitempty"` // of SWEBench: tests that must pass
	PassToPass []string `json:",omitempty"` // of SWEBench: tests that must not fail
	FailOnly   bool     `json:",omitempty"` // of SWEBench: the log lists only failed tests, so other tests passed
}

// Call is one tool call as the agent reported it.
type Call struct {
	Name      string
	Arguments map[string]any // nil if missing, or not an object
}

// Subject is a step to grade: its input, and the agent's work.
type Subject struct {
	Input     string
	Status    string
	Output    string
	Context   string // evaluation_context, or otherwise private_thought
	Thought   string // private_thought, or otherwise evaluation_context
	Logs      string
	Calls     []Call                   // of this step
	Before    []Call                   // of the scenario's earlier steps
	Workspace string                   // absolute; may be empty
	Changed   func() ([]Change, error) // returns the changed files; nil without a workspace
}

// Change is a file that the agent changed since the scenario began.
type Change struct {
	Path string // relative to the workspace, with slashes
	Kind string // added, modified or removed
}

// text returns the field that a grader uses.
func (s Subject) text(field string) string {
	switch field {
	case EvaluationContext:
		return s.Context
	case PrivateThought:
		return s.Thought
	case Logs:
		return s.Logs
	}
	return s.Output
}

// scope returns the calls in a grader's scope.
func (s Subject) scope(scope string) []Call {
	if scope == "scenario" {
		return append(append([]Call(nil), s.Before...), s.Calls...)
	}
	return s.Calls
}

// Tools are the functions that graders use.
type Tools struct {
	// Judge is the judge of LLMJudge; may be nil.
	Judge Judge
	// Unjudged is the reason why Judge is nil.
	Unjudged string
	// Votes is the default number of votes of a judge; at least 1.
	Votes int64
	// Command runs a shell command in a folder and returns its exit code and the end of its output.
	Command func(ctx context.Context, dir, command string) (code int, output string, err error)
	// Reference makes the graders of v1 judge like the reference, even where eca differs on
	// purpose.
	Reference bool
}

// Check is the result of a grader. If Err is set, the step could not be judged, and Passed is false.
type Check struct {
	Type      string
	Field     string
	Passed    bool
	Score     float64 // 0 to 1
	Reasoning string
	Err       error
	Votes     []Vote // of a judge that was asked several times
	Cached    bool   // the judge's answers came from the cache
}

// Grade grades a step. s.Check must have reported no problems.
func (s Spec) Grade(ctx context.Context, subject Subject, t Tools) Check {
	c := s.grade(ctx, subject, t)
	c.Type = s.Type
	if c.Field == "" {
		c.Field = s.Field
	}
	if c.Err != nil {
		c.Passed, c.Score, c.Reasoning = false, 0, c.Err.Error()
		return c
	}
	if c.Score == 0 && c.Passed {
		c.Score = 1
	}
	return c
}

func (s Spec) grade(ctx context.Context, subject Subject, t Tools) Check {
	switch s.Type {
	case TextMatch:
		return s.gradeText(subject.text(s.Field), t.Reference)
	case ToolUsage:
		return s.gradeUsage(subject.Calls, t.Reference)
	case ToolCount:
		return s.gradeCount(subject)
	case Trajectory:
		return s.gradeTrajectory(subject)
	case File:
		return s.gradeFile(subject)
	case Changes:
		return s.gradeChanges(subject)
	case Command:
		return s.gradeCommand(ctx, subject, t)
	case Reward:
		return s.gradeReward(ctx, subject, t)
	case SWEBench:
		return s.gradeSWEBench(ctx, subject, t)
	case Status:
		return verdict(subject.Status == s.Want, "status", "The step ended as "+s.Want, fmt.Sprintf("The step ended as %s, expected %s", subject.Status, s.Want))
	case LLMJudge:
		return s.gradeJudge(ctx, subject, t)
	}
	return Check{Err: fmt.Errorf("unknown grader %q", s.Type)}
}

// verdict returns a check whose reasoning is yes if it passed, and no otherwise.
func verdict(passed bool, field, yes, no string) Check {
	if passed {
		return Check{Field: field, Passed: true, Reasoning: yes}
	}
	return Check{Field: field, Reasoning: no}
}

// patternTime limits how long matching a pattern may take.
const patternTime = 5 * time.Second
