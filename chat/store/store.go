// Package store keeps chats and their events in SQLite. docs/storage.md describes
// the file so that a stranger could read it.
//
// Guarantees: what Append returned for survives the death of the process (kill -9);
// Sync makes it survive the death of the machine. Several daemons can use one store:
// writes are transactions with a busy timeout, and Lock gives one of them a chat
// while it appends to it; the lock dies with its process. A store of a newer
// version is refused, never changed.
//
// It does not cache, and it does not interpret events.
package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	_ "modernc.org/sqlite" // the "sqlite" driver

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// schemaVersion is stored in PRAGMA user_version.
const schemaVersion = 1

const schema = `
CREATE TABLE chats (
  id         TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL,          -- milliseconds since 1970, like all times here
  updated_at INTEGER NOT NULL,
  title      TEXT NOT NULL DEFAULT '',
  model      TEXT NOT NULL DEFAULT '',
  agent      TEXT NOT NULL DEFAULT '',
  variant    TEXT NOT NULL DEFAULT '',
  trust      INTEGER NOT NULL DEFAULT 0,
  roots      TEXT NOT NULL DEFAULT '[]' -- workspace folders, JSON
) WITHOUT ROWID;
CREATE INDEX chats_updated ON chats(updated_at);
CREATE TABLE events (
  chat    TEXT NOT NULL,
  seq     INTEGER NOT NULL,
  turn    TEXT NOT NULL,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  version INTEGER NOT NULL,
  body    BLOB NOT NULL,                -- JSON
  PRIMARY KEY (chat, seq)
) WITHOUT ROWID;
`

// ErrNewer is returned for a store that a newer eca wrote.
var ErrNewer = errors.New("the chat store was written by a newer version of eca")

// Store implements chat.Store. It opens its file at first use.
type Store struct {
	dir string
	dec *event.Decoder

	mu     sync.Mutex // guards what follows
	db     *sql.DB    // nil until it is first needed
	closed bool
}

var _ chat.Store = (*Store)(nil)

// New returns the store in dir, which is created when it is first used.
func New(dir string) *Store { return &Store{dir: dir, dec: event.NewDecoder()} }

// open opens the file at the first call that can.
func (s *Store) open() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the chat store is closed")
	}
	if s.db != nil {
		return s.db, nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open chat store: %w", err)
	}
	// Two processes must not create the file or switch it to WAL at the same time.
	turnstile := flock.New(filepath.Join(s.dir, "open.lock"))
	if err := turnstile.Lock(); err == nil {
		defer turnstile.Close()
	}
	path := filepath.Join(s.dir, "chats.db")
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(uri.Path, "/") {
		uri.Path = "/" + uri.Path // a drive letter
	}
	db, err := sql.Open("sqlite", uri.String()+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-2000)&_txlock=immediate")
	if err != nil {
		return nil, fmt.Errorf("open chat store: %w", err)
	}
	// One connection: SQLite has one writer anyway, and reads are short.
	db.SetMaxOpenConns(1)
	if err := migrate(db); err != nil {
		return nil, errors.Join(fmt.Errorf("open chat store %s: %w", path, err), db.Close())
	}
	_ = os.Chmod(path, 0o600)
	s.db = db
	return db, nil
}

