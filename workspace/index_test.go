package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/watch"
)

// patience is how long a change may take to be noticed. Only a broken test waits.
const patience = time.Minute

// await queries until the answer is what is wanted, each time the index has looked.
func await(t *testing.T, f *Finder, roots []string, query, want string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		f.mu.Lock()
		ix := f.current
		f.mu.Unlock()
		var looked chan struct{}
		if ix != nil {
			ix.mu.Lock()
			looked = ix.next
			ix.mu.Unlock()
		}
		got := find(t, f, roots, query)
		if got == want {
			return
		}
		if looked == nil {
			continue
		}
		select {
		case <-looked:
		case <-deadline:
			t.Fatalf("%q: got %s, want %s", query, got, want)
		}
	}
}

// waitForNotifications queries until notifications work.
func waitForNotifications(t *testing.T, f *Finder, roots []string) *index {
	t.Helper()
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		find(t, f, roots, "")
		f.mu.Lock()
		ix := f.current
		f.mu.Unlock()
		if ix.current.Load().watched {
			return ix
		}
		time.Sleep(time.Millisecond) // it is on its way; only a query begins another walk
	}
	t.Fatal("nothing is watched")
	return nil
}

func needsWatches(t *testing.T, dir string) {
	t.Helper()
	if watch.TreeLimit() == 0 || watch.Remote(dir) {
		t.Skip("NOT TESTED: trees are not watched here (TestUnwatched shows what happens then); run it on Linux, on a local disk")
	}
}

func do(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, root string, names ...string) {
	t.Helper()
	for _, n := range names {
		path := filepath.Join(root, filepath.FromSlash(n))
		do(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, nil, 0o644))
	}
}

// Changes in the workspace are known without another walk.
func TestWatched(t *testing.T) {
	root := tree(t, "a", "sub/b", "sub/deep/c", "other/d")
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	needsWatches(t, root)
	f, roots := newFinder(t), []string{root}
	ix := waitForNotifications(t, f, roots)
	walked := ix.current.Load().walkedAt
	in := func(names ...string) string { return filepath.Join(append([]string{root}, names...)...) }

	put(t, root, "sub/new")
	await(t, f, roots, "new", "sub/new")
	put(t, root, "sub/x/y/z/tree", "sub/x/y/tree2")
	await(t, f, roots, "tree", "sub/x/y/tree2 sub/x/y/z/tree")
	do(t, os.Remove(in("a")), os.RemoveAll(in("sub", "deep")))
	put(t, root, "sub/x/y/late")
	await(t, f, roots, "late", "sub/x/y/late")
	await(t, f, roots, "deep", "")
	// A folder that is removed and made again is watched like a new one.
	do(t, os.RemoveAll(in("sub", "x")))
	put(t, root, "sub/x/again")
	await(t, f, roots, "x/", "sub/x/again")
	put(t, root, "sub/x/more")
	await(t, f, roots, "more", "sub/x/more")
	// A change of .gitignore takes effect without another walk.
	put(t, root, "sub/x/out.log", "sub/in.log")
	await(t, f, roots, "log", "sub/in.log sub/x/out.log")
	do(t, os.WriteFile(in("sub", "x", ".gitignore"), []byte("*.log\n"), 0o644))
	await(t, f, roots, "log", "sub/in.log")
	do(t, os.WriteFile(in("sub", "x", ".gitignore"), []byte("again\n"), 0o644)) // the same file, with other content
	await(t, f, roots, "log", "sub/in.log sub/x/out.log")
	do(t, os.WriteFile(in("sub", "x", ".gitignore"), []byte("*.log\n"), 0o644))
	await(t, f, roots, "log", "sub/in.log")
	do(t, os.Remove(in("sub", "x", ".gitignore")))
	await(t, f, roots, "log", "sub/in.log sub/x/out.log")
	if now := ix.current.Load(); now.walkedAt != walked || !now.watched {
		t.Errorf("the index walked the root again after %v, or does not watch it any more: watched %v", now.walkedAt.Sub(walked), now.watched)
	}
	// The watches of a renamed folder have its old path, so the index walks everything again.
	do(t, os.Rename(in("sub"), in("moved")))
	await(t, f, roots, "again", "moved/x/again")
	waitForNotifications(t, f, roots)
	put(t, root, "moved/x/end")
	await(t, f, roots, "end", "moved/x/end")
	// The file written last comes first.
	if got, want := find(t, f, roots, ""), "moved/x/end"; !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s first", got, want)
	}
	f.mu.Lock()
	same := f.current == ix
	f.mu.Unlock()
	if !same {
		t.Error("the Finder made another index for the same roots")
	}
}

// After a root was removed and made again, the next walk finds its new files.
func TestWatchedRoot(t *testing.T) {
	root := tree(t, "dir/a", "dir/skip")
	needsWatches(t, root)
	f, roots := newFinder(t), []string{filepath.Join(root, "dir")}
	waitForNotifications(t, f, roots)
	do(t, os.RemoveAll(roots[0]))
	await(t, f, roots, "", "")
	put(t, root, "dir/b")
	f.mu.Lock()
	ix := f.current
	f.mu.Unlock()
	s := *ix.current.Load()
	s.walkedAt = time.Time{} // as if it had been long ago
	ix.current.Store(&s)
	await(t, f, roots, "", "b")
}

