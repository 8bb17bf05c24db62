package config

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Invalid addresses, and an MCP server without one, are reported at their place with a remedy.
// Addresses that are valid or resolved later are not.
func TestAddressesThatCannotBeAsked(t *testing.T) {
	home := t.TempDir()
	write(t, filepath.Join(home, "config.json"), `{
  "providers": {
    "my_Co": {"api": "openai-chat", "url": "localhost:12"},
    "b": {"api": "anthropic",
      "url": "htp://me:planted@x"},
    "c": {"api": "ollama", "url": "https:///v1"},
    "tape": {"api": "cassette", "url": "/x"},
    "fine": {"api": "openai-chat", "url": "http://localhost:12"}, "port": {"api": "ollama", "url": "http://localhost:65536"},
    "unset": {"api": "openai-chat", "url": "${env:NONE}/v1"}
  },
  "mcpServers": {
    "a": {"url": "localhost:12"},
    "b": {"args": ["x"]},
    "c": {"command": "x",
      "url": "http://x"},
    "later": {"url": "$HOST/mcp"}, "off": {"disabled": true}, "program": {"command": "x"}, "remote": {"url": "https://x"}
  }
}`)
	found := Load(Inputs{Getenv: env(nil), ConfigHome: home}).Findings()
	var got []string
	for _, f := range found {
		if f.Severity == SeverityError {
			got = append(got, strings.NewReplacer(home, "HOME", `\`, "/").Replace(f.String()))
		}
	}
	want := []string{
		`HOME/config.json:3:37: error: providers.my_Co.url must be like https://HOST or http://HOST:PORT`,
		`HOME/config.json:5:7: error: providers.b.url must be like https://HOST or http://HOST:PORT`,
		`HOME/config.json:6:28: error: providers.c.url must be like https://HOST or http://HOST:PORT`,
		`HOME/config.json:8:93: error: providers.port.url must be like https://HOST or http://HOST:PORT`,
		`HOME/config.json:12:11: error: mcpServers.a.url: the url of an MCP server must be like https://HOST or http://HOST:PORT`,
		`HOME/config.json:13:5: error: mcpServers.b: an MCP server needs a command or a url`,
		`HOME/config.json:14:5: error: mcpServers.c: an MCP server has a command or a url, not both`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
