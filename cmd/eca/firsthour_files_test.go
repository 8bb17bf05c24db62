package main

import (
	"io"
	"net/http"
	"slices"
	"strings"
)

// wrongFiles are mistakes in the Markdown files of agents and commands.
func wrongFiles() []wrongInput {
	exec, ask := []string{"exec", "hi"}, []string{"exec", "--agent", "mine", "hi"}
	agent := func(meta string) map[string]string {
		return map[string]string{".eca/agents/mine.md": "---\n" + meta + "\n---\nBe brief."}
	}
	const refused = "eca exec: the agent \"mine\" cannot be used: "
	var out []wrongInput
	for _, f := range []struct{ name, meta, cause string }{
		{"that cannot be parsed", "tools: [", "a [ has no matching ]"},
		{"with an unknown mode", "mode: boss", "mode must be primary, subagent, or both"},
		{"with a misspelled key", "disabledTool: [eca__shell_command]", "did you mean disabledTools?"},
		{"with a key of config.json", "toolCall: {approval: {deny: {eca__shell_command: {}}}}", "toolCall has no effect in a Markdown file"},
		{"with a restriction of another program", "permission: {bash: deny}", "permission has no effect in a Markdown file"},
		{"with a key of tools outside of it", "deny: [eca__shell_command]", "deny has no effect here; put it below tools"},
		{"with a list of tools of another program", "disallowedTools: [Bash]", "did you mean disabledTools?"},
		{"with a misspelled tool", "disabledTools: [eca__shell_comand]", "did you mean eca__shell_command?"},
		{"that denies a misspelled tool", "tools: {deny: [eca__shell_comand]}", "did you mean eca__shell_command?"},
	} {
		out = append(out,
			wrongInput{name: "agent's file " + f.name, args: ask, files: agent(f.meta), code: 1, want: []string{refused, "agents/mine.md:2", f.cause}, not: []string{"fine", "there is no agent"}},
			wrongInput{name: "file of an agent that is not used, " + f.name, args: exec, files: agent(f.meta), code: 0, want: []string{"fine", "agents/mine.md:2", f.cause}},
			wrongInput{name: "explanation for an agent's file " + f.name, args: []string{"permission", "explain", "--agent", "mine", "--", "ls"}, files: agent(f.meta), code: 1, want: []string{"agents/mine.md:2", f.cause}, not: []string{"there is no agent"}},
		)
	}
	out = append(out,
		wrongInput{name: "agent's model of an unknown provider", args: ask, files: agent("model: opnai/gpt-5.2"), code: 1, want: []string{"the agent mine does not work as its file says", `there is no provider "opnai"`, "did you mean openai?"}, not: []string{"fine", "restricts less"}},
		wrongInput{name: "misspelled tool in the file of the default agent", args: exec, config: `{"defaultAgent": "mine"}`, files: agent("disabledTools: [eca__shell_comand]"), code: 1, want: []string{"may differ from what you intended", `defaultAgent: there is no agent "mine"`, "agents/mine.md:2: ", "did you mean eca__shell_command?"}, not: []string{"fine"}},
		wrongInput{name: "misspelled tool in the file of a built-in agent", args: exec, files: map[string]string{".eca/agents/general.md": "---\ndisabledTools: [eca__shell_comand]\n---\nhi"}, code: 1, want: []string{"may differ from what you intended", "agents/general.md"}, not: []string{"fine"}},
	)
	const hooks = `{"hooks": {"a": {"type": "preToolCal", "actions": [{"type": "shell", "shell": "exit 2"}]}, "b": {"type": "preRequest", "actions": [{"type": "shel"}]}}}`
	out = append(out,
		wrongInput{name: "hooks of a folder that is not trusted", args: exec, files: map[string]string{".eca/config.json": hooks}, code: 0, want: []string{"fine"}, not: []string{"restricts less"}},
		wrongInput{name: "MCP server in a folder that is not trusted", args: []string{"mcp", "add", "--workspace", "mine", "--", "sh"}, files: map[string]string{".eca/config.json": hooks}, code: 0, want: []string{"Added mine to ", "config.json. It has no effect until you trust this folder: `eca trust`"}, not: []string{"starts it"}},
	)
	for _, f := range []struct{ name, file, text, cause string }{
		{"a rule that is not a template", ".eca/rules/a.md", "{{#if x}}oops", "rules/a.md: error: it is not a valid template, so its text is left out: "},
		{"a rule with a misspelled key", ".eca/rules/a.md", "---\npath: \"*.go\"\n---\nhi", "rules/a.md:2: error: unknown key path; it has no effect; did you mean paths?"},
		{"a rule that is enforced everywhere", ".eca/rules/a.md", "---\nagent: code\nenforce: read\n---\nhi", "rules/a.md:3: error: enforce has no effect without paths: "},
		{"a rule for an agent that does not exist", ".eca/rules/a.md", "---\nagent: plann\n---\nhi", "rules/a.md:2: error: agent: there is no agent \"plann\", so the rule does not apply to it; did you mean plan?"},
		{"a command with the name of a native one", ".eca/commands/compact.md", "hi", "compact.md: warning: eca has its own command /compact, so this file has no effect; rename it"},
	} {
		out = append(out, wrongInput{name: "file without effect: " + f.name, args: []string{"config", "check"}, files: map[string]string{f.file: f.text}, code: 1, want: []string{f.cause}})
	}
	for _, f := range []struct{ name, file, text, cause string }{
		{"deploy", ".eca/commands/deploy.md", "---\narguments: 5\n---\nDeploy $1", "arguments must be a list"},
		{"Deploy", ".eca/commands/Deploy.md", "Deploy $1 {{name}}", "cannot be mixed"},
		{"ship", ".eca/skills/ship/SKILL.md", "---\nname: [\n---\nShip", "has no matching ]"},
		{"users", "../config/eca/commands/users.md", "---\narguments: 5\n---\nhi", "arguments must be a list"},
		{"run", ".eca/commands/run.md", "List ${cmd:ls}", "until the folder is trusted"},
	} {
		out = append(out, wrongInput{
			name: "command that cannot be used: " + f.name, args: []string{"exec", "/" + f.name + " now"}, files: map[string]string{f.file: f.text}, code: 1,
			want: []string{"/" + f.name + " cannot be used: ", f.file[strings.LastIndex(f.file, "/"):], f.cause}, not: []string{"fine"},
		})
	}
	return out
}

