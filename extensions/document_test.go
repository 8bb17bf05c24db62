package extensions

import (
	"strings"
	"testing"
)

func TestDocument(t *testing.T) {
	for _, c := range []struct {
		name, text string
		body       string
		keys       string // joined
		line       int    // of the fault
		cause      string
	}{
		{name: "no frontmatter", text: "# Hello\nthere", body: "# Hello\nthere"},
		{name: "empty", text: ""},
		{name: "keys", text: "---\na: 1\nb: [x]\n---\n\nBody\n", body: "Body", keys: "a b"},
		{name: "windows line ends and a mark", text: "\ufeff---\r\na: 1\r\n---\r\nBody\r\n", body: "Body", keys: "a"},
		{name: "empty frontmatter", text: "---\n---\nBody", body: "Body"},
		{name: "only a comment", text: "---\n# nothing\n---\nBody", body: "Body"},
		{name: "blank lines before it", text: "\n \t\n ---\na: 1\n---\nBody", body: "Body", keys: "a"},
		{name: "bad YAML after blank lines", text: "\n\n---\na: 1\nb: [\n---\n", line: 5, cause: "a [ has no matching ]"},
		{name: "no end after a blank line", text: "\n---\nname: x\nBody\n", line: 2, cause: "has no closing line"},
		{name: "dashes in the body", text: "---\na: 1\n---\nx\n---\ny", body: "x\n---\ny", keys: "a"},
		{name: "a rule of Markdown", text: "---\nJust a text: with a colon\n", body: "---\nJust a text: with a colon"},
		{name: "no end", text: "---\nname: x\nBody\n", line: 1, cause: "has no closing line"},
		{name: "bad YAML", text: "---\na: 1\nb: [\n---\n", line: 3, cause: "a [ has no matching ]"},
		{name: "a key twice", text: "---\na: 1\na: 2\n---\n", line: 3, cause: "occurs twice"},
		{name: "a list", text: "---\n- a\n- b\n---\n", line: 2, cause: "lines like description: TEXT, not a sequence"},
		{name: "aliases", text: "---\na: &x 1\nb: *x\n---\n", line: 2, cause: "aliases"},
		{name: "too large", text: "---\na: " + strings.Repeat("x", maxFrontmatter) + "\n---\n", line: 1, cause: "more than"},
		{name: "too deep", text: "---\na:\n  b: " + strings.Repeat("[", 100) + "\n---\n", line: 3, cause: "nested deeper"},
		{name: "UTF-16", text: "\xff\xfe-\x00", cause: "UTF-16; save it as UTF-8"},
		{name: "no text", text: "---\na: \xff\n---\n", cause: "not UTF-8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, flt := parseDocument(c.text)
			if c.cause != "" {
				if flt == nil || flt.line != c.line || !strings.Contains(flt.cause, c.cause) {
					t.Fatalf("%+v, want line %d: %s", flt, c.line, c.cause)
				}
				return
			}
			if flt != nil || d.body != c.body {
				t.Fatalf("%+v %+v", flt, d)
			}
			for _, key := range strings.Fields(c.keys) {
				if d.meta[key] == nil || d.lines[key] < 2 {
					t.Errorf("%s: %v in line %d", key, d.meta[key], d.lines[key])
				}
			}
		})
	}
}

// For any text, the parsers of agents, skills, rules and commands return an error with a cause, or a
// valid result.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "---\n---\n", "---\nname: a\ndescription: b\n---\nbody $1 $ARGS",
		"---\ntools:\n  byDefault: ask\n  allow: [eca__shell_command(git .*)]\nmode: [primary, subagent]\nsteps: 3\n---\nx",
		"---\npaths: ['**/*.{go,md}', '[!a-c]?']\nenforce: [read, modify]\nmodel: '(?<!x)gpt'\n---\nrule",
		"---\narguments:\n - name: a\n   required: false\n---\n{{a}} {{ b }}", "---\na: &b [*b]\n---\n", "---\n? ? ? x\n---\n", "---\n{[{[\n---",
		"---\na: |\n  b\n c\n---\n", "---\n!!binary x: y\n<<: {a: b}\n---\n", "\ufeff---\r\na: 1\r\n---\r\n", "---\na: 1e999\nb: 0x_1\n---\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		faulty := func(flt *fault) bool {
			if flt != nil && (flt.cause == "" || flt.line < 0 || flt.line > strings.Count(text, "\n")+2) {
				t.Fatalf("%+v", flt)
			}
			return flt != nil
		}
		if a, flt := parseAgent("/x/Some.Agent.md", text); !faulty(flt) && (a.ID == "" || a.ID != strings.ToLower(a.ID)) {
			t.Errorf("agent %q", a.ID)
		}
		if s, flt := parseSkill("/x/s/SKILL.md", text); !faulty(flt) && (s.Name == "" || s.Description == "") {
			t.Errorf("skill %+v", s)
		}
		if r, flt := parseRule("/x/r", text); !faulty(flt) {
			r.appliesTo(Reader{"code", "openai/gpt"})
			r.matches("a/b.go")
			if !r.Static() && len(r.Enforce) == 0 {
				t.Errorf("rule %+v", r)
			}
		}
		if c, flt := parseCommand("/x/c.md", text); !faulty(flt) {
			if got := c.Prompt("one two", []string{"one", "two"}); len(c.Arguments) == 0 && !strings.HasSuffix(got, "one two") {
				t.Errorf("%q: the arguments are lost: %q", c.Body, got)
			}
		}
	})
}
