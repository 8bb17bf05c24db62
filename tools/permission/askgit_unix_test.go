//go:build unix

package permission

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// eca asks before a git command if git would wait forever in the repository, or if git itself never
// ends.
func TestGitThatHangsAsks(t *testing.T) {
	needs.Git(t)
	for _, pipe := range []string{".git/config", ".git/config.worktree", ".git/HEAD", ".git", ".git/commondir", ".git/objects/info/alternates", ".gitmodules", ".git/modules/s/config"} {
		files := map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "", ".git/objects/info/x": "", ".git/refs/x": "", ".git/modules/s/HEAD": "", ".git/modules/s/objects/x": "", ".git/modules/s/refs/x": ""}
		if pipe == ".git" {
			files = map[string]string{"x": ""}
		}
		dir := makeFiles(t, files)
		path := filepath.Join(dir, pipe)
		_ = os.Remove(path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		p := policyFor(t, `{}`, dir)
		p.git.timeout = 500 * time.Millisecond
		if v := judge(t, p, "plan", dir, "git log -p"); v.Decision != tools.Ask {
			t.Errorf("%s is a pipe: %+v", pipe, v)
		}
	}

	// eca does not run a git of the workspace, even if it is first in PATH.
	own := makeFiles(t, map[string]string{"bin/git": "#!/bin/sh\n: >\"${0%/*}/ran\"\n", ".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\tbare = false\n", ".git/objects/x": "", ".git/refs/x": ""})
	if err := os.Chmod(filepath.Join(own, "bin/git"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", filepath.Join(own, "bin")+string(filepath.ListSeparator)+path)
	if v := judge(t, policyFor(t, `{}`, own), "plan", own, "git log"); v.Decision != tools.Allow {
		t.Errorf("a git in the workspace: %+v", v)
	}
	if _, err := os.Stat(filepath.Join(own, "bin/ran")); err == nil {
		t.Error("eca ran the git of the workspace")
	}

	// A git that never ends.
	bin := makeFiles(t, map[string]string{"git": "#!/bin/sh\nexec sleep 60\n"})
	if err := os.Chmod(filepath.Join(bin, "git"), 0o700); err != nil { //nolint:gosec // it is a program
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+path)
	dir := makeFiles(t, map[string]string{".git/HEAD": "ref: refs/heads/main\n", ".git/config": "[core]\n\tbare = false\n", ".git/objects/x": "", ".git/refs/x": ""})
	p := policyFor(t, `{}`, dir)
	p.git.timeout = 200 * time.Millisecond
	if v := judge(t, p, "plan", dir, "git log"); v.Decision != tools.Ask {
		t.Errorf("git hangs: %+v", v)
	}
}
