package permission

import (
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

// A question says what each part of the command would do, as data and in its text.
func TestQuestionsSayWhatCommandsDo(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": ""})
	p := policyFor(t, `{}`, dir)
	for command, want := range map[string][2]string{ // effects, and what the reason has
		"npm test && cat a.txt":           {"unknown:npm test reads:cat a.txt", "in the workspace: eca does not know what npm does"},
		"touch b":                         {"writes:touch b", "in the workspace: touch makes changes"},
		"npm test > out.txt":              {"unknown:npm test writes:> out.txt=out.txt", "it writes out.txt (`npm test`: eca does not know what npm does)"},
		"sudo rm b":                       {"writes:rm b runs:sudo rm b=rm b", "`sudo rm b` runs `rm b`"},
		"cat a.txt; $x":                   {"reads:cat a.txt unknown:$x", "the name of a command is computed"},
		"echo 'unclosed":                  {"unknown:", "the program cannot be parsed: reached EOF without closing quote `'`"},
		"a1; a2; a3; a4; a5":              {"unknown:a1 unknown:a2 unknown:a3 unknown:a4 unknown:a5", "eca does not know what a1 does (`a2`: eca does not know what a2 does; `a3`: eca does not know what a3 does; `a4`: eca does not know what a4 does; and 1 more)"},
		"npm " + strings.Repeat("x", 300): {"unknown:npm " + strings.Repeat("x", 196) + "...", "eca does not know what npm does"},
	} {
		v := judge(t, p, "code", dir, command)
		if v.Decision != tools.Ask || v.Details == nil || v.Details.ShellCommand == nil || v.Details.ShellCommand.Commands == nil {
			t.Errorf("%q: %+v", command, v)
			continue
		}
		var got []string
		for _, e := range v.Details.ShellCommand.Effects {
			text := e.Effect + ":" + e.Command
			if e.Target != "" {
				text += "=" + e.Target
			}
			got = append(got, text)
		}
		if text := strings.Join(got, " "); text != want[0] || !strings.Contains(v.Reason, want[1]) || !strings.HasPrefix(v.Reason, "it may do more than read in the workspace: ") {
			t.Errorf("%q: %s, %q", command, text, v.Reason)
		}
	}
	if v := judge(t, policyFor(t, `{"toolCall": {"unasked": "off"}}`, dir), "code", dir, "npm test"); v.Reason != "no rule names this call (`npm test`: eca does not know what npm does)" {
		t.Errorf("where nothing runs unasked: %q", v.Reason)
	}
	p.bounds = func(call tools.Call) *event.Sandbox { return &event.Sandbox{Level: call.Authorization.Rule} }
	v := judge(t, p, "code", dir, "ls")
	if v.Details == nil || v.Details.ShellCommand.Sandbox == nil || v.Details.ShellCommand.Sandbox.Level != RuleReads || len(v.Details.ShellCommand.Effects) > 0 {
		t.Errorf("a command that runs in the sandbox: %+v", v)
	}
}
