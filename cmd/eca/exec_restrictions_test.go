package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// If a configuration was meant to deny something, and denies nothing because of a wrong key, type
// or name, eca exec does not start: no user watches it.
func TestExecRefusesLostRestrictions(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "touch made"}}`))
	for config, wants := range map[string][]string{
		`{"toolCall": {"approvl": {"deny": {"eca__shell_command": {}}}}}`: {"ECA_CONFIG:1:15: ", "unknown key toolCall.approvl", "did you mean toolCall.approval?"},
		`{"toolCall": {"rules": {"deny": {"eca__shell_command": {}}}}}`:   {"unknown key toolCall.rules", "did you mean toolCall.approval?"},
		`{"toolcal": {"approval": {"deny": {"eca__shell_command": {}}}}}`: {"unknown key toolcal", "did you mean toolCall?"},
		`{"toolCall": "none"}`: {"toolCall must be an object"},
		`{"toolCall": {"approval": {"deny": ["eca__shell_command"]}}}`:                                                  {"toolCall.approval.deny must be an object, not a list"},
		`{"toolCall": {"approval": {"deny": "eca__shell_command"}}}`:                                                    {"toolCall.approval.deny must be an object, not a string"},
		`{"toolCall": {"approval": {"denny": {"eca__shell_command": {}}}}}`:                                             {"did you mean toolCall.approval.deny?"},
		`{"toolCall": {"approval": {"forbid": {"eca__shell_command": {}}}}}`:                                            {"unknown key toolCall.approval.forbid"},
		`{"toolCall": {"approval": {"byDefault": "denied"}}}`:                                                           {`toolCall.approval.byDefault is "denied"`, "ask, allow or deny"},
		`{"toolCall": {"approval": {"deny": {"eca__shell_comand": {}}}}}`:                                               {"there is no such tool", "eca__shell_command"},
		`{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"comand": ["touch.*"]}}}}}}`:       {`has no argument "comand"`},
		`{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argMatchers": {"command": ["ls"]}}}}}}`:           {"so this rule allows nothing; did you mean", "argsMatchers"},
		`{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argMatchers": {"command": ["ls"]}}}}}}`:            {"so this rule now applies to every call of the tool; did you mean", "argsMatchers"},
		`{"toolCall": {"approval": {"allow": {"eca__shell_command": {"argsMatchers": "ls"}}}}}`:                         {"argsMatchers must be an object"},
		`{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {}}}}}}`:                            {"argsMatchers is empty", "leave it out"},
		`{"toolCall": {"approval": {"deny": {"eca__shell_command": {"argsMatchers": {"command": []}}}}}}`:               {`no patterns for "command"`},
		`{"toolCall": {"approval": {"ask": {"eca__*": {}}}}}`:                                                           {"there is no such tool", "not a pattern"},
		`{"toolCall": {"webFetch": {"denyHosts": ["http://evil.example/"]}}}`:                                           {`"http://evil.example/" is not a host: write "evil.example", without scheme, port and path`},
		`{"toolCall": {"webFetch": {"denyHosts": ["evil.example:80"]}}}`:                                                {`"evil.example:80" is not a host: write "evil.example", without`},
		`{"toolCall": {"webFetch": {"denyHost": ["evil.example"]}}}`:                                                    {"did you mean toolCall.webFetch.denyHosts?"},
		`{"extraConfigs": ["no-such.json"]}`:                                                                            {"extraConfigs: there is no file ", "no-such.json"},
		`{"extraConfig": ["no-such.json"]}`:                                                                             {"did you mean extraConfigs?"},
		`{"hooks": {"gate": {"type": "preToolCal", "actions": [{"type": "shell", "shell": "exit 2"}]}}}`:                {"preToolCal"},
		`{"hook": {"gate": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "exit 2"}]}}}`:                {"did you mean hooks?"},
		`{"toolCall": {"sandboks": "required"}}`:                                                                        {"did you mean toolCall.sandbox?"},
		`{"toolCall": {"sandbox": "require"}}`:                                                                          {"toolCall.sandbox must be one of"},
		`{"disabledTool": ["eca__shell_command"]}`:                                                                      {"did you mean disabledTools?"},
		`{"agent": {"code": {"readonly": true}}}`:                                                                       {"readOnly"},
		`{"agent": {"code": {"toolCall": {"approvl": {"deny": {"eca__shell_command": {}}}}}}}`:                          {"did you mean agent.code.toolCall.approval?"},
		`{"agent": {"code": {"toolCall": {"approval": {"byDefault": "allow", "deny": {"eca__shell_command": true}}}}}}`: {"must be an object"},
	} {
		here := newPlace(t, p.env()...)
		here.env = append(here.env, "ECA_CONFIG="+config)
		out, errOut, code := runProgram(t, here, "", "exec", "--approve", "all", "go")
		if _, err := os.Stat(filepath.Join(here.root, "made")); code != exitFailed || err == nil || out != "" {
			t.Errorf("%s: exit code %d, it ran: %v\n%s", config, code, err == nil, errOut)
		}
		for _, want := range append(wants, "may differ from what you intended; correct it", "ECA_CONFIG:1:") {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: %q is not said: %s", config, want, errOut)
			}
		}
	}
	for _, config := range []string{
		`{}`, `{"toolCall": {"approval": {"deny": {"github": {}, "github__no_tool_like_it": {}}, "allow": {"eca__read_fil": {}}}}}`,
		`{"toolCall": {"outputTruncation": {"line": 3}}}`, `{"chat": {"titel": false}}`,
		`{"toolCall": {"webFetch": {"privateHost": ["a.example"]}}}`,
	} {
		here := newPlace(t, p.env()...)
		here.env = append(here.env, "ECA_CONFIG="+config)
		if _, errOut, code := runProgram(t, here, "", "exec", "--approve", "all", "go"); code != 0 {
			t.Errorf("%s: exit code %d: %s", config, code, errOut)
		}
	}
}
