package repomap

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Commits that are judged: so many per repository, so many apart, each with so many files
// at most.
const (
	judgedCommits = 60
	judgedApart   = 8
	judgedFiles   = 10
)

var judgedBudgets = []int{1000, 4000, 8000}

// From the history of repositories (REPOMAP_HISTORY, with colons between them): given a
// commit's message, how many of the files it changed are in the map of the state before
// it? It judges nothing; what it prints stands in docs/repomap.md.
func TestHistoryQuality(t *testing.T) {
	list := os.Getenv("REPOMAP_HISTORY")
	if list == "" {
		t.Skip("NOT MEASURED: set REPOMAP_HISTORY to folders of clones with their history, with colons between them")
	}
	for _, repo := range filepath.SplitList(list) {
		judgeHistory(t, repo)
	}
}

func judgeHistory(t *testing.T, repo string) {
	tree := filepath.Join(t.TempDir(), "tree")
	gitOutput(t, ".", "clone", "-q", "--shared", "--no-checkout", repo, tree)
	head := strings.TrimSpace(gitOutput(t, tree, "rev-parse", "HEAD"))
	found := map[string][]int{}
	total, commits := 0, 0
	for i, id := range strings.Fields(gitOutput(t, tree, "log", "--no-merges", "--format=%H", "-n", fmt.Sprint(judgedCommits*judgedApart))) {
		if i%judgedApart != 0 || exec.Command("git", "-C", tree, "rev-parse", "-q", "--verify", id+"^").Run() != nil {
			continue
		}
		gitOutput(t, tree, "checkout", "-q", "-f", "--detach", id+"^")
		age(t, tree)
		touched := strings.Fields(gitOutput(t, tree, "diff-tree", "-r", "--no-commit-id", "--name-only", "--no-renames", "--diff-filter=M", id))
		want := map[string]bool{}
		all := judgedMap(t, tree, "", Focus{})
		var paths []string
		known := map[string]bool{}
		for _, f := range all.Files {
			known[f.Path] = true
		}
		for _, p := range strings.Split(gitOutput(t, tree, "ls-files"), "\n") {
			if known[p] {
				paths = append(paths, p)
			}
		}
		for _, p := range touched {
			if known[p] {
				want[p] = true
			}
		}
		if len(want) == 0 || len(want) > judgedFiles {
			continue
		}
		commits, total = commits+1, total+len(want)
		told := judgedMap(t, tree, "git", Focus{Text: gitOutput(t, tree, "log", "-1", "--format=%B", id)})
		for b, budget := range judgedBudgets {
			listing := strings.Join(paths, "\n")
			for name, text := range map[string]string{
				"map": told.Text(budget), "without focus and log": all.Text(budget),
				"plain tree": listing[:min(len(listing), budget*bytesPerToken)],
			} {
				if found[name] == nil {
					found[name] = make([]int, len(judgedBudgets))
				}
				for _, line := range strings.Split(text, "\n") {
					if want[line] {
						found[name][b]++
					}
				}
			}
		}
	}
	t.Logf("%s at %.12s: %d commits that changed %d files; found at %v tokens:", filepath.Base(filepath.Dir(repo)), head, commits, total, judgedBudgets)
	for _, name := range []string{"map", "without focus and log", "plain tree"} {
		line := ""
		for _, n := range found[name] {
			line += fmt.Sprintf(" %.3f", float64(n)/float64(max(total, 1)))
		}
		t.Logf("  %s:%s", name, line)
	}
}

func judgedMap(t *testing.T, tree, git string, focus Focus) *Map {
	t.Helper()
	x := New(Options{Git: git})
	defer x.Close()
	m, err := x.Map(context.Background(), tree, focus)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// age makes all files older than any commit: that a checkout wrote them tells nothing.
func age(t *testing.T, tree string) {
	t.Helper()
	long := time.Unix(1, 0)
	err := filepath.WalkDir(tree, func(path string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && d.IsDir() {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			return os.Chtimes(path, long, long)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func gitOutput(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var errs bytes.Buffer
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.quotePath=false", "-c", "core.hooksPath=" + os.DevNull}, args...)...)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}