// wrongModels are models that their providers do not have.
func wrongModels() []wrongInput {
	const provider = `"providers": {"mine": {"api": "openai-chat", "url": "%URL%", "key": "k"}}`
	list := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data": [{"id": "large"}, {"id": "small"}]}`)
	}
	silent := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	check := []string{"config", "check"}
	return []wrongInput{
		{name: "default model that its provider does not list", bare: true, args: check, answer: list, config: `{"defaultModel": "mine/lage", ` + provider + `}`, code: 1, want: []string{"config.json:1:", "error: defaultModel: provider mine has no lage", "did you mean mine/large?"}},
		{name: "fallback model that its provider does not list", bare: true, args: check, answer: list, config: `{"fallbackModels": ["mine/large", "mine/tiny"], ` + provider + `}`, code: 1, want: []string{"error: fallbackModels: provider mine has no tiny", "large, small"}, not: []string{"no large"}},
		{name: "agent's model that its provider does not list", bare: true, args: check, answer: list, config: `{` + provider + `}`, files: map[string]string{".eca/agents/mine.md": "---\nmodel: mine/tiny\n---\nhi"}, code: 1, want: []string{"agents/mine.md:2: error: agent.mine.defaultModel: provider mine has no tiny"}},
		{name: "models that their provider lists", bare: true, args: check, answer: list, config: `{"defaultModel": "mine/large", "fallbackModels": ["mine/small"], ` + provider + `}`, code: 0, want: []string{"No problems."}},
		{name: "model of a provider that is silent", bare: true, args: check, answer: silent, config: `{"defaultModel": "mine/large", ` + provider + `}`, code: 0, want: []string{"note: defaultModel: mine/large is not checked, because eca has no list of the models of provider mine"}},
	}
}

