package grade

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Problem is an error in a Spec.
type Problem struct {
	Key     string // in the manifest; empty if the error concerns the whole grader
	Message string
}

// Types lists the types of graders in manifest v1 or, with extended, in constraints.checks.
func Types(extended bool) []string {
	v1 := []string{TextMatch, LLMJudge, ToolUsage}
	if !extended {
		return v1
	}
	return append(v1, ToolCount, Trajectory, File, Changes, Command, Reward, SWEBench, Status)
}

// Conditions lists the conditions of text_match.
func Conditions() []string { return []string{"contains", "equals", "does_not_contain", "regex"} }

// Fields lists the fields that text_match and llm_judge may use in manifest v1 or, with extended, in
// constraints.checks.
func Fields(extended bool) []string {
	v1 := []string{PublicOutput, EvaluationContext, PrivateThought}
	if !extended {
		return v1
	}
	return append(v1, Logs)
}

// Check returns the errors in a grader. As in the reference, it ignores the fields of other types.
func (s Spec) Check() []Problem {
	switch s.Type {
	case TextMatch:
		if s.Condition == "" {
			return []Problem{{"condition", "text_match needs a condition: " + strings.Join(Conditions(), ", ")}}
		}
		return s.checkText()
	case LLMJudge:
		return s.checkJudge()
	case ToolUsage:
		return s.checkUsage()
	case ToolCount:
		if s.Min == nil && s.Max == nil {
			return []Problem{{"", "tool_count needs min or max"}}
		}
		if s.Min != nil && s.Max != nil && *s.Min > *s.Max {
			return []Problem{{"min", "min is larger than max"}}
		}
		return oneOf("scope", s.Scope, "step", "scenario")
	case Trajectory:
		out := oneOf("mode", s.Mode, "strict", "unordered", "in_order", "subset", "superset")
		return append(out, oneOf("scope", s.Scope, "step", "scenario")...)
	case File:
		if s.Path == "" || !filepath.IsLocal(s.Path) {
			return []Problem{{"path", "file needs a path inside of the workspace"}}
		}
		if s.Condition != "" {
			return s.checkText()
		}
		return nil
	case Changes:
		return s.checkChanges()
	case Command, Reward:
		if strings.TrimSpace(s.Run) == "" {
			return []Problem{{"run", s.Type + " needs a command (run)"}}
		}
		if out := s.checkTime(); out != nil {
			return out
		}
		if s.Condition != "" {
			return s.checkText()
		}
		return nil
	case SWEBench:
		return append(s.checkSWEBench(), s.checkTime()...)
	case Status:
		if s.Want != "done" && s.Want != "paused" {
			return []Problem{{"status", "status must be done or paused"}}
		}
		return nil
	}
	return []Problem{{"type", fmt.Sprintf("unknown grader %q; the graders are %s", s.Type, strings.Join(Types(true), ", "))}}
}

func (s Spec) checkTime() []Problem {
	if s.TimeoutS < 0 || math.IsInf(s.TimeoutS, 0) || math.IsNaN(s.TimeoutS) {
		return []Problem{{"timeout_s", "timeout_s must be a number of seconds above 0"}}
	}
	return nil
}

func (s Spec) checkText() []Problem {
	if !slices.Contains(Conditions(), s.Condition) {
		return []Problem{{"condition", fmt.Sprintf("%q must be one of %s", s.Condition, strings.Join(Conditions(), ", "))}}
	}
	if s.Condition != "regex" {
		if s.Value == nil {
			return []Problem{{"value", "condition " + s.Condition + " needs a value"}}
		}
		return nil
	}
	if s.Pattern == "" {
		return []Problem{{"pattern", "condition regex needs a pattern"}}
	}
	if _, err := compilePattern(s.Pattern, s.IgnoreCase); err != nil {
		return []Problem{{"pattern", err.Error()}}
	}
	return nil
}

func (s Spec) checkJudge() (out []Problem) {
	if strings.TrimSpace(s.Prompt) == "" {
		out = append(out, Problem{"prompt", "llm_judge needs a prompt: what the text must be like to pass"})
	}
	if s.Votes < 0 || s.Votes > maxVotes {
		out = append(out, Problem{"votes", fmt.Sprintf("votes must be 1 to %d", maxVotes)})
	}
	if s.Threshold != nil && (*s.Threshold < 0 || *s.Threshold > 1) {
		out = append(out, Problem{"threshold", "threshold must be 0 to 1"})
	}
	return out
}

func (s Spec) checkUsage() []Problem {
	out := oneOf("match", s.Match, "top", "deep", "exact", "regex")
	if s.Match != "regex" {
		return out
	}
	for k, v := range s.Arguments {
		pattern, ok := v.(string)
		if !ok {
			out = append(out, Problem{"arguments", fmt.Sprintf("match regex needs patterns: %s is not a string", k)})
		} else if _, err := compilePattern(pattern, false); err != nil {
			out = append(out, Problem{"arguments", k + ": " + err.Error()})
		}
	}
	return out
}

func (s Spec) checkChanges() (out []Problem) {
	if s.Only == nil && s.Includes == nil {
		return []Problem{{"", "changes needs only (globs; an empty list allows no change) or includes"}}
	}
	for key, globs := range map[string][]string{"only": s.Only, "includes": s.Includes} {
		for _, g := range globs {
			if !doublestar.ValidatePattern(g) {
				out = append(out, Problem{key, fmt.Sprintf("%q is not a valid glob", g)})
			}
		}
	}
	return out
}

// oneOf returns a problem unless a value is allowed or empty.
func oneOf(key, value string, allowed ...string) []Problem {
	if value == "" || slices.Contains(allowed, value) {
		return nil
	}
	return []Problem{{key, fmt.Sprintf("%q must be one of %s", value, strings.Join(allowed, ", "))}}
}
