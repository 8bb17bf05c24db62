//go:build unix

package repomap

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// The configuration of a repository names programs that git can start when it reads the log:
// pagers, programs for signatures and diffs, monitors, and the fetch of missing objects. Making a
// map starts none of them.
func TestLogStartsNothing(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: git is missing (apt-get install git)")
	}
	root, marks := t.TempDir(), t.TempDir()
	git := func(stdin string, args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		cmd.Dir, cmd.Stdin = root, strings.NewReader(stdin)
		var out bytes.Buffer
		cmd.Stdout = &out
		err := cmd.Run()
		if err != nil && args[0] != "log" {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(out.String())
	}
	ran := func() string {
		t.Helper()
		found, err := filepath.Glob(filepath.Join(marks, "*.ran"))
		if err != nil {
			t.Fatal(err)
		}
		for i, path := range found {
			found[i] = filepath.Base(path)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
		return strings.Join(found, " ")
	}
	evil := func(name string) string {
		path := filepath.Join(marks, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+path+".ran\nexit 1\n"), 0o755); err != nil { //nolint:gosec // it has to be executable
			t.Fatal(err)
		}
		return path
	}
	testkit.WriteFiles(t, root, map[string]string{"a.go": "package a\nfunc A() {}\n", ".gitattributes": "* diff=evil filter=evil\n"})
	git("", "init", "-q")
	git("", "add", "-A")
	git("", "commit", "-qm", "one")
	tree, parent := git("", "rev-parse", "HEAD^{tree}"), git("", "rev-parse", "HEAD")
	signed := git("tree "+tree+"\nparent "+parent+"\nauthor n <e> 1700000000 +0000\ncommitter n <e> 1700000000 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ==\n -----END PGP SIGNATURE-----\n\ntwo\n", "hash-object", "-t", "commit", "-w", "--stdin")
	lost := git("tree "+strings.Repeat("1", 40)+"\nparent "+signed+"\nauthor n <e> 1700000001 +0000\ncommitter n <e> 1700000001 +0000\n\nthree\n", "hash-object", "-t", "commit", "-w", "--stdin", "--literally")
	for key, value := range map[string]string{
		"core.pager": evil("pager"), "pager.log": "true", "core.fsmonitor": evil("monitor"), "core.sshCommand": evil("ssh"), "core.alternateRefsCommand": evil("refs"), "core.askPass": evil("ask"),
		"log.showSignature": "true", "gpg.program": evil("gpg"), "diff.external": evil("external"), "diff.evil.command": evil("command"), "diff.evil.textconv": evil("textconv"), "filter.evil.clean": evil("clean"), "filter.evil.smudge": evil("smudge"),
		"remote.origin.url": root, "remote.origin.promisor": "true", "remote.origin.partialCloneFilter": "blob:none", "remote.origin.uploadpack": evil("fetch"),
		"core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "alias.log": "!" + evil("alias"), "diff.submodule": "diff", "log.diffMerges": "remerge",
	} {
		git("", "config", key, value)
	}
	for commit, want := range map[string]string{signed: "gpg.ran", lost: "fetch.ran"} {
		git("", "update-ref", "HEAD", commit)
		ran()
		x := New(Options{Git: "git"})
		if got := mapOf(t, x, root, Focus{}).Text(1000); !strings.Contains(got, "func A()") {
			t.Errorf("the map:\n%s", got)
		}
		x.Close()
		if got := ran(); got != "" {
			t.Errorf("making the map started %s", got)
		}
		// Without eca's options, git starts a program, so the check above would detect it.
		git("", "log", "--name-only")
		if got := ran(); !strings.Contains(got, want) {
			t.Errorf("git by itself has run %q, and not %s", got, want)
		}
	}
}