// wrongAccounts are providers that refuse, or do not stream, with what to do about it.
func wrongAccounts() []wrongInput {
	exec := []string{"exec", "hi"}
	const provider = `{"chat": {"title": false}, "providers": {"mine": {"api": "openai-chat", "url": "%URL%", "fetchModels": false, "models": {"m": {}}}}}`
	answer := func(status int, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, text)
		}
	}
	out := []wrongInput{
		{name: "wrong key from a variable that the configuration names", args: exec, env: []string{"MINE=sk-wrong"}, config: `{"providers": {"openai": {"key": "${env:MINE}"}}}`, answer: refusePrompts(401, "bad key"), code: 1, want: []string{"401", "providers.openai.key", "config.json:1", "the environment variable MINE: change it there"}, not: []string{"sk-wrong"}},
		{name: "key that is missing", bare: true, args: exec, config: provider, answer: refusePrompts(401, "no key"), code: 1, want: []string{"401", "No key was sent: enter one with `eca login mine`", "or set providers.mine.key"}},
		{name: "empty document in place of a stream", bare: true, args: exec, config: provider, answer: answer(200, ""), code: 1, want: []string{"did not stream but answered with application/json, and no text. The request went to"}},
		{name: "local server that does not run, whose key is not set", bare: true, args: exec, config: `{"providers": {"mine": {"api": "openai-chat", "url": "http://127.0.0.1:1", "key": "${env:NOPE}", "models": {"m": {}}}}}`, code: 1, want: []string{"connection refused by 127.0.0.1:1. Its url comes from providers.mine.url"}},
		{name: "document in place of a stream", bare: true, args: exec, config: provider, answer: answer(200, `{"choices": [{"message": {"content": "hi"}}]}`), code: 1, want: []string{"mine did not stream", "eca needs answers that are streamed", "%HOST%", "providers.mine.url"}, not: []string{"Retrying"}},
		{name: "command of a key that fails without a word", bare: true, posix: true, args: exec, config: `{"providers": {"mine": {"api": "openai-chat", "url": "%URL%", "key": "${cmd:exit 3}", "fetchModels": false, "models": {"m": {}}}}}`, answer: refusePrompts(401, "no key"), code: 1, want: []string{"providers.mine.key", "exit code 3: it printed nothing to stderr"}},
	}
	for name, refusal := range map[string]http.HandlerFunc{
		"OpenAI's":     answer(429, `{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}`),
		"DeepSeek's":   answer(402, `{"error": {"message": "Insufficient Balance"}}`),
		"Anthropic's":  answer(400, `{"error": {"message": "Your credit balance is too low to access the API"}}`),
		"OpenRouter's": answer(402, `{"error": {"message": "This request requires more credits"}}`),
	} {
		out = append(out, wrongInput{name: "account without credit, in " + name + " words", bare: true, args: exec, config: provider, answer: refusal, code: 1, want: []string{"Waiting does not help: add credit"}, not: []string{"Retrying"}})
	}
	return out
}

// wrongChats are mistakes about chats.
func wrongChats() []wrongInput {
	var out []wrongInput
	for _, query := range []string{`"`, `"" ""`, "-", "*", "(", "''", "role:user"} {
		out = append(out, wrongInput{name: "query without a word: " + query, args: []string{"chats", "search", "--", query}, code: 2, want: []string{"eca chats search: ", "the query has no word"}, not: []string{"nothing was found"}})
	}
	return out
}

