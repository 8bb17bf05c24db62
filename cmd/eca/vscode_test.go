package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const vscodeTape = `cassette: 1
turns:
` + dayTurns + `  - user: '^limited'
    steps: [{error: {status: 429, message: slow down}}]
  - user: '^broken'
    steps: [{error: {status: 500, message: out of order}}]
  - user: '^slow'
    steps: [{text: "tick ", repeat: 100000, delay: 20ms}]
  - user: '^long'
    steps: [{text: "tock ", repeat: 4000, delay: 20ms}]
  - user: '^flood'
    steps: [{text: "word ", repeat: 10000, delay: 1ms}]
  - user: '^hostile'
    steps: [{text: "<script>globalThis.pwned=1</script>\n\n<img src=x onerror=\"globalThis.pwned=1\"> [x](javascript:globalThis.pwned=1) [y](command:eca.restart) [z](vscode://x/y) ![p](http://127.0.0.1:1/p.png)\n\n\u001b[31mred\u001b[0m \u202Eevil\u202C the end of it\n"}]
  - user: '^diagnose'
    steps: [{calls: [{id: d1, tool: eca__editor_diagnostics, arguments: {path: "${workspace}/bad.json"}}]}, {text: 'Diagnosed: ${result:error|none}.'}]
  - user: '^define'
    steps: [{calls: [{id: d2, tool: eca__editor_definition, arguments: {path: "${workspace}/a.css", line: 2, symbol: "--tint"}}]}, {text: 'Defined: ${result:a.css.1|none}.'}]
  - user: '^refer'
    steps: [{calls: [{id: d3, tool: eca__editor_references, arguments: {path: "${workspace}/a.css", line: 2, symbol: "--tint"}}]}, {text: 'Referred: ${result:a.css.2|none}.'}]
  - user: '^Rename'
    steps:
      - reasoning: It is called in one place only.
        text: "` + "`parse`" + ` is called in ` + "`main`" + ` only, so one edit is enough:\n\n| place | line |\n|---|---|\n| definition | 3 |\n| call | 8 |\n"
        calls: [{id: rn, tool: eca__edit_file, arguments: {path: "${workspace}/main.go", original_content: "func parse(", new_content: "func parseLine("}}]
      - text: Done.
  - user: '^consult'
    steps: [{calls: [{id: m1, tool: sh__t, arguments: {}}]}, {text: 'Consulted: ${result:from afar|nothing}.'}]
  - user: '^about'
    steps: [{text: Seen.}]
  - user: 'in capitals'
    steps: [{text: "THIRD"}]
  - user: 'unfinished'
    steps: [{text: " completed"}]
default: {steps: [{text: There is no answer to that.}]}
`

// vscode is a code-server from npm and our packaged extension, for the tests in the real workbench
// of VS Code.
type vscode struct {
	node, modules, chromium, server, vsix string
}

func newVSCode(t *testing.T) vscode {
	t.Helper()
	needs.Long(t)
	needs.POSIX(t)
	const how = "; .ci/run says how it is made, in the step of our extension for VS Code"
	v := vscode{server: os.Getenv("ECA_CODE_SERVER"), vsix: os.Getenv("ECA_VSIX")}
	if v.server == "" {
		t.Skip("NOT TESTED: VS Code's workbench is missing; set ECA_CODE_SERVER to the folder of code-server" + how)
	}
	if v.vsix == "" {
		t.Skip("NOT TESTED: our extension for VS Code is missing; set ECA_VSIX to its package" + how)
	}
	v.chromium = needs.Program(t, "chromium", "chromium")
	v.node, v.modules = testkit.NodeTools(t, os.Getenv, "playwright-core", "axe-core")
	return v
}

// run plays a script of testdata/vscode in a place.
func (v vscode) run(t *testing.T, p place, script string, more map[string]any) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]any{
		"root": p.root, "modules": v.modules, "chromium": v.chromium, "server": v.server, "vsix": v.vsix, "eca": self,
		"scratch": t.TempDir(), "patience": 30_000, "pictures": os.Getenv("ECA_VSCODE_PICTURES"),
	}
	for name, value := range more {
		arguments[name] = value
	}
	given, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), v.node, filepath.Join("testdata", "vscode", script), string(given))
	cmd.Env = append(p.env, "SHELL=/bin/sh")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // a browser that is left running has its output open
	out, err := cmd.Output()
	t.Logf("went well:\n%s", out)
	if err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}

// TestVSCode plays a day in VS Code: our extension in the real workbench, as code-server serves it
// to Chromium. ECA_VSCODE_PICTURES is a folder for screenshots.
func TestVSCode(t *testing.T) {
	v := newVSCode(t)
	provider := newProvider(t, vscodeTape)
	p := newPlace(t, append(provider.env(), `ECA_CONFIG={"chat":{"title":false},"mcpServers":{"sh":{"command":"sh","args":["server.sh"]}}}`)...)
	for name, text := range map[string]string{
		"main.go": "package main\n\nfunc parse(line string) []string {\n\treturn strings.Fields(line)\n}\n\nfunc main() {\n\tfmt.Println(parse(os.Args[1]))\n}\n",
		"old.txt": "first\nsecond\nthird\n", "bad.json": `{"a": }`, "a.css": ":root { --tint: red; }\np { color: var(--tint); }\n", "part.txt": "unfinished\n",
		"server.sh": testedServer, "words": "To look.",
	} {
		if err := os.WriteFile(filepath.Join(p.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v.run(t, p, "day.mjs", nil)
}

// TestVSCodeFirstStart begins without a program, a provider or a folder. A download with another
// checksum than the published one is refused.
func TestVSCodeFirstStart(t *testing.T) {
	v := newVSCode(t)
	releases := t.TempDir()
	mirror := httptest.NewServer(http.FileServer(http.Dir(releases)))
	t.Cleanup(mirror.Close)
	p := newPlace(t)
	v.run(t, p, "first.mjs", map[string]any{"releases": releases, "mirror": mirror.URL})
}

// TestVSCodeBadInput has daemons that hang, die and send nonsense, an answer of 50 MB, 100,000 files
// and no network.
func TestVSCodeBadInput(t *testing.T) {
	v := newVSCode(t)
	v.run(t, newPlace(t, "OPENAI_API_KEY=sk-test-0123456789abcdef", "OPENAI_API_URL=http://127.0.0.1:1"), "bad.mjs", nil)
}
