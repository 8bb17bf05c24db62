// Package filelock takes locks that exclude other processes.
//
// The operating system releases a lock when its process exits for any reason. Errors report whether
// another process holds the lock or the file cannot be written, and what to do. The package does
// not exclude goroutines of the same process; callers need a mutex for that.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// ErrTaken means that another process held the lock the whole time.
var ErrTaken = errors.New("locked by another process")

// Try takes the lock file if no other process has it; ok is false if one has.
func Try(path string) (release func(), ok bool, err error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	if ok, err = lock.TryLock(); !ok {
		return nil, false, safeio.Unwritable(path, err)
	}
	return func() { _ = lock.Close() }, true, nil
}

// TryTemporary is Try for a lock file that release deletes. Only TryTemporary may lock it. If the
// process is killed, the file stays, but it is not locked.
func TryTemporary(path string) (release func(), ok bool, err error) {
	for {
		lock := flock.New(path, flock.SetPermissions(0o600))
		if ok, err = lock.TryLock(); !ok {
			return nil, false, safeio.Unwritable(path, err)
		}
		locked, err := lock.Stat()
		now, statErr := os.Stat(path)
		if err == nil && statErr == nil && os.SameFile(locked, now) {
			return func() { deleteLocked(path, lock) }, true, nil
		}
		_ = lock.Close()
		if errors.Is(statErr, fs.ErrNotExist) {
			statErr = nil
		}
		if err = errors.Join(err, statErr); err != nil {
			return nil, false, safeio.Unwritable(path, err)
		}
		// Its former owner deleted the file before it was locked here.
	}
}

// deleteLocked deletes a lock file and releases its lock. The file is deleted first, because a file
// that is not locked may be that of another process. Windows does not delete open files, so there it
// is deleted afterwards, which fails if another process has opened it.
func deleteLocked(path string, lock *flock.Flock) {
	err := os.Remove(path)
	_ = lock.Close()
	if err != nil && runtime.GOOS == "windows" {
		_ = os.Remove(path)
	}
}

// Acquire waits until this process has the lock, with a pause between attempts.
func Acquire(ctx context.Context, path string, pause time.Duration) (release func(), err error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	ok, err := lock.TryLockContext(ctx, pause)
	switch {
	case ok:
		return func() { _ = lock.Close() }, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s is %w; try again when that process has finished, or stop it: %w", path, ErrTaken, context.Cause(ctx))
	}
	return nil, safeio.Unwritable(path, err)
}
