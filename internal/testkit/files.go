// Package testkit has what tests of several packages need: folders and git repositories,
// cases that are one txtar file each, certificate authorities that live as long as a test,
// proxies, clients that stop in the middle, and servers from npm (.ci/node). It is for tests
// only: what cannot be made ends the test, and what is not installed skips it.
//
// Package daemontest beside it has real daemons. Package needs knows what a machine
// must have.
package testkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Folder returns a new folder with files, by their paths with slashes. It goes with the
// test.
func Folder(t testing.TB, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	WriteFiles(t, root, files)
	return root
}

// OutOfTempPrefix begins the names of the folders of OutOfTemp. Its dot keeps Go's commands out of
// them; tests that walk the tree skip them too, as they change while those tests run.
const OutOfTempPrefix = ".testing-"

// OutOfTemp returns a new folder that is not below the temporary folder, to which the sandbox lets
// commands write: it is beside the tests, and the temporary folder is another one until the test
// ends.
func OutOfTemp(t *testing.T) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	wd, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(wd, OutOfTempPrefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// WriteFiles writes files below a folder, with the folders in between.
func WriteFiles(t testing.TB, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// Git runs git in a folder, as an author of its own, and returns what it prints. The user's
// and the machine's configuration do not count. Without git the test is left out.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), needs.Git(t), append([]string{
		"-c", "user.name=n", "-c", "user.email=e@example.com", "-c", "init.defaultBranch=main", "-c", "commit.gpgsign=false",
	}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}
