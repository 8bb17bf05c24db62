package repomap

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/internal/watch"
	"github.com/seed-dec29ce4/eca/workspace"
)

// countingFinder passes on the listings of a finder, and counts them.
type countingFinder struct {
	finder          workspace.Finder
	calls, listings int // calls of files, and those that returned a listing
	changedFolders  int // in the listings since a test reset it
}

func (s *countingFinder) files(ctx context.Context, root string, since workspace.Mark) (*workspace.Listing, bool) {
	s.calls++
	l, ok := s.finder.Listing(ctx, []string{root}, root, since)
	if ok {
		s.listings++
		for f := range l.Folders() {
			if f.Changed {
				s.changedFolders++
			}
		}
	}
	return l, ok
}

// newNotifiedIndex returns an index that gets notifications of changes in root; the test is skipped
// without notifications.
func newNotifiedIndex(t testing.TB, root string) (*Index, *countingFinder) {
	t.Helper()
	if runtime.GOOS != "linux" || watch.Remote(root) {
		t.Skip("NOT TESTED: there are no notifications of changes here; run it on Linux, on a local disk")
	}
	s := &countingFinder{}
	t.Cleanup(s.finder.Close)
	x := New(Options{Files: s.files, Workers: 2})
	t.Cleanup(x.Close)
	mapOf(t, x, root, Focus{})
	if s.calls > 0 {
		t.Error("the index asked for a listing before its first map")
	}
	const timeout = time.Minute
	for deadline := time.Now().Add(timeout); s.listings == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the finder returned no listing within a minute")
		}
		mapOf(t, x, root, Focus{})
		time.Sleep(time.Millisecond) // nothing reports when the finder can return a listing
	}
	return x, s
}

// An index that gets listings of changed folders makes the same map as one that checks all files.
func TestListings(t *testing.T) {
	root := t.TempDir()
	testkit.WriteFiles(t, root, map[string]string{"main.go": "package main\nfunc main() { Name1() }\n", "README.md": "x"})
	x, s := newNotifiedIndex(t, root)
	known := s.listings
	random := rand.New(rand.NewPCG(5, 6))
	path := func() string {
		dir := strings.Repeat(fmt.Sprintf("d%d/", random.IntN(3)), random.IntN(3))
		return dir + []string{"a.go", "b.go", "c.py", "run", "Makefile", "image.png"}[random.IntN(6)]
	}
	for round := range 80 {
		for range random.IntN(4) {
			rel, other := path(), filepath.Join(root, filepath.FromSlash(path()))
			full := filepath.Join(root, filepath.FromSlash(rel))
			switch random.IntN(10) {
			case 0:
				_ = os.RemoveAll(filepath.Join(root, "d1")) // it may be missing
			case 1:
				_ = os.Remove(full) // it may be missing
			case 2:
				_ = os.Rename(full, other) // one of them may be missing
			case 3:
				_ = os.Remove(full) // it may be missing
				_ = os.Symlink("main.go", full)
			case 4:
				testkit.WriteFiles(t, root, map[string]string{".gitignore": path() + "\n"})
			default:
				if _, err := os.Readlink(full); err == nil {
					continue // not through links
				}
				testkit.WriteFiles(t, root, map[string]string{rel: fmt.Sprintf("#!/bin/python\ndef Name%d(): Name%d()\nfunc Name%d() { Name%d() }\n",
					random.IntN(9), random.IntN(9), random.IntN(9), random.IntN(9))})
			}
		}
		var focus Focus
		if round%3 == 0 {
			focus.Paths = []string{path(), "d0"}
		}
		got, want := mapOf(t, x, root, focus), mapOf(t, New(Options{Workers: 1}), root, focus)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("round %d (-all +told):\n%s", round, diff)
		}
	}
	if s.listings == known {
		t.Error("the finder returned no listing, so the test did not compare anything")
	}
}

// The index notices a change that no listing contains if the focus names the file.
func TestRequestedFilesAreChecked(t *testing.T) {
	root := t.TempDir()
	testkit.WriteFiles(t, root, map[string]string{"d/a.go": "package a\nfunc Before() {}\n", "b.go": "package a\nfunc Other() {}\n"})
	x, s := newNotifiedIndex(t, root)
	listFiles := x.opts.Files
	var last *workspace.Listing
	x.opts.Files = func(ctx context.Context, root string, since workspace.Mark) (*workspace.Listing, bool) {
		if last == nil {
			last, _ = listFiles(ctx, root, since)
		}
		return last, last != nil
	}
	for last == nil { // until the finder returns a listing
		mapOf(t, x, root, Focus{})
	}
	mark := last.Mark()
	for s.changedFolders = 1; s.changedFolders > 0; { // until a listing has no changes
		s.changedFolders = 0
		last, _ = listFiles(t.Context(), mustAbs(t, root), mark)
		if last != nil {
			mark = last.Mark()
		} else {
			s.changedFolders = 1
		}
	}
	testkit.WriteFiles(t, root, map[string]string{"d/a.go": "package a\nfunc Behind() {}\n"})
	for _, c := range []struct {
		focus Focus
		want  string
	}{
		{Focus{}, "Before"},
		{Focus{Paths: []string{"b.go"}}, "Before"},
		{Focus{Paths: []string{filepath.Join(root, "d", "a.go")}}, "Behind"},
	} {
		if got := mapOf(t, x, root, c.focus).Text(200); !strings.Contains(got, c.want) {
			t.Errorf("focus %v: want %s in\n%s", c.focus.Paths, c.want, got)
		}
	}
}

// After a cancelled call, the index checks all folders again.
func TestListingsAfterCancel(t *testing.T) {
	root := t.TempDir()
	testkit.WriteFiles(t, root, map[string]string{"a.go": "package a\nfunc A() {}\n"})
	x, s := newNotifiedIndex(t, root)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.update(ended, x.tree(mustAbs(t, root)), Focus{}); err == nil {
		t.Fatal("update returned no error although its context was cancelled")
	}
	for known := s.listings; known == s.listings; {
		s.changedFolders = 0
		if got := mapOf(t, x, root, Focus{}).Text(100); got != "a.go\n func A()\n" {
			t.Fatalf("after that:\n%s", got)
		}
	}
	if s.changedFolders == 0 {
		t.Error("the listing after the cancelled call reported no folder as changed")
	}
}
