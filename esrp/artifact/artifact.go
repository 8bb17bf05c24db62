// Package artifact keeps file contents by their hash: what tools replaced, so that it
// can be put back after a restart.
//
// An item is a file dir/ab/cdef..., named by the lower-case hexadecimal SHA-256 of what
// is in it; the same content is stored once. Files are for their owner only (0600 in
// 0700). dir/tmp has files that are being written, dir/lock is a lock file. What else
// lies in dir is left alone, and all of it may be deleted at any time.
//
// Guarantees: an item is there as a whole or not at all, whatever dies while it is
// written; what Put returned for survives the death of the process; Get returns what
// was put, or an error. A crash of the machine may lose or cut the latest items: Get
// says so, and putting them again repairs them. Several processes can share dir: what
// Put stores or finds there is new, and no process removes it as old (where the file
// system has no locks, one may in the very moment of the Put).
//
// Quota: items count with whole blocks of 4 KiB, as disks store them, which bounds
// their number too. Put makes room before it writes, oldest items first. It does not
// walk the folder for that: it walks it once, then counts what it adds itself, and walks
// again when the count reaches the quota or when it added a sixteenth of the quota.
// With one process writing, the quota holds after every Put; each further process can
// exceed it by a sixteenth, or by one item if that is more, until the next walk.
//
// The package starts nothing: who owns a Store calls Collect, now and then. It knows
// neither what items mean nor who refers to them; an item can be gone although
// somebody does, because the quota comes first.
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

// Errors that callers decide on.
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

// Options of a store.
type Options struct {
	Quota   int64            // bytes all items may take on the disk; default 1 GiB
	MaxItem int64            // bytes one item may have; default 64 MiB
	Now     func() time.Time // default time.Now
}

// Store keeps items in one folder. It is safe for concurrent use.
type Store struct {
	dir string
	o   Options

	mu    sync.Mutex // guards the estimate; held while an item is stored
	used  int64      // what all items took at the last walk, and what was added here since
	added int64      // the latter alone
	known bool       // there was a walk
}

// New returns the store in dir, which is created at the first Put.
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

// Hash returns the name that data has in every store.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Put stores data and returns its hash. An item that is there already becomes as new
// as one just stored. Errors: ErrTooLarge above Options.MaxItem or the quota, ErrFull
// if nothing can be removed to make room, and those of the file system; then nothing
// was stored.
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

// refresh makes an item as new as now; found is false if it is missing or damaged.
func (s *Store) refresh(ctx context.Context, hash string, data []byte) (found bool, err error) {
	path := s.path(hash)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) {
		return false, nil //nolint:nilerr // storing it will show what is wrong
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
	return os.Chtimes(path, now, now) == nil, nil // it fails if the item is gone by now
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

// Get returns the content of an item. Errors: ErrMalformed for what Put never returns,
// ErrNotFound, ErrCorrupt if the content is not what was put, ErrTooLarge if it is
// larger than Options.MaxItem (which may have been higher once).
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

// valid says whether a text can be a hash; nothing else becomes a part of a path.
func valid(hash string) bool {
	return len(hash) == hex.EncodedLen(sha256.Size) && strings.Trim(hash, "0123456789abcdef") == ""
}

// onDisk is what a file of n bytes takes. An empty one is not free either.
func onDisk(n int64) int64 { return max(1, (n+block-1)/block) * block }
