package artifact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// staleTemp is the age at which a temporary file is removed, because its writer must have died.
const staleTemp = time.Hour

// item is a stored item, as found by a walk.
type item struct {
	hash string
	time time.Time // of the last Put
	size int64     // on the disk
}

// Collect removes the items that are older than minAge and for which keep returns false; if keep is
// nil, it removes all of that age. If the remaining items exceed the quota, it removes more, oldest
// first, regardless of keep. minAge must be longer than the time between a Put and the moment when
// keep knows the hash.
//
// removed and freed (bytes on disk) include items that other processes removed at the same time. If
// an item cannot be removed, Collect continues with the others; err is the first such error, or
// that of ctx.
func (s *Store) Collect(ctx context.Context, keep func(hash string) bool, minAge time.Duration) (removed int, freed int64, err error) {
	items, total, err := s.walk(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("collect artifacts: %w", err)
	}
	now := s.o.Now()
	old := func(it item) bool { return now.Sub(it.time) > minAge && (keep == nil || !keep(it.hash)) }
	var rest []item
	var first error
	remove := func(it item) {
		removedNow, err := s.remove(ctx, it)
		if removedNow {
			removed++
			freed += it.size
		}
		first = cmp.Or(first, err)
	}
	for _, it := range items {
		if ctx.Err() != nil {
			break
		}
		if old(it) {
			remove(it)
		} else {
			rest = append(rest, it)
		}
	}
	for _, it := range rest {
		if total-freed <= s.o.Quota || ctx.Err() != nil {
			break
		}
		remove(it)
	}
	if err := cmp.Or(ctx.Err(), first); err != nil {
		return removed, freed, fmt.Errorf("collect artifacts: %w", err)
	}
	return removed, freed, nil
}

// reserve makes room for size bytes. The caller holds s.mu.
func (s *Store) reserve(ctx context.Context, size int64) error {
	if s.known && s.used+size <= s.o.Quota && s.added+size <= s.o.Quota/16 {
		return nil
	}
	items, total, err := s.walk(ctx)
	if err != nil {
		return err
	}
	if total+size > s.o.Quota {
		// Free an eighth more than necessary, so that the next Put does not walk again.
		goal := max(0, s.o.Quota-s.o.Quota/8-size)
		for _, it := range items {
			if total <= goal {
				break
			}
			removedNow, removeErr := s.remove(ctx, it)
			if removedNow {
				total -= it.size
			}
			err = cmp.Or(err, removeErr)
		}
	}
	s.used, s.added, s.known = total, 0, true
	if total+size > s.o.Quota && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", ErrFull, cmp.Or(err, fmt.Errorf("%d of %d bytes are used", total, s.o.Quota)))
	}
	return ctx.Err()
}

// walk returns all items, oldest first, and their total size. It removes the files of dead writers.
func (s *Store) walk(ctx context.Context) (items []item, total int64, err error) {
	dirs, err := readDir(s.dir)
	if err != nil {
		return nil, 0, err
	}
	for _, dir := range dirs {
		isTemp := dir.Name() == tempDir
		if !dir.IsDir() || len(dir.Name()) != 2 && !isTemp {
			continue
		}
		files, err := readDir(filepath.Join(s.dir, dir.Name()))
		if err != nil {
			return nil, 0, err
		}
		for _, f := range files {
			if err := ctx.Err(); err != nil {
				return nil, 0, err
			}
			hash := dir.Name() + f.Name()
			if !f.Type().IsRegular() || !isTemp && !valid(hash) {
				continue
			}
			info, err := f.Info()
			switch {
			case errors.Is(err, fs.ErrNotExist): // removed in the meantime
			case err != nil:
				return nil, 0, err
			case !isTemp:
				items = append(items, item{hash, info.ModTime(), onDisk(info.Size())})
				total += onDisk(info.Size())
			case s.o.Now().Sub(info.ModTime()) > staleTemp:
				_ = os.Remove(filepath.Join(s.dir, tempDir, f.Name())) // if this fails, the next walk tries again
			}
		}
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.time.Compare(b.time) })
	return items, total, nil
}

// readDir lists a folder; a missing folder is empty.
func readDir(path string) ([]fs.DirEntry, error) {
	list, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}

// remove deletes an item, unless it was put again after the walk.
func (s *Store) remove(ctx context.Context, it item) (gone bool, err error) {
	unlock, err := s.lock(ctx, (*flock.Flock).TryLockContext)
	if err != nil {
		return false, err
	}
	defer unlock()
	info, err := os.Lstat(s.path(it.hash))
	if err == nil {
		if !info.ModTime().Equal(it.time) {
			return false, nil
		}
		err = os.Remove(s.path(it.hash))
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err == nil, err
}

// lock excludes processes that remove old items (exclusive lock) while others mark an item as new
// (shared lock). It is held for two system calls. Without file locks, unlock does nothing.
func (s *Store) lock(ctx context.Context, take func(*flock.Flock, context.Context, time.Duration) (bool, error)) (unlock func(), err error) {
	const retry = time.Millisecond
	l := flock.New(filepath.Join(s.dir, "lock"))
	if ok, _ := take(l, ctx, retry); !ok {
		_ = l.Close() // it may be open
		return func() {}, ctx.Err()
	}
	return func() { _ = l.Close() }, nil
}
