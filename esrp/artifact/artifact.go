// Package artifact stores file contents by hash. eca uses it for contents that tools replaced, so
// that they can be restored after a restart.
//
// An item is a file dir/ab/cdef..., named by the lower-case hexadecimal SHA-256 of its content; the
// same content is stored once. Only the owner can read the files (0600 in 0700). dir/tmp contains
// files that are being written, dir/lock is a lock file. The package never touches other files
// in dir. Users and other programs may delete anything in dir at any time.
//
// Guarantees: an item exists completely or not at all, even if a process dies while writing it. An
// item survives the death of the process as soon as Put has returned. Get returns the stored content,
// or an error. A crash of the machine may lose or truncate the latest items: Get reports that, and
// another Put repairs them. Several processes can share dir: an item that Put stores or finds counts
// as new, and no process removes it as old (on file systems without locks, another process may still
// remove it during the Put).
//
// Quota: the size of an item is rounded up to blocks of 4 KiB, which also limits the number of items.
// Put removes the oldest items before it would exceed the quota. It does not walk the folder each
// time: it walks it once, then counts its own additions, and walks again when the count reaches the
// quota or when it has added a sixteenth of the quota. With one writing process, the quota holds
// after every Put; each further process can exceed it by a sixteenth, or by one item if that is
// more, until the next walk.
//
// The package starts no goroutines: the owner of a Store calls Collect from time to time. Put does
// not know which items are referenced, and the quota takes precedence, so a referenced item can be
// missing.
package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// The errors that callers distinguish.
var (
	ErrNotFound  = errors.New("artifact not found") // never stored, or collected since
	ErrCorrupt   = errors.New("artifact is corrupt")
	ErrTooLarge  = errors.New("too large for an artifact")
	ErrMalformed = errors.New("malformed artifact hash")
	ErrFull      = errors.New("the artifact store is full")
)

const (
	defaultQuota   = 1 << 30
	defaultMaxItem = 64 << 20
	block          = 4 << 10
	tempDir        = "tmp"
)

// Options configure a Store.
type Options struct {
	Quota   int64            // bytes that all items may take on disk; default 1 GiB
	MaxItem int64            // maximum bytes of one item; default 64 MiB
	Now     func() time.Time // default time.Now
}

// Store stores items in a folder. It is safe for concurrent use.
type Store struct {
	dir string
	o   Options

	mu    sync.Mutex // guards the estimate; held while an item is stored
	used  int64      // size of all items at the last walk, plus later additions
	added int64      // the later additions alone
	known bool       // used is valid, because the folder was walked
}

// New returns the store in dir, which the first Put creates.
func New(dir string, o Options) *Store {
	if o.Quota <= 0 {
		o.Quota = defaultQuota
	}
	if o.MaxItem <= 0 {
		o.MaxItem = defaultMaxItem
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{dir: dir, o: o}
}

// Hash returns the hash under which a Store stores data.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Put stores data and returns its hash. An existing item becomes as new as one just stored. Errors:
// ErrTooLarge above Options.MaxItem or the quota, ErrFull if nothing can be removed to make room,
// and errors of the file system. After an error, nothing was stored.
func (s *Store) Put(ctx context.Context, data []byte) (hash string, err error) {
	if limit := min(s.o.MaxItem, s.o.Quota-s.o.Quota%block); int64(len(data)) > limit {
		return "", fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, len(data), limit)
	}
	hash = Hash(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	found, err := s.refresh(ctx, hash, data)
	if err == nil && !found {
		err = s.store(ctx, hash, data)
	}
	if err != nil {
		return "", fmt.Errorf("store artifact: %w", err)
	}
	return hash, nil
}

// refresh marks an item as new; found is false if it is missing or damaged.
func (s *Store) refresh(ctx context.Context, hash string, data []byte) (found bool, err error) {
	path := s.path(hash)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false, nil //nolint:nilerr // storing the item will report the problem
	}
	if old, err := os.ReadFile(path); err != nil || !bytes.Equal(old, data) {
		return false, nil //nolint:nilerr // as above
	}
	unlock, err := s.lock(ctx, (*flock.Flock).TryRLockContext)
	if err != nil {
		return false, err
	}
	defer unlock()
	now := s.o.Now()
	return os.Chtimes(path, now, now) == nil, nil // this fails if the item has been removed
}

// store writes an item. The caller holds s.mu.
func (s *Store) store(ctx context.Context, hash string, data []byte) error {
	size := onDisk(int64(len(data)))
	if err := s.reserve(ctx, size); err != nil {
		return err
	}
	path, temp := s.path(hash), filepath.Join(s.dir, tempDir)
	if err := errors.Join(os.MkdirAll(temp, 0o700), os.MkdirAll(filepath.Dir(path), 0o700)); err != nil {
		return err
	}
	f, err := os.CreateTemp(temp, "put-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	unlock, err := s.lock(ctx, (*flock.Flock).TryRLockContext)
	if err != nil {
		return err
	}
	defer unlock()
	now := s.o.Now()
	if err := os.Chtimes(f.Name(), now, now); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	s.used += size
	s.added += size
	return nil
}

// Get returns the content of an item. Errors: ErrMalformed if hash is not a hash, ErrNotFound,
// ErrCorrupt if the content differs from the stored one, ErrTooLarge if it is larger than
// Options.MaxItem (which may have been higher before).
func (s *Store) Get(ctx context.Context, hash string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !valid(hash) {
		return nil, fmt.Errorf("%w: %.80q", ErrMalformed, hash)
	}
	data, err := s.read(s.path(hash))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", ErrNotFound, hash)
	case err != nil:
		return nil, fmt.Errorf("read artifact %s: %w", hash, err)
	case Hash(data) != hash:
		return nil, fmt.Errorf("%w: %s", ErrCorrupt, hash)
	}
	return data, nil
}

func (s *Store) read(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is not a regular file", ErrCorrupt)
	case info.Size() > s.o.MaxItem:
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, info.Size(), s.o.MaxItem)
	}
	return os.ReadFile(path)
}

func (s *Store) path(hash string) string { return filepath.Join(s.dir, hash[:2], hash[2:]) }

// valid reports whether a text has the form of a hash; other texts never become part of a path.
func valid(hash string) bool {
	return len(hash) == hex.EncodedLen(sha256.Size) && strings.Trim(hash, "0123456789abcdef") == ""
}

// onDisk returns the size of a file of n bytes on disk, in bytes: at least one block.
func onDisk(n int64) int64 { return max(1, (n+block-1)/block) * block }
