//go:build unix

package safeio

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Read refuses pipes, devices and folders immediately.
func TestReadIrregularFiles(t *testing.T) {
	dir := t.TempDir()
	pipe, zero := filepath.Join(dir, "pipe"), filepath.Join(dir, "zero")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("/dev/zero", zero)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, zero, "/dev/null", dir} {
		if _, err := Read(path, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
