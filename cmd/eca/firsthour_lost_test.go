package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// wrongRestrictions are restrictions that are not written so that they have an effect, and some that
// are.
func wrongRestrictions(t *testing.T) []wrongInput {
	exec, check := []string{"exec", "hi"}, []string{"config", "check"}
	rule := func(set, tool, argument, pattern string) string {
		return `{"toolCall": {"approval": {"` + set + `": {"` + tool + `": {"argsMatchers": {"` + argument + `": ["` + pattern + `"]}}}}}}`
	}
	command := func(set, pattern string) string { return rule(set, "eca__shell_command", "command", pattern) }
	hook := `{"hooks": {"h": {"type": "preToolCall", "matcher": {"eca__shell_command": {"argsMatchers": {"command": ["rm *"]}}}, "actions": [{"type": "shell", "shell": "exit 2"}]}}}`
	served := func(more string) string {
		return `{"mcpServers": {"calc": {"command": "sh", "args": ["%ROOT%/server.sh"]}}, ` + more + `}`
	}
	server := map[string]string{"server.sh": strings.NewReplacer(`{"type":"object"`, `{"type":"object","properties":{"a":{"type":"number"}}`, "$(cat words)", "Adds.").Replace(testedServer)}
	const noTool = "there is no such tool"
	out := []wrongInput{
		{name: "rules for all tools of the documentation", args: check, config: documentedTools(t), want: []string{"No problems."}},
		{name: "denied commands as a glob", args: exec, config: command("deny", "touch *"), code: 1, want: []string{`deny.eca__shell_command: "touch *" is a regular expression, not a glob`, `did you mean "touch .*"?`}, not: []string{"fine"}},
		{name: "denied commands as a glob after a word", args: exec, config: command("ask", "git push*"), code: 1, want: []string{`did you mean "git push.*"?`}, not: []string{"fine"}},
		{name: "denied commands as a glob that begins with a star", args: exec, config: command("deny", "*touch*"), code: 1, want: []string{`"*touch*" is not a regular expression`, "write .*touch.*"}, not: []string{"did you mean", "fine"}},
		{name: "denied commands that begin like a glob", args: check, config: command("deny", "*touch.*"), code: 1, want: []string{"write .*touch.*"}},
		{name: "allowed commands as a glob", args: exec, config: command("allow", "git commit *"), want: []string{"fine", `did you mean "git commit .*"?`}},
		{name: "hook of commands as a glob", args: check, config: hook, code: 1, want: []string{"hooks.h.matcher.eca__shell_command: ", `did you mean "rm .*"?`}},
		{name: "denied command without its arguments", args: exec, config: command("deny", "rm"), want: []string{"fine", `the pattern "rm" does not match "rm" with arguments; to match those too, write "rm( .*)?"`}},
		{name: "denied command with an anchor", args: exec, config: command("deny", `^git push\\b`), want: []string{"fine", `does not match "git push" with arguments`}},
		{name: "denied command as in Claude Code", args: exec, config: command("deny", "rm:*"), code: 1, want: []string{`"rm:*" is a rule of Claude Code, not a regular expression; did you mean "rm( .*)?"?`}, not: []string{"fine"}},
		{name: "denied command as in Claude Code, with its tool", args: exec, config: command("deny", "Bash(git push:*)"), code: 1, want: []string{`did you mean "git push( .*)?"?`}, not: []string{"fine"}},
		{name: "allowed command as in Claude Code", args: exec, config: command("allow", "ls:*"), want: []string{"fine", `did you mean "ls( .*)?"?`}},
		{name: "agent that differs in case", args: exec, config: `{"agent": {"Code": {"readOnly": true}}}`, code: 1, want: []string{"agent.Code: this agent is not code, because case matters in its name; did you mean agent.code?"}, not: []string{"fine"}},
		{name: "budget of a wrong type", args: exec, config: `{"budget": {"turn": 2}}`, code: 1, want: []string{"budget.turn"}, not: []string{"fine"}},
		{name: "limit in an unknown currency", args: exec, config: `{"budget": {"turn": ["$7", "5 EUR"]}}`, code: 1, want: []string{`budget.turn: "5 EUR" has an unknown unit or currency, eur`}, not: []string{"fine"}},
		{name: "misspelled budget", args: exec, config: `{"budgets": {"turn": {"cost": "1 USD"}}}`, code: 1, want: []string{"budgets", "budget"}, not: []string{"fine"}},
		{name: "allowed command without arguments", args: check, config: command("allow", "git status"), want: []string{"No problems."}},
		{name: "denied commands as a regular expression", args: check, config: command("deny", `rm\\s*|git( .*)?`), want: []string{"No problems."}},
		{name: "glob that is not a regular expression", args: check, config: rule("deny", "eca__read_file", "path", "secrets/**"), code: 1, want: []string{"in `secrets/**`; patterns are regular expressions, not globs: write secrets/.*"}},
		{name: "denied tool that a running server does not have", posix: true, args: exec, files: server, config: served(`"toolCall": {"approval": {"deny": {"calc__tt": {}}}}`), code: 1, want: []string{"deny.calc__tt: " + noTool, "did you mean calc__t?"}, not: []string{"fine"}},
		{name: "disabled tool that a running server does not have", posix: true, args: exec, files: server, config: served(`"disabledTools": ["calc__tt"]`), code: 1, want: []string{`"calc__tt": ` + noTool}, not: []string{"fine"}},
		{name: "hook of a tool that a running server does not have", posix: true, args: exec, files: server, config: served(`"hooks": {"h": {"type": "preToolCall", "matcher": "calc__tt", "actions": [{"type": "shell", "shell": "exit 2"}]}}`), code: 1, want: []string{`there is no tool "calc__tt"`}, not: []string{"fine"}},
		{name: "argument that a running server's tool does not have", posix: true, args: exec, files: server, config: served(`"toolCall": {"approval": {"deny": {"calc__t": {"argsMatchers": {"aa": ["1"]}}}}}`), code: 1, want: []string{`calc__t has no argument "aa"`}, not: []string{"fine"}},
		{name: "restrictions of a running server's tools", posix: true, args: exec, files: server, config: served(`"toolCall": {"approval": {"deny": {"calc__t": {"argsMatchers": {"a": ["1"]}}}, "ask": {"calc": {}}}}`), want: []string{"fine"}, not: []string{noTool, "no argument"}},
		{name: "text for a tool that does not exist", args: check, config: `{"prompts": {"tools": {"eca__zebra": "x", "eca__skill": "y"}}}`, code: 1, want: []string{"prompts.tools.eca__zebra: " + noTool}, not: []string{"eca__skill"}},
		{name: "no-break space", args: check, config: "{\"chat\":\u00a0{}}", code: 1, want: []string{"config.json:1:9: ", "invisible character here (a non-breaking space, U+00A0)"}},
		{name: "text after the configuration", args: check, config: "{} extra", code: 1, want: []string{"config.json:1:4: ", "there is text after the closing }"}},
		{name: "rule that is not a template, listed", args: []string{"exec", "/rules"}, files: map[string]string{".eca/rules/a.md": "{{#if x}}oops"}, want: []string{"Not used because of errors", "a.md: it is not a valid template"}, not: []string{"Always in the prompt", "no rules"}},
		{name: "MCP server whose script does not exist", args: []string{"mcp", "add", "x", "--", "python3", "/nope/server.py"}, want: []string{"warning: there is no file /nope/server.py yet", "Added x"}, posix: true},
		{name: "MCP server whose script does not exist in this folder", args: []string{"mcp", "add", "x", "--", "sh", "server.sh"}, want: []string{"warning: there is no file server.sh yet", "Added x"}, posix: true},
		{name: "MCP server with a program that is an argument", args: []string{"mcp", "add", "x", "--", "sh", "-c", "exec server.sh"}, want: []string{"Added x"}, not: []string{"warning"}, posix: true},
		{name: "untrusted rule, skill and command", args: check, files: map[string]string{".eca/rules/a.md": "${env:HOME}", ".eca/commands/b.md": "\n${cmd:ls}", ".eca/skills/c/SKILL.md": "---\nname: c\ndescription: d\n---\n${env:HOME}"}, want: []string{"a.md:1: note: ${env:HOME} does nothing until the folder is trusted", "b.md:2: note: ${cmd:ls}", "SKILL.md:5: note: "}},
	}
	for entry, meant := range map[string]string{"calc__*": "calc__.*", "calc__t*": "calc__t.*", "calc:t": "calc__t", "calc.t": "calc__t", "mcp__calc__t": "calc__t", "shell*": "shell.*", "*shell*": ".*shell.*", "web_*": "web_.*"} {
		out = append(out, wrongInput{name: "disabled tool " + entry, posix: true, args: exec, files: server, config: served(`"disabledTools": ["` + entry + `"]`), code: 1, want: []string{noTool, "did you mean", meant}, not: []string{"fine"}})
	}
	for _, name := range []string{"mcp__calc__t", "calc:t", "calc_t", "t"} {
		out = append(out, wrongInput{name: "denied tool " + name, posix: true, args: exec, files: server, config: served(`"toolCall": {"approval": {"deny": {"` + name + `": {}}}}`), code: 1, want: []string{noTool, "did you mean calc"}, not: []string{"fine"}})
	}
	for key, meant := range map[string]string{
		`"toolCall": {"deny": {"x": {}}}`: "toolCall.approval.deny", `"toolCall": {"disabledTools": ["x"]}`: "disabledTools", `"approval": {}`: "toolCall.approval",
		`"deny": ["x"]`: "toolCall.approval.deny", `"tools": {"deny": ["x"]}`: "toolCall.approval", `"allowedTools": ["x"]`: "toolCall.approval", `"excludeTools": ["x"]`: "disabledTools",
		`"agent": {"code": {"deny": ["x"]}}`: "agent.code.toolCall.approval.deny", `"agent": {"code": {"approval": {}}}`: "agent.code.toolCall.approval", `"agent": {"code": {"tools": {"deny": ["x"]}}}`: "agent.code.toolCall.approval",
		`"agent": {"code": {"permission": {}}}`: "agent.code.toolCall.approval", `"agent": {"code": {"disallowedTools": ["x"]}}`: "agent.code.disabledTools",
	} {
		out = append(out, wrongInput{name: "restriction in another place: " + key, args: exec, config: "{" + key + "}", code: 1, want: []string{"unknown key", "did you mean " + meant + "?"}, not: []string{"fine"}})
	}
	out = append(out, wrongInput{name: "hook for another assistant's tool", args: exec, config: `{"hooks": {"h": {"type": "preToolCall", "matcher": "Bash", "actions": [{"type": "shell", "shell": "exit 2"}]}}}`, code: 1, want: []string{`there is no tool "Bash"`, "did you mean eca__shell_command?"}, not: []string{"fine"}})
	for _, action := range []string{`"file": "gone.sh"`, `"shell": "python3 gone.py x"`} {
		out = append(out, wrongInput{name: "hook without its script: " + action, args: exec, config: `{"hooks": {"h": {"type": "preToolCall", "actions": [{"type": "shell", ` + action + `}]}}}`, code: 1, want: []string{"hooks.h cannot run: there is no file ", "gone."}, not: []string{"fine"}})
	}
	out = append(out, wrongInput{name: "agent that inherits from a misspelled one", args: []string{"exec", "--agent", "r", "hi"}, config: `{"agent": {"r": {"inherit": "plann"}}}`, code: 1, want: []string{"agent.r.inherit: there is no agent plann", "did you mean plan?"}, not: []string{"fine"}})
	for _, f := range []struct{ name, text, cause string }{
		{"text before its frontmatter", "# Look\n---\nreadOnly: true\n---\nhi", "mine.md:2: error: this is not read as frontmatter"},
		{"four dashes", "----\nreadOnly: true\n----\nhi", "mine.md:1: error: this line does not begin frontmatter"},
		{"TOML", "+++\nreadOnly = true\n+++\nhi", "mine.md:1: error: this line does not begin frontmatter"},
		{"no first line of dashes", "readOnly: true\n---\nhi", "mine.md:1: error: the frontmatter must begin with a line of three dashes"},
		{"no lines of dashes", "readOnly: true\n\nhi", "mine.md:1: error: the frontmatter must begin with a line of three dashes"},
		{"no last line of dashes", "---\n# restricted\nreadOnly: true\nhi", "mine.md:1: error: the frontmatter must be between two lines"},
		{"nothing", "", "mine.md:1: error: the file is empty"},
		{"a misspelled key after a blank line", "\n \n---\nreadonly: true\n---\nhi", "mine.md:4: error: unknown key readonly"},
	} {
		file := map[string]string{".eca/agents/mine.md": f.text}
		out = append(out,
			wrongInput{name: "agent's file with " + f.name, args: check, files: file, code: 1, want: []string{f.cause}},
			wrongInput{name: "use of an agent's file with " + f.name, args: []string{"exec", "--agent", "mine", "hi"}, files: file, code: 1, want: []string{`the agent "mine" cannot be used`}, not: []string{"fine"}},
		)
	}
	for _, f := range []struct{ name, text, cause string }{
		{"text before its frontmatter", "Look:\n---\npaths: '*.go'\n---\nhi", "a.md:2: error: this is not read as frontmatter"},
		{"four dashes", "----\npaths: '*.go'\n----\nhi", "a.md:1: error: this line does not begin frontmatter"},
		{"a misspelled key after a blank line", "\n---\npath: '*.go'\n---\nhi", "a.md:3: error: unknown key path"},
	} {
		out = append(out, wrongInput{name: "rule with " + f.name, args: check, files: map[string]string{".eca/rules/a.md": f.text}, code: 1, want: []string{f.cause}})
	}
	for _, file := range []string{".eca/hooks.json", ".eca/mcp.json", ".eca/settings.json", ".eca/rules.md", ".eca/AGENTS.md", ".eca.json", "../config/eca.json"} {
		out = append(out, wrongInput{name: "file in a wrong place: " + file, args: check, files: map[string]string{file: "{}"}, code: 1, want: []string{file[strings.LastIndex(file, "/")+1:] + ": warning: nothing reads this file; "}})
	}
	return out
}

// documentedTools returns a configuration with rules for every tool in docs/tools.md.
func documentedTools(t *testing.T) string {
	page, err := os.ReadFile("../../docs/tools.md")
	names := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(string(page), -1)
	if err != nil || len(names) < 20 {
		t.Fatalf("%v: %d tools", err, len(names))
	}
	var rules, list []string
	for _, n := range names {
		rules, list = append(rules, `"eca__`+n[1]+`": {}`), append(list, `"`+n[1]+`"`)
	}
	return `{"toolCall": {"approval": {"deny": {` + strings.Join(rules, ", ") + `}, "ask": {"eca__skill": {"argsMatchers": {"name": ["deploy"]}}}}},
"hooks": {"h": {"type": "preToolCall", "matcher": {` + strings.Join(rules, ", ") + `}, "actions": [{"type": "shell", "shell": "exit 0"}]}},
"agent": {"mine": {"disabledTools": [` + strings.Join(list, ", ") + `]}}}`
}
