package lsp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxWatched is the maximum number of files in a folder that are watched for changes.
const maxWatched = 2000

// document describes a file that the server has open, and the text that the server was last sent.
type document struct {
	uri            string
	version        int               // counts the texts that the server was sent
	sum            [sha256.Size]byte // of the text; zero if sending it failed
	size           int64
	modTime        time.Time
	checkedVersion int // the latest version that the server has reported about
	lastUse        uint64
	previousReport []tools.Diagnostic // the diagnostics of the previous version
}

// lock locks docsLock: until unlock, only the caller notifies the server about documents. It fails if
// the server has ended or ctx ends.
func (s *server) lock(ctx context.Context) error {
	select {
	case s.docsLock <- struct{}{}:
		return nil
	case <-s.ended:
		return s.endError()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) unlock() { <-s.docsLock }

// refresh notifies the server of changes on the disk since the last call: in documents, in their
// folders, and in the files that describe the project.
func (s *server) refresh(ctx context.Context) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.unlock()
	s.mu.Lock()
	var changed []string
	dirs := []string{s.root}
	for path, d := range s.docs {
		dirs = append(dirs, filepath.Dir(path))
		if info, err := os.Stat(path); err != nil || info.Size() != d.size || !info.ModTime().Equal(d.modTime) {
			changed = append(changed, path)
		}
	}
	s.mu.Unlock()
	slices.Sort(dirs)
	dirs = slices.Compact(dirs)
	maps.DeleteFunc(s.folders, func(dir string, _ map[string]time.Time) bool { return !slices.Contains(dirs, dir) })
	var events []fileEvent
	for _, dir := range dirs {
		events = append(events, s.changesIn(dir)...)
	}
	if len(events) > 0 {
		if err := s.conn.Notify(ctx, "workspace/didChangeWatchedFiles", watchedFiles{events}); err != nil {
			return err
		}
	}
	for _, path := range changed {
		if _, err := s.open(ctx, path); err != nil {
			return err
		}
	}
	return nil
}

// changesIn returns the changes in a folder since the last call.
func (s *server) changesIn(dir string) (out []fileEvent) {
	now := map[string]time.Time{}
	entries, _ := os.ReadDir(dir) // a deleted folder has no entries
	for _, e := range entries {
		if len(now) == maxWatched {
			break
		}
		if s.installed.files[filepath.Ext(e.Name())] == "" && !slices.Contains(s.installed.markers, e.Name()) {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			now[e.Name()] = info.ModTime()
		}
	}
	before, known := s.folders[dir]
	s.folders[dir] = now
	if !known {
		return nil
	}
	event := func(name string, kind int) {
		out = append(out, fileEvent{s.uri(filepath.Join(dir, name)), kind})
	}
	for name, mod := range now {
		if old, ok := before[name]; !ok {
			event(name, fileCreated)
		} else if !old.Equal(mod) {
			event(name, fileChanged)
		}
	}
	for name := range before {
		if _, ok := now[name]; !ok {
			event(name, fileDeleted)
		}
	}
	return out
}

// open opens a file in the server, or sends its new text. A file that is deleted, binary or too
// long is closed instead. It returns the version, or 0. The caller holds docsLock.
func (s *server) open(ctx context.Context, path string) (version int, err error) {
	info, statErr := os.Stat(path)
	if statErr != nil || !info.Mode().IsRegular() || info.Size() > maxText {
		return 0, s.close(ctx, path)
	}
	data, readErr := safeio.Read(path, maxText)
	if readErr != nil || workspace.IsBinary(data) {
		return 0, s.close(ctx, path)
	}
	sum := sha256.Sum256(data)
	s.mu.Lock()
	d := s.docs[path]
	isNew, changed := d == nil, d != nil && d.sum != sum
	if isNew {
		d = &document{uri: s.uri(path)}
		s.docs[path] = d
	}
	if isNew || changed {
		d.version++
		d.previousReport = s.reports.pushed[path]
	}
	s.reports.uses++
	d.sum, d.size, d.modTime, d.lastUse = sum, info.Size(), info.ModTime(), s.reports.uses
	version = d.version
	s.mu.Unlock()
	defer func() {
		if err == nil {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		d.sum = [sha256.Size]byte{} // the next call sends the text again
		if isNew {                  // the server has not opened the document
			delete(s.docs, path)
		}
	}()
	switch {
	case isNew:
		if dir := filepath.Dir(path); s.folders[dir] == nil {
			s.changesIn(dir) // remembers the files, so that the next call returns the changes since
		}
		if err := s.closeOldest(ctx); err != nil {
			return 0, err
		}
		err = s.conn.Notify(ctx, "textDocument/didOpen", didOpen{documentItem{d.uri, s.installed.files[filepath.Ext(path)], version, string(data)}})
	case changed:
		err = s.conn.Notify(ctx, "textDocument/didChange", didChange{versionedDocument{d.uri, version}, []contentChange{{string(data)}}})
		if wanted, text := s.capabilities.wantsSaves(); wanted && err == nil {
			saved := didSave{TextDocument: textDocument{d.uri}}
			if text {
				saved.Text = string(data)
			}
			err = s.conn.Notify(ctx, "textDocument/didSave", saved)
		}
	}
	return version, err
}

// close closes a document, if it is open, and drops its diagnostics.
func (s *server) close(ctx context.Context, path string) error {
	s.mu.Lock()
	d := s.docs[path]
	delete(s.docs, path)
	s.reports.drop(path)
	s.mu.Unlock()
	if d == nil {
		return nil
	}
	return s.conn.Notify(ctx, "textDocument/didClose", documentParams{textDocument{d.uri}})
}

// closeOldest closes the least recently used document if too many are open. Its diagnostics are
// kept.
func (s *server) closeOldest(ctx context.Context) error {
	s.mu.Lock()
	if len(s.docs) <= maxOpen {
		s.mu.Unlock()
		return nil
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(s.docs)), func(a, b string) int { return cmp.Compare(s.docs[a].lastUse, s.docs[b].lastUse) })
	d := s.docs[oldest]
	delete(s.docs, oldest)
	s.mu.Unlock()
	return s.conn.Notify(ctx, "textDocument/didClose", documentParams{textDocument{d.uri}})
}
