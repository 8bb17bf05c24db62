package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/internal/worktree"
)

// A worktree of git's leads to its repository; a folder that only says so does not.
func TestMain(t *testing.T) {
	git := needs.Git(t)
	dir := testkit.TempDir(t)
	repo, linked, liar := filepath.Join(dir, "repo"), filepath.Join(dir, "linked"), filepath.Join(dir, "liar")
	for _, args := range [][]string{
		{"init", "-q", repo},
		{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", repo, "worktree", "add", "-q", linked},
	} {
		if out, err := exec.Command(git, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	marker, err := os.ReadFile(filepath.Join(linked, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(liar, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(liar, ".git"), marker, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{repo: repo, linked: repo, liar: liar, dir: dir} {
		if got := worktree.Main(path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