// wrongHooks are hooks and models that are not what they should be, and commands that show it.
func wrongHooks() []wrongInput {
	exec, check := []string{"exec", "hi"}, []string{"config", "check"}
	const hooks = `{"hooks": {
	"a": {"type": "preToolCall", "matcher": "eca__shel_command", "actions": [{"type": "shell", "shell": "true"}]},
	"b": {"type": "postRequest", "actions": [{"type": "shell", "file": "no-script.sh"}]},
	"c": {"type": "postRequest", "actions": [{"type": "shell", "shell": "bash .eca/gone.sh"}]}
}, "commands": [{"path": "no-commands"}, {"path": ".eca/no.md"}]}`
	return []wrongInput{
		{name: "hooks of a folder that is not trusted", args: []string{"config", "check"}, files: map[string]string{".eca/config.json": hooks}, code: 1, want: []string{
			".eca/config.json:2:", "hooks.a.matcher: there is no tool \"eca__shel_command\"", "did you mean eca__shell_command?", "hooks.b.actions.0.file: there is no file or folder ", "/no-script.sh",
			"hooks.c.actions.0.shell: there is no file or folder ", "/.eca/gone.sh", "commands: there is no file or folder ", "/no-commands", "/.eca/no.md", "hooks.a does nothing until the folder is trusted",
		}},
		{name: "hook of a misspelled tool", args: check, config: hookOf(`"eca__shel_command"`), code: 1, want: []string{`hooks.guard.matcher: there is no tool "eca__shel_command"`, "did you mean eca__shell_command?"}},
		{name: "hook of a tool without its server", args: check, config: hookOf(`"eca__read_file|shell_command"`), code: 1, want: []string{`there is no tool "shell_command"`, "did you mean eca__shell_command?"}, not: []string{`"eca__read_file"`}},
		{name: "hook of a misspelled selector", args: check, config: hookOf(`{"write_fil": {}}`), code: 1, want: []string{`there is no tool "write_fil"`, "did you mean write_file?"}},
		{name: "hook of a pattern that fits nothing", args: check, config: hookOf(`"shell.*"`), code: 1, want: []string{`no tool matches the pattern "shell.*"`, "eca__shell_command"}},
		{name: "hook of an argument that does not exist", args: check, config: hookOf(`{"eca__shell_command": {"argsMatchers": {"comand": ["rm.*"]}}}`), code: 1, want: []string{`hooks.guard.matcher.eca__shell_command: eca__shell_command has no argument "comand"`, "did you mean command?"}},
		{name: "hook of an argument without patterns", args: check, config: hookOf(`{"shell_command": {"argsMatchers": {"command": []}}}`), code: 1, want: []string{`there are no patterns for "command"`}},
		{name: "hook of a misspelled member", args: exec, config: hookOf(`{"shell_command": {"argsMatcher": {"command": ["rm.*"]}}}`), code: 1, want: []string{"unknown key hooks.guard.matcher.shell_command.argsMatcher", "did you mean argsMatchers?"}, not: []string{"fine"}},
		{name: "hook of a pattern as a selector", args: check, config: hookOf(`{"eca__*": {}}`), code: 1, want: []string{`there is no tool "eca__*"`, "not a pattern"}},
		{name: "hooks of arguments", args: check, config: hookOf(`{"shell_command": {"argsMatchers": {"command": ["rm.*"]}}, "eca__read_file": {"argsMatchers": {}}, "eca": {}}`), code: 0, want: []string{"No problems"}},
		{name: "hook of a misspelled tool, at the start", args: exec, config: hookOf(`"eca__shel_command"`), code: 1, want: []string{"did you mean eca__shell_command?"}, not: []string{"fine"}},
		{name: "hooks of tools", args: check, config: hookOf(`"eca__(read|write)_file"`), code: 0, want: []string{"No problems"}},
		{name: "hook that is a folder", args: check, config: `{"hooks": {"guard": {"type": "preToolCall", "actions": [{"type": "shell", "file": "%ROOT%"}]}}}`, code: 1, want: []string{"error: hooks.guard.actions.0.file: ", " is a folder, not a file"}},
		{name: "hooks and extraConfigs of a folder that is not trusted", args: exec, files: map[string]string{".eca/config.json": `{"extraConfigs": 5, "hooks": 5}`}, want: []string{"fine"}},
		{name: "/hooks with a wrong hook", args: []string{"exec", "/hooks"}, config: `{"hooks": {"gate": {"type": "preToolCal", "actions": [{"type": "shell", "shell": "exit 2"}]}}}`, want: []string{"Problems in the configuration:", "unknown event \"preToolCal\"", "did you mean preToolCall?"}},
		{name: "/config with a broken file", args: []string{"exec", "/config"}, config: `{"hooks": {`, want: []string{"config.json:1:", "openai"}},
		{name: "/doctor with an unknown model", args: []string{"exec", "/doctor"}, config: `{"defaultModel": "nope/m"}`, want: []string{"default model", "there is no provider nope"}},
		{name: "model without a name", args: []string{"exec", "-m", "openai/", "hi"}, code: 1, want: []string{`"openai/" is not the name of a model`, "provider/model"}, not: []string{"fine", "has no ;"}},
		{name: "model without a provider", args: []string{"exec", "-m", "/gpt", "hi"}, code: 1, want: []string{`"/gpt" is not the name of a model`, "provider/model"}},
		{name: "default model without a name", args: []string{"config", "check"}, config: `{"defaultModel": "openai/"}`, code: 1, want: []string{`config.json:1:2: error: defaultModel: "openai/" is not the name of a model`}},
	}
}

