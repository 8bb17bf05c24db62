package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/atomicfile"
)

// fileName is the file below the state directory; its lock is beside it, since the
// file itself is replaced.
const (
	fileName = "credentials.json"
	lockName = "credentials.lock"
)

// lockTime is how long a writer waits for other processes; they write for
// milliseconds.
const lockTime = 5 * time.Second

// Store keeps credentials.
type Store struct {
	dir      string
	keychain Keychain // nil: there is none

	mu     sync.Mutex  // guards what follows
	place  Place       // of what is stored from now on
	looked bool        // whether there was a look at the file
	seen   fs.FileInfo // the file that was read last; nil: there was none
	all    map[string]Credential
	err    error
	again  time.Time // when to ask again a keychain that failed; zero: it did not

	renewing map[string]*renewal // by provider

	work context.Context // of renewals; ends with Close
	stop context.CancelFunc
	busy sync.WaitGroup
}

// New returns the store in a directory, which is created when something is stored. The
// keychain may be nil.
func New(dir string, k Keychain) *Store {
	s := &Store{dir: dir, keychain: k, place: Auto, renewing: map[string]*renewal{}}
	s.work, s.stop = context.WithCancel(context.Background())
	return s
}

// Path returns the file.
func (s *Store) Path() string { return filepath.Join(s.dir, fileName) }

// All returns the credentials by provider; the map must not be changed. It costs one
// look at the file's status unless the file has changed; then the keychain may be asked.
// An error says why the file can not be used, and how to mend that, or which secrets the
// keychain does not give; the other credentials are there.
func (s *Store) All() (map[string]Credential, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := os.Stat(s.Path())
	if err != nil {
		now = nil // read says what is wrong
	}
	if s.looked && same(s.seen, now) && (s.again.IsZero() || time.Now().Before(s.again)) {
		return s.all, s.err
	}
	doc, err := read(s.Path())
	s.again = time.Time{}
	if err == nil {
		if err = s.unlock(&doc); err != nil {
			s.again = time.Now().Add(keychainPause)
		}
	}
	if broken := (*brokenError)(nil); errors.As(err, &broken) && len(s.all) > 0 {
		doc.credentials, err = s.all, fmt.Errorf("%w (what it said before stays in effect)", err)
	}
	s.looked, s.seen, s.all, s.err = true, now, doc.credentials, err
	return s.all, s.err
}

// same says whether a file has not changed. Writers replace it, so that a change
// within the resolution of its time shows too.
func same(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && a.Mode() == b.Mode()
}

// Set stores a provider's credential in place of an earlier one.
func (s *Store) Set(ctx context.Context, provider string, c Credential) error {
	return s.update(ctx, func(d *document) (bool, error) {
		raw, err := s.lockAway(provider, c, d)
		if err == nil {
			d.entries[provider] = raw
		}
		return true, err
	})
}

// Delete forgets a provider's credential. It reports whether there was one.
func (s *Store) Delete(ctx context.Context, provider string) (existed bool, err error) {
	err = s.update(ctx, func(d *document) (bool, error) {
		_, existed = d.entries[provider]
		err := s.forget(provider, d)
		delete(d.entries, provider)
		return existed, err
	})
	return existed, err
}

// update changes the file while no other process does. The change says whether there
// is something to write.
func (s *Store) update(ctx context.Context, change func(*document) (write bool, err error)) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("store credential: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	lock := flock.New(filepath.Join(s.dir, lockName))
	if ok, err := lock.TryLockContext(ctx, 10*time.Millisecond); !ok {
		return fmt.Errorf("store credential: %s is locked by another process: %w", lock.Path(), err)
	}
	defer lock.Close()
	doc, err := read(s.Path())
	if err != nil {
		return err
	}
	if changed, err := change(&doc); err != nil || !changed {
		return err
	}
	if err := write(s.Path(), doc); err != nil {
		return fmt.Errorf("store credential: %w", err)
	}
	return nil
}

// maxSize bounds the file; thousands of keys are smaller.
const maxSize = 1 << 20

// read reads the file; a missing one is empty.
func read(path string) (document, error) {
	doc, err := readFile(path)
	if err != nil {
		return document{}, fmt.Errorf("credentials in %s can not be used: %w", path, err)
	}
	return doc, nil
}

func readFile(path string) (document, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newDocument(), nil
	}
	if err != nil {
		return document{}, errors.Unwrap(err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return document{}, err
	case !info.Mode().IsRegular():
		return document{}, errors.New("it is not a regular file")
	case info.Size() > maxSize:
		return document{}, fmt.Errorf("it is larger than %d bytes", maxSize)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return document{}, fmt.Errorf("others may access it (its mode is %#o); if nobody has, run: chmod 600 %s", info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
	if err != nil {
		return document{}, err
	}
	doc, err := parse(data)
	if err != nil {
		return document{}, &brokenError{err}
	}
	return doc, nil
}

// brokenError says what is wrong in a file, as while it is edited and saved.
type brokenError struct{ cause error }

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// write replaces the file in one step. A link stays one: what it points to is replaced.
func write(path string, doc document) error {
	data, err := doc.encode()
	if err != nil {
		return err
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	return atomicfile.Write(path, data, 0o600)
}
