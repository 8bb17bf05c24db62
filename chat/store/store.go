// Package store stores chats and their events in SQLite. docs/storage.md describes
// the file format.
//
// Guarantees: deleted text is overwritten in the file, and Shrink removes it from the write-ahead log.
// Once Append has returned, its events survive a crash of the process (kill -9); once Sync has
// returned, they survive a crash of the machine. Several daemons can share a store: writes are
// transactions with a busy timeout, and Lock reserves a chat for the daemon that appends to it.
// The system releases the lock when the process ends. A store written by a newer version is
// rejected and never changed.
//
// The package does not cache events and does not interpret them.
package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/filelock"
	"github.com/seed-dec29ce4/eca/workspace"
)

// File is the name of the file in the store's directory.
const File = "chats.db"

// Store implements chat.Store. It opens its file at first use. It has more than 40 methods because it also
// serves the importer, the search index, retention and the commands that list chats.
type Store struct {
	dec *event.Decoder

	mu       sync.Mutex // guards the fields below
	dir      string
	db       *database // nil until it is first needed
	readOnly *readOnly // nil unless db cannot be opened
	closed   bool

	neverConverts bool // a file of an older version is an error (ErrOlder); see NewReader

	lockedChats sync.Map // chats that this store has locked: *unsavedFile by chat id
}

var _ chat.Store = (*Store)(nil)

// New returns the store in dir. The directory is created at first use.
func New(dir string) *Store { return &Store{dir: dir, dec: event.NewDecoder()} }

// Move sets the folder of a store that has not been used yet.
func (s *Store) Move(dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.db == nil {
		s.dir = dir
	}
}

// Path returns the file's path.
func (s *Store) Path() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return filepath.Join(s.dir, File)
}

// open opens the file unless it is open. If it fails, the next call tries again.
func (s *Store) open() (*database, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the chat store is closed")
	}
	if s.db != nil {
		return s.db, nil
	}
	path := filepath.Join(s.dir, File)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open chat store: %w", Explain(err, path))
	}
	// Two processes must not create the file or switch it to WAL at the same time.
	openLock := flock.New(filepath.Join(s.dir, "open.lock"))
	if err := openLock.Lock(); err == nil {
		defer openLock.Close()
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			defer removeIfEmpty(path) // the disk may be full
		}
	}
	if err := checkNotEmpty(path); err != nil {
		return nil, fmt.Errorf("open chat store: %w", err)
	}
	db, err := sql.Open("sqlite", workspace.ToURI(path)+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=secure_delete(ON)&_pragma=journal_size_limit(0)&_pragma=cache_size(-2000)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open chat store: %w", err)
	}
	// One connection: SQLite has one writer anyway, and reads are short.
	db.SetMaxOpenConns(1)
	if err := migrate(db, !s.neverConverts); err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	if info, err := os.Stat(path); err == nil {
		_ = os.Chmod(path, info.Mode()&0o700)
	}
	if s.db, err = prepare(db); err != nil {
		return nil, errors.Join(openError(path, err), db.Close())
	}
	return s.db, nil
}

// checkNotEmpty returns an error for a file that exists but is empty: SQLite would mistake it for a
// new database. The caller holds openLock, so that no other process is creating the file.
func checkNotEmpty(path string) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() > 0 {
		return nil //nolint:nilerr // opening the file reports the reason
	}
	if log, err := os.Stat(path + "-wal"); err == nil && log.Size() > 0 {
		return nil // the write-ahead log still has the content
	}
	return &diskError{path, "the file is empty, but eca never leaves it empty", moveAwayAdvice(path), nil}
}

// removeIfEmpty removes a file that was created but not written to.
func removeIfEmpty(path string) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 && checkNotEmpty(path) != nil {
		_ = os.Remove(path)
	}
}

// openError wraps an error from opening the file, so that its text has the path exactly once.
func openError(path string, err error) error {
	if explained := Explain(err, path); errors.As(explained, new(*diskError)) {
		return fmt.Errorf("open chat store: %w", explained)
	}
	return fmt.Errorf("open chat store %s: %w", path, err)
}

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.readOnly != nil {
		errs = append(errs, s.readOnly.Close())
	}
	s.db, s.readOnly = nil, nil
	return errors.Join(errs...)
}

