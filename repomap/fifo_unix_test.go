//go:build unix

package repomap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// If the configuration of a repository is a pipe, on which git waits, the map is made without git.
func TestPipeAsGitConfiguration(t *testing.T) {
	git := needs.Git(t)
	root := t.TempDir()
	testkit.WriteFiles(t, root, map[string]string{"a.go": "package a\nfunc A() {}\n"})
	if out, err := exec.Command(git, "-C", root, "init", "-q").CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	config := filepath.Join(root, ".git", "config")
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(config, 0o600); err != nil {
		t.Fatal(err)
	}
	x := New(Options{Git: git})
	x.gitTime = 100 * time.Millisecond
	for range 2 {
		if got := mapOf(t, x, root, Focus{}).Text(1000); !strings.Contains(got, "func A()") {
			t.Errorf("the map:\n%s", got)
		}
	}
}
