package workspace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func needsListings(t *testing.T, dir string) {
	t.Helper()
	needsWatches(t, dir)
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: what the system tells comes in no order here, so there are no listings; run it on Linux")
	}
}

// waitForListing requests a listing until there is one.
func waitForListing(t *testing.T, f *Finder, roots []string, root string, since Mark) *Listing {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if l, ok := f.Listing(context.Background(), roots, root, since); ok {
			return l
		}
		time.Sleep(time.Millisecond) // the index begins, or walks; nothing says when it knows
	}
	t.Fatal("there is no listing")
	return nil
}

// follower keeps the contents of files, and reads only folders that a listing reports as changed.
type follower struct {
	root  string
	files map[string]map[string]string // by folder and name
	mark  Mark
	again int // folders that were read
}

func (k *follower) follow(l *Listing) {
	now := map[string]map[string]string{}
	for f := range l.Folders() {
		if !f.Changed {
			now[f.Path] = k.files[f.Path]
			continue
		}
		k.again++
		in := map[string]string{}
		for name := range f.Names() {
			path := filepath.Join(k.root, filepath.FromSlash(f.Path+name))
			if data, err := os.ReadFile(path); err == nil {
				info, _ := os.Lstat(path)
				in[name] = string(data) + info.ModTime().String()
			}
		}
		now[f.Path] = in
	}
	k.files, k.mark = now, l.Mark()
}

func (k *follower) render() string {
	var out []string
	for dir, in := range k.files {
		for name, content := range in {
			out = append(out, dir+name+": "+content)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// onDisk returns what a walk finds now.
func onDisk(t *testing.T, root string) string {
	t.Helper()
	k := follower{files: map[string]map[string]string{"": {}}}
	err := Walk(context.Background(), root, func(f File) error {
		if !f.Dir {
			data, err := os.ReadFile(f.Path)
			info, err2 := os.Lstat(f.Path)
			do(t, err, err2)
			k.files[""][f.Rel] = string(data) + info.ModTime().String()
		}
		return nil
	})
	do(t, err)
	return k.render()
}

// A reader that reads only folders that listings report as changed always has the contents that the
// files had at its last query.
func TestListing(t *testing.T) {
	root, err := filepath.EvalSymlinks(tree(t, "a", "d0/a", "d1/d2/b", "d2/keep"))
	do(t, err)
	needsListings(t, root)
	f, roots := newFinder(t), []string{root}
	k := &follower{root: root}
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same in each run
	in := func(deep int) string {
		path := root
		for range random.IntN(deep + 1) {
			path = filepath.Join(path, fmt.Sprintf("d%d", random.IntN(3)))
		}
		return path
	}
	for round := range 150 {
		for range random.IntN(6) {
			dir, name := in(3), fmt.Sprintf("f%d", random.IntN(4))
			path := filepath.Join(dir, name)
			switch random.IntN(12) {
			case 0:
				do(t, os.RemoveAll(in(3)+string(filepath.Separator)+"d0"))
			case 1: // a folder elsewhere, perhaps in the place of another
				if to := filepath.Join(in(1), "d1"); !strings.HasPrefix(to, dir) {
					_ = os.Rename(dir, to) // it may be in the way of itself
				}
			case 2:
				_ = os.Rename(path, filepath.Join(in(2), "f1")) // one of them may be missing
			case 3:
				_ = os.Remove(path) // it may be missing
			case 4:
				_ = os.Chtimes(path, time.Time{}, time.Unix(int64(round), 0)) // it may be missing
			case 5:
				do(t, os.WriteFile(filepath.Join(root, ".gitignore"), fmt.Appendf(nil, "f%d\n", random.IntN(8)), 0o600))
			default:
				do(t, os.MkdirAll(dir, 0o700), os.WriteFile(path, fmt.Append(nil, round, random.Int()), 0o600))
			}
		}
		k.follow(waitForListing(t, f, roots, root, k.mark))
		if got, want := k.render(), onDisk(t, root); got != want {
			t.Fatalf("round %d:\n%s\nwant:\n%s", round, got, want)
		}
	}
}

// Only changed files are reported as changed, except for the folders of files in use.
func TestListingOfLittle(t *testing.T) {
	var names []string
	for i := range 40 {
		names = append(names, fmt.Sprintf("dir%d/a", i))
	}
	root, err := filepath.EvalSymlinks(tree(t, names...))
	do(t, err)
	needsListings(t, root)
	f, roots := newFinder(t), []string{root}
	waitForNotifications(t, f, roots)
	k := &follower{root: root}
	k.follow(waitForListing(t, f, roots, root, k.mark))
	if k.again != 41 {
		t.Errorf("at first %d folders changed", k.again)
	}
	k.again = 0
	l := waitForListing(t, f, roots, root, k.mark)
	if k.follow(l); k.again != 0 || len(k.files) != 41 {
		t.Errorf("without a change: %d folders of %d were reported as changed", k.again, len(k.files))
	}
	do(t, os.WriteFile(filepath.Join(root, "dir7", "a"), []byte("new"), 0o600))
	put(t, root, "dir8/b")
	if k.follow(waitForListing(t, f, roots, root, k.mark)); k.again != 2 {
		t.Errorf("two files changed: %d folders", k.again)
	}
	f.Touch(filepath.Join(root, "dir9", "a"), filepath.Join(filepath.Dir(root), "elsewhere"))
	k.again = 0
	if k.follow(waitForListing(t, f, roots, root, k.mark)); k.again > 3 || k.again == 0 { // and those that were written
		t.Errorf("a file is in use: %d folders changed", k.again)
	}
	// An old index is walked again, and from then on everything may have changed.
	f.mu.Lock()
	ix := f.current
	f.mu.Unlock()
	s := *ix.current.Load()
	s.walkedAt = time.Time{}
	ix.current.Store(&s)
	for deadline := time.Now().Add(patience); k.again < 41 && time.Now().Before(deadline); {
		k.again = 0
		k.follow(waitForListing(t, f, roots, root, k.mark))
	}
	if k.again != 41 {
		t.Error("the folders of an index that is too old were not all reported as changed")
	}
}

// Listing returns none for a root that contains another root, for a folder that is not a root, and
// for a root that is not watched.
func TestNoListing(t *testing.T) {
	root, err := filepath.EvalSymlinks(tree(t, "a", "in/b"))
	do(t, err)
	needsListings(t, root)
	f, roots := newFinder(t), []string{root, filepath.Join(root, "in")}
	k := &follower{root: roots[1]}
	if k.follow(waitForListing(t, f, roots, roots[1], Mark{})); !strings.HasPrefix(k.render(), "b: ") {
		t.Errorf("in the inner root: %s", k.render())
	}
	for _, other := range []string{root, filepath.Join(root, "nowhere")} {
		if _, ok := f.Listing(context.Background(), roots, other, Mark{}); ok {
			t.Errorf("Listing returned one for %s", other)
		}
	}
	none := &Finder{watchLimit: -1}
	defer none.Close()
	find(t, none, []string{root}, "")
	if _, ok := none.Listing(context.Background(), []string{root}, root, Mark{}); ok {
		t.Error("Listing returned one for a root that is not watched")
	}
	f.Close()
	if _, ok := f.Listing(context.Background(), roots, roots[1], Mark{}); ok {
		t.Error("Listing of a closed Finder returned one")
	}
}
