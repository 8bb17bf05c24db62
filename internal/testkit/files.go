// Package testkit has helpers for the tests of several packages: folders and git repositories, txtar
// test cases, certificate authorities, proxies, clients that stall, a language server, and servers
// from npm (.ci/node). If a helper fails, the test fails. If a required program is not installed, the
// test is skipped.
//
// Package daemontest starts real daemons. Package needs checks the requirements of tests.
package testkit

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// TempDir returns t.TempDir with symlinks resolved, like the paths that eca shows.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Folder returns a new folder with files, given by their paths with slashes. It is deleted when the
// test ends.
func Folder(t testing.TB, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	WriteFiles(t, root, files)
	return root
}

// Tree describes everything below a folder: by path, its mode and its content or target.
func Tree(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(data)
		}
		rel, err := filepath.Rel(root, path)
		out[rel] = text
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// DocumentedTools returns the names of the tools in the table of docs/tools.md. root is the path of
// the repository.
func DocumentedTools(t testing.TB, root string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "tools.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "<!-- end -->")
	var out []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` ").FindAllStringSubmatch(table, -1) {
		out = append(out, row[1])
	}
	if len(out) < 20 {
		t.Fatalf("docs/tools.md has only the tools %q", out)
	}
	return out
}

// OutOfTempPrefix is the prefix of the folders that OutOfTemp creates. Go's commands ignore these
// folders because of the dot. Tests that walk the source tree must skip them, because other tests
// change them at the same time.
const OutOfTempPrefix = ".testing-"

// OutOfTemp returns a new folder in the current directory, which is outside the temporary folder.
// The sandbox lets commands write to the temporary folder, so tests of the sandbox need a folder
// outside it. Until the test ends, TMPDIR is a new folder.
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

// WriteFiles writes files below a folder, and creates missing folders.
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

// Git runs git in a folder, with a fixed author, and returns the output. It ignores the configuration
// of the user and the machine. It skips the test if git is not installed.
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
