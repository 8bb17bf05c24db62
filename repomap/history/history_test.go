package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository creates a repository with a commit whose message mentions the file that it changes.
func repository(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("NOT TESTED: git is missing: apt-get install git")
	}
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	put := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	for _, name := range []string{"aa/first.go", "aa/second.go", "mm/middle.go", "zz/parser.go"} {
		put(name, "package p\n\nfunc "+strings.ToUpper(filepath.Base(filepath.Dir(name)))+"x() {}\n")
	}
	git("add", "-A")
	git("commit", "-q", "-m", "Begin")
	put("zz/parser.go", "package p\n\nfunc ZZx() { println(1) }\n")
	put("notes.txt", "no source\n")
	git("add", "-A")
	git("commit", "-q", "-m", "The parser prints")
	return dir
}

func TestEvaluate(t *testing.T) {
	repo := repository(t)
	var out, errs bytes.Buffer
	if err := run(context.Background(), []string{"-apart", "1", "-budgets", "5,1000", "-v", repo}, &out, &errs); err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	got := out.String()
	// The first commit has no state before it. The file is the last in any list, and five
	// tokens are enough for it only where the message leads to it.
	for _, want := range []string{
		"1 commits, 1 changed files; maps have up to 4 files",
		"5 tokens: 1 of 1: The parser prints",
		"map                        1.000  1.000",
		"list of paths              0.000  1.000",
		"indented tree              0.000  1.000",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in:\n%s", want, got)
		}
	}
	status, err := exec.Command("git", "-C", repo, "status", "--porcelain").Output()
	if err != nil || len(status) > 0 {
		t.Errorf("the repository was changed: %v %s", err, status)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{}, {"-budgets", "0", "."}, {"-commits", "0", "."}, {t.TempDir()}} {
		if err := run(context.Background(), args, &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestPathsWithin(t *testing.T) {
	paths := []string{"a/b/one.go", "a/b/two.go", "a/three.go", "c.go"}
	if got := pathsWithin(paths, 100, treeLines); len(got) != 4 {
		t.Errorf("all fit: %v", got)
	}
	var tree strings.Builder
	before := ""
	for _, p := range paths {
		tree.WriteString(treeLines(p, before) + "\n")
		before = p
	}
	if want := "a\n b\n  one.go\n  two.go\n three.go\nc.go\n"; tree.String() != want {
		t.Errorf("%q, want %q", tree.String(), want)
	}
	// Four tokens are sixteen bytes: the folders and the first file take fifteen.
	if got := pathsWithin(paths, 4, treeLines); len(got) != 1 || !got["a/b/one.go"] {
		t.Errorf("four tokens: %v", got)
	}
}
