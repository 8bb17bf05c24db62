package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// testedServer is an MCP server in shell that takes the description of its tool from a file.
const testedServer = `while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"sh","version":"1"}}}' ;;
  *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","description":"'$(cat words)'","inputSchema":{"type":"object"}}]}}' ;;
  *'"tools/call"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"from afar"}]}}' ;;
  *'"prompts/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"prompts":[{"name":"p"}]}}' ;;
  *'"resources/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"resources":[{"uri":"r://x","name":"\u001b[31mred"}]}}' ;;
  esac
done`

// The command line adds, lists, tests, allows and removes servers in the user's own file.
func TestMCPCommand(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	home, here := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("ECA_CONFIG", "")
	t.Chdir(here)
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	global := filepath.Join(home, "eca", "config.json")
	write(global, "{\n  // mine\n  \"mcpServers\": {}\n}\n")
	write(filepath.Join(here, "server.sh"), testedServer)
	write(filepath.Join(here, "words"), "To look.")
	eca := func(code int, want string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		if got := run(t.Context(), args, strings.NewReader(""), &out, &out); got != code || !strings.Contains(out.String(), want) {
			t.Errorf("eca %s: exit code %d, want %d and %q:\n%s", args, got, code, want, out.String())
		}
	}
	eca(2, "Usage:", "mcp")
	eca(0, "No MCP servers are configured.", "mcp", "list")
	eca(2, "say what the server is", "mcp", "add", "s")
	eca(2, "--env is for programs", "mcp", "add", "s", "--url", "http://x.example/", "--env", "A=b")
	eca(2, "a command or a url, not both", "mcp", "add", "s", "--url", "http://x.example/", "--", "x")
	eca(0, "Added s to "+global, "mcp", "add", "s", "--env", "A=b", "--", "sh", "server.sh")
	eca(1, "the MCP server s exists already", "mcp", "add", "s", "--", "x")
	eca(0, "Added web", "mcp", "add", "web", "--url", "http://127.0.0.1:1/", "--header", "X=y", "--disabled")
	eca(0, "sh "+filepath.Join(here, "server.sh"), "mcp", "list")
	eca(0, "disabled", "mcp", "list")
	eca(0, "s: running, sh 1, protocol 2025-06-18\ntools:\n  t  To look.\nprompts:\n  /s:p  \nresources:\n  r://x  \\u001b[31mred\n", "mcp", "test", "s")
	eca(1, "web: failed: ", "mcp", "test", "web")
	eca(1, `there is no MCP server "nobody"`, "mcp", "test", "nobody")

	write(filepath.Join(here, "words"), "Send all.")
	eca(0, "t (changed since you agreed to it)  Send all.", "mcp", "test", "s")
	eca(0, "Approved the current command and tools of s.", "mcp", "allow", "s")
	eca(0, "  t  Send all.", "mcp", "test", "s")
	text, err := os.ReadFile(global)
	if err != nil {
		t.Fatal(err)
	}
	write(global, strings.Replace(string(text), `"b"`, `"c"`, 1))
	eca(1, "s: failed: how it is started has changed since you agreed to it: env has a different A", "mcp", "test", "s")
	var out bytes.Buffer
	if code := run(t.Context(), []string{"mcp", "allow", "s"}, strings.NewReader(""), &out, &out); code != 0 ||
		strings.Count(out.String(), "Starting") != 1 || !strings.Contains(out.String(), "Approved the current command and tools of s.") {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	eca(0, "s: running", "mcp", "test", "s")
	eca(0, "Starting the MCP server s, up to 60 s (mcpTimeoutSeconds); Ctrl-C ends it: sh ", "mcp", "test", "s")
	t.Setenv("ECA_CONFIG", `{"mcpTimeoutSeconds": 0.2, "mcpServers": {"silent": {"command": "sleep", "args": ["1000"]}}}`)
	eca(1, "Starting the MCP server silent, up to 0.2 s (mcpTimeoutSeconds); Ctrl-C ends it: sleep 1000\nsilent: failed", "mcp", "test", "silent")
	t.Setenv("ECA_CONFIG", "")

	eca(0, "Removed s.", "mcp", "remove", "s")
	eca(1, `there is no MCP server "s"`, "mcp", "remove", "s")
	if text, err := os.ReadFile(global); err != nil || !strings.Contains(string(text), "// mine") || strings.Contains(string(text), "server.sh") {
		t.Errorf("%v:\n%s", err, text)
	}
	eca(0, "Removed web.", "mcp", "remove", "web")
	if text, err := os.ReadFile(global); err != nil || strings.TrimSpace(string(text)) != "{\n  // mine\n}" {
		t.Errorf("removing the last server left its section: %v\n%s", err, text)
	}
	eca(2, "it must be NAME=VALUE", "mcp", "add", "s", "--env", "=b", "--", "sh")
	eca(0, "Added s", "mcp", "add", "s", "--env", "OPTS=a=1,b=2", "--env", `J={"a":"b=c"}`, "--disabled", "--", "sh")
	if text, err := os.ReadFile(global); err != nil || !strings.Contains(string(text), `"OPTS": "a=1,b=2"`) || !strings.Contains(string(text), `"J": "{\"a\":\"b=c\"}"`) {
		t.Errorf("values with commas: %v\n%s", err, text)
	}
	eca(0, "Removed s.", "mcp", "remove", "s")
	eca(0, "Added local to "+filepath.Join(here, ".eca", "config.json"), "mcp", "add", "local", "--workspace", "--", "sh", "server.sh")
	eca(0, "local: running", "mcp", "test", "local") // the user's own configuration is trusted
}

// `eca mcp add` says "It is stored" only if it stored the server.
func TestMCPAddSaysWhatIsStoredAfterwards(t *testing.T) {
	here := newPlace(t)
	if err := os.WriteFile(filepath.Join(here.root, "server.py"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, stored := range map[string]bool{"two words": false, "eca": false, "mine": true} {
		out, stderr, code := runProgram(t, here, "", "mcp", "add", name, "--", "sh", "server.py")
		if (code == 0) != stored || strings.Contains(out, "It is stored as") != stored {
			t.Errorf("%s: exit %d: %s%s", name, code, out, stderr)
		}
	}
}

// Tools of a server's list that cannot be used are named with the reason: the server looks fine
// otherwise, and the model never gets them.
func TestToolsThatCannotBeUsedAreNamed(t *testing.T) {
	needs.POSIX(t)
	here := newPlace(t, `ECA_CONFIG={"mcpServers": {"s": {"command": "sh", "args": ["server.sh"]}}}`)
	script := strings.Replace(testedServer, `{"name":"t"`, `{"nam":"x"},{"name":"odd","inputSchema":[]},{"name":"t"`, 1)
	for name, text := range map[string]string{"server.sh": script, "words": "To look."} {
		if err := os.WriteFile(filepath.Join(here.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"mcp", "test", "s"}, {"doctor"}} {
		out, stderr, _ := runProgram(t, here, "", args...)
		for _, want := range []string{`the tool "": names have 1 to 256 bytes`, `the tool "odd": its schema is not an object`} {
			if !strings.Contains(out, want) {
				t.Errorf("eca %q does not say %q: %s%s", args, want, out, stderr)
			}
		}
	}
}
