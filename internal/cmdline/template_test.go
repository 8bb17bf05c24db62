package cmdline

import (
	"encoding/json"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/syntax"
)

// Whatever the template and the value: the line is a shell line that has nothing of the
// value in it.
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
		line, _, err := tpl.Fill(map[string]json.RawMessage{"x": raw})
		if err != nil {
			return
		}
		if _, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), ""); err != nil {
			t.Errorf("%q became %q: %v", command, line, err)
		}
		if strings.Contains(line, "Q7Z") && !strings.Contains(command, "Q7Z") {
			t.Errorf("%q became %q", command, line)
		}
	})
}
