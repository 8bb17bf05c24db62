package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/nodetest"
)

const vscodeTape = `cassette: 1
turns:
  - user: '^hello'
    steps: [{reasoning: I should greet., text: "Hello, **world**.", usage: {input: 1000, output: 20}}]
  - user: '^write'
    steps:
      - calls: [{id: w1, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "one\ntwo\n"}}]
      - text: Written.
  - user: '^reject'
    steps:
      - calls: [{id: r1, tool: eca__write_file, arguments: {path: "${workspace}/rejected", content: x}}]
      - text: It was not rejected.
  - user: '^work'
    steps:
      - calls: [{id: k1, tool: eca__shell_command, arguments: {command: "touch began && cat go"}}]
      - text: Nothing more was said.
  - user: '^and this'
    steps: [{text: That too.}]
  - user: '^endless'
    steps: [{text: "It begins and", hang: true}]
  - user: '^ask'
    steps:
      - calls: [{id: q1, tool: eca__ask_user, arguments: {question: "Which colour?", options: [{label: Red, description: warm}, {label: Blue}]}}]
      - text: '${result:(?s)(.*)}'
  - user: '^tasks'
    steps:
      - calls: [{id: p1, tool: eca__task, arguments: {op: plan, tasks: [{subject: First, description: d, priority: high}, {subject: Second, description: d, priority: low}]}}]
      - calls: [{id: p2, tool: eca__task, arguments: {op: start, ids: [1], active_summary: First}}]
      - text: Planned.
  - user: '^delegate'
    steps:
      - calls: [{id: a1, tool: eca__spawn_agent, arguments: {agent: explorer, task: look around, activity: looking around}}]
      - text: It said so.
  - user: '^look around'
    steps:
      - reasoning: I look.
        calls: [{id: l1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
      - calls: [{id: l2, tool: eca__shell_command, arguments: {command: "env --version"}}]
      - text: I saw it.
  - user: '^job'
    steps:
      - calls: [{id: b1, tool: eca__shell_command, arguments: {command: "echo begun; sleep 3600", background: a sleeper}}]
      - text: In the background.
  - user: 'in capitals'
    steps: [{text: "ONE\nTWO"}]
default: {steps: [{text: There is no answer to that.}]}
`

// TestVSCode spends a day in VS Code: the extension eca-vscode and the chat it shows, built
// from their own sources, run against this program; VS Code itself is a stand-in
// (testdata/vscode).
func TestVSCode(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	extension := os.Getenv("ECA_VSCODE")
	if extension == "" {
		t.Skip("NOT TESTED in VS Code: git -c url.https://github.com/.insteadOf=git@github.com: clone --recurse-submodules --branch v0.52.0 https://github.com/editor-code-assistant/eca-vscode DIR && cd DIR/eca-webview && npm ci && npx vite build, then ECA_VSCODE=DIR")
	}
	if _, err := os.Stat(filepath.Join(extension, "eca-webview", "dist", "assets", "index.js")); err != nil {
		t.Fatalf("ECA_VSCODE has no built chat (cd eca-webview && npm ci && npx vite build): %v", err)
	}
	chromium := needs.Program(t, "chromium", "chromium")
	node, modules := nodetest.Tools(t, os.Getenv, "playwright-core")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	provider := newProvider(t, vscodeTape)
	p := newPlace(t, provider.env()...)
	given, err := json.Marshal(map[string]any{
		"extension": extension, "modules": modules, "chromium": chromium, "scratch": t.TempDir(),
		"eca": self, "folders": []string{p.root}, "patience": 60_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("testdata", "vscode", "day.mjs"), string(given))
	// The extension asks the user's shell for more of the environment.
	cmd.Env = append(p.env, "SHELL=/bin/sh")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // a browser that is left has its output open
	out, err := cmd.Output()
	t.Logf("went well:\n%s", out)
	if err != nil {
		t.Errorf("%v\n%s", err, stderr.String())
	}
}