// After many changes at once the index equals the disk; queries meanwhile are answered.
func TestCheckout(t *testing.T) {
	const folders, each = 30, 10
	names := func(generation int) (out []string) {
		for i := range folders * each {
			out = append(out, fmt.Sprintf("dir%d/sub%d/file%d-%d", i%folders, i%7, generation*(i%3), i))
		}
		return out
	}
	root := tree(t, names(0)...)
	needsWatches(t, root)
	f, roots := newFinder(t), []string{root}
	waitForNotifications(t, f, roots)
	stop, answered := make(chan struct{}), 0
	var queries sync.WaitGroup
	queries.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := f.Find(context.Background(), roots, "file"); err != nil {
				t.Error(err)
				return
			}
			answered++
		}
	})
	for generation := 1; generation < 4; generation++ {
		for _, n := range names(generation - 1) {
			do(t, os.Remove(filepath.Join(root, n)))
		}
		if generation == 2 {
			do(t, os.RemoveAll(filepath.Join(root, "dir1")))
		}
		put(t, root, names(generation)...)
	}
	close(stop)
	queries.Wait()
	if answered == 0 {
		t.Error("no query was answered during the changes")
	}
	want := names(3)
	slices.Sort(want)
	deadline := time.Now().Add(patience)
	for {
		ix := waitForNotifications(t, f, roots)
		if _, err := f.Find(context.Background(), roots, "x"); err != nil {
			t.Fatal(err)
		}
		got := strings.Fields(render(ix.current.Load().roots[0].folder))
		got = slices.DeleteFunc(got, func(s string) bool { return strings.HasSuffix(s, "/") })
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d files, want %d", len(got), len(want))
		}
	}
}

// If the root cannot be watched, a query sees changes after unwatchedAge, when the next walk may
// begin. Earlier queries are answered from the last walk.
func TestUnwatched(t *testing.T) {
	for name, limit := range map[string]int{"none": -1, "too many folders": 1} {
		t.Run(name, func(t *testing.T) {
			root := tree(t, "a", "d/e/f")
			synctest.Test(t, func(t *testing.T) {
				f := &Finder{watchLimit: limit}
				defer f.Close()
				roots := []string{root}
				find(t, f, roots, "")
				synctest.Wait()
				put(t, root, "b")
				time.Sleep(unwatchedAge - time.Millisecond)
				if got := find(t, f, roots, ""); got != "a d/e/f" {
					t.Errorf("before: %s", got)
				}
				time.Sleep(time.Millisecond)
				if got := find(t, f, roots, ""); got != "a b d/e/f" {
					t.Errorf("after: %s", got)
				}
			})
		})
	}
}

// The Finder drops an index that has had no query for idleTimeout.
func TestIdle(t *testing.T) {
	root := tree(t, "a")
	synctest.Test(t, func(t *testing.T) {
		f := &Finder{watchLimit: -1}
		defer f.Close()
		has := func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.current != nil
		}
		find(t, f, []string{root}, "")
		time.Sleep(idleTimeout / 2)
		find(t, f, []string{root}, "")
		time.Sleep(idleTimeout - time.Second)
		synctest.Wait()
		if !has() {
			t.Error("the Finder dropped the index although it was used")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if has() {
			t.Error("the Finder kept the index although it was not used")
		}
		if got := find(t, f, []string{root}, ""); got != "a" {
			t.Errorf("after that: %s", got)
		}
	})
}

// Queries that end, other roots, and the end of the Finder.
func TestFinderEnds(t *testing.T) {
	a, b := tree(t, "x"), tree(t, "y")
	f := newFinder(t)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Find(ended, []string{a}, "x"); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var queries sync.WaitGroup
	for i := range 20 {
		queries.Go(func() {
			root, want := a, "x"
			if i%2 == 0 {
				root, want = b, "y"
			}
			found, err := f.Find(context.Background(), []string{root}, want)
			if !errors.Is(err, errEnded) && (err != nil || len(found) != 1) {
				t.Errorf("%v %v", found, err)
			}
		})
	}
	queries.Wait()
	f.Close()
	if _, err := f.Find(context.Background(), []string{a}, "x"); !errors.Is(err, errEnded) {
		t.Errorf("after Close: %v", err)
	}
	if found, err := f.Find(context.Background(), nil, a+"/"); err != nil || len(found) != 1 {
		t.Errorf("a listing needs no index: %v %v", found, err)
	}
}

// Links are listed and not followed.
func TestLinks(t *testing.T) {
	root, outside := tree(t, "a"), tree(t, "secret")
	needs.Symlink(t, outside, filepath.Join(root, "way"))
	if got := find(t, newFinder(t), []string{root}, ""); got != "a way" {
		t.Error(got)
	}
}
