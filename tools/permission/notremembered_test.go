package permission

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// A question says that its answer cannot be remembered if, and only if, eca would ask about the
// same call again after the user chose to remember the answer.
func TestNotRemembered(t *testing.T) {
	shell := func(command, dir string) tools.Plan {
		text, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		return planOf(string(text), dir)
	}
	outside := shell("go test", "/ws/a")
	outside.Command.Outside = "why"
	for _, c := range []struct {
		tool, agent string
		plan        tools.Plan
		want        string
	}{
		{"eca__shell_command", "code", shell("go test ./...", "/ws/a"), ""},
		{"eca__shell_command", "code", shell("echo x; go test; npm run build", "/ws/a"), ""},
		{"eca__shell_command", "code", shell("echo x; make nothing; exit 3", "/ws/a"), "make nothing cannot be remembered"},
		{"eca__shell_command", "code", shell("echo x > new", "/ws/a"), "> new cannot be remembered"},
		{"eca__shell_command", "code", shell("mkdir /elsewhere", "/ws/a"), "mkdir /elsewhere cannot be remembered: it concerns a path outside the workspace"},
		{"eca__shell_command", "code", shell("mkdir ../../elsewhere", "/ws/a"), "mkdir ../../elsewhere cannot be remembered: it concerns a path outside the workspace"},
		{"eca__shell_command", "code", shell("cat --file=/etc/passwd", "/ws/a"), "cat --file=/etc/passwd cannot be remembered: it concerns a path outside the workspace"},
		{"eca__shell_command", "code", shell("f() { go test; }; f", "/ws/a"), "this command cannot be remembered"},
		{"eca__shell_command", "code", shell("go build $x", "/ws/a"), "this command cannot be remembered"},
		{"eca__shell_command", "code", shell("go test", "/other"), "go test cannot be remembered: it concerns a path outside the workspace"},
		{"eca__shell_command", "code", shell("git reset --hard", "/ws/a"), asksEachTime},
		{"eca__shell_command", "code", shell("touch .envrc", "/ws/a"), asksEachTime},
		{"eca__shell_command", "plan", shell("go test", "/ws/a"), asksEachTime},
		{"eca__shell_command", "code", outside, asksEachTime},
		{"eca__write_file", "code", tools.Plan{Paths: []string{"/ws/x"}}, ""},
		{"eca__write_file", "code", tools.Plan{Paths: []string{"/ws/.envrc"}}, asksEachTime},
		{"eca__read_file", "code", tools.Plan{Paths: []string{"/other/x"}}, ""},
		{"eca__web_fetch", "code", tools.Plan{Address: "https://x.example/y"}, ""},
		{"eca__web_fetch", "code", tools.Plan{Address: "https:///y"}, "an address without a host cannot be remembered"},
		{"db__query", "code", tools.Plan{}, ""},
	} {
		p := policy(t, `{"toolCall": {"unasked": "off"}}`)
		call := tools.Call{Agent: c.agent, Roots: []string{"/ws/a"}, Arguments: json.RawMessage(`{}`)}
		name := c.tool + " " + strings.Join(c.plan.Paths, "")
		if c.plan.Command != nil {
			name += c.plan.Command.Text
		}
		v := p.Judge(call, spec(c.tool), c.plan)
		if v.Decision != tools.Ask || v.NotRemembered != c.want {
			t.Errorf("%s: %s, %q, want %q", name, v.Decision, v.NotRemembered, c.want)
		}
		if err := p.Remember(call, spec(c.tool), c.plan, tools.ForSession); err != nil {
			t.Fatal(err)
		}
		again := p.Judge(call, spec(c.tool), c.plan)
		if allowed := again.Decision == tools.Allow; allowed != (c.want == "") {
			t.Errorf("%s: once its answer is remembered: %+v", name, again)
		}
		if again.Decision == tools.Allow && again.NotRemembered != "" {
			t.Errorf("%s runs, and says that it cannot be remembered", name)
		}
	}
}
