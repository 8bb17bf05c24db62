// Package heldback finds the protected files that a command created in a workspace, such as git
// hooks, and moves them out of it.
//
// A search is recorded before the command starts. The record is removed after everything was
// searched and moved. If eca is killed while the command runs, the next daemon performs the search,
// and until then Due reports that commands must not run without approval in that workspace. The
// record of a running command is locked by its daemon.
//
// Nothing is overwritten, no symlink redirects a move, and only the found file is moved. Changes to
// existing protected files are not undone: these are read-only for commands (package sandbox).
//
// The entry points are New, Store.Begin and Store.Resume.
package heldback

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Store keeps the moved files, and the records of pending searches.
type Store struct {
	movedDir, recordDir string // folders

	mu sync.Mutex // held while the locks of records are tried, to find out whether their daemons run
}

// New returns the store in eca's state folder, where it creates folders when needed.
func New(stateDir string) *Store {
	return &Store{movedDir: filepath.Join(stateDir, "held-back"), recordDir: filepath.Join(stateDir, "due-searches")}
}

const (
	recordSuffix = ".json"
	ownerSuffix  = ".owner"
	maxRecord    = 256 << 20
)

// Search is a pending search. The caller must call Finish. A nil Search does nothing.
type Search struct {
	store     *Store
	places    sandbox.Places
	startTime time.Time
	path      string // of the record, without its suffix
	owner     *flock.Flock
	ended     atomic.Bool // Finish or Cancel was called
}

// Begin records, before a command starts, that protected files have to be searched for after it. It
// returns nil if there is nothing to search: without a store, or without places, as for a command
// that is not sandboxed.
func (s *Store) Begin(p sandbox.Places) (*Search, error) {
	if s == nil || p.Roots() == nil {
		return nil, nil //nolint:nilnil // documented
	}
	data, err := p.Record()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.recordDir, 0o700); err != nil {
		return nil, s.recordError(err)
	}
	path := filepath.Join(s.recordDir, rand.Text())
	owner := flock.New(path+ownerSuffix, flock.SetPermissions(0o600))
	if err := owner.Lock(); err != nil {
		_ = os.Remove(path + ownerSuffix)
		return nil, s.recordError(err)
	}
	search := &Search{store: s, places: p, path: path, owner: owner}
	info, err := fs.FileInfo(nil), safeio.Write(path+recordSuffix, data, 0o600)
	if err == nil {
		info, err = os.Stat(path + recordSuffix)
	}
	if err != nil {
		search.close(true)
		return nil, s.recordError(err)
	}
	search.startTime = info.ModTime()
	return search, nil
}

// recordError returns the error for a search that cannot be recorded. The command must not start: if eca
// were killed while the command runs, no other daemon would search.
func (s *Store) recordError(err error) error {
	return fmt.Errorf("cannot record in %s that files which other programs run (.envrc, git hooks) are to be looked for after the command: %w; free space there, or make the folder writable", s.recordDir, err)
}

// Finish searches for protected files that the command created, and moves them away. If that was
// complete, the search is no longer pending.
func (s *Search) Finish() Outcome {
	if s == nil || s.ended.Swap(true) {
		return Outcome{}
	}
	changes := s.places.Since(s.startTime)
	out := Outcome{Missed: changes.Missed}
	for _, change := range changes.New {
		if freshRepository(change.Path) || freshWorktree(s.places, change.Path) {
			continue
		}
		item, err := s.store.moveAway(s.places, change)
		switch {
		case err == nil:
			out.Moved = append(out.Moved, item)
		case !errors.Is(err, fs.ErrNotExist): // otherwise another search moved it first
			out.Failed = append(out.Failed, Failure{change.Path, err})
		}
	}
	s.close(out.Whole())
	return out
}

// Cancel replaces Finish for a command that did not start; after Finish it does nothing.
func (s *Search) Cancel() {
	if s != nil && !s.ended.Swap(true) {
		s.close(true)
	}
}

// close releases the lock of the record. If done, it removes the record: the search is no longer pending.
func (s *Search) close(done bool) {
	if done {
		_ = os.Remove(s.path + recordSuffix)
	}
	_ = os.Remove(s.path + ownerSuffix)
	_ = s.owner.Close()
}

// Resume performs the pending searches in the workspace folders.
func (s *Store) Resume(roots []string) []Outcome {
	var out []Outcome
	list, _ := s.ownerless(roots)
	for _, search := range list {
		if search.places.Roots() == nil {
			out = append(out, Outcome{Damaged: search.startTime})
			search.close(true)
			continue
		}
		found := search.Finish()
		found.Resumed = true
		out = append(out, found)
	}
	return out
}

// Due reports whether the search for an ended command is pending in one of the workspace folders.
func (s *Store) Due(roots []string) bool {
	if s == nil {
		return false
	}
	list, unknown := s.ownerless(roots)
	for _, search := range list {
		search.close(false)
	}
	return len(list) > 0 || unknown
}

// ownerless returns the pending searches in the workspace folders whose daemon is no longer running, and
// locks their records. A search whose record cannot be read counts for all folders. unknown means that
// there may be more, because the folder of records or a lock could not be opened.
func (s *Store) ownerless(roots []string) (list []*Search, unknown bool) {
	if s == nil {
		return nil, false
	}
	entries, err := os.ReadDir(s.recordDir)
	if err != nil || len(entries) == 0 {
		return nil, err != nil && !errors.Is(err, fs.ErrNotExist)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), recordSuffix)
		if !ok {
			continue
		}
		search := &Search{store: s, path: filepath.Join(s.recordDir, name)}
		search.owner = flock.New(search.path+ownerSuffix, flock.SetPermissions(0o600))
		if locked, err := search.owner.TryLock(); !locked || err != nil {
			unknown = unknown || err != nil
			continue
		}
		if !search.read() || search.places.Roots() != nil && !overlap(search.places.Roots(), roots) {
			search.close(false)
			continue
		}
		list = append(list, search)
	}
	return list, unknown
}

// read reads the record; it returns false if the record was removed. A damaged record has no
// places.
func (s *Search) read() bool {
	info, err := os.Lstat(s.path + recordSuffix)
	if err != nil {
		return false
	}
	s.startTime = info.ModTime()
	if data, err := safeio.Read(s.path+recordSuffix, maxRecord); err == nil {
		s.places, _ = sandbox.RecordedPlaces(data)
	}
	return true
}

// overlap reports whether a folder in one list is equal to, inside or around one in the other.
func overlap(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			x, y := resolve(x), resolve(y)
			if safeio.Within(x, y) || safeio.Within(y, x) {
				return true
			}
		}
	}
	return false
}

func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}
