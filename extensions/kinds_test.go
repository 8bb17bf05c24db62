package extensions

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAgent(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       string // id and the configuration
		line       int
		cause      string
	}{
		{name: "all keys", text: `---
name: Reviewer
description: Reviews
mode: subagent
model: anthropic/sonnet
variant: high
maxSteps: 7
inherit: plan
spawnableBy: [code, plan]
disabledTools: git
readOnly: true
tools:
  byDefault: deny
  deny: my_mcp__tool
  ask: [write_file]
  allow:
    - eca__read_file
    - eca__shell_command(git log.*)
    - eca__shell_command(ls)
color: red
---
You review.
`, want: `reviewer {"defaultModel":"anthropic/sonnet","description":"Reviews","disabledTools":["git"],"inherit":"plan","maxSteps":7,"mode":["subagent"],"readOnly":true,"spawnableBy":["code","plan"],"systemPrompt":"You review.",` +
			`"toolCall":{"approval":{"allow":{"eca__read_file":{},"eca__shell_command":{"argsMatchers":{"command":["git log.*","ls"]}}},"ask":{"write_file":{}},"byDefault":"deny","deny":{"my_mcp__tool":{}}}},"variant":"high"}`},
		{name: "a name from the file", text: "Just a prompt.", want: `my-agent {"systemPrompt":"Just a prompt."}`},
		{
			name: "a flat list", text: "---\ntools: [grep, eca__shell_command, eca__shell_command(x)]\nsteps: 3\nmode: [primary, subagent]\n---\n",
			want: `my-agent {"maxSteps":3,"mode":["primary","subagent"],"toolCall":{"approval":{"allow":{"eca__shell_command":{},"grep":{}},"byDefault":"ask"}}}`,
		},
		{name: "steps", text: "---\nname: x\nsteps: many\n---\n", line: 3, cause: "steps must be a whole number"},
		{name: "mode", text: "---\nmode: boss\n---\n", line: 2, cause: "mode must be"},
		{name: "tools", text: "---\ntools: 7\n---\n", line: 2, cause: "tools must be a list, or an object with"},
		{name: "a misspelled decision", text: "---\na: 1\ntools:\n  denied: [x]\n---\n", line: 3, cause: "unknown key tools.denied"},
		{name: "byDefault outside of tools", text: "---\nname: x\nbyDefault: deny\n---\n", line: 3, cause: "byDefault has no effect here; put it below tools"},
		{name: "allow outside of tools", text: "---\nallow: [x]\n---\n", line: 2, cause: "allow has no effect here; put it below tools"},
		{name: "tools of another program", text: "---\nallowed-tools: Read\n---\n", line: 2, cause: "did you mean tools?"},
		{name: "byDefault", text: "---\ntools: {byDefault: perhaps}\n---\n", line: 2, cause: "must be ask, allow or deny"},
		{name: "a pattern of another tool", text: "---\ntools: [eca__grep(x)]\n---\n", line: 2, cause: "only eca__shell_command"},
		{name: "an open pattern", text: "---\ntools: [\"eca__shell_command(x\"]\n---\n", line: 2, cause: "no closing parenthesis"},
		{name: "description", text: "---\ndescription: [a]\n---\n", line: 2, cause: "description must be a text, not a list"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, flt := parseAgent("/x/My-Agent.v2.md", c.text)
			if c.cause != "" {
				if flt == nil || flt.line != c.line || !strings.Contains(flt.cause, c.cause) {
					t.Fatalf("%+v, want line %d: %s", flt, c.line, c.cause)
				}
				return
			}
			if flt != nil {
				t.Fatal(flt)
			}
			raw, err := json.Marshal(a.keys)
			if got := a.ID + " " + string(raw); err != nil || got != c.want {
				t.Errorf("%v\n got %s\nwant %s", err, got, c.want)
			}
		})
	}
}

