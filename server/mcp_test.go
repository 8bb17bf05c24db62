package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

const mcpConfig = `{
  // my servers
  "mcpServers": {
    "files": {"command": "eca-no-such-server", "args": ["-y", "${env:PACKAGE}"], "env": {"TOKEN": "${env:SECRET}"}}, // the good one
    "web": {"url": "http://127.0.0.1:1/x", "headers": {"Authorization": "Bearer hunter22"}, "disabled": true}
  }
}
`

// mcpRig is a rig with global and workspace files.
type mcpRig struct {
	*rig
	global, local string
}

func newMCPRig(t *testing.T, global, local string) *mcpRig {
	t.Helper()
	o := options{root: tempDir(t), state: tempDir(t)}
	r := &mcpRig{global: filepath.Join(o.state, "config", "eca", "config.json"), local: filepath.Join(o.root, ".eca", "config.json")}
	for path, text := range map[string]string{r.global: global, r.local: local} {
		if text == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r.rig = newRig(t, o)
	r.Await(0, "the start", fake.Ready())
	return r
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const webEntry = `{"type":"mcp","name":"web","status":"disabled","url":"http://127.0.0.1:1/x","disabled":true,"hasAuth":false}`

// Configured servers are listed as written, with their state.
//
// Covers: tool/serverUpdated
func TestMCPList(t *testing.T) {
	t.Parallel()
	r := newMCPRig(t, mcpConfig, "")
	const files = `"command":"eca-no-such-server","args":["-y","${env:PACKAGE}"],"disabled":false,"hasAuth":false`
	r.Await(0, "a command", fake.Contains("tool/serverUpdated", `{"type":"mcp","name":"files","status":"starting",`+files+`}`))
	r.Await(0, "its failure", fake.Contains("tool/serverUpdated", `{"type":"mcp","name":"files","status":"failed",`+files+`,"error":"start eca-no-such-server: `))
	r.Await(0, "a url", fake.Contains("tool/serverUpdated", webEntry))
	for _, m := range r.Since(0) {
		if strings.Contains(m.String(), "hunter22") {
			t.Errorf("a secret was sent: %s", m)
		}
	}
	for _, method := range []string{"mcp/startServer", "mcp/connectServer"} {
		mark := r.Mark()
		r.Notify(method, map[string]any{"name": "files"})
		r.Await(mark, "the status", fake.Contains("tool/serverUpdated", `"name":"files","status":"failed"`))
	}
	mark := r.Mark()
	r.Notify("mcp/logoutServer", map[string]any{"name": "files"})
	r.Await(mark, "the status", fake.Contains("tool/serverUpdated", `"name":"files","status":"failed"`))
	r.Notify("mcp/stopServer", map[string]any{"name": "files"})
	r.Await(mark, "the status", fake.Contains("tool/serverUpdated", `"name":"files","status":"stopped",`+files+`}`))
	mark = r.Mark()
	for _, method := range []string{"mcp/startServer", "mcp/stopServer", "mcp/connectServer", "mcp/logoutServer", "mcp/enableServer", "mcp/disableServer"} {
		for _, params := range []any{map[string]any{"name": "nobody"}, map[string]any{}, nil} {
			r.Notify(method, params)
		}
	}
	r.Notify("mcp/stopServer", map[string]any{"name": "web"})
	r.Await(mark, "the status", fake.Contains("tool/serverUpdated", webEntry))
	if heard := r.Since(mark); len(heard) != 1 {
		t.Errorf("unknown servers: %v", heard)
	}
}

// Edits change the user's file, one value at a time, in the order of the requests.
//
// Covers: mcp/enableServer, mcp/disableServer, mcp/updateServer, mcp/removeServer
// Covers: tool/serverRemoved
func TestMCPEdit(t *testing.T) {
	t.Parallel()
	r := newMCPRig(t, mcpConfig, "")
	mark := r.Mark()
	r.Notify("mcp/disableServer", map[string]any{"name": "web"})
	r.Await(mark, "what is so already", fake.Contains("tool/serverUpdated", webEntry))
	r.Notify("mcp/disableServer", map[string]any{"name": "files"})
	r.Await(mark, "disabled", fake.Contains("tool/serverUpdated", `"name":"files","status":"disabled"`, `"disabled":true`))
	mark = r.Mark()
	r.Notify("mcp/enableServer", map[string]any{"name": "files"})
	r.Notify("mcp/enableServer", map[string]any{"name": "web"})
	r.Await(mark, "enabled", fake.Contains("tool/serverUpdated", `"name":"web","status":"failed"`, "refused"))
	if got := readFile(t, r.global); !strings.Contains(got, "// my servers") || !strings.Contains(got, "}, // the good one") ||
		!strings.Contains(got, `"disabled": false`) || !strings.Contains(got, "Bearer hunter22") || !strings.Contains(got, "${env:SECRET}") {
		t.Errorf("the file:\n%s", got)
	}

	mark = r.Mark()
	if res := r.Call("mcp/updateServer", map[string]any{"name": "files", "command": "eca-no-such-node", "args": []any{}}); string(res) != "{}" {
		t.Errorf("mcp/updateServer answered %s", res)
	}
	r.Await(mark, "the new command", fake.Contains("tool/serverUpdated", `"command":"eca-no-such-node","args":[]`))
	// Another transport replaces the old one.
	r.Call("mcp/updateServer", map[string]any{"name": "files", "url": "http://127.0.0.1:1/files"})
	r.Await(mark, "the new transport", fake.Contains("tool/serverUpdated", `"name":"files"`, `"url":"http://127.0.0.1:1/files","disabled":false,"hasAuth":false`))
	if got := readFile(t, r.global); strings.Contains(got, "TOKEN") || strings.Contains(got, "eca-no-such-node") {
		t.Errorf("the old transport is still there:\n%s", got)
	}

	mark = r.Mark()
	if res := r.Call("mcp/removeServer", map[string]any{"name": "files"}); string(res) != `{"name":"files","removed":true}` {
		t.Errorf("mcp/removeServer answered %s", res)
	}
	r.Await(mark, "the end", fake.Contains("tool/serverRemoved", `{"name":"files"}`))
	if got := readFile(t, r.global); strings.Contains(got, "files") || !strings.Contains(got, "127.0.0.1:1/x") {
		t.Errorf("after removal:\n%s", got)
	}
}

// Covers: mcp/addServer
func TestMCPAdd(t *testing.T) {
	t.Parallel()
	r := newMCPRig(t, "", "// local\n{}\n")
	mark := r.Mark()
	res := r.Call("mcp/addServer", map[string]any{"name": "My.Server", "command": "eca-no-such-server", "args": []any{"a b", "-c"}, "env": map[string]any{"MY-KEY": "v"}})
	const added = `"command":"eca-no-such-server","args":["a b","-c"],"disabled":false,"hasAuth":false`
	if got := string(res); !strings.HasPrefix(got, `{"server":{"type":"mcp","name":"My.Server","status":"`) || !strings.Contains(got, added) {
		t.Errorf("mcp/addServer answered %s", res)
	}
	r.Await(mark, "the server", fake.Contains("tool/serverUpdated", added))
	var file struct{ MCPServers map[string]map[string]any }
	if err := json.Unmarshal([]byte(readFile(t, r.global)), &file); err != nil || file.MCPServers["My.Server"]["env"].(map[string]any)["MY-KEY"] != "v" {
		t.Errorf("the global file: %v, %v", file, err)
	}
	for i, params := range []map[string]any{
		{"name": "w0", "scope": "workspace", "workspaceUri": "file://" + r.root, "disabled": true},
		{"name": "w1", "scope": "workspace", "oauth-port": 4711, "client-id": "me", "headers": map[string]any{"X-A": "b"}},
	} {
		params["url"] = "http://127.0.0.1:1/w"
		if res := r.Call("mcp/addServer", params); !strings.Contains(string(res), `"disabled":`+[]string{"true", "false"}[i]) {
			t.Errorf("mcp/addServer answered %s", res)
		}
	}
	if got := readFile(t, r.local); !strings.HasPrefix(got, "// local\n") || !strings.Contains(got, "4711") || !strings.Contains(got, "X-A") || strings.Contains(got, "My.Server") {
		t.Errorf("the workspace's file:\n%s", got)
	}
}

// If two files define a server, each value is changed in the file that it comes from.
func TestMCPLayers(t *testing.T) {
	t.Parallel()
	r := newMCPRig(t, mcpConfig, `{"mcpServers": {"web": {"disabled": false}}}`)
	if err := r.daemon.Trust(r.daemon.Untrusted()); err != nil {
		t.Fatal(err)
	}
	mark := r.Mark()
	r.Notify("mcp/disableServer", map[string]any{"name": "web"})
	r.Await(mark, "disabled", fake.Contains("tool/serverUpdated", webEntry))
	r.Call("mcp/updateServer", map[string]any{"name": "web", "url": "https://other.example"})
	if global, local := readFile(t, r.global), readFile(t, r.local); !strings.Contains(global, "other.example") || !strings.Contains(local, "true") || strings.Contains(local, "url") {
		t.Errorf("%s\n%s", global, local)
	}
	r.Call("mcp/removeServer", map[string]any{"name": "web"})
	if global, local := readFile(t, r.global), readFile(t, r.local); strings.Contains(global, "web") || strings.Contains(local, "web") {
		t.Errorf("%s\n%s", global, local)
	}
}

// Invalid changes are reported in the result, and change nothing.
func TestMCPRefuses(t *testing.T) {
	t.Parallel()
	r := newMCPRig(t, mcpConfig, "")
	for _, c := range []struct {
		method string
		params map[string]any
		want   string
	}{
		{"add", map[string]any{}, "no name"},
		{"add", map[string]any{"name": "a b", "command": "x"}, "without spaces"},
		{"add", map[string]any{"name": strings.Repeat("x", 200), "command": "x"}, "at most"},
		{"add", map[string]any{"name": "ECA", "command": "x"}, "native tools"},
		{"add", map[string]any{"name": "web", "command": "x"}, "already"},
		{"add", map[string]any{"name": "x"}, "a command or a url"},
		{"add", map[string]any{"name": "x", "command": "x", "url": "https://x"}, "not both"},
		{"add", map[string]any{"name": "x", "url": "x.example"}, "http://"},
		{"add", map[string]any{"name": "x", "command": "x", "scope": "planet"}, "scope"},
		{"add", map[string]any{"name": "x", "command": "x", "scope": "workspace", "workspaceUri": "file:///elsewhere"}, "not a workspace folder"},
		{"update", map[string]any{"name": "nobody", "command": "x"}, "no MCP server"},
		{"update", map[string]any{"name": "web", "command": "x", "url": "https://x"}, "not both"},
		{"update", map[string]any{"name": "web", "url": "nonsense"}, "http://"},
		{"remove", map[string]any{"name": "nobody"}, "no MCP server"},
		{"remove", map[string]any{}, "no MCP server"},
	} {
		res := r.Call("mcp/"+c.method+"Server", c.params)
		if !strings.Contains(string(res), `{"error":{"code":"invalid_request","message":"`) || !strings.Contains(string(res), c.want) {
			t.Errorf("%s %v: %s", c.method, c.params, res)
		}
	}
	if got := readFile(t, r.global); got != mcpConfig {
		t.Errorf("the file was changed:\n%s", got)
	}
	// A file that is being edited stays unchanged.
	broken := mcpConfig + "oops"
	if err := os.WriteFile(r.global, []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	if res := r.Call("mcp/addServer", map[string]any{"name": "x", "command": "x"}); !strings.Contains(string(res), r.global) {
		t.Errorf("a broken file: %s", res)
	}
	mark := r.Mark()
	r.Notify("mcp/disableServer", map[string]any{"name": "files"})
	r.Await(mark, "the reason", fake.Contains("$/showMessage", `"type":"warning"`, r.global))
	if got := readFile(t, r.global); got != broken {
		t.Errorf("the broken file was changed:\n%s", got)
	}
}

// A configuration that comes only from the editor is not changed.
func TestMCPPureConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{init: map[string]any{"initializationOptions": map[string]any{
		"pureConfig": true, "mcpServers": map[string]any{"files": map[string]any{"command": "eca-no-such-server"}},
	}}})
	r.Await(0, "the server", fake.Contains("tool/serverUpdated", `"name":"files"`))
	for method, params := range map[string]map[string]any{
		"mcp/addServer": {"name": "x", "command": "x"}, "mcp/updateServer": {"name": "files", "command": "x"}, "mcp/removeServer": {"name": "files"},
	} {
		if res := r.Call(method, params); !strings.Contains(string(res), `"code":"invalid_request"`) {
			t.Errorf("%s answered %s", method, res)
		}
	}
	if _, err := os.Stat(filepath.Join(r.state, "config")); !os.IsNotExist(err) {
		t.Errorf("a file was written: %v", err)
	}
}
