// Package search finds messages in all chats of the chat store.
//
// An Index is a file next to the chat store, search.db, with a full-text index of all messages
// (SQLite's FTS5). Update compares it with the store and indexes new messages. Search runs Update
// first, for a limited time, and then returns matches from the index, the newest messages first. The
// store does not depend on the index: processes of any version may append to chats, and the next
// Update in any process finds the new messages.
//
// Guarantees: every text is a valid query. Once Update has run, messages that were removed from the
// store are no longer found, and their text is neither in the file nor in its write-ahead log. The
// file may be deleted at any time; the next Update rebuilds it. A damaged file is rebuilt too.
//
// It does not rank results. It does not index eca's own messages (notices, output of commands),
// files or images.
package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/workspace"
)

// File is the name of the index in the store's directory.
const File = "search.db"

// Source is the store of chats. The index has its own connection to it, so that turns do not wait
// for its reads.
type Source interface {
	// State returns a text that differs after a chat is added, removed or appended to.
	State(ctx context.Context) (string, error)
	// Updated returns the time of each chat's last change.
	Updated(ctx context.Context) (map[string]time.Time, error)
	Meta(ctx context.Context, id string) (meta chat.Meta, last event.Seq, found bool, err error)
	Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error)
	// MessageAfter returns the first message that begins after an event.
	MessageAfter(ctx context.Context, id string, seq event.Seq) (at chat.Cursor, ok bool, err error)
	Close() error
}

// Options of an index. All fields are required.
type Options struct {
	// Open returns the directory of the store and a connection to it. It is called at first use.
	Open func() (dir string, s Source)
	// Workspace returns the key of a set of folders: resolved paths, one per line.
	Workspace func(roots []string) string
	Now       func() time.Time

	// InMemory reports whether the index is built in memory, because its file cannot be written.
	InMemory func() bool
}

// Index is the index of one store. It opens its file at first use.
type Index struct {
	opts     Options
	updating chan struct{} // holds a token while the index is updated

	mu     sync.Mutex // guards the fields below
	db     *sql.DB    // nil until it is needed
	source Source
	path   string
	closed bool
}

// New returns an index.
func New(o Options) *Index { return &Index{opts: o, updating: make(chan struct{}, 1)} }

// Close closes the file.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	if x.db == nil {
		return nil
	}
	db, source := x.db, x.source
	x.db = nil
	return errors.Join(db.Close(), source.Close())
}

// schemaVersion is stored in PRAGMA user_version. A file of an older version is rebuilt.
const schemaVersion = 1

const schema = `
CREATE TABLE state (state TEXT NOT NULL);   -- state of the store when the index was last complete
CREATE TABLE chats (
  id        TEXT PRIMARY KEY,
  created   INTEGER NOT NULL,               -- milliseconds since 1970, like all times here
  updated   INTEGER NOT NULL,               -- 0 if there is more to index
  next      INTEGER NOT NULL,               -- events before this one are indexed and do not change
  workspace TEXT NOT NULL                   -- its folders, one per line
) WITHOUT ROWID;
CREATE TABLE messages (
  id   INTEGER PRIMARY KEY,                 -- increases with the time
  chat TEXT NOT NULL,
  seq  INTEGER NOT NULL,                    -- the first event of the message, or the result of a call
  role INTEGER NOT NULL,
  at   INTEGER NOT NULL
);
CREATE INDEX messages_chat ON messages(chat, seq);
CREATE TABLE children (                     -- chats of subagents
  id   TEXT PRIMARY KEY,
  chat TEXT NOT NULL,                       -- the parent chat
  seq  INTEGER NOT NULL                     -- the event with the result of the parent's call
) WITHOUT ROWID;
CREATE INDEX children_chat ON children(chat, seq);
CREATE VIRTUAL TABLE words USING fts5(body, tokenize = 'unicode61 remove_diacritics 2', prefix = '3');
INSERT INTO words(words, rank) VALUES ('secure-delete', 1);
`

// ErrNewer is returned if a newer version of eca created the index.
var ErrNewer = errors.New("the search index was created by a newer version of eca; quit this version and start the newer one")

func (x *Index) open(ctx context.Context) (*sql.DB, Source, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return nil, nil, errors.New("the search index is closed")
	}
	if x.db != nil {
		return x.db, x.source, nil
	}
	dir, source := x.opts.Open()
	x.path = filepath.Join(dir, File)
	if x.opts.InMemory() {
		db, err := connectMemory(ctx)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("create search index: %w", err), source.Close())
		}
		x.db, x.source = db, source
		return db, source, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open search index: %w", err), source.Close())
	}
	db, err := connect(ctx, x.path)
	if safeio.DatabaseDamaged(err) { // the index can be rebuilt from the store
		for _, file := range []string{x.path, x.path + "-wal", x.path + "-shm"} {
			_ = os.Remove(file) // if that fails, connect fails too
		}
		db, err = connect(ctx, x.path)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open search index %s: %w", x.path, err), source.Close())
	}
	_ = os.Chmod(x.path, 0o600)
	x.db, x.source = db, source
	return db, source, nil
}

// connect opens a file and creates the tables if it does not have them.
func connect(ctx context.Context, path string) (*sql.DB, error) {
	db, err := sql.Open("sqlite", workspace.ToURI(path)+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=secure_delete(ON)&_pragma=journal_size_limit(0)&_pragma=cache_size(-2000)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(2) // one for writing, one for searching
	db.SetMaxIdleConns(2)
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// connectMemory creates an index that ends with its connection.
func connectMemory(ctx context.Context) (*sql.DB, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := prepare(ctx, db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// prepare creates the tables if the file does not have them.
func prepare(ctx context.Context, db *sql.DB) error {
	version := func(q interface {
		QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	},
	) (v int, err error) {
		err = q.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v)
		return v, err
	}
	if v, err := version(db); err != nil || v == schemaVersion {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	switch v, err := version(tx); { // another process may have created them meanwhile
	case err != nil || v == schemaVersion:
		return err
	case v > schemaVersion:
		return ErrNewer
	}
	for _, table := range []string{"words", "children", "messages", "chats", "state"} {
		if _, err := tx.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}