func TestSkill(t *testing.T) {
	s, flt := parseSkill("/x/lint/SKILL.md", "---\nname: lint-fix\ndescription: >\n  How to\n  lint\nlicense: MIT\n---\n\n# Steps\nLint $1.\n")
	if flt != nil || s.Name != "lint-fix" || s.Description != "How to lint" || s.Body != "# Steps\nLint $1." || s.Dir != "/x/lint" {
		t.Errorf("%+v %+v", s, flt)
	}
	if got := s.Invoke("a.go", []string{"a.go"}); !strings.Contains(got, "Lint a.go.") || !strings.Contains(got, "/x/lint") {
		t.Error(got)
	}
	if got := s.Invoke("", nil); !strings.Contains(got, "eca__skill") || strings.Contains(got, "Lint") {
		t.Error(got)
	}
	for text, cause := range map[string]string{
		"no frontmatter":                            "it has no name",
		"---\nname: x\n---\n":                       "it has no description",
		"---\nname: a b\ndescription: x\n---\n":     "one word",
		"---\nname: {a: b}\ndescription: x\n---\n":  "name must be a text, not keys and values",
		"---\nname: x\ndescription: Use: it\n---\n": "put a text with a colon in quotes",
	} {
		if _, flt := parseSkill("/x/SKILL.md", text); flt == nil || !strings.Contains(flt.cause, cause) {
			t.Errorf("%q: %+v, want %s", text, flt, cause)
		}
	}
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		text, args string // words
		arguments  string // name?: description
		want       string
	}{
		{"Check $1 and $ARG2.", "a b", "arg1 arg2", "Check a and b."},
		{"Check $1 and $2.", "a", "arg1 arg2", "Check a and $2."},
		{"Do $ARGUMENTS; $ARGS", "a b", "args", "Do a b; a b"},
		{"Do it.", "a b", "", "Do it.\n\na b"},
		{"Do it.", "", "", "Do it."},
		{"About $1.", "a b c", "arg1", "About a.\n\nb c"},
		{"About $2.", "a b c", "arg1 arg2", "About b.\n\na c"},
		{"$1: $ARGS", "a b", "arg1", "a: a b"},
		{"Write about {{city}} in {{units}} units.", "a b c d", "city units", "Write about a in b units.\n\nc d"},
		{"{{b}}, {{ a }}, {{b}}", "x y", "b a", "x, y, x"},
		{"{{b}}, {{a}}.", "x", "b a", "x, ."},
		{"---\narguments:\n  - {name: a, description: first, required: false}\n---\n{{a}}", "", "a?: first", ""},
		{"---\narguments:\n  - name: city\n    description: where\n---\nIn $1 and $2", "Rome", "city: where arg2", "In Rome and $2"},
		{"{{a|upper}}{% if b %} and {{b}}{% endif %}", "x", "a b", "X"},
		{"{{a}} {% broken %}", "x", "a", "x {% broken %}"},
		{"It costs $5 or $12.", "", "arg1 arg2 arg3 arg4 arg5 arg6 arg7 arg8 arg9 arg10 arg11 arg12", "It costs $5 or $12."},
	} {
		cmd, flt := parseCommand("/x/Do-It.md", c.text)
		if flt != nil {
			t.Errorf("%q: %v", c.text, flt)
			continue
		}
		var args []string
		for _, a := range cmd.Arguments {
			s := a.Name
			if !a.Required {
				s += "?"
			}
			if a.Description != "" {
				s += ": " + a.Description
			}
			args = append(args, s)
		}
		if got := strings.Join(args, " "); got != c.arguments {
			t.Errorf("%q: arguments %q, want %q", c.text, got, c.arguments)
		}
		if got := cmd.Prompt(c.args, strings.Fields(c.args)); got != c.want || cmd.Name != "do-it" {
			t.Errorf("/%s %q: %q, want %q", cmd.Name, c.text, got, c.want)
		}
	}
	for text, cause := range map[string]string{
		"{{a}} and $1":                                      "cannot be mixed",
		"---\narguments: x\n---\n":                          "arguments must be a list, not a text",
		"---\narguments: [x]\n---\n":                        "not of a text",
		"---\narguments: [{name: a, required: yup}]\n---\n": "required must be true or false, not a text",
	} {
		if _, flt := parseCommand("/x/c.md", text); flt == nil || !strings.Contains(flt.cause, cause) {
			t.Errorf("%q: %+v, want %s", text, flt, cause)
		}
	}
}

// Patterns mean what they mean in Java (eca-features.md 20).
func TestGlob(t *testing.T) {
	for _, c := range []struct {
		glob, yes, no string
	}{
		{"*.go", "a.go .go", "a/b.go a.gox"},
		{"**/*.go", "a/b.go a/b/c.go", "b.go"},
		{"**.go", "b.go a/b.go", "b.gox"},
		{"src/**", "src/a src/a/b", "src a/src/b"},
		{"src/**/*.{ts,tsx}", "src/a/b.ts src/a/b/c.tsx", "src/b.ts src/a/b.js"},
		{"{*.md,docs/**}", "a.md docs/x/y.txt", "x/a.md"},
		{"a?c", "abc a.c", "a/c ac abbc"},
		{"[a-c]x", "ax cx", "dx x"},
		{"[!a-c]x", "dx", "ax /x"},
		{"[]]", "]", "a"},
		{`\*.go`, "*.go", "a.go"},
		{"a.b+(c)", "a.b+(c)", "axb+(c)"},
		{"ü*", "über", "uber"},
	} {
		re, err := globPattern(c.glob)
		if err != nil {
			t.Errorf("%s: %v", c.glob, err)
			continue
		}
		for _, s := range strings.Fields(c.yes) {
			if !re.MatchString(s) {
				t.Errorf("%s does not match %s", c.glob, s)
			}
		}
		for _, s := range strings.Fields(c.no) {
			if re.MatchString(s) {
				t.Errorf("%s matches %s", c.glob, s)
			}
		}
	}
	for _, bad := range []string{"[a", "{a", "{a,{b}}", `a\`, "[]", "[/]", "[!]"} {
		if re, err := globPattern(bad); err == nil {
			t.Errorf("%s became %v", bad, re)
		}
	}
}
