package server_test

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Each method about a working server takes effect at once, also for prompts and resources. Lasting
// changes are written to the file that owns the server, and keep the user's comments.
func TestMCPMethods(t *testing.T) {
	needs.Long(t)
	served := &scripted{t: t, more: make(chan struct{}), answers: map[string]chan json.RawMessage{}}
	const script = `{
		"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}, "resources": {}}, "serverInfo": {"name": "s", "version": "1"}},
		"lists": {"prompts/list": {"prompts": [{"name": "p"}]}, "resources/list": {"resources": [{"uri": "r://x", "name": "x"}]}}
	}`
	if err := json.Unmarshal([]byte(script), &served.script); err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(served)
	t.Cleanup(func() {
		h.CloseClientConnections()
		h.Close()
	})
	r := newMCPRig(t, `{
  // mine
  "mcpServers": {
    "s": {"url": "`+h.URL+`"} // good
  }
}
`, "// local\n{}\n")
	has := func(name string, want bool) {
		t.Helper()
		commands := string(r.Call("chat/queryCommands", map[string]any{"query": name + ":p"}))
		contexts := string(r.Call("chat/queryContext", map[string]any{"query": name + ":x"}))
		if strings.Contains(commands, `"name":"`+name+`:p"`) != want || strings.Contains(contexts, `"server":"`+name+`"`) != want {
			t.Errorf("the prompt and the resource of %s are offered: want %v\n%s\n%s", name, want, commands, contexts)
		}
	}
	local := filepath.Join(r.root, ".eca", "config.json")
	running := func(name string) fake.Expectation {
		return fake.Contains("tool/serverUpdated", `"name":"`+name+`","status":"running"`, `"prompts":[{"name":"p","arguments":[]}],"resources":[{"uri":"r://x","name":"x"}]`)
	}
	r.Await(0, "it runs", running("s"))
	for _, m := range r.Since(0) { // clients ask for the commands as soon as it runs
		if text := string(m.Params); m.Method == "tool/serverUpdated" && strings.Contains(text, `"name":"s","status":"running"`) && !strings.Contains(text, `"prompts":[{"name":"p"`) {
			t.Errorf("the client learned that the server runs before its prompts were listed: %s", text)
		}
	}
	has("s", true)
	for _, step := range []struct {
		method  string
		params  map[string]any
		request bool
		hears   fake.Expectation
		name    string
		there   bool
		file    string
		has     []string // in the file
		not     string
	}{
		{"mcp/stopServer", nil, false, fake.Contains("tool/serverUpdated", `"name":"s","status":"stopped"`), "s", false, r.global, []string{"// mine", "// good"}, "disabled"},
		{"mcp/startServer", nil, false, running("s"), "s", true, r.global, []string{"// mine", "// good"}, "disabled"},
		{"mcp/disableServer", nil, false, fake.Contains("tool/serverUpdated", `"name":"s","status":"disabled"`), "s", false, r.global, []string{"// mine", "// good", `"disabled": true`}, ""},
		{"mcp/enableServer", nil, false, running("s"), "s", true, r.global, []string{"// mine", "// good", `"disabled": false`}, ""},
		{"mcp/connectServer", nil, false, running("s"), "s", true, r.global, []string{"// good"}, ""},
		{"mcp/logoutServer", nil, false, fake.Contains("tool/serverUpdated", `"name":"s"`), "", false, r.global, []string{"// good"}, ""},
		{"mcp/addServer", map[string]any{"name": "t", "url": h.URL, "scope": "workspace"}, true, running("t"), "t", true, local, []string{"// local", `"t"`, h.URL}, ""},
		{"mcp/updateServer", map[string]any{"name": "t", "url": h.URL + "/again"}, true, fake.Contains("tool/serverUpdated", `"name":"t","status":"running"`, h.URL+"/again", `"prompts":[{`, `"resources":[{`), "t", true, local, []string{"// local", h.URL + "/again"}, ""},
		{"mcp/removeServer", map[string]any{"name": "t"}, true, fake.Contains("tool/serverRemoved", `{"name":"t"}`), "t", false, local, []string{"// local"}, h.URL},
		{"mcp/removeServer", nil, true, fake.Contains("tool/serverRemoved", `{"name":"s"}`), "s", false, r.global, []string{"// mine"}, h.URL},
	} {
		mark, params := r.Mark(), step.params
		if params == nil {
			params = map[string]any{"name": "s"}
		}
		if step.request {
			if res := string(r.Call(step.method, params)); strings.Contains(res, `"error"`) {
				t.Errorf("%s answered %s", step.method, res)
			}
		} else {
			r.Notify(step.method, params)
		}
		r.Await(mark, step.method, step.hears)
		if step.name != "" {
			has(step.name, step.there)
		}
		text := readFile(t, step.file)
		for _, piece := range step.has {
			if !strings.Contains(text, piece) {
				t.Errorf("%s: no %s in the file:\n%s", step.method, piece, text)
			}
		}
		if step.not != "" && strings.Contains(text, step.not) {
			t.Errorf("%s: %s is in the file:\n%s", step.method, step.not, text)
		}
	}
}
