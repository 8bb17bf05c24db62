package heldback

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// A new repository stays where a command created it if it is as git creates it. A repository that can
// run programs does not stay.
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
		t.Error("a path that is not a folder counts as a fresh repository")
	}
}

// If a command adds a worktree to a protected repository, the files with which git links both may
// stay, unless one of them leads elsewhere, or the worktree has its own settings.
func TestFreshWorktree(t *testing.T) {
	needs.Program(t, "git", "git")
	for name, change := range map[string]struct {
		file, text string
		fresh      string // the files that may stay
	}{
		"as made":                       {"OWN/description", "x", ".git commondir gitdir"},
		"settings of its own":           {"OWN/config.worktree", "", ""},
		"another repository's settings": {"OWN/commondir", "/tmp\n", ""},
		"another worktree's folder":     {"OWN/gitdir", "/tmp/.git\n", ""},
		"another folder's worktree":     {"WORK/.git", "gitdir: /tmp\n", ""},
		"two lines":                     {"WORK/.git", "gitdir: OWN\nx\n", ""},
	} {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		repository := filepath.Join(root, "repo", ".git")
		work := filepath.Join(root, "work")
		run := func(args ...string) {
			t.Helper()
			if out, err := exec.Command("git", append([]string{"-c", "user.name=x", "-c", "user.email=x@x", "-C", root}, args...)...).CombinedOutput(); err != nil {
				t.Fatalf("%q: %v %s", args, err, out)
			}
		}
		run("init", "-q", "repo")
		run("-C", "repo", "commit", "-q", "--allow-empty", "-m", "x")
		places := sandbox.FindPlaces(sandbox.Guard{Roots: []string{root}})
		run("-C", "repo", "worktree", "add", "-q", "-b", "w", work)
		own := filepath.Join(repository, "worktrees", "work")
		expand := strings.NewReplacer("OWN", own, "WORK", work).Replace
		if err := os.WriteFile(expand(change.file), []byte(expand(change.text)), 0o600); err != nil {
			t.Fatal(err)
		}
		var fresh []string
		for _, file := range []string{filepath.Join(work, ".git"), filepath.Join(own, "commondir"), filepath.Join(own, "gitdir")} {
			if freshWorktree(places, file) {
				fresh = append(fresh, filepath.Base(file))
			}
		}
		if got := strings.Join(fresh, " "); got != change.fresh {
			t.Errorf("%s: %q may stay, want %q", name, got, change.fresh)
		}
	}
}
