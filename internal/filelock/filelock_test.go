package filelock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An error tells a lock of another process apart from a file that cannot be written.
func TestErrorsNameTheCause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	release, err := Acquire(t.Context(), path, time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Acquire(ctx, path, time.Millisecond); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), path+" is locked by another process") {
		t.Errorf("taken: %v", err)
	}
	release()
	if release, err = Acquire(t.Context(), path, time.Millisecond); err != nil {
		t.Fatalf("released: %v", err)
	}
	release()
	if _, err := Acquire(t.Context(), filepath.Join(path, "b"), time.Millisecond); err == nil || errors.Is(err, ErrTaken) {
		t.Errorf("below a file: %v", err)
	}
	if os.Getuid() > 0 { // root may write everywhere
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if _, err := Acquire(t.Context(), filepath.Join(dir, "a.lock"), time.Millisecond); !errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrTaken) {
			t.Errorf("no permission: %v", err)
		}
	}
}

// A temporary lock file excludes others while it exists. Its release deletes it, and a file
// that a killed process left can be locked. Of many that try again and again, one at most has the lock.
func TestTryTemporary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.lock")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release, ok, err := TryTemporary(path)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if _, ok, err := TryTemporary(path); ok || err != nil {
		t.Errorf("taken: %v, %v", ok, err)
	}
	release()
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("released: %v", err)
	}
	var owners atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := 0; n < 200; {
				release, ok, err := TryTemporary(path)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					runtime.Gosched()
					continue
				}
				n++
				if owners.Add(1) > 1 {
					t.Error("two have the lock")
				}
				runtime.Gosched()
				owners.Add(-1)
				release()
			}
		})
	}
	all.Wait()
	if _, _, err := TryTemporary(filepath.Join(path, "b")); err == nil {
		t.Error("there is no error for a folder that does not exist")
	}
}
