package grade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// gradeUsage passes if any call matches.
func (s Spec) gradeUsage(calls []Call, reference bool) Check {
	const field = "tool_calls"
	if len(calls) == 0 {
		return s.applyNot(Check{Field: field, Reasoning: "No tool_calls present. Agent did not report any tool usage."})
	}
	var unjudged error
	for _, c := range calls {
		if s.ToolName != "" && c.Name != s.ToolName {
			continue
		}
		fits, err := s.argumentsMatch(c.Arguments, reference)
		if fits {
			return s.applyNot(Check{Field: field, Passed: true, Reasoning: fmt.Sprintf("Found tool call '%s' with expected arguments", c.Name)})
		}
		unjudged = cmp.Or(unjudged, err)
	}
	if unjudged != nil {
		return Check{Field: field, Err: unjudged}
	}
	reason, joint := "No matching tool call", " for "
	if reference { // to have the same text as the reference
		joint = " and "
	}
	if s.ToolName != "" {
		reason += " for name='" + s.ToolName + "'"
		joint = " and "
	}
	if len(s.Arguments) > 0 {
		reason += joint + "arguments=" + pythonRepr(s.Arguments)
	}
	return s.applyNot(Check{Field: field, Reasoning: reason + ". Calls seen: " + calledNames(calls)})
}

// argumentsMatch reports whether a call has the expected arguments. It returns an error if a pattern
// could not be matched in time.
func (s Spec) argumentsMatch(got map[string]any, reference bool) (bool, error) {
	switch s.Match {
	case "exact":
		return len(got) == len(s.Arguments) && s.hasArguments(got, false), nil
	case "deep":
		return contains(orEmpty(s.Arguments), orEmpty(got)), nil
	case "regex":
		return s.patternsMatch(got)
	}
	return s.hasArguments(got, reference), nil
}

// patternsMatch reports whether the arguments have every expected key, with a value that matches the
// pattern.
func (s Spec) patternsMatch(got map[string]any) (bool, error) {
	for k, want := range s.Arguments {
		value, ok := got[k]
		pattern, isText := want.(string)
		if !ok || !isText {
			return false, nil
		}
		if fits, err := valueMatches(pattern, value); err != nil || !fits {
			return false, err
		}
	}
	return true, nil
}

// hasArguments reports whether the arguments have every expected key, with an equal value. They may have
// more keys.
func (s Spec) hasArguments(got map[string]any, truthy bool) bool {
	for k, want := range s.Arguments {
		if value, ok := got[k]; !ok || !equal(want, value, truthy) {
			return false
		}
	}
	return true
}

func valueMatches(pattern string, value any) (bool, error) {
	text, ok := value.(string)
	if !ok {
		text = pythonRepr(value)
	}
	re, err := compilePattern(pattern, false)
	if err != nil {
		return false, err
	}
	return matchPattern(re, pattern, text)
}

func orEmpty(m map[string]any) any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// gradeCount checks the number of calls of a tool, or of all tools.
func (s Spec) gradeCount(subject Subject) Check {
	n := int64(0)
	for _, c := range subject.scope(s.Scope) {
		if s.ToolName == "" || c.Name == s.ToolName {
			n++
		}
	}
	what := "tool calls"
	if s.ToolName != "" {
		what = "calls of " + s.ToolName
	}
	expected := "any number"
	switch {
	case s.Min != nil && s.Max != nil && *s.Min == *s.Max:
		expected = fmt.Sprintf("exactly %d", *s.Min)
	case s.Min != nil && s.Max != nil:
		expected = fmt.Sprintf("%d to %d", *s.Min, *s.Max)
	case s.Min != nil:
		expected = fmt.Sprintf("at least %d", *s.Min)
	case s.Max != nil:
		expected = fmt.Sprintf("at most %d", *s.Max)
	}
	text := fmt.Sprintf("%d %s, expected %s", n, what, expected)
	return verdict((s.Min == nil || n >= *s.Min) && (s.Max == nil || n <= *s.Max), "tool_calls", text, text)
}

// gradeTrajectory compares the names of the called tools with the expected ones, by mode:
//   - strict: the same calls in the same order
//   - unordered: the same calls in any order
//   - in_order: the expected calls in this order, possibly with others between them
//   - subset: only calls of the expected tools
//   - superset: at least the expected calls
func (s Spec) gradeTrajectory(subject Subject) Check {
	var got []string
	for _, c := range subject.scope(s.Scope) {
		got = append(got, c.Name)
	}
	ok := false
	switch s.Mode {
	case "unordered":
		ok = slices.Equal(sortedCopy(got), sortedCopy(s.Tools))
	case "in_order":
		ok = isSubsequence(s.Tools, got)
	case "subset":
		ok = !slices.ContainsFunc(got, func(name string) bool { return !slices.Contains(s.Tools, name) })
	case "superset":
		ok = includesAll(got, s.Tools)
	default:
		ok = slices.Equal(got, s.Tools)
	}
	text := fmt.Sprintf("Called [%s], expected (%s) [%s]", strings.Join(got, ", "), s.mode(), strings.Join(s.Tools, ", "))
	return verdict(ok, "tool_calls", text, text)
}

func (s Spec) mode() string {
	if s.Mode == "" {
		return "strict"
	}
	return s.Mode
}

func sortedCopy(list []string) []string { return slices.Sorted(slices.Values(list)) }

func isSubsequence(want, got []string) bool {
	for _, name := range got {
		if len(want) > 0 && want[0] == name {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// includesAll reports whether got has each tool at least as often as want.
func includesAll(got, want []string) bool {
	left := map[string]int{}
	for _, name := range got {
		left[name]++
	}
	for _, name := range want {
		left[name]--
		if left[name] < 0 {
			return false
		}
	}
	return true
}

// calledNames formats the names of the called tools as a Python list.
func calledNames(calls []Call) string {
	list := make([]any, len(calls))
	for i, c := range calls {
		list[i] = c.Name
	}
	return pythonRepr(list)
}
