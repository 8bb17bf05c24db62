package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the "sqlite" driver
)

// schemaVersion is stored in PRAGMA user_version.
const schemaVersion = 1

const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE jobs (
  number   INTEGER PRIMARY KEY,         -- the order in which they came
  id       TEXT NOT NULL UNIQUE,
  key      TEXT UNIQUE,                 -- idempotency; NULL once it is free again
  hash     TEXT NOT NULL,               -- of the payload
  request  BLOB NOT NULL,
  state    TEXT NOT NULL,
  sent     INTEGER NOT NULL DEFAULT 0,  -- 1: the queue has it
  attempts INTEGER NOT NULL DEFAULT 0,
  worker   TEXT NOT NULL DEFAULT '',    -- who runs it
  lease    INTEGER NOT NULL DEFAULT 0,  -- until when, without a sign of life; milliseconds since 1970, like all times here
  reported INTEGER NOT NULL DEFAULT 0,  -- the number of the worker's last progress
  accepted INTEGER NOT NULL,
  started  INTEGER NOT NULL DEFAULT 0,
  finished INTEGER NOT NULL DEFAULT 0,
  keep     INTEGER NOT NULL,            -- for how long after its end
  response BLOB                         -- canonical, once it is over
);
CREATE INDEX jobs_state ON jobs(state, sent);
CREATE TABLE events (
  job  TEXT NOT NULL,
  seq  INTEGER NOT NULL,                -- from 0
  kind TEXT NOT NULL,
  body BLOB NOT NULL,                   -- canonical JobEvent
  PRIMARY KEY (job, seq)
) WITHOUT ROWID;
`

// openDB opens the database file of a service, or creates it.
func openDB(dir string) (*sql.DB, error) {
	path := filepath.Join(dir, "service.db")
	uri := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	if !strings.HasPrefix(uri.Path, "/") {
		uri.Path = "/" + uri.Path // a drive letter
	}
	db, err := sql.Open("sqlite", uri.String()+
		"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	// One connection: only one writer is possible anyway, and each transaction sees the previous one.
	db.SetMaxOpenConns(1)
	if err := migrate(db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	_ = os.Chmod(path, 0o600)
	return db, nil
}

func migrate(db *sql.DB) error {
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch {
	case version == schemaVersion:
		return nil
	case version > schemaVersion:
		return fmt.Errorf("it was written by a newer version (%d; this one knows %d)", version, schemaVersion)
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(schema + fmt.Sprintf("PRAGMA user_version = %d", schemaVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// write runs change in a transaction.
func (s *Service) write(ctx context.Context, change func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := change(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// identity returns the permanent name of this service.
func (s *Service) identity(ctx context.Context) (id string, err error) {
	err = s.write(ctx, func(tx *sql.Tx) error {
		if _, err := tx.Exec("INSERT OR IGNORE INTO meta (key, value) VALUES ('server', ?)", s.o.NewID()); err != nil {
			return err
		}
		return tx.QueryRow("SELECT value FROM meta WHERE key = 'server'").Scan(&id)
	})
	return id, err
}
