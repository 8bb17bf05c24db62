package main

import "strings"

// wrongNames returns inputs with names of other assistants, and with names that nothing has.
func wrongNames() []wrongInput {
	exec, check := []string{"exec", "hi"}, []string{"config", "check"}
	const provider = `"providers": {"mine": {"api": "openai-responses", "url": "%URL%", "fetchModels": false, "models": {"m": {}}}}, "defaultModel": "mine/m", "chat": {"title": false}`
	configured := func(more string) string { return "{" + provider + ", " + more + "}" }
	unset := func(provider string) string {
		return `{"providers": {"mine": {"api": "openai-chat", "fetchModels": false, "models": {"m": {}}, ` + provider + `}}}`
	}
	rules := func(deny string) string { return configured(`"toolCall": {"approval": {"deny": {` + deny + `: {}}}}`) }
	odd := "x$(touch PWNED)"
	return []wrongInput{
		{name: "negative cost", args: []string{"exec", "--max-cost", "-1", "hi"}, code: 2, want: []string{"--max-cost must be more than 0, such as 2.50, not -1"}, not: []string{"$-1"}},
		{name: "address without a port", args: []string{"serve", "--listen", "foo"}, code: 2, want: []string{"must be host:port", "not foo"}, not: []string{"ECA_SERVE_TOKEN"}},
		{name: "address of other machines", args: []string{"serve", "--listen", "0.0.0.0:1"}, code: 2, want: []string{"set ECA_SERVE_TOKEN to a token", "listen at 127.0.0.1"}},
		{name: "port that does not exist", args: []string{"serve", "--listen", "127.0.0.1:99999"}, code: 1, want: []string{"cannot listen at 127.0.0.1:99999", "a number up to 65535"}, not: []string{"listen tcp"}},
		{name: "rule for another assistant's shell", bare: true, args: exec, config: rules(`"Bash"`), code: 1, want: []string{"there is no such tool", "did you mean eca__shell_command?"}, not: []string{"fine"}},
		{name: "rule for another assistant's shell, with our prefix", bare: true, args: exec, config: rules(`"eca__bash"`), code: 1, want: []string{"did you mean eca__shell_command?"}, not: []string{"fine"}},
		{name: "rule for a tool that eca does not have", bare: true, args: exec, config: rules(`"eca__zebra"`), code: 1, want: []string{"deny.eca__zebra", "there is no such tool"}, not: []string{"fine"}},
		{name: "another assistant's tool, disabled", bare: true, args: exec, config: configured(`"disabledTools": ["execute_command"]`), code: 1, want: []string{"did you mean eca__shell_command?"}, not: []string{"fine"}},
		{name: "rule for a misspelled MCP server", bare: true, args: exec, config: configured(`"mcpServers": {"github": {"command": "true", "disabled": true}}, "toolCall": {"approval": {"deny": {"gihub": {}}}}`), code: 1, want: []string{"did you mean github?"}, not: []string{"fine"}},
		{name: "permissions of another assistant", bare: true, args: exec, config: configured(`"permissions": {"deny": ["Bash(rm:*)"]}`), code: 1, want: []string{"unknown key permissions", "toolCall.approval"}, not: []string{"fine"}},
		{name: "sandbox of another assistant", bare: true, args: exec, config: configured(`"sandbox_mode": "read-only"`), code: 1, want: []string{"unknown key sandbox_mode", "toolCall.sandbox"}, not: []string{"fine"}},
		{name: "another assistant's keys", bare: true, args: check, config: `{"model": "mine/m", "mcp": {}, "providers": {"mine": {"apiKey": "k"}}}`, code: 1, want: []string{"did you mean defaultModel?", "did you mean mcpServers?", "did you mean providers.mine.key?"}},
		{name: "default model given twice", bare: true, args: exec, config: `{` + provider + `, "defaultModel": "mine/m"}`, want: []string{"fine", "defaultModel is also before in this line"}},
		{name: "mode that does not exist", bare: true, args: []string{"exec", "--agent", "rev", "hi"}, config: configured(`"agent": {"rev": {"mode": "primry"}}`), want: []string{"fine", "agent.rev.mode", `did you mean "primary"?`}},
		{name: "variable of an MCP server", bare: true, args: check, config: configured(`"mcpServers": {"s": {"command": "true", "env": {"TOKEN": "${env:NOPE}"}}}`), code: 1, want: []string{"mcpServers.s.env.TOKEN: the environment variable NOPE is not set"}},
		{name: "model for summaries of a provider that does not exist", bare: true, args: check, config: configured(`"models": {"compact": "nope/x", "rewrite": "zz"}`), code: 1, want: []string{`models.compact: there is no provider "nope"`, "models.rewrite: zz does not name"}, not: []string{"compact.model", "rewrite.model"}},
		{name: "model that is an unknown expression", bare: true, args: check, config: `{"defaultModel": "${foo:bar}"}`, code: 1, want: []string{"defaultModel: unknown expression ${foo:bar}"}, not: []string{"does not name its provider"}},
		{name: "models without their provider", bare: true, args: check, config: configured(`"compact": {"model": "zz"}, "models": {"title": "zy"}, "agent": {"r": {"defaultModel": "zx"}}, "fallbackModels": ["zw"]`), code: 1, want: []string{"compact.model: zz does not name", "models.title: zy does not name", "agent.r.defaultModel: zx does not name", "zw does not name its provider"}},
		{name: "model of the agent that does not exist", bare: true, args: []string{"exec", "--agent", "r", "hi"}, config: configured(`"agent": {"r": {"defaultModel": "nope/x"}}`), code: 1, want: []string{"agent.r.defaultModel", "nope"}, not: []string{"fine"}},
		{name: "keyEnv that is not set", bare: true, args: exec, config: unset(`"url": "https://api.example.com", "requiresAuth": true, "keyEnv": "MYKEY"`), code: 1, want: []string{"providers.mine.keyEnv", "MYKEY", "not set"}},
		{name: "keyEnv that is not set, checked", bare: true, args: check, config: unset(`"url": "https://api.example.com", "keyEnv": "MYKEY"`), code: 1, want: []string{"providers.mine.keyEnv: the environment variable MYKEY is not set"}},
		{name: "urlEnv that is not set", bare: true, args: exec, config: unset(`"urlEnv": "MYURL"`), code: 1, want: []string{"providers.mine.urlEnv", "MYURL", "not set"}},
		{name: "keyRc without an entry", bare: true, args: exec, config: unset(`"url": "https://api.example.com", "requiresAuth": true, "keyRc": "api.example.com"`), code: 1, want: []string{"no netrc file has the entry", "api.example.com", "providers.mine.keyRc"}},
		{name: "password in the url", bare: true, args: exec, config: strings.ReplaceAll(configured(`"compact": {}`), "%URL%", "http://u:p@%HOST%"), answer: refusePrompts(401, "who are you"), code: 1, want: []string{"401", "The user and the password are in the provider's url", "providers.mine.url"}, not: []string{"u:p"}},
		{name: "arguments of an MCP server as a text", bare: true, args: []string{"mcp", "test", "s"}, config: configured(`"mcpServers": {"s": {"command": "false", "args": "x"}}`), code: 1, want: []string{"mcpServers.s.args must be a list"}},
		{name: "arguments of an MCP server in its command, at a check", posix: true, bare: true, args: check, config: configured(`"mcpServers": {"s": {"command": "python3 /x.py"}, "t": {"command": "no-such-program"}}`), code: 1, want: []string{"warning: mcpServers.s.command: ", "move them from command to args", "mcpServers.t.command: there is no program no-such-program in PATH"}},
		{name: "name that no MCP server can have", bare: true, args: check, config: configured(`"mcpServers": {"eca": {"command": "true"}}`), code: 1, want: []string{"error: mcpServers.eca: eca is the name of the native tools", "The server is not started"}},
		{name: "MCP server with the name of the native tools", bare: true, args: []string{"mcp", "test", "eca"}, config: configured(`"mcpServers": {"eca": {"command": "true"}}`), code: 1, want: []string{"eca is the name of the native tools"}, not: []string{"Starting"}},
		{name: "agent that cannot be removed", bare: true, args: check, config: configured(`"agent": {"code": null}`), code: 1, want: []string{"error: agent.code: this agent cannot be removed"}},
		{name: "agents that are removed", args: []string{"exec", "hi"}, config: `{"agent": null}`, code: 1, want: []string{"agent: null would remove all agents; it is ignored"}, not: []string{"fine"}},
		{name: "misspelled property of OpenTelemetry", bare: true, args: check, config: configured(`"otlp": {"otel.exporter.otlp.endpont": "http://localhost:1"}`), code: 1, want: []string{"unknown property; did you mean otel.exporter.otlp.endpoint?"}},
		{name: "source of plugins that does not exist", posix: true, bare: true, args: check, config: configured(`"plugins": {"gone": {"source": "/nope/pl"}}`), code: 1, want: []string{"plugins.gone: the source cannot be used: the folder /nope/pl does not exist"}},
		{name: "arguments of an MCP server in its command", posix: true, bare: true, args: []string{"mcp", "test", "s"}, config: configured(`"mcpServers": {"s": {"command": "python3 x.py"}}`), code: 1, want: []string{"move them from command to args"}},
		{name: "413 for a short request", bare: true, args: exec, config: configured(`"compact": {}`), answer: refusePrompts(413, "client_max_body_size"), code: 1, want: []string{"413", "client_max_body_size"}},
		{name: "--help before the command", bare: true, args: []string{"--help", "exec"}, want: []string{"eca exec"}, not: []string{"unknown"}},
		{name: "folder whose name is a command", posix: true, bare: true, args: []string{"exec", "-C", odd, "hi"}, config: configured(`"compact": {}`), files: map[string]string{odd + "/.eca/config.json": `{"mcpServers": {"s": {"command": "npx"}}}`}, want: []string{"eca trust '", "/" + odd + "'"}},
	}
}