// wrongFlags are mistakes in flags, and files named by flags.
func wrongFlags() []wrongInput {
	out := []wrongInput{
		{name: "trusted files with a broken one", args: []string{"trust", "--list"}, files: map[string]string{".eca/config.json": `{"hooks": {`}, code: 0, want: []string{".eca/config.json:1:"}},
		{name: "output that cannot be created", args: []string{"exec", "-o", strings.Repeat("x", 300), "hi"}, code: 1, want: []string{"--output: cannot write xxx"}, not: []string{"fine"}},
		{name: "model instead of the prompt", args: []string{"exec", "-m", "hi"}, code: 2, want: []string{"the prompt is empty", `--model has taken "hi"`}},
		{name: "image instead of the prompt", args: []string{"exec", "--image", "hi"}, code: 2, want: []string{"the prompt is empty", `--image has taken "hi"`}},
		{name: "id of a chat that is too short", args: []string{"exec", "--chat", "a", "hi"}, code: 1, want: []string{`no chat "a"`, "at least 4 characters"}, not: []string{"fine"}},
		{name: "cost with an exponent", args: []string{"exec", "--max-cost", "1e300", "hi"}, code: 2, want: []string{"--max-cost", "has an exponent"}, not: []string{"two units"}},
		{name: "cost without a number", args: []string{"exec", "--max-cost", "abc", "hi"}, code: 2, want: []string{"--max-cost", "write dollars as in 2.50"}, not: []string{"200k", "30 minutes"}},
		{name: "login to a program", args: []string{"mcp", "login", "y"}, bare: true, config: `{"mcpServers": {"y": {"command": "sh"}}}`, code: 1, want: []string{"y is a program", "eca mcp test y"}},
		{name: "query with an open quote", args: []string{"chats", "search", `"unclosed`}, code: 0, want: []string{"a quote is not closed", "nothing was found"}},
		{name: "configuration that is a folder", args: []string{"config", "show", "--config-file", "."}, code: 1, want: []string{"cannot read .: it is not a regular file"}},
		{name: "api of another server", args: []string{"exec", "hi"}, bare: true, config: `{"chat": {"title": false}, "providers": {"mine": {"api": "openai-chat", "url": "%URL%", "fetchModels": false, "retry": {"maxRetries": 0}, "models": {"m": {}}}}}`, code: 1, want: []string{"the api or the url of the provider may be another one", "providers.mine.url"}, not: []string{"fine"}},
		{name: "output in a missing folder", args: []string{"exec", "-o", "nope/x", "hi"}, code: 1, want: []string{"cannot write nope/x: nope: "}, not: []string{"fine"}},
	}
	for _, args := range [][]string{
		{"config", "show"},
		{"models"},
		{"login"},
		{"logout", "openai"},
		{"plugin", "list"},
		{"chats", "list"},
		{"trust", "--list"},
		{"permission", "list"},
		{"mcp", "add", "a", "b"},
		{"doctor", "--offline"},
	} {
		name := strings.Join(args, " ")
		out = append(out, wrongInput{name: "no such configuration: " + name, args: append(args, "--config-file", "my.json"), code: 1, want: []string{"eca " + args[0], "my.json: the file does not exist"}, once: "my.json"})
	}
	for _, args := range [][]string{{"config", "show", "defaultAgent"}, {"plugin", "list"}, {"trust", "--list"}, {"permission", "list"}, {"chats", "search", "x"}} {
		out = append(out, wrongInput{name: "broken file: " + strings.Join(args, " "), bare: true, args: args, config: `{"providers":`, code: 0, want: []string{"eca: cannot read "}, once: "config.json:1:"})
	}
	return out
}

// wrongPlugins are mistakes about plugins and their sources.
func wrongPlugins() []wrongInput {
	const config = `{"plugins": {"good": {"source": "%ROOT%/good"}, "none": {"source": "%ROOT%/none"}, "bad": {"source": "%ROOT%/bad"}, "list": {"source": "%ROOT%/list"},
		"missing": {"source": "%ROOT%/missing"}, "refused": {"source": "http://127.0.0.1:1/x.git"}}}`
	var out []wrongInput
	for name, c := range map[string]struct {
		ref  string
		env  []string
		want []string
	}{
		"unknown plugin":            {ref: "linter@good", want: []string{"the source good has no plugin linter; did you mean linters?"}},
		"plugin that is not alike":  {ref: "zzz@good", want: []string{"the source good has no plugin zzz; there are: linters, gone"}},
		"unknown source":            {ref: "linters@god", want: []string{"there is no source god in plugins; did you mean good?"}},
		"folder without a list":     {ref: "x@none", want: []string{"none/.eca-plugin/marketplace.json", "does not exist; a source lists its plugins in this file"}},
		"folder that is missing":    {ref: "x@missing", want: []string{"the folder ", "/missing does not exist"}},
		"list with a comma":         {ref: "x@bad", want: []string{"bad/.eca-plugin/marketplace.json:2: invalid JSON"}},
		"list of another kind":      {ref: "x@list", want: []string{"it must be a JSON object, not a JSON array"}},
		"plugin without a folder":   {ref: "gone@good", want: []string{"gone@good was not installed", "there is no folder gone"}},
		"folder in place of a name": {ref: "/tmp/plugin", want: []string{"must be one word", "add a folder or a URL to plugins in the configuration"}},
		"refused connection":        {ref: "x@refused", want: []string{"http://127.0.0.1:1/x.git cannot be fetched", "check the URL, your access to it, and the network"}},
		"no git":                    {ref: "x@refused", env: []string{"PATH=/nowhere"}, want: []string{"http://127.0.0.1:1/x.git cannot be fetched", "install git"}},
	} {
		out = append(out, wrongInput{
			name: "plugin: " + name, args: []string{"plugin", "install", c.ref}, env: c.env, config: config, code: 1, want: c.want, not: []string{"in the configuration now"}, posix: true,
			files: map[string]string{
				"good/.eca-plugin/marketplace.json": `{"plugins": [{"name": "linters", "source": "linters"}, {"name": "gone", "source": "gone"}]}`,
				"good/linters/rules/r.md":           "x", "none/README.md": "x", "list/.eca-plugin/marketplace.json": "[]",
				"bad/.eca-plugin/marketplace.json": "{\"plugins\": [\n{\"name\": \"x\", \"source\": \"x\"},]}",
			},
		})
	}
	return out
}

