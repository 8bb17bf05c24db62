package filelock

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
