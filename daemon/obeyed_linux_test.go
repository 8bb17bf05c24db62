package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// At the workspace level, a command cannot change protected files, and eca moves new ones away.
func TestObeyedFilesStay(t *testing.T) {
	needs.Long(t)
	d, dir := newIsolated(t)
	var names []string
	for _, name := range strings.Split(read(t, filepath.Join("..", "tools", "permission", "testdata", "obeyed.txt")), "\n") {
		if name = strings.TrimSpace(name); name != "" && !strings.HasPrefix(name, "#") {
			names = append(names, name)
		}
	}
	existing, empty := filepath.Join(dir, "existing"), filepath.Join(dir, "empty")
	for _, root := range []string{existing, empty} {
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := ""
	for _, name := range names {
		write(t, filepath.Join(existing, name), "before\n")
		script += "mkdir -p \"$(dirname '" + name + "')\"; echo bad > '" + name + "'; mv '" + name + "' '" + name + ".old'\n"
	}
	if _, out := runInWorkspace(t, d, existing, script); !strings.Contains(out, "Read-only file system") {
		t.Error(out)
	}
	run := workspaceCommand(t, d, empty)
	run(strings.ReplaceAll(script, "; mv ", "; : ") + "true")
	for _, name := range names {
		if got := read(t, filepath.Join(existing, name)); got != "before\n" {
			t.Errorf("%s is changed: %q", name, got)
		}
		if _, err := os.Lstat(filepath.Join(empty, name)); err == nil {
			t.Errorf("the command created %s, and eca did not move it away", name)
		}
	}
}

// If eca cannot record that it has to search after a command, the command does not start, and the error
// gives the reason and the remedies. A command that the user approves by hand outside the sandbox runs.
func TestCommandsWithoutARecordDoNotStart(t *testing.T) {
	d, dir := newIsolated(t)
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	records := filepath.Join(dir, "home", ".local", "state", "eca", "due-searches")
	write(t, records, "a file where the folder of the records should be")
	d.Configure(nil, []string{root})
	command := shellCommand(t, d.shellOptions(d.Config()))
	run := func(arguments map[string]string, by tools.Authorization) error {
		raw, _ := json.Marshal(arguments)
		_, err := command.Run(t.Context(), tools.Call{ID: "c", ChatID: "chat", Roots: []string{root}, Arguments: raw, Authorization: by}, nil)
		return err
	}
	for _, arguments := range []map[string]string{{"command": "touch made"}, {"command": "touch made", "background": "a job"}} {
		err := run(arguments, tools.Authorization{Rule: "sandbox.workspace"})
		if err == nil {
			t.Fatalf("%v ran", arguments)
		}
		for _, part := range []string{"the command was not run", records, "not a directory", "free space", "outside"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v: the error has no %q: %v", arguments, part, err)
			}
		}
		if _, err := os.Lstat(filepath.Join(root, "made")); err == nil {
			t.Errorf("%v created a file, although it was not allowed to start", arguments)
		}
	}
	if err := run(map[string]string{"command": "touch made", "outside": "the disk is full"}, tools.Authorization{Approved: true}); err != nil {
		t.Errorf("outside the sandbox: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(root, "made")); err != nil {
		t.Error(err)
	}
}