// wrongPlaces are environments and files with which eca cannot read or store its state.
func wrongPlaces() []wrongInput {
	out := []wrongInput{
		{name: "no home", args: []string{"exec", "hi"}, env: []string{"HOME=", "XDG_STATE_HOME=", "XDG_CONFIG_HOME=", "XDG_CACHE_HOME="}, code: 1, want: []string{"HOME", "XDG_STATE_HOME"}},
		{name: "relative state folder", args: []string{"exec", "hi"}, env: []string{"XDG_STATE_HOME=state"}, code: 1, want: []string{"XDG_STATE_HOME", "absolute"}, not: []string{"fine"}},
	}
	// Every command that reads a damaged file of the state directory names it, and leaves it
	// unchanged.
	exec, doctor, check := []string{"exec", "hi"}, []string{"doctor", "--offline"}, []string{"config", "check"}
	for _, damaged := range []struct {
		file, remedy string
		met          [][]string // the commands that read the file
		empty        bool
	}{
		{"chats.db", "move it, chats.db-wal and chats.db-shm away", [][]string{exec, doctor, {"stats"}, {"read-chat", "--workspace", "."}, {"exec", "--continue", "hi"}}, false},
		{"chats.db", "the file is empty, but eca never leaves it empty; restore it from a backup, or move it", [][]string{exec, doctor, {"stats"}, {"read-chat", "--workspace", "."}, {"exec", "--continue", "hi"}}, true},
		{"permissions.json", "move it away: until then nothing is remembered", [][]string{exec, doctor, check, {"permission", "list"}, {"permission", "forget", "x"}}, false},
		{"trust.json", "move it away: until then no folder is trusted", [][]string{exec, doctor, check, {"trust", "--list"}, {"trust", "--revoke"}}, false},
		{"credentials.json", "move it away and log in again", [][]string{exec, doctor, check, {"login"}, {"login", "anthropic"}, {"logout", "openai"}}, false},
		{"mcp/credentials.json", "move it away and log in again", [][]string{exec, doctor, check}, false},
		{"journal/00000000000000000001.jsonl", "To begin another journal, move the folder away", [][]string{doctor}, false}, // without a head
		{"mcp-agreed.json", "move it away: until then changes of servers", [][]string{exec, doctor, check}, false},
	} {
		for _, args := range damaged.met {
			code, text, name := 1, `{"version": 1, garbage`, "damaged "
			if damaged.empty {
				text, name = "", "empty "
			}
			if slices.Equal(args, exec) {
				code = 0
			}
			out = append(out, wrongInput{
				name: name + damaged.file + " met by " + strings.Join(args, " "), args: args, stdin: "sk-new\n", code: code,
				files: map[string]string{"../state/eca/" + damaged.file: text}, same: "../state/eca/" + damaged.file,
				want: []string{"eca/" + strings.Split(damaged.file, "/")[0], damaged.remedy}, not: []string{"sk-new"}, once: map[bool]string{true: "the stored logins cannot be used"}[args[0] == "login" || args[0] == "logout"],
			})
		}
	}
	return out
}