// Append implements chat.Store.
func (s *Store) Append(ctx context.Context, meta chat.Meta, events []event.Event) error {
	err := s.write(ctx, "append to chat "+meta.ID, func(tx *transaction) error {
		if err := putMeta(tx, meta); err != nil {
			return err
		}
		return putEvents(tx, meta.ID, events)
	})
	if err == nil {
		s.markSaved(meta.ID)
	}
	return err
}

// write runs change in a transaction. Errors begin with what, a description of the change.
func (s *Store) write(ctx context.Context, what string, change func(*transaction) error) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	tx, err := db.begin(ctx)
	if err == nil {
		defer tx.Rollback()
		err = change(tx)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, s.explain(err))
	}
	return nil
}

func putMeta(tx *transaction, meta chat.Meta) error {
	roots, err := json.Marshal(meta.Roots)
	if err != nil {
		return err
	}
	res, err := tx.bind(tx.db.setMeta).Exec(
		millis(meta.Updated), meta.Title, meta.Named, meta.Model, meta.Agent, meta.Variant, meta.Trust, meta.ID)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); n > 0 || err != nil {
		return err
	}
	_, err = tx.Exec(`INSERT INTO chats (id, created_at, updated_at, title, named, model, agent, variant, trust, roots, workspace, parent)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		meta.ID, millis(meta.Created), millis(meta.Updated), meta.Title, meta.Named, meta.Model, meta.Agent, meta.Variant, meta.Trust,
		string(roots), workspaceKey(meta.Roots), meta.Parent)
	return err
}

func putEvents(tx *transaction, id string, events []event.Event) error {
	put, newMessages := tx.bind(tx.db.putEvent), 0
	for _, e := range events {
		version, body, err := event.EncodeBody(e.Body)
		if err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if _, err := put.Exec(id, e.Seq, e.Turn, millis(e.Time), string(event.KindOf(e.Body)), version, body); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if !e.Begins {
			continue
		}
		place := e.Seq
		if f, ok := e.Body.(event.Flag); ok {
			place = f.After
		}
		if _, err := tx.bind(tx.db.putMessage).Exec(id, place, e.Seq, event.ClientID(e.Body)); err != nil {
			return fmt.Errorf("event %d: %w", e.Seq, err)
		}
		newMessages++
	}
	if newMessages == 0 {
		return nil
	}
	_, err := tx.bind(tx.db.addMessages).Exec(newMessages, id)
	return err
}

// Extend implements chat.Store.
func (s *Store) Extend(ctx context.Context, id string, events []event.Event) error {
	err := s.write(ctx, "append to chat "+id, func(tx *transaction) error {
		res, err := tx.bind(tx.db.setUpdated).Exec(millis(events[len(events)-1].Time), id)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); n == 0 || err != nil {
			return cmp.Or(err, chat.ErrNoChat)
		}
		return putEvents(tx, id, events)
	})
	if err == nil {
		s.markSaved(id)
	}
	return err
}

// ChangeMeta implements chat.Store.
func (s *Store) ChangeMeta(ctx context.Context, id string, change func(*chat.Meta)) (meta chat.Meta, err error) {
	err = s.write(ctx, "change chat "+id, func(tx *transaction) error {
		var found bool
		if meta, _, found, err = readMeta(ctx, tx.bind(tx.db.getMeta), id); err != nil {
			return err
		}
		if !found {
			return chat.ErrNoChat
		}
		change(&meta)
		return putMeta(tx, meta)
	})
	return meta, err
}

// Meta implements chat.Store.
func (s *Store) Meta(ctx context.Context, id string) (chat.Meta, event.Seq, bool, error) {
	db, err := s.openToRead()
	if err != nil {
		return chat.Meta{}, 0, false, err
	}
	s.recoverUnsaved(ctx, id)
	m, last, found, err := readMeta(ctx, db.getMeta, id)
	return m, last, found, s.explain(err)
}

// readMeta reads with getMeta, which may belong to a transaction.
func readMeta(ctx context.Context, getMeta *sql.Stmt, id string) (chat.Meta, event.Seq, bool, error) {
	m := chat.Meta{ID: id}
	var created, updated int64
	var roots string
	var last sql.NullInt64
	err := getMeta.QueryRowContext(ctx, id).
		Scan(&created, &updated, &m.Title, &m.Named, &m.Model, &m.Agent, &m.Variant, &m.Trust, &roots, &m.Parent, &last)
	if errors.Is(err, sql.ErrNoRows) {
		return chat.Meta{}, 0, false, nil
	}
	if err != nil {
		return chat.Meta{}, 0, false, fmt.Errorf("read chat %s: %w", id, err)
	}
	m.Created, m.Updated = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	if err := json.Unmarshal([]byte(roots), &m.Roots); err != nil {
		return chat.Meta{}, 0, false, fmt.Errorf("read chat %s: %w", id, err)
	}
	return m, event.Seq(last.Int64), true, nil
}

// Events implements chat.Store.
func (s *Store) Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error) {
	db, err := s.openToRead()
	if err != nil {
		return nil, err
	}
	s.recoverUnsaved(ctx, id)
	rows, err := db.QueryContext(ctx, "SELECT seq, turn, at, kind, version, body FROM events WHERE chat = ? AND seq >= ? ORDER BY seq LIMIT ?", id, from, limit)
	if err != nil {
		return nil, fmt.Errorf("read events of chat %s: %w", id, s.explain(err))
	}
	defer rows.Close()
	var out []event.Event
	for rows.Next() {
		var e event.Event
		var at int64
		var kind string
		var version int
		var body []byte
		if err := rows.Scan(&e.Seq, &e.Turn, &at, &kind, &version, &body); err != nil {
			return nil, fmt.Errorf("read events of chat %s: %w", id, s.explain(err))
		}
		e.Time = time.UnixMilli(at).UTC()
		if e.Body, err = s.dec.Body(event.Kind(kind), version, body); err != nil {
			return nil, fmt.Errorf("event %d of chat %s: %w", e.Seq, id, err)
		}
		out = append(out, e)
	}
	return out, s.explain(rows.Err())
}

// Delete implements chat.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	return s.write(ctx, "delete chat "+id, func(tx *transaction) error {
		const chatAndSubagents = "IN (SELECT ?1 UNION ALL SELECT id FROM chats WHERE parent = ?1 AND parent <> '')"
		for _, q := range []string{"DELETE FROM events WHERE chat " + chatAndSubagents, "DELETE FROM messages WHERE chat " + chatAndSubagents, "DELETE FROM pins WHERE chat " + chatAndSubagents, "DELETE FROM chats WHERE id " + chatAndSubagents} {
			if _, err := tx.Exec(q, id); err != nil {
				return err
			}
		}
		return nil
	})
}

// maxLog is the size of the write-ahead log, in bytes, above which Sync checkpoints it.
const maxLog = 1 << 20

// Sync implements chat.Store. While the write-ahead log is short, Sync only syncs its file: after a
// checkpoint, the next commit would have to restart the log, truncate its file (journal_size_limit)
// and wait for the disk.
func (s *Store) Sync(ctx context.Context) error {
	s.mu.Lock()
	db, log := s.db, filepath.Join(s.dir, File+"-wal")
	s.mu.Unlock()
	if db == nil {
		return nil
	}
	if f, err := os.OpenFile(log, os.O_RDWR, 0); err == nil {
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Size() < maxLog {
			return s.explain(f.Sync())
		}
	}
	_, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return s.explain(err)
}

// Lock implements chat.Store with a lock file, which the system releases when the
// process dies.
func (s *Store) Lock(id string) (release func(), ok bool, err error) {
	u := s.unsavedFile(id)
	for {
		other, busy := s.lockedChats.LoadOrStore(id, u)
		if !busy {
			return s.lock(id, u)
		}
		if !other.(*unsavedFile).forRecovery {
			return nil, false, nil
		}
		<-other.(*unsavedFile).released
	}
}

// lock locks a chat whose entry in s.locked is u.
func (s *Store) lock(id string, u *unsavedFile) (release func(), ok bool, err error) {
	forget := sync.OnceFunc(func() {
		s.lockedChats.Delete(id)
		close(u.released)
	})
	defer func() {
		close(u.recovered)
		if !ok {
			forget()
		}
	}()
	s.mu.Lock()
	dir := filepath.Join(s.dir, "locks")
	s.mu.Unlock()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, s.explain(err)
	}
	unlock, ok, err := filelock.Try(filepath.Join(dir, fileKey(id)+".lock"))
	if err != nil || !ok {
		return nil, false, s.explain(err)
	}
	u.restore(context.Background(), s, id)
	return func() {
		u.remove()
		unlock()
		forget()
	}, true, nil
}

// fileKey returns a name for files of a chat, derived from its id.
func fileKey(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16])
}

func millis(t time.Time) int64 { return t.UnixMilli() }
