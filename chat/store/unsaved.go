package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// unsavedFile is the file with the text of a chat that is shown but not in the database yet, because a
// commit for each piece would take fifty times as long as a write to this file. The process that has locked the
// chat owns the file, and removes it when it releases the lock. If the process dies, the file remains,
// and the next process that locks or reads the chat moves the text to the database.
type unsavedFile struct {
	path        string
	forRecovery bool          // the chat is locked only to recover the text of a dead process
	recovered   chan struct{} // closed when that text is in the database, or the chat could not be locked
	released    chan struct{} // closed when the lock is released

	mu   sync.Mutex // guards the fields below
	file *os.File   // nil until the first write
	size int64      // length of the valid content
}

// piece is a line of the file.
type piece struct {
	Seq    event.Seq  `json:"seq"`
	Turn   string     `json:"turn"`
	At     int64      `json:"at"`
	Kind   event.Kind `json:"kind"`
	Begins bool       `json:"begins,omitempty"`
	Body   event.Body `json:"body"`
}

func (s *Store) unsavedFile(id string) *unsavedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &unsavedFile{path: filepath.Join(s.dir, "unsaved", fileKey(id)+".jsonl"), recovered: make(chan struct{}), released: make(chan struct{})}
}

var errNotLocked = errors.New("the chat is not locked")

// WriteAhead implements chat.Store.
func (s *Store) WriteAhead(_ context.Context, id string, pieces []event.Event) error {
	u, ok := s.lockedChats.Load(id)
	if !ok {
		return errNotLocked
	}
	var lines bytes.Buffer
	enc := json.NewEncoder(&lines)
	for _, e := range pieces {
		if err := enc.Encode(piece{e.Seq, e.Turn, millis(e.Time), event.KindOf(e.Body), e.Begins, e.Body}); err != nil {
			return err
		}
	}
	return s.explain(u.(*unsavedFile).write(lines.Bytes()))
}

// markSaved marks the content of a chat's file as stored in the database, so that the next write replaces
// it.
func (s *Store) markSaved(id string) {
	if u, ok := s.lockedChats.Load(id); ok {
		u := u.(*unsavedFile)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.size = 0
	}
}

// write appends all lines, or none if it returns an error.
func (u *unsavedFile) write(lines []byte) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file == nil {
		if err := os.MkdirAll(filepath.Dir(u.path), 0o700); err != nil {
			return err
		}
		f, err := os.OpenFile(u.path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		u.file, u.size = f, 0
	}
	if u.size == 0 {
		if err := u.file.Truncate(0); err != nil {
			return err
		}
	}
	n, err := u.file.WriteAt(lines, u.size)
	if err != nil {
		return errors.Join(err, u.file.Truncate(u.size))
	}
	u.size += int64(n)
	return nil
}

// remove removes the file.
func (u *unsavedFile) remove() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.file != nil {
		_ = u.file.Close()
		_ = os.Remove(u.path)
		u.file = nil
	}
}

// recoverUnsaved moves the text that a dead process left in the file to the database, or waits until
// another goroutine has done so. If another process has locked the chat, that process does it.
func (s *Store) recoverUnsaved(ctx context.Context, id string) {
	u := s.unsavedFile(id)
	if _, err := os.Lstat(u.path); err != nil {
		return
	}
	u.forRecovery = true
	if other, busy := s.lockedChats.LoadOrStore(id, u); busy {
		select {
		case <-other.(*unsavedFile).recovered:
		case <-ctx.Done():
		}
		return
	}
	if release, ok, err := s.lock(id, u); ok && err == nil {
		release()
	}
}

// restore is like recoverUnsaved, for a caller that has just locked the chat. If the text cannot be stored,
// the file stays, and the chat can be read without the text.
func (u *unsavedFile) restore(ctx context.Context, s *Store, id string) {
	raw, err := os.ReadFile(u.path)
	if err != nil {
		return
	}
	db, err := s.open()
	if err != nil {
		return
	}
	_, last, found, err := readMeta(ctx, db.getMeta, id)
	if err != nil {
		return
	}
	if events := s.parsePieces(raw, last); found && len(events) > 0 {
		if err := s.Extend(ctx, id, events); err != nil && !errors.Is(err, chat.ErrNoChat) {
			return
		}
	}
	_ = os.Remove(u.path)
}

// parsePieces returns the events in the lines of a file that follow a sequence number. It drops an
// incomplete last line, whose text was never shown.
func (s *Store) parsePieces(raw []byte, after event.Seq) (out []event.Event) {
	for line := range bytes.Lines(raw) {
		var p struct {
			piece
			Body json.RawMessage `json:"body"`
		}
		if json.Unmarshal(line, &p) != nil {
			break
		}
		body, err := s.dec.Body(p.Kind, event.Version, p.Body)
		if err != nil {
			break
		}
		if p.Seq <= after {
			continue
		}
		if i := slices.IndexFunc(out, func(e event.Event) bool { return e.Seq == p.Seq }); i >= 0 {
			out[i].Body = event.JoinDeltas(out[i].Body, body)
			continue
		}
		out = append(out, event.Event{Seq: p.Seq, Turn: p.Turn, Time: time.UnixMilli(p.At).UTC(), Begins: p.Begins, Body: body})
	}
	return out
}
