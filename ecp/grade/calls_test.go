package grade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func callsOf(names ...string) (out []Call) {
	for _, n := range names {
		out = append(out, Call{Name: n})
	}
	return out
}

// A trajectory is the list of called tools, compared in one of five ways.
func TestTrajectory(t *testing.T) {
	for _, c := range []struct {
		mode, want, got string
		passed          bool
	}{
		{"strict", "a b", "a b", true},
		{"strict", "a b", "b a", false},
		{"", "a b", "a b c", false},
		{"", "", "", true},
		{"unordered", "a b a", "b a a", true},
		{"unordered", "a b", "a b b", false},
		{"in_order", "a c", "a b c", true},
		{"in_order", "c a", "a b c", false},
		{"in_order", "a a", "a b", false},
		{"subset", "a b c", "b b", true},
		{"subset", "a", "a x", false},
		{"superset", "a b", "x b a", true},
		{"superset", "a a", "a b", false},
	} {
		s := Spec{Type: Trajectory, Mode: c.mode, Tools: strings.Fields(c.want)}
		if got := s.Grade(t.Context(), Subject{Calls: callsOf(strings.Fields(c.got)...)}, Tools{}); got.Passed != c.passed || got.Err != nil || got.Field != "tool_calls" {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	s := Spec{Type: Trajectory, Tools: []string{"a", "b"}, Scope: "scenario"}
	if got := s.Grade(t.Context(), Subject{Before: callsOf("a"), Calls: callsOf("b")}, Tools{}); !got.Passed {
		t.Errorf("calls of earlier steps do not count: %+v", got)
	}
}

func TestCount(t *testing.T) {
	n := func(i int64) *int64 { return &i }
	for _, c := range []struct {
		low, high *int64
		tool      string
		scope     string
		passed    bool
		say       string
	}{
		{n(2), n(2), "", "", true, "2 tool calls, expected exactly 2"},
		{n(1), nil, "b", "", false, "0 calls of b, expected at least 1"},
		{n(1), nil, "b", "scenario", true, "1 calls of b"},
		{nil, n(1), "a", "", false, "2 calls of a, expected at most 1"},
		{n(0), n(5), "a", "step", true, "expected 0 to 5"},
	} {
		s := Spec{Type: ToolCount, Min: c.low, Max: c.high, ToolName: c.tool, Scope: c.scope}
		got := s.Grade(t.Context(), Subject{Before: callsOf("b"), Calls: callsOf("a", "a")}, Tools{})
		if got.Passed != c.passed || !strings.Contains(got.Reasoning, c.say) {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// arguments reads JSON like the runtime.
func arguments(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestUsage(t *testing.T) {
	seen := []Call{{Name: "other"}, {Name: "edit", Arguments: arguments(t, `{"path":"a.go","n":1.0,"opts":{"dry":true,"deep":{"x":[1,2]}}}`)}}
	for _, c := range []struct {
		tool, match, want string
		passed            bool
	}{
		{"edit", "", `{}`, true},
		{"", "", `{"path":"a.go"}`, true},
		{"edit", "top", `{"n":1}`, true},
		{"edit", "top", `{"opts":{"dry":true}}`, false},
		{"edit", "deep", `{"opts":{"dry":true,"deep":{"x":[1,2]}}}`, true},
		{"edit", "deep", `{"opts":{"deep":{"x":[1]}}}`, false},
		{"edit", "exact", `{"path":"a.go"}`, false},
		{"edit", "exact", `{"path":"a.go","n":1,"opts":{"deep":{"x":[1,2]},"dry":true}}`, true},
		{"edit", "regex", `{"path":"\\.go$","n":"^1"}`, true},
		{"edit", "regex", `{"missing":".*"}`, false},
		{"write", "", `{}`, false},
	} {
		s := Spec{Type: ToolUsage, ToolName: c.tool, Match: c.match, Arguments: arguments(t, c.want)}
		yes := s.Grade(t.Context(), Subject{Calls: seen}, Tools{})
		s.Not = true
		no := s.Grade(t.Context(), Subject{Calls: seen}, Tools{})
		if yes.Passed != c.passed || no.Passed == c.passed || yes.Reasoning == no.Reasoning {
			t.Errorf("%+v: %+v, not: %+v", c, yes, no)
		}
	}
	some := map[string]any{"a": nil, "b": []any{true, "x\n", 1.5, 2.0}}
	for want, s := range map[string]Spec{
		`No matching tool call for name='it' and arguments={'a': None, 'b': [True, 'x\n', 1.5, 2.0]}. Calls seen: ['say "it"', "it's"]`: {ToolName: "it", Arguments: some},
		`No matching tool call for name='it'. Calls seen: ['say "it"', "it's"]`:                                                         {ToolName: "it"},
		`No matching tool call for arguments={'a': None}. Calls seen: ['say "it"', "it's"]`:                                             {Arguments: map[string]any{"a": nil}},
	} {
		s.Type = ToolUsage
		if got := s.Grade(t.Context(), Subject{Calls: callsOf("say \"it\"", "it's")}, Tools{}); got.Reasoning != want {
			t.Errorf("%s", got.Reasoning)
		}
	}
}

// Any reported arguments can be compared: they equal themselves, and equal arguments contain each
// other.
func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"a":1,"b":{"c":[1.0,true,null,"x"]}}`), []byte(`{"a":1.0}`))
	f.Add([]byte(`{"a":1e400,"b":-0}`), []byte(`{"a":1e-400,"b":0}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		read := func(data []byte) (out map[string]any) {
			dec := json.NewDecoder(bytes.NewReader(data))
			dec.UseNumber()
			if dec.Decode(&out) != nil {
				return nil
			}
			return out
		}
		a, b := read(one), read(two)
		if a == nil || b == nil {
			return
		}
		if !equal(a, a, false) || !contains(a, a) {
			t.Fatalf("%v is not itself", a)
		}
		if equal(a, b, false) != equal(b, a, false) || equal(a, b, false) && !equal(a, b, true) {
			t.Fatalf("%v, %v", a, b)
		}
		for _, match := range []string{"", "deep", "exact", "regex"} {
			s := Spec{Type: ToolUsage, Match: match, Arguments: a}
			if c := s.Grade(t.Context(), Subject{Calls: []Call{{Name: "x", Arguments: b}}}, Tools{}); c.Err != nil || c.Reasoning == "" {
				t.Fatalf("%+v", c)
			}
		}
	})
}

// Files and commands are judged by the workspace; links out of it are not followed.
func TestEffects(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	for path, text := range map[string]string{filepath.Join(dir, "a.txt"): "text\n", outside: "text\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip("NOT TESTED: no links here: ", err)
	}
	value, no := "text", false
	changed := []Change{{"a.txt", "added"}, {"src/x.go", "modified"}}
	subject := Subject{Workspace: dir, Changed: func() ([]Change, error) { return changed, nil }}
	ran := func(_ context.Context, in, command string) (int, string, error) {
		if command == "broken" {
			return 0, "", errors.New("no shell")
		}
		return len(command), in + "\ntext", nil
	}
	for name, c := range map[string]struct {
		s      Spec
		passed bool
		broken bool
		say    string
	}{
		"there":           {Spec{Type: File, Path: "a.txt"}, true, false, "exists"},
		"content":         {Spec{Type: File, Path: "a.txt", Condition: "contains", Value: &value}, true, false, ""},
		"other content":   {Spec{Type: File, Path: "a.txt", Condition: "equals", Value: &value}, false, false, ""},
		"missing":         {Spec{Type: File, Path: "b.txt"}, false, false, "does not exist"},
		"rightly missing": {Spec{Type: File, Path: "b.txt", Exists: &no}, true, false, "does not exist"},
		"wrongly there":   {Spec{Type: File, Path: "a.txt", Exists: &no}, false, false, "exists"},
		"link out":        {Spec{Type: File, Path: "link", Condition: "contains", Value: &value}, false, false, "cannot read"},
		"folder":          {Spec{Type: File, Path: ".", Condition: "contains", Value: &value}, false, false, "is not a file"},
		"only":            {Spec{Type: Changes, Only: []string{"**"}}, true, false, "a.txt (added)"},
		"stray":           {Spec{Type: Changes, Only: []string{"src/**"}}, false, false, "a.txt"},
		"none allowed":    {Spec{Type: Changes, Only: []string{}}, false, false, "Changed outside of []"},
		"includes":        {Spec{Type: Changes, Includes: []string{"src/*.go", "a.*"}}, true, false, ""},
		"not included":    {Spec{Type: Changes, Includes: []string{"docs/**"}}, false, false, "Nothing changed in docs/**"},
		"exit code":       {Spec{Type: Command, Run: "1234", ExitCode: 4}, true, false, ""},
		"other exit code": {Spec{Type: Command, Run: "1234"}, false, false, "exited with 4, expected 0"},
		"output":          {Spec{Type: Command, Run: "1", ExitCode: 1, Condition: "contains", Value: &value}, true, false, ""},
		"can not run":     {Spec{Type: Command, Run: "broken"}, false, true, "no shell"},
		"status":          {Spec{Type: Status, Want: "paused"}, false, false, "expected paused"},
		"unknown":         {Spec{Type: "bogus"}, false, true, "bogus"},
	} {
		got := c.s.Grade(t.Context(), subject, Tools{Command: ran})
		if got.Passed != c.passed || (got.Err != nil) != c.broken || !strings.Contains(got.Reasoning, c.say) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, s := range []Spec{{Type: File, Path: "a"}, {Type: Changes, Only: []string{}}, {Type: Command, Run: "x"}} {
		if got := s.Grade(t.Context(), Subject{}, Tools{Command: ran}); !errors.Is(got.Err, errNoWorkspace) {
			t.Errorf("%s without a workspace: %+v", s.Type, got)
		}
	}
}

// An impossible judgement is an error, even if the grader requires that nothing matches.
func TestUnjudged(t *testing.T) {
	calls := []Call{{Name: "t", Arguments: map[string]any{"a": "x"}}}
	s := Spec{Type: ToolUsage, Match: "regex", Arguments: map[string]any{"a": "("}, Not: true}
	if got := s.Grade(t.Context(), Subject{Calls: calls}, Tools{}); got.Err == nil || got.Passed {
		t.Errorf("%+v", got)
	}
	re, err := compilePattern("(x+x+)+y", false)
	if err != nil {
		t.Fatal(err)
	}
	re.MatchTimeout = time.Millisecond
	if found, err := matchPattern(re, "(x+x+)+y", strings.Repeat("x", 1000)); err == nil || found {
		t.Errorf("%v, %v", found, err)
	}
	// A limit that no duration can hold counts as a long one.
	s = Spec{Type: Command, Run: "true", TimeoutS: 1e300}
	tools := Tools{Command: func(ctx context.Context, _, _ string) (int, string, error) { return 0, "", ctx.Err() }}
	if got := s.Grade(t.Context(), Subject{Workspace: t.TempDir()}, tools); !got.Passed {
		t.Errorf("%+v", got)
	}
}