// migrate brings the file to schemaVersion in one transaction. The caller holds the
// turnstile.
func migrate(db *sql.DB) error {
	var v int
	if err := db.QueryRow("PRAGMA user_version").Scan(&v); err != nil {
		return err
	}
	switch {
	case v == schemaVersion:
		return nil
	case v > schemaVersion:
		return ErrNewer
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(schema); err != nil {
		return err
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// Close closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	db := s.db
	s.db = nil
	return db.Close()
}

// Append implements chat.Store.
func (s *Store) Append(ctx context.Context, meta chat.Meta, events []event.Event) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	roots, err := json.Marshal(meta.Roots)
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("append to chat %s: %w", meta.ID, err)
	}
	defer tx.Rollback()
	_, err = tx.Exec(`INSERT INTO chats (id, created_at, updated_at, title, model, agent, variant, trust, roots)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET updated_at = excluded.updated_at, title = excluded.title, model = excluded.model,
		agent = excluded.agent, variant = excluded.variant, trust = excluded.trust`,
		meta.ID, millis(meta.Created), millis(meta.Updated), meta.Title, meta.Model, meta.Agent, meta.Variant, meta.Trust, string(roots))
	if err != nil {
		return fmt.Errorf("append to chat %s: %w", meta.ID, err)
	}
	stmt, err := tx.Prepare("INSERT INTO events (chat, seq, turn, at, kind, version, body) VALUES (?, ?, ?, ?, ?, ?, ?)")
	if err != nil {
		return fmt.Errorf("append to chat %s: %w", meta.ID, err)
	}
	defer stmt.Close()
	for _, e := range events {
		version, body, err := event.EncodeBody(e.Body)
		if err != nil {
			return fmt.Errorf("encode event %d of chat %s: %w", e.Seq, meta.ID, err)
		}
		if _, err := stmt.Exec(meta.ID, e.Seq, e.Turn, millis(e.Time), string(event.KindOf(e.Body)), version, body); err != nil {
			return fmt.Errorf("append event %d to chat %s: %w", e.Seq, meta.ID, err)
		}
	}
	return tx.Commit()
}

// Meta implements chat.Store.
func (s *Store) Meta(ctx context.Context, id string) (chat.Meta, event.Seq, bool, error) {
	db, err := s.open()
	if err != nil {
		return chat.Meta{}, 0, false, err
	}
	m := chat.Meta{ID: id}
	var created, updated int64
	var roots string
	var last sql.NullInt64
	err = db.QueryRowContext(ctx, `SELECT created_at, updated_at, title, model, agent, variant, trust, roots,
		(SELECT max(seq) FROM events WHERE chat = id) FROM chats WHERE id = ?`, id).
		Scan(&created, &updated, &m.Title, &m.Model, &m.Agent, &m.Variant, &m.Trust, &roots, &last)
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
	db, err := s.open()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, "SELECT seq, turn, at, kind, version, body FROM events WHERE chat = ? AND seq >= ? ORDER BY seq LIMIT ?", id, from, limit)
	if err != nil {
		return nil, fmt.Errorf("read events of chat %s: %w", id, err)
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
			return nil, fmt.Errorf("read events of chat %s: %w", id, err)
		}
		e.Time = time.UnixMilli(at).UTC()
		if e.Body, err = s.dec.Body(event.Kind(kind), version, body); err != nil {
			return nil, fmt.Errorf("event %d of chat %s: %w", e.Seq, id, err)
		}
		out = append(out, e)
	}
	return out, rows.Err()
}

// Delete implements chat.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	db, err := s.open()
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("delete chat %s: %w", id, err)
	}
	defer tx.Rollback()
	for _, q := range []string{"DELETE FROM events WHERE chat = ?", "DELETE FROM chats WHERE id = ?"} {
		if _, err := tx.Exec(q, id); err != nil {
			return fmt.Errorf("delete chat %s: %w", id, err)
		}
	}
	return tx.Commit()
}

// Sync implements chat.Store: a checkpoint writes and syncs the log and the file.
func (s *Store) Sync(ctx context.Context) error {
	s.mu.Lock()
	db := s.db
	s.mu.Unlock()
	if db == nil {
		return nil
	}
	_, err := db.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return err
}

// Lock implements chat.Store with a lock file, which the system releases when the
// process dies.
func (s *Store) Lock(id string) (release func(), ok bool, err error) {
	dir := filepath.Join(s.dir, "locks")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, false, err
	}
	sum := sha256.Sum256([]byte(id))
	l := flock.New(filepath.Join(dir, hex.EncodeToString(sum[:16])+".lock"))
	ok, err = l.TryLock()
	if err != nil || !ok {
		return nil, false, err
	}
	return func() { _ = l.Close() }, true, nil
}

func millis(t time.Time) int64 { return t.UnixMilli() }
