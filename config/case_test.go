package config_test

import (
	"reflect"
	"testing"
)

// A key in another case has no effect, as `eca config check` says. In particular, it starts no program.
func TestCaseOfKeys(t *testing.T) {
	for text, same := range map[string]string{
		`{"MCPServers": {"m": {"command": "sh"}}, "mcpservers": {"m": {"command": "sh"}}, "Hooks": {"h": {}}, "defaultmodel": "l/x"}`: `{}`,
		`{"ToolCall": {"approval": {"byDefault": "allow"}}, "Network": {"caCertFile": "x"}}`:                                          `{}`,
		`{"toolCall": {"sandboxNetwork": {"Allow": ["example.org"]}, "ShellCommand": {"path": "/bin/x"}}}`:                            `{"toolCall": {"sandboxNetwork": {}}}`,
		`{"plugins": {"p": {"Source": "https://example.org/p"}}}`:                                                                     `{"plugins": {"p": {}}}`,
		`{"lsp": {"gopls": {"Command": ["x"]}}}`:                                                                                      `{"lsp": {"gopls": {}}}`,
		`{"providers": {"l": {"API": "openai-chat", "URL": "http://localhost", "Key": "k", "Models": {"m": {}}}}}`:                    `{"providers": {"l": {}}}`,
	} {
		if got, want := loadText(t, text).Config, loadText(t, same).Config; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: it is not like %s", text, same)
		}
	}
}
