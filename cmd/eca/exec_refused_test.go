package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// For every kind of refusal, the run ends with exit code 3, reports it in the same form, and lists
// the call with the reason.
func TestExecRefusalsAreAlike(t *testing.T) {
	needs.POSIX(t)
	needs.Long(t)
	const shell = `{tool: eca__shell_command, arguments: {command: "touch made"}}`
	const because = " (asked because: " // depends on the machine's sandbox
	all := []string{"--approve", "all"}
	for name, c := range map[string]struct {
		call, config string
		args         []string
		reason       string
	}{
		"a rule for all calls":             {shell, `{"toolCall": {"approval": {"deny": {"eca__shell_command": {}}}}}`, all, "denied by toolCall.approval.deny.eca__shell_command"},
		"a rule for some calls":            {shell, `{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": ["touch.*"]}}}}}}`, all, "denied by toolCall.approval.deny.eca__shell_command"},
		"byDefault":                        {writeCall, `{"toolCall": {"approval": {"byDefault": "deny"}}}`, all, "denied by toolCall.approval.byDefault"},
		"disabledTools":                    {shell, `{"disabledTools": ["eca__shell_command"]}`, all, "denied: the tool is disabled for agent code"},
		"a read-only agent":                {writeCall, `{}`, append([]string{"--agent", "plan"}, all...), "denied: the tool is disabled for agent plan"},
		"a call of an agent with readOnly": {writeCall, `{"agent": {"rev": {"mode": "primary", "readOnly": true}}}`, append([]string{"--agent", "rev"}, all...), "denied: the agent rev is read-only"},
		"a command of a read-only agent":   {shell, `{}`, []string{"--agent", "plan"}, "denied: the agent plan is read-only"},
		"nobody to ask":                    {shell, `{}`, nil, "not approved: there is no terminal for the question"},
		"none":                             {shell, `{}`, []string{"--approve", "none"}, "not approved: --approve none refuses all calls that need approval"},
		"a hook":                           {shell, `{"hooks": {"no": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "echo not on Fridays >&2; exit 2"}]}}}`, all, "denied by the hook no: not on Fridays"},
		"a hook that says nothing":         {shell, `{"hooks": {"no": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "exit 2"}]}}}`, all, "denied by the hook no"},
		"a hook that answers":              {shell, `{"hooks": {"no": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "echo '{\"approval\": \"deny\"}'"}]}}}`, all, "denied by the hook no"},
		"a hook that gives a reason":       {shell, `{"hooks": {"no": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "echo '{\"approval\": \"deny\", \"additionalContext\": \"not today\"}'"}]}}}`, all, "denied by the hook no: not today"},
		"a hook with invalid arguments":    {writeCall, `{"hooks": {"no": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "echo '{\"updatedInput\": {\"path\": 5}}'"}]}}}`, all, "denied by the hook no, which changed its arguments"},
	} {
		p := newProvider(t, callCassette(c.call))
		tool := strings.TrimPrefix(strings.Split(c.call, ",")[0], "{tool: ")
		run := func(more ...string) (stdout, stderr string) {
			t.Helper()
			here := newPlace(t, p.env()...)
			here.env = append(here.env, "ECA_CONFIG="+c.config)
			stdout, stderr, code := runProgram(t, here, "", slices.Concat([]string{"exec", "go"}, c.args, more)...)
			if code != exitRefused {
				t.Errorf("%s: exit code %d\n%s", name, code, stderr)
			}
			return stdout, stderr
		}
		_, said := run()
		said = said[max(0, strings.Index(said, "· refused: ")):]
		first, _, _ := strings.Cut(said, "\n")
		first, _, _ = strings.Cut(first, because)
		if !strings.HasPrefix(first, "· refused: ") || !strings.HasSuffix(first, ": "+c.reason) || strings.Contains(said, "failed:") || strings.Count(first, "read-only") > 1 {
			t.Errorf("%s: it says: %s", name, said)
		}
		stdout, _ := run("--json")
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		var result struct {
			ExitCode int
			Refused  []refusal
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &result); err != nil {
			t.Fatal(err)
		}
		for i := range result.Refused {
			result.Refused[i].Reason, _, _ = strings.Cut(result.Refused[i].Reason, because)
		}
		if want := []refusal{{tool, c.reason}}; result.ExitCode != exitRefused || !slices.Equal(result.Refused, want) {
			t.Errorf("%s: %s", name, lines[len(lines)-1])
		}
	}
}

// If a rule asks, an additional rule that allows does not help, so it is not proposed.
func TestExecRemedyForRuleThatAsks(t *testing.T) {
	needs.Long(t)
	const allow, ask = "toolCall.approval.allow", "a change of the rule in toolCall.approval.ask"
	for config, wants := range map[string][2]string{
		`{}`: {allow, ask},
		`{"toolCall": {"approval": {"ask": {"eca__write_file": {}}}}}`:                                                      {ask, allow},
		`{"toolCall": {"approval": {"ask": {"eca__write_file": {}}, "allow": {"eca__write_file": {}}}}}`:                    {ask, allow},
		`{"agent": {"code": {"toolCall": {"approval": {"ask": {"eca__write_file": {"argsMatchers": {"path": [".*"]}}}}}}}}`: {ask, allow},
		`{"agent": {"code": {"toolCall": {"approval": {"byDefault": "ask", "deny": {}}}}}}`:                                 {allow, ask},
	} {
		here := newPlace(t, newProvider(t, callCassette(writeCall)).env()...)
		here.env = append(here.env, "ECA_CONFIG="+config)
		_, said, code := runProgram(t, here, "", "exec", "go")
		if code != exitRefused || !strings.Contains(said, wants[0]) || strings.Contains(said, wants[1]) {
			t.Errorf("%s: exit code %d\n%s", config, code, said)
		}
	}
}
