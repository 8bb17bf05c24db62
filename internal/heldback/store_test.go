package heldback

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// interruptedWorkspace creates a workspace in which a command had created .envrc when its daemon was
// killed.
func interruptedWorkspace(t *testing.T) (s *Store, state, root string) {
	t.Helper()
	state, root = t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, ".npmrc"), "mine\n")
	write(t, filepath.Join(root, "\xff", ".npmrc"), "mine\n")
	s = New(state)
	search := begin(t, s, root)
	write(t, filepath.Join(root, ".envrc"), "bad\n")
	if err := search.owner.Close(); err != nil { // as the system does with a killed process
		t.Fatal(err)
	}
	return s, state, root
}

func begin(t *testing.T, s *Store, root string) *Search {
	t.Helper()
	p := sandbox.Policy{Level: sandbox.Workspace, Guard: &sandbox.Guard{Roots: []string{root}, Names: sandbox.Names{Files: []string{".envrc", ".npmrc"}}}}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	search, err := s.Begin(p.Places)
	if err != nil {
		t.Fatal(err)
	}
	return search
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func fileExists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// If a daemon was killed during a command, the next daemon searches the workspace instead, and moves only
// files that the command created.
func TestKilledSearchIsMadeUpFor(t *testing.T) {
	_, state, root := interruptedWorkspace(t)
	next := New(state)
	if !next.Due([]string{root}) || !next.Due([]string{filepath.Join(root, "sub")}) || next.Due([]string{t.TempDir()}) {
		t.Error("Due must be true for the workspace and its folders, and false for others")
	}
	if out := next.Resume([]string{t.TempDir()}); len(out) > 0 {
		t.Errorf("in another workspace: %+v", out)
	}
	out := next.Resume([]string{root})
	if len(out) != 1 || len(out[0].Moved) != 1 || !strings.Contains(strings.Join(out[0].Lines(), "\n"), "an earlier command made "+filepath.Join(root, ".envrc")) {
		t.Fatalf("%+v", out)
	}
	if fileExists(filepath.Join(root, ".envrc")) || !fileExists(filepath.Join(root, ".npmrc")) || !fileExists(filepath.Join(root, "\xff", ".npmrc")) {
		t.Error("Resume did not move .envrc, or moved files that the command did not make")
	}
	if next.Due([]string{root}) || len(next.Resume([]string{root})) > 0 {
		t.Error("the search is still due after Resume")
	}
	if left, _ := os.ReadDir(next.recordDir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Another daemon does not resume a search whose own daemon still runs.
func TestLivingSearchIsLeftAlone(t *testing.T) {
	state, root := t.TempDir(), t.TempDir()
	search := begin(t, New(state), root)
	write(t, filepath.Join(root, ".envrc"), "bad\n")
	other := New(state)
	if out := other.Resume([]string{root}); len(out) > 0 || other.Due([]string{root}) || !fileExists(filepath.Join(root, ".envrc")) {
		t.Errorf("%+v", out)
	}
	if out := search.Finish(); len(out.Moved) != 1 || fileExists(filepath.Join(root, ".envrc")) {
		t.Errorf("%+v", out)
	}
}

// Resume reports a damaged record once. It removes the record of a workspace that does not exist
// any more.
func TestDamagedRecords(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "cut": `{"roots":["L3g`, "without a workspace": "{}", "another": "[1]"} {
		s, _, root := interruptedWorkspace(t)
		records, _ := filepath.Glob(filepath.Join(s.recordDir, "*"+recordSuffix))
		write(t, records[0], text)
		if !s.Due([]string{root}) {
			t.Errorf("%s: the search is not due", name)
		}
		out := s.Resume([]string{root})
		if len(out) != 1 || !strings.Contains(strings.Join(out[0].Lines(), "\n"), "the record of it is damaged") || s.Due([]string{root}) {
			t.Errorf("%s: %+v", name, out)
		}
	}
	s, _, root := interruptedWorkspace(t)
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	if out := s.Resume([]string{root}); len(out) != 1 || !out[0].Whole() || len(out[0].Moved) > 0 || s.Due([]string{root}) {
		t.Errorf("a workspace that is gone: %+v", out)
	}
}

// A link or another file that replaces the found file is neither moved nor followed.
func TestMoveFollowsNoLink(t *testing.T) {
	root, outside := t.TempDir(), t.TempDir()
	s := New(t.TempDir())
	write(t, filepath.Join(root, "mine", ".envrc"), "mine\n")
	write(t, filepath.Join(outside, ".envrc"), "mine\n")
	p := begin(t, s, root).places
	write(t, filepath.Join(root, "a", ".envrc"), "bad\n")
	found := p.Since(begin(t, s, root).startTime).New
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	for _, target := range []string{"mine", outside} {
		if err := os.RemoveAll(filepath.Join(root, "a")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(root, "a")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.moveAway(p, found[0]); err == nil {
			t.Errorf("moved through a link to %s", target)
		}
	}
	if err := os.Remove(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(root, "mine"), filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.moveAway(p, found[0]); err == nil || !fileExists(filepath.Join(root, "a", ".envrc")) || !fileExists(filepath.Join(outside, ".envrc")) {
		t.Errorf("another file was moved: %v", err)
	}
}

// Files and folders are copied to another file system, with their symlinks. Large ones are refused.
func TestPlacesAreCopied(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	write(t, filepath.Join(from, ".husky", "a", "b"), "text\n")
	if err := os.Symlink("a", filepath.Join(from, ".husky", "link")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(from, "large"), "")
	if err := os.Truncate(filepath.Join(from, "large"), 2<<30); err != nil {
		t.Fatal(err)
	}
	source, err := os.OpenRoot(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := os.OpenRoot(to)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	left := int64(maxCopied)
	if err := copyTo(source, ".husky", target, ".husky", &left); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, ".husky", "link", "b")); err != nil || string(text) != "text\n" || left >= maxCopied {
		t.Errorf("%q %v, %d left", text, err, left)
	}
	if err := copyTo(source, "large", target, "large", &left); err == nil {
		t.Error("a large file was copied")
	}
}

// Begin fails if it cannot write a record, so the command does not start. If the records cannot be
// read, Due is true.
func TestRecordsThatCannotBeOpened(t *testing.T) {
	s, _, root := interruptedWorkspace(t)
	records, _ := filepath.Glob(filepath.Join(s.recordDir, "*"+recordSuffix))
	owner := strings.TrimSuffix(records[0], recordSuffix) + ownerSuffix
	if err := os.Remove(owner); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(owner, 0o700); err != nil {
		t.Fatal(err)
	}
	if !s.Due([]string{root}) {
		t.Error("Due is false although a lock cannot be opened")
	}
	if err := os.RemoveAll(s.recordDir); err != nil {
		t.Fatal(err)
	}
	write(t, s.recordDir, "")
	p := sandbox.Policy{Level: sandbox.Workspace, Guard: &sandbox.Guard{Roots: []string{root}}}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Begin(p.Places); err == nil || !strings.Contains(err.Error(), s.recordDir) || !strings.Contains(err.Error(), "free space there") {
		t.Errorf("%v", err)
	}
	if !s.Due([]string{root}) {
		t.Error("Due is false although the records cannot be listed")
	}
}
