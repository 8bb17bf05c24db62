package heldback

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A repository as git makes it may stay where a command made it; one that can run something
// may not.
func TestFreshRepository(t *testing.T) {
	needs.Program(t, "git", "git")
	for name, change := range map[string]struct {
		file, text string
		fresh      bool
	}{
		"as made":           {"description", "x", true},
		"with a remote":     {"config", "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = https://example.org/x\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n", true},
		"a hook":            {"hooks/pre-commit", "#!/bin/sh\n", false},
		"a monitor":         {"config", "[core]\n\tfsmonitor = ./x\n", false},
		"another section":   {"config", "[alias]\n\tst = !x\n", false},
		"a command as url":  {"config", "[remote \"origin\"]\n\turl = ext::sh -c x\n", false},
		"an upload program": {"config", "[remote \"origin\"]\n\tuploadpack = ./x\n", false},
		"a longer line":     {"config", "[core]\n\tbare = \\\nfalse\n", false},
		"another file":      {"config", "[include]\n\tpath = ../x\n", false},
		"attributes":        {"info/attributes", "* filter=x\n", false},
		"another work tree": {"config.worktree", "", false},
		"submodules":        {"modules/x/config", "", false},
	} {
		root := t.TempDir()
		if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
		path := filepath.Join(root, ".git", filepath.FromSlash(change.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change.text), 0o755); err != nil {
			t.Fatal(err)
		}
		if got := freshRepository(filepath.Join(root, ".git")); got != change.fresh {
			t.Errorf("%s: fresh is %t", name, got)
		}
	}
	if freshRepository(t.TempDir()) {
		t.Error("a folder that is none is a repository")
	}
}
