package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// emacsTape has the model's answers to the user of testdata/emacs/drive.el.
const emacsTape = `
cassette: 1
turns:
  - user: hello
    steps: [{reasoning: A greeting., text: "Hi **there**.\n"}]
  - user: edit it
    steps:
      - calls: [{id: e, tool: eca__edit_file, arguments: {path: "${workspace}/main.go", original_content: "func main() {}", new_content: "func main() { println() }"}}]
      - {text: Edited it.}
  - user: run it
    steps:
      - calls: [{id: r, tool: eca__shell_command, arguments: {command: "X=1 true; touch ran"}}]
      - {text: Never said.}
  - user: use another command
    steps: [{text: "Another command it is.\n"}]
  - user: hurry
    steps: [{text: "Hurried.\n"}]
  - user: consult it
    steps:
      - calls: [{id: c, tool: sh__t, arguments: {}}]
      - {text: "Consulted: ${result:from afar|nothing}.\n"}
  - user: write it
    steps:
      - calls: [{id: n, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "1"}}]
      - {text: "Written.\n"}
  - user: unauthorized
    steps: [{error: {status: 401, message: bad key}}]
  - user: limited
    steps: [{error: {status: 429, message: slow down}}]
  - user: overloaded
    steps: [{error: {status: 500, message: out of order}}]
  - user: ask me
    steps:
      - calls: [{id: q, tool: eca__ask_user, arguments: {question: "Which colour?", options: [{label: Red}, {label: Blue}]}}]
      - {text: "You said: ${result:(?s)^(.{0,80})}"}
  - user: delegate it
    steps:
      - calls: [{id: d, tool: eca__spawn_agent, arguments: {agent: general, task: childwork, activity: looking around}}]
      - {text: "The child said: ${result:(?s)^(.{0,300})}"}
  - user: childwork
    steps: [{text: All is well.}]
  - user: misplan it
    steps:
      - calls: [{id: m, tool: eca__task, arguments: {op: dream}}]
      - {text: No plan.}
  - user: ^plan it
    steps:
      - calls: [{id: p1, tool: eca__task, arguments: {op: plan, tasks: [{subject: First}, {subject: Second}]}}]
      - calls: [{id: p2, tool: eca__task, arguments: {op: start, ids: [1], active_summary: Doing the first}}]
      - {text: Planned.}
  - user: watch it
    steps:
      - calls: [{id: w, tool: eca__shell_command, arguments: {command: "echo watching; sleep 300", background: my watcher}}]
      - {text: It is watched.}
  - user: for ever
    steps: [{text: "tick ", repeat: 100000, delay: 20ms}]
`

// hostileTape has a model that writes what must not be acted upon.
const hostileTape = `
cassette: 1
turns:
  - user: hostile
    steps: [{text: "<script>alert(1)</script> [x](javascript:alert(1)) [y](command:run) ![p](http://127.0.0.1:1/p.png)\n\n\u001b[31mred\u001b[0m \u202Eevil\u202C the end of it\n"}]
default: {steps: [{text: There is no answer to that.}]}
`

// TestEmacs runs the plugin for Emacs against eca, with the keys and commands of its user.
// Everything that the plugin does not understand or show counts as a fault of eca.
func TestEmacs(t *testing.T) {
	emacs := newEmacs(t)
	p := newProvider(t, emacsTape)
	place := newPlace(t, append(p.env(), `ECA_CONFIG={"chat":{"title":false},"mcpServers":{"sh":{"command":"sh","args":["server.sh"]}}}`)...)
	file := emacs.run(t, place, "drive.el", map[string]string{"server.sh": testedServer, "words": "To look."})
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "println()") {
		t.Errorf("the edit was not made: %s %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(place.root, "ran")); err == nil {
		t.Error("what was rejected ran")
	}
}

// TestEmacsBadInput runs the plugin for Emacs with our add-on against servers that misbehave.
func TestEmacsBadInput(t *testing.T) {
	emacs := newEmacs(t)
	node, _ := testkit.NodeTools(t, os.Getenv)
	daemon := filepath.Join(t.TempDir(), "daemon")
	script, err := filepath.Abs(filepath.Join("testdata", "vscode", "daemon.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(daemon, []byte("#!/bin/sh\nexec '"+node+"' '"+script+"' \"$1\"\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	guard, err := filepath.Abs(filepath.Join("..", "..", "editors", "emacs"))
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(t, hostileTape)
	place := newPlace(t, append(p.env(), `ECA_CONFIG={"chat":{"title":false}}`)...)
	emacs.run(t, place, "bad.el", nil, "BAD_DAEMON="+daemon, "BAD_GUARD="+guard)
}

// emacsEditor is an Emacs with the plugin.
type emacsEditor struct{ program, plugin string }

func newEmacs(t *testing.T) emacsEditor {
	t.Helper()
	needs.POSIX(t)
	needs.Long(t)
	plugin := os.Getenv("ECA_EMACS")
	if plugin == "" {
		t.Skip("NOT TESTED with Emacs: apt-get install emacs-nox elpa-dash elpa-s elpa-f elpa-markdown-mode elpa-compat, git clone https://github.com/editor-code-assistant/eca-emacs DIR, then ECA_EMACS=DIR")
	}
	program := needs.Program(t, "emacs", "emacs-nox elpa-dash elpa-s elpa-f elpa-markdown-mode elpa-compat")
	plugin, err := filepath.Abs(plugin)
	if err != nil {
		t.Fatal(err)
	}
	return emacsEditor{program, plugin}
}

// run plays a script of testdata/emacs in the workspace, and returns the file that is open.
func (e emacsEditor) run(t *testing.T, place place, script string, files map[string]string, env ...string) (file string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(place.root, "main.go")
	err = os.WriteFile(file, []byte("package main\n\nfunc main() {}\n"), 0o600)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(place.root, name), []byte(text), 0o600))
	}
	if err := errors.Join(err, os.Mkdir(filepath.Join(place.root, ".git"), 0o755)); err != nil {
		t.Fatal(err)
	}
	script, err = filepath.Abs(filepath.Join("testdata", "emacs", script))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, e.program, "--batch", "-l", script)
	cmd.Dir = place.root
	cmd.Env = append(append(place.env, "LANG=C.UTF-8", "ECA_EMACS="+e.plugin, "DRIVE_SERVER="+self, "DRIVE_FILE="+file), env...)
	cmd.WaitDelay = 10 * time.Second
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	if err := cmd.Run(); err != nil || !strings.HasSuffix(out.String(), "ALL IS WELL\n") {
		t.Fatalf("%v\n%s\n%s", err, out.String(), progress.String())
	}
	return file
}
