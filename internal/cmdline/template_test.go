package cmdline

import (
	"encoding/json"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// For any template and value, Fill returns a line that bash can parse, that does not contain the
// value, and that has no more commands than with another value.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{`a {{x}}`, `a "b{{x}}" 'c{{x}}'`, `a=$( {{x}} )`, "a <<< {{x}}", "a > {{x}}"} {
		f.Add(s, "$(b)")
	}
	f.Fuzz(func(t *testing.T, command, value string) {
		tpl, err := ParseTemplate(command)
		if err != nil {
			return
		}
		raw, err := json.Marshal("Q7Z" + value)
		if err != nil {
			return
		}
		commands := -1
		for _, x := range []string{string(raw), "null", "[" + string(raw) + ", " + string(raw) + "]"} {
			line, _, err := tpl.Fill(map[string]json.RawMessage{"x": json.RawMessage(x)})
			if err != nil {
				return
			}
			file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
			if err != nil {
				t.Fatalf("%q became %q: %v", command, line, err)
			}
			if strings.Contains(line, "Q7Z") && !strings.Contains(command, "Q7Z") {
				t.Errorf("%q became %q", command, line)
			}
			n := 0
			syntax.Walk(file, func(node syntax.Node) bool {
				if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 0 {
					n++
				}
				return true
			})
			if commands >= 0 && n > commands {
				t.Errorf("%q became %q, which has %d commands instead of %d", command, line, n, commands)
			}
			commands = max(commands, n)
		}
	})
}

// A list becomes several words if they are arguments, and one word if a second word would be a command
// or a file.
func TestTemplateLists(t *testing.T) {
	for command, want := range map[string]string{
		"a {{x}}": `a "${ECA_ARG_1}" "${ECA_ARG_2}"`, "V={{x}} a": `V="${ECA_ARG_1}" a`, "V={{x}}": `V="${ECA_ARG_1}"`, "a >{{x}}": `a >"${ECA_ARG_1}"`, "a <<<{{x}}": `a <<<"${ECA_ARG_1}"`,
	} {
		tpl, err := ParseTemplate(command)
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		if line, _, err := tpl.Fill(map[string]json.RawMessage{"x": json.RawMessage(`["b", "c"]`)}); line != want || err != nil {
			t.Errorf("%q became %q, want %q (%v)", command, line, want, err)
		}
	}
}
