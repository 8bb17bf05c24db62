package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

func newTree(t *testing.T, limit int, dirs ...string) *Tree {
	t.Helper()
	if TreeLimit() == 0 {
		t.Skip("NOT TESTED: trees are not watched on this system; run it on Linux")
	}
	tree, err := NewTree(limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tree.Close)
	for _, d := range dirs {
		if err := tree.Add(d); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// collectHints calls do and collects hints until enough returns true.
func collectHints(t *testing.T, tree *Tree, what string, do func() error, enough func(Hints) bool) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	var all Hints
	deadline := time.After(changeTimeout)
	for {
		h := tree.Take()
		for p := range h.Changed {
			if all.Changed == nil {
				all.Changed = map[string]bool{}
			}
			all.Changed[p] = true
		}
		all.Written, all.Lost = append(all.Written, h.Written...), all.Lost || h.Lost
		if enough(all) {
			return
		}
		select {
		case <-tree.Changed:
		case <-deadline:
			t.Fatalf("%s: %.2000s", what, fmt.Sprintf("%+v", all))
		}
	}
}

func TestTree(t *testing.T) {
	root := tempDir(t)
	sub := filepath.Join(root, "sub")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(sub, name) }
	changed := func(paths ...string) func(Hints) bool {
		return func(h Hints) bool {
			return !slices.ContainsFunc(paths, func(p string) bool { return !h.Changed[p] })
		}
	}
	tree := newTree(t, 10, root, sub)
	collectHints(t, tree, "a new file", save(in("a"), "1"), changed(in("a")))
	collectHints(t, tree, "a write", save(in("a"), "2"), func(h Hints) bool { return slices.Contains(h.Written, in("a")) })
	collectHints(t, tree, "a replacement", replace(in("a"), "3"), changed(in("a"), in("a~")))
	collectHints(t, tree, "a new folder", func() error { return os.Mkdir(in("deep"), 0o700) }, changed(in("deep")))
	collectHints(t, tree, "its end", remove(in("deep")), changed(in("deep")))
	collectHints(t, tree, "the end of a watched folder", remove(sub), changed(sub))
	collectHints(t, tree, "another in its place", func() error { return errors.Join(os.Mkdir(sub, 0o700), tree.Add(sub)) }, changed(sub))
	collectHints(t, tree, "a file in it", save(in("b"), ""), changed(in("b")))
	collectHints(t, tree, "a watched folder that is renamed", func() error { return os.Rename(sub, sub+"2") }, func(h Hints) bool { return h.Lost })
}

// A Tree limits the number of hints and of watches.
func TestTreeBounds(t *testing.T) {
	root := tempDir(t)
	tree := newTree(t, 2, root)
	var names []string
	for i := range maxWritten + 1 {
		names = append(names, filepath.Join(root, fmt.Sprint(i)))
	}
	collectHints(t, tree, "many files", func() error {
		for _, n := range names {
			if err := os.WriteFile(n, nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	}, func(h Hints) bool { return len(h.Changed) == len(names) })
	tree.mu.Lock()
	for _, n := range names {
		tree.addWritten(n)
	}
	many := tree.tooManyWritten
	tree.mu.Unlock()
	if h := tree.Take(); !many || len(h.Written) > 0 {
		t.Errorf("with too many written files, Written must be empty: %v", h.Written)
	}

	tree.Take()
	for i := range maxChanged + 1 {
		tree.record(fsnotify.Event{Name: fmt.Sprint(i), Op: fsnotify.Create})
	}
	if h := tree.Take(); !h.Lost || len(h.Changed) != maxChanged {
		t.Errorf("too many changes: %d, lost: %v", len(h.Changed), h.Lost)
	}

	gone := filepath.Join(root, "gone")
	if err := tree.Add(gone); err != nil {
		t.Errorf("a folder that is gone: %v", err)
	}
	for _, dir := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Add(filepath.Join(root, "one")); err != nil {
		t.Errorf("Add of a folder that fits within the limit: %v", err)
	}
	if err := tree.Add(filepath.Join(root, "two")); !errors.Is(err, ErrTooMany) {
		t.Errorf("too many folders: %v", err)
	}
	if err := tree.Add(root); err != nil {
		t.Errorf("a known one again: %v", err)
	}
}

func TestRemote(t *testing.T) {
	if dir := t.TempDir(); Remote(filepath.Join(dir, "none")) {
		t.Error("Remote is true for a path that does not exist")
	}
}

// After Sync, the hints contain all earlier changes.
func TestTreeSync(t *testing.T) {
	if !eventsOrdered {
		t.Skip("NOT TESTED: events of several folders come in no order on this system; run it on Linux")
	}
	root := tempDir(t)
	t.Setenv("TMPDIR", tempDir(t))
	var dirs []string
	for i := range 20 {
		dirs = append(dirs, filepath.Join(root, fmt.Sprint(i)))
		if err := os.Mkdir(dirs[i], 0o700); err != nil {
			t.Fatal(err)
		}
	}
	tree := newTree(t, 100, dirs...)
	ctx, cancel := context.WithTimeout(t.Context(), changeTimeout)
	defer cancel()
	for round := range 50 {
		dir := dirs[round%len(dirs)]
		path := filepath.Join(dir, "a")
		if err := save(path, fmt.Sprint(round))(); err != nil {
			t.Fatal(err)
		}
		if round == 30 { // one without a waiting caller
			gone, leave := context.WithCancel(ctx)
			leave()
			tree.Sync(gone)
		}
		if !tree.Sync(ctx) {
			t.Fatalf("round %d: not in time", round)
		}
		if h := tree.Take(); !h.Touched[dir] || len(h.Touched) != 1 || round >= len(dirs) && len(h.Changed) > 0 || round < len(dirs) && !h.Changed[path] {
			t.Fatalf("round %d: %+v", round, h)
		}
	}
	if err := os.Chtimes(filepath.Join(dirs[3], "a"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if !tree.Sync(ctx) || !tree.Take().Touched[dirs[3]] {
		t.Error("the hints lack a folder in which the time of a file changed")
	}
	tree.Close()
	if tree.Sync(ctx) {
		t.Error("Sync returned true for a closed tree")
	}
}

// Concurrent calls of Sync all return, and none returns too early. The marker never has a name, so a
// process that is killed leaves no file behind.
func TestTreeSyncConcurrent(t *testing.T) {
	if !eventsOrdered {
		t.Skip("NOT TESTED: events of several folders come in no order on this system; run it on Linux")
	}
	t.Setenv("TMPDIR", tempDir(t))
	root := tempDir(t)
	tree := newTree(t, 10, root)
	ctx, cancel := context.WithTimeout(t.Context(), changeTimeout)
	defer cancel()
	if !tree.Sync(ctx) { // creates the marker, which has a name for a moment on some file systems
		t.Fatal("not in time")
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for round := range 20 {
				path := filepath.Join(root, fmt.Sprint(i, "-", round))
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Error(err)
					return
				}
				synced := tree.Sync(ctx)
				tree.mu.Lock()
				known := tree.hints.Changed[path]
				tree.mu.Unlock()
				if !synced || !known {
					t.Errorf("%s: in sync: %v, known: %v", path, synced, known)
					return
				}
				if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
					t.Errorf("%v, %v are there", left, err)
				}
			}
		})
	}
	all.Wait()
}
