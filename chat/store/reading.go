package store

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/workspace"
)

// ErrOlder is returned by a store of NewReader for a file of an older version.
var ErrOlder = errors.New("the chats are stored in the format of an older version of eca; start a chat to convert them, for example with `eca exec`")

// NewReader returns a store for commands that only read. It does not convert the file of an older
// version: an eca of that version may be running, and could no longer use the file.
func NewReader(dir string) *Store {
	s := New(dir)
	s.neverConverts = true
	return s
}

// openToRead is open for a caller that does not write. If the file cannot be opened for writing, for
// example on a full disk or a read-only file system, it opens the file read-only.
func (s *Store) openToRead() (*database, error) {
	db, err := s.open()
	if err == nil || errors.Is(err, ErrNewer) || errors.Is(err, ErrOlder) {
		return db, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, err
	}
	path := filepath.Join(s.dir, File)
	if s.readOnly != nil && s.readOnly.changed(path) {
		_ = s.readOnly.Close()
		s.readOnly = nil
	}
	if s.readOnly == nil {
		opened, readErr := openReadOnly(path)
		switch {
		case errors.Is(readErr, ErrNewer), errors.Is(readErr, ErrOlder):
			return nil, readErr
		case readErr != nil:
			return nil, err
		}
		s.readOnly = opened
	}
	return s.readOnly.database, nil
}

// readOnly is a file that is open for reading only.
type readOnly struct {
	*database
	immutable bool  // SQLite takes no locks, and does not notice changes
	stamp     stamp // of an immutable file when it was opened
}

// stamp is compared to find out whether a file has changed. It is zero if the file cannot be examined.
type stamp struct {
	size int64
	time time.Time
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

// changed reports whether the file has to be opened again, because another process has written to it
// or is about to.
func (r *readOnly) changed(path string) bool {
	return r.immutable && (stampOf(path) != r.stamp || hasLog(path))
}

func hasLog(path string) bool { return stampOf(path+"-wal").size > 0 }

// openReadOnly opens the file without creating or changing any. SQLite needs the file's -wal and -shm
// to see what other processes write. If they cannot be created and there is no log to read, no other
// process has the file open, and SQLite can read the file alone (immutable).
func openReadOnly(path string) (*readOnly, error) {
	if err := checkNotEmpty(path); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err // SQLite's error does not have the cause
	}
	out := &readOnly{stamp: stampOf(path)}
	db, err := connectReadOnly(path, "&mode=ro")
	if err != nil && !hasLog(path) {
		out.immutable = true
		db, err = connectReadOnly(path, "&mode=ro&immutable=1")
	}
	out.database = db
	return out, err
}

func connectReadOnly(path, options string) (*database, error) {
	db, err := sql.Open("sqlite", workspace.ToURI(path)+"?_pragma=busy_timeout(10000)&_pragma=cache_size(-2000)"+options)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if err := checkVersion(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	out, err := prepare(db)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return out, nil
}

// checkVersion returns an error if the file's schema is not that of this version.
func checkVersion(db *sql.DB) error {
	var v int
	err := db.QueryRow("PRAGMA user_version").Scan(&v)
	switch {
	case err != nil:
		return err
	case v > schemaVersion:
		return ErrNewer
	case v < schemaVersion:
		return ErrOlder
	}
	return nil
}
