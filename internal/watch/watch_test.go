package watch

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// changeTimeout is the maximum time until a change is reported. Only a failing test waits that long.
const changeTimeout = time.Minute

func start(t *testing.T, paths ...string) *Watcher {
	t.Helper()
	w := New(func(err error) { t.Error(err) })
	t.Cleanup(w.Close)
	set(t, w, paths...)
	return w
}

func set(t *testing.T, w *Watcher, paths ...string) {
	t.Helper()
	waitForChange(t, w, "Set", func() error { w.Set(paths); return nil })
}

// waitForChange calls do and waits for a value from Changed.
func waitForChange(t *testing.T, w *Watcher, what string, do func() error) {
	t.Helper()
	if err := do(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	select {
	case <-w.Changed:
	case <-time.After(changeTimeout):
		t.Fatalf("%s went unnoticed", what)
	}
}

func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func save(path, text string) func() error {
	return func() error { return os.WriteFile(path, []byte(text), 0o600) }
}

// replace saves a file as many editors do: it renames a new file to the old name.
func replace(path, text string) func() error {
	return func() error {
		return errors.Join(save(path+"~", text)(), os.Rename(path+"~", path))
	}
}

func remove(path string) func() error { return func() error { return os.RemoveAll(path) } }

func TestFile(t *testing.T) {
	path := filepath.Join(tempDir(t), "config.json")
	w := start(t, path)
	waitForChange(t, w, "creation", save(path, "1"))
	waitForChange(t, w, "a write in place", save(path, "2"))
	waitForChange(t, w, "a replacement", replace(path, "3"))
	waitForChange(t, w, "another", replace(path, "4"))
	waitForChange(t, w, "a write after it", save(path, "5"))
	waitForChange(t, w, "deletion", remove(path))
	waitForChange(t, w, "a new life", save(path, "6"))
}

// The watcher sees files in folders that appear later or disappear.
func TestFolders(t *testing.T) {
	root := tempDir(t)
	a := filepath.Join(root, "a")
	path := filepath.Join(a, "b", "c", "config.json")
	create := func(text string) func() error {
		return func() error { return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), save(path, text)()) }
	}
	w := start(t, path)
	waitForChange(t, w, "creation of all", create("1"))
	waitForChange(t, w, "a write", save(path, "2"))
	waitForChange(t, w, "deletion of all", remove(a))
	waitForChange(t, w, "creation of the first", func() error { return os.Mkdir(a, 0o700) })
	waitForChange(t, w, "creation of the rest", create("3"))
	waitForChange(t, w, "a write", save(path, "4"))
	away := filepath.Dir(path) + ".old"
	waitForChange(t, w, "renaming away", func() error { return os.Rename(filepath.Dir(path), away) })
	waitForChange(t, w, "a new folder in its place", create("5"))
	waitForChange(t, w, "a write", save(path, "6"))
	waitForChange(t, w, "a file in place of a folder", func() error { return errors.Join(os.RemoveAll(a), save(a, "")()) })
	waitForChange(t, w, "the folder again", func() error { return errors.Join(os.Remove(a), create("7")()) })
	waitForChange(t, w, "a write", save(path, "8"))
}

// As with many dotfiles, the file and its folder are symlinks.
func TestLinks(t *testing.T) {
	needs.Symlinks(t)
	root := tempDir(t)
	dots, other, home := filepath.Join(root, "dots"), filepath.Join(root, "other"), filepath.Join(root, "home")
	for _, dir := range []string{dots, other, home} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, path string) func() error {
		return func() error { return errors.Join(os.RemoveAll(path), os.Symlink(target, path)) }
	}
	target, path := filepath.Join(dots, "eca.json"), filepath.Join(home, "eca", "config.json")
	w := start(t, path)
	waitForChange(t, w, "a link to a folder", link("../other", filepath.Join(home, "eca")))
	waitForChange(t, w, "a dangling link to a file", link("../dots/eca.json", filepath.Join(other, "config.json")))
	waitForChange(t, w, "the target's creation", save(target, "1"))
	waitForChange(t, w, "a write to the target", save(target, "2"))
	waitForChange(t, w, "its replacement", replace(target, "3"))
	waitForChange(t, w, "a write through the link", save(path, "4"))
	waitForChange(t, w, "another target", link(filepath.Join(root, "dots", "new.json"), filepath.Join(other, "config.json")))
	waitForChange(t, w, "its creation", save(filepath.Join(dots, "new.json"), "5"))
	waitForChange(t, w, "a folder in place of the link", func() error {
		return errors.Join(os.Remove(filepath.Join(home, "eca")), os.Mkdir(filepath.Join(home, "eca"), 0o700), save(path, "6")())
	})
	waitForChange(t, w, "a link to itself", link("config.json", path))
	waitForChange(t, w, "a file again", func() error { return errors.Join(os.Remove(path), save(path, "7")()) })
}

