package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/filelock"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// The names of the file and of its lock in the state directory. The lock is a separate file, because
// each write replaces the file.
const (
	fileName = "credentials.json"
	lockName = "credentials.lock"
)

// lockTimeout is how long a writer waits for other processes, which write for milliseconds.
const lockTimeout = 5 * time.Second

// Store keeps credentials.
type Store struct {
	dir      string
	keychain Keychain // may be nil

	mu              sync.Mutex  // guards the fields below
	place           Place       // where new secrets are stored
	loaded          bool        // the fields below are set
	fileInfo        fs.FileInfo // the file when it was read last; nil if it did not exist
	all             map[string]Credential
	err             error
	retryKeychainAt time.Time // when a failed keychain may be used again; zero without a failure

	renewing map[string]*renewal // by provider

	renewCtx context.Context // of renewals; ends with Close
	stop     context.CancelFunc
	renewals sync.WaitGroup
}

// New returns the store in a directory, which is created when something is stored. The
// keychain may be nil.
func New(dir string, k Keychain) *Store {
	s := &Store{dir: dir, keychain: k, place: Auto, renewing: map[string]*renewal{}}
	s.renewCtx, s.stop = context.WithCancel(context.Background())
	return s
}

// Path returns the file.
func (s *Store) Path() string { return filepath.Join(s.dir, fileName) }

// All returns the credentials by provider; callers must not change the map. If the file has not
// changed, All only needs one stat; otherwise it may use the keychain. An error explains why the file
// cannot be used and how to fix it, or which secrets the keychain does not provide. In the second case,
// All also returns the other credentials.
func (s *Store) All() (map[string]Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := os.Stat(s.Path())
	if err != nil {
		now = nil // read returns the error
	}
	if s.loaded && safeio.Same(s.fileInfo, now) && (s.retryKeychainAt.IsZero() || time.Now().Before(s.retryKeychainAt)) {
		return s.all, s.err
	}
	doc, err := read(s.Path())
	s.retryKeychainAt = time.Time{}
	if err == nil {
		if err = s.addFromKeychain(&doc); err != nil {
			s.retryKeychainAt = time.Now().Add(keychainPause)
		}
	}
	if broken := (*parseError)(nil); errors.As(err, &broken) && len(s.all) > 0 {
		doc.credentials, err = s.all, &FileError{Path: s.Path(), cause: fmt.Errorf("%w; its last valid content stays in effect", broken)}
	}
	s.loaded, s.fileInfo, s.all, s.err = true, now, doc.credentials, err
	return s.all, s.err
}

// Set stores a provider's credential in place of an earlier one.
func (s *Store) Set(ctx context.Context, provider string, c Credential) error {
	return s.update(ctx, func(d *document) (bool, error) {
		raw, err := s.storeSecrets(provider, c, d)
		if err == nil {
			d.entries[provider] = raw
		}
		return true, err
	})
}

// Delete deletes a provider's credential and reports whether it existed.
func (s *Store) Delete(ctx context.Context, provider string) (existed bool, err error) {
	err = s.update(ctx, func(d *document) (bool, error) {
		_, existed = d.entries[provider]
		err := s.deleteFromKeychain(provider, d)
		delete(d.entries, provider)
		return existed, err
	})
	return existed, err
}

// update changes the file under the lock. The change function reports whether the file has to be
// written.
func (s *Store) update(ctx context.Context, change func(*document) (write bool, err error)) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("store credential: %w", safeio.Unwritable(s.Path(), err))
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	release, err := filelock.Acquire(ctx, filepath.Join(s.dir, lockName), 10*time.Millisecond)
	if err != nil {
		return fmt.Errorf("store credential: %w", err)
	}
	defer release()
	doc, err := read(s.Path())
	if err != nil {
		return err
	}
	if changed, err := change(&doc); err != nil || !changed {
		return err
	}
	if err := write(s.Path(), doc); err != nil {
		return fmt.Errorf("store credential: %w", safeio.Unwritable(s.Path(), err))
	}
	return nil
}

// FileError explains why the file cannot be used and what to do.
type FileError struct {
	Path  string
	cause error
}

func (e *FileError) Error() string { return e.Path + ": " + e.Reason() }
func (e *FileError) Unwrap() error { return e.cause }

// Reason returns the error without the path.
func (e *FileError) Reason() string { return "the stored logins cannot be used: " + e.cause.Error() }

// maxSize is the size limit of the file, enough for thousands of keys.
const maxSize = 1 << 20

// read reads the file; a missing one is empty.
func read(path string) (document, error) {
	doc, err := readFile(path)
	if err != nil {
		return document{}, &FileError{Path: path, cause: err}
	}
	return doc, nil
}

func readFile(path string) (document, error) {
	f, err := safeio.Open("", path)
	if errors.Is(err, fs.ErrNotExist) {
		return newDocument(), nil
	}
	if err != nil {
		return document{}, safeio.Cause(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return document{}, err
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return document{}, fmt.Errorf("other users may read or change it (its mode is %#o): run chmod 600 %s, and replace the keys in it if somebody may have read them", info.Mode().Perm(), path)
	}
	data, err := safeio.ReadOpen(f, maxSize)
	if err != nil {
		return document{}, safeio.Cause(err)
	}
	doc, err := parse(data)
	if err != nil {
		return document{}, &parseError{fmt.Errorf("%w; repair the file, or move it away and log in again", err)}
	}
	return doc, nil
}

// parseError is the error for a file that does not parse, for example while the user edits it.
type parseError struct{ cause error }

func (e *parseError) Error() string { return e.cause.Error() }
func (e *parseError) Unwrap() error { return e.cause }

// write replaces the file atomically. If the file is a link, its target is replaced.
func write(path string, doc document) error {
	data, err := doc.encode()
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return safeio.Write(path, data, 0o600)
}
