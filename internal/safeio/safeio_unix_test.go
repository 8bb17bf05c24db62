//go:build unix

package safeio

import (
	"context"
	"errors"
	"fmt"
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

// The user may name a regular file, or a stream of the process, but no pipe that other programs open.
// Waiting for a stream ends with the context.
func TestReadInput(t *testing.T) {
	dir := t.TempDir()
	pipe, file, stream := filepath.Join(dir, "pipe"), filepath.Join(dir, "file"), filepath.Join(dir, "stream")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	silent, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(silent.Close(), open.Close()) }()
	descriptor := fmt.Sprintf("/dev/fd/%d", out.Fd())
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.WriteFile(file, []byte("file"), 0o600), os.Symlink(descriptor, stream)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, dir} {
		if _, err := ReadInput(t.Context(), path, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", path, err)
		}
		if stream, err := CheckOutput(path); stream || err == nil {
			t.Errorf("%s: stream %v, %v", path, stream, err)
		}
	}
	for path, want := range map[string]bool{file: false, filepath.Join(dir, "new"): false, "/dev/null": true, descriptor: true, stream: true} {
		if stream, err := CheckOutput(path); stream != want || err != nil {
			t.Errorf("%s: stream %v, %v", path, stream, err)
		}
	}
	if data, err := ReadInput(t.Context(), file, 10); err != nil || string(data) != "file" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadInput(t.Context(), "/dev/zero", 10); err == nil {
		t.Error("a device is read beyond the limit")
	}
	if _, err := in.WriteString("stream"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadInput(ctx, "/dev/fd/"+fmt.Sprint(silent.Fd()), 10); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadInput(t.Context(), stream, 10); err != nil || string(data) != "stream" {
		t.Errorf("%q, %v", data, err)
	}
}
