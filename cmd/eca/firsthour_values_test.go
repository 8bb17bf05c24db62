package main

// wrongValues are values of flags and of the configuration that cannot mean what the user wants.
func wrongValues() []wrongInput {
	exec, doctor, check := []string{"exec", "hi"}, []string{"doctor", "--offline"}, []string{"config", "check"}
	mine := func(key string) string {
		return `{"chat": {"title": false}, "providers": {"mine": {"api": "openai-chat", "url": "%URL%", "key": "` + key + `", "fetchModels": false, "models": {"m": {}}}}}`
	}
	return []wrongInput{
		{name: "command of a key that never ends", bare: true, posix: true, args: exec, config: mine("${cmd:sleep 300}"), answer: refusePrompts(401, "no key"), code: 1, want: []string{"providers.mine.key", "the command did not end within 10s", "run it in a terminal", "${env:NAME}"}},
		{name: "slow command of a key, at the doctor's", bare: true, posix: true, args: doctor, config: mine("${cmd:sleep 3; echo sk-slow-0123456789}"), code: 0, want: []string{"provider mine: ", "key from "}, not: []string{"still runs", "PROBLEM"}},
		{name: "variable of a shell as a key", bare: true, args: exec, config: mine("$MINE_KEY"), answer: refusePrompts(401, "no key"), code: 1, want: []string{"providers.mine.key: unknown expression $MINE_KEY", "did you mean ${env:MINE_KEY}?", "the value is not used"}},
		{name: "variable in braces as a key", bare: true, args: doctor, config: mine("${MINE_KEY}"), code: 1, want: []string{"did you mean ${env:MINE_KEY}?"}},
		{name: "variables in other forms", args: check, config: `{"mcpServers": {"a": {"command": "sh", "args": ["${A}"], "env": {"B": "${B}"}}}, "providers": {"mine": {"api": "openai-chat", "url": "https://${C}/v1", "key": "{env:D}", "extraHeaders": {"X-E": "Bearer $E", "X-F": "Bearer ${env:HOME}", "X-G": "a$b"}, "models": {"m": {}}}}}`, code: 1, want: []string{"mcpServers.a.env.B: unknown expression ${B}", "${env:C}?", "${env:D}?", "${env:E}?"}, not: []string{"${A}", "X-F", "X-G"}},
		{name: "matcher of an event without one", args: check, config: hookFor("preRequest", "eca__shell_command"), code: 1, want: []string{"hooks.guard: ", "the matcher has no effect", "remove it"}},
		{name: "matcher of a misspelled trigger", args: check, config: hookFor("preCompact", "autoo"), code: 1, want: []string{`the matcher "autoo" is neither manual nor auto`, "did you mean auto?"}},
		{name: "matcher of an event without one, in a run", args: exec, config: hookFor("preRequest", "x"), code: 0, want: []string{"fine", "the matcher has no effect"}},
		{name: "role that no message has", args: []string{"read-chat", "--workspace", ".", "--chat-id", "0123", "--role", "usr"}, code: 1, want: []string{"--role must be user, ", "did you mean user?"}},
		{name: "server of a folder that is not trusted", args: []string{"mcp", "remove", "w"}, files: map[string]string{".eca/config.json": `{"mcpServers": {"w": {"command": "true"}}}`}, code: 0, want: []string{"Removed w."}},
		{name: "server that does not exist", args: []string{"mcp", "remove", "w"}, code: 1, want: []string{`there is no MCP server "w"`, "eca mcp list"}},
		{name: "too few lines for a login", bare: true, args: []string{"login", "litellm"}, stdin: "sk-0123456789\n", code: 1, want: []string{"one line for each of these, in this order: API key, URL of the API"}, not: []string{"Logged in"}},
		{name: "damaged record of spending", args: []string{"exec", "/costs"}, files: map[string]string{"../state/eca/spending.db": "damaged"}, same: "../state/eca/spending.db", code: 0, want: []string{"spending.db is damaged; move it away"}, not: []string{"(26)"}, once: "move it away"},
		{name: "folders in place of files", posix: true, args: check, files: map[string]string{"../config/eca/agents/a.md/x": "", "../config/eca/commands/b.md/x": "", "../config/eca/skills/c/SKILL.md/x": ""}, code: 1, want: []string{"agents/a.md: error: it is not a regular file; replace it with one, or remove it", "commands/b.md: ", "SKILL.md: "}},
		{name: "server that is not executable", posix: true, args: []string{"mcp", "test", "a"}, config: `{"mcpServers": {"a": {"command": "%ROOT%/serve"}}}`, files: map[string]string{"serve": "#!/bin/sh\n"}, code: 1, want: []string{"/serve: it cannot be executed: correct the command, or make the file executable (chmod +x)"}, not: []string{"fork/exec"}},
		{name: "line break in a key", args: check, config: `{"providers": {"x\ny: No problems.": {"key": 1}}}`, code: 1, want: []string{`providers."x\ny: No problems.".key must be a string`}, not: []string{"\ny: No"}},
		{name: "hook without types", args: check, config: `{"hooks": {"a": {"actions": [{"shell": "true"}]}, "b": {"type": "preRequest", "actions": [{"shell": "true"}]}}}`, code: 1, want: []string{"hooks.a: the hook has no type", "hooks.b: action 1 has no type: add \"type\": \"shell\""}, not: []string{`""`}},
		{name: "misspelled kind of an expression", args: check, config: `{"prompts": {"chat": "Hi ${evn:X}"}, "hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "shell": "echo ${end:0:3} ${fiel:/x}"}]}}, "mcpServers": {"s": {"command": "true", "args": ["${evn:TOKEN}"]}}, "agent": {"a": {"systemPrompt": "Hi\n${env:HOME} ${flie:x}"}}}`, code: 1, want: []string{"prompts.chat: unknown expression ${evn:X}; did you mean ${env:...}?", "hooks.h.actions.0.shell: unknown expression ${fiel:/x}; did you mean ${file:...}?", "mcpServers.s.args.0: unknown expression ${evn:TOKEN}", "agent.a.systemPrompt: unknown expression ${flie:x}"}, not: []string{"${end:0:3}"}},
		{name: "variable in the arguments of an MCP server", args: check, config: `{"mcpServers": {"s": {"command": "true", "args": ["--token=$NOPE", "a$b", "Bearer $OTHER"]}, "t": {"command": "true", "args": ["sh", "-c", "$SCRIPT"]}}}`, code: 1, want: []string{"mcpServers.s.args.0: the server gets $NOPE as it is, because no shell replaces it; did you mean ${env:NOPE}?", "mcpServers.s.args.2: the server gets $OTHER"}, not: []string{"args.1", "SCRIPT"}},
		{name: "variant that no model has", args: check, config: `{"agent": {"a": {"variant": "hihg"}, "b": {"variant": "fast", "defaultModel": "mine/m"}, "c": {"variant": "slow", "defaultModel": "mine/m"}, "d": {"variant": "slow"}, "e": {"variant": "high"}}, "providers": {"mine": {"api": "openai-chat", "url": "%URL%", "key": "k", "fetchModels": false, "models": {"m": {"variants": {"slow": {"x": 1}}}}}}}`, files: map[string]string{".eca/agents/f.md": "---\nvariant: zebra\n---\nx"}, code: 1, want: []string{`agent.a.variant: no model has a variant "hihg"; did you mean high?`, `agent.b.variant: the model mine/m has no variant "fast"; there are slow`, `f.md:2: error: agent.f.variant: no model has a variant "zebra"`}, not: []string{"agent.c", "agent.d", "agent.e"}},
		{name: "kind of an expression as a variable", bare: true, args: check, config: mine("${env}"), code: 1, want: []string{"did you mean ${env:NAME}?"}},
		{name: "misspelled decision", args: check, config: `{"toolCall": {"approval": {"byDefault": "alow"}}}`, code: 1, want: []string{"must be ask, allow or deny; did you mean allow? Until it is corrected, eca asks", "Until it is corrected, eca asks"}},
		{name: "matcher of a trigger", args: check, config: hookFor("preCompact", "auto"), code: 0, want: []string{"No problems"}},
	}
}

// hookFor is a configuration with a hook for an event.
func hookFor(event, matcher string) string {
	return `{"hooks": {"guard": {"type": "` + event + `", "matcher": "` + matcher + `", "actions": [{"type": "shell", "shell": "true"}]}}}`
}