// Set removes the watches that the new files do not need.
func TestSet(t *testing.T) {
	root := tempDir(t)
	a, b := filepath.Join(root, "a", "x"), filepath.Join(root, "b", "y")
	w := start(t, a, b)
	if got := w.events.WatchList(); !reflect.DeepEqual(got, []string{root}) {
		t.Errorf("watched: %v", got)
	}
	waitForChange(t, w, "a folder", func() error { return os.Mkdir(filepath.Dir(b), 0o700) })
	set(t, w, b)
	if got := w.events.WatchList(); !reflect.DeepEqual(got, []string{filepath.Dir(b)}) {
		t.Errorf("watched: %v", got)
	}
	waitForChange(t, w, "a file", save(b, "1"))
	f := *w.folders.Load()
	for path, want := range map[string]bool{b: true, b + "~": false, filepath.Dir(b): true, filepath.Join(root, "gone", "z"): true} {
		if f.matters(path) != want {
			t.Errorf("concerns %s: %v", path, !want)
		}
	}
}

// The watcher reports a folder that it cannot watch once, and watches the others.
func TestFailure(t *testing.T) {
	root := tempDir(t)
	full, fine := filepath.Join(root, "full"), filepath.Join(root, "fine")
	for _, dir := range []string{full, fine} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var errs []string
	w := New(func(err error) { errs = append(errs, err.Error()) })
	w.add = func(dir string) error {
		if dir == full {
			return syscall.ENOSPC
		}
		return w.events.Add(dir)
	}
	set(t, w, filepath.Join(full, "x"), filepath.Join(fine, "x"))
	waitForChange(t, w, "a file elsewhere", save(filepath.Join(fine, "x"), "1"))
	set(t, w, filepath.Join(full, "x"))
	w.Close()
	w.Set(nil)
	if len(errs) != 1 || !strings.Contains(errs[0], full) || !strings.Contains(errs[0], "limit of watches") {
		t.Errorf("reported: %q", errs)
	}
	none := &Watcher{}
	none.Set([]string{"x"})
	none.Close()
}

// A burst of hints counts as one change. A burst without end counts as a change every half second.
func TestDebounce(t *testing.T) {
	for _, c := range []struct{ hints, fired int }{{1, 1}, {20, 1}, {100, 2}} {
		synctest.Test(t, func(t *testing.T) {
			hints, done, fired := make(chan struct{}, 1), make(chan struct{}), 0
			go debounce(hints, done, func() { fired++ })
			for range c.hints {
				hints <- struct{}{}
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(maxDelay)
			synctest.Wait()
			if fired != c.fired {
				t.Errorf("%d hints: fired %d times, want %d", c.hints, fired, c.fired)
			}
			close(done)
		})
	}
}

// A star stands for all names in a folder, even if the folder is created later.
func TestAllNames(t *testing.T) {
	dir := tempDir(t)
	sub := filepath.Join(dir, "a", "b")
	w := start(t, filepath.Join(sub, "*"))
	waitForChange(t, w, "the folder", func() error { return os.MkdirAll(sub, 0o700) })
	waitForChange(t, w, "a file", save(filepath.Join(sub, "one"), "1"))
	waitForChange(t, w, "its change", save(filepath.Join(sub, "one"), "2"))
	waitForChange(t, w, "its end", func() error { return os.Remove(filepath.Join(sub, "one")) })
}
