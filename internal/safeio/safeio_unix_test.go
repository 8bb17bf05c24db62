//go:build unix

package safeio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// Output goes to a regular file or to a stream of the process, but not to a folder or to a named pipe,
// which blocks until another program reads it. A regular file that is open as a stream keeps what it
// contains.
func TestWriteOutput(t *testing.T) {
	dir := t.TempDir()
	pipe, link, open, dangling := filepath.Join(dir, "pipe"), filepath.Join(dir, "link"), filepath.Join(dir, "open"), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("target", link), os.Symlink(filepath.Join(dir, "none", "file"), dangling), os.WriteFile(open, []byte("before "), 0o600)); err != nil {
		t.Fatal(err)
	}
	hello := func(w io.Writer) error {
		_, err := io.WriteString(w, "hello")
		return err
	}
	for _, path := range []string{pipe, dir, filepath.Join(dir, "none", "file"), filepath.Join(open, "file"), dangling, "/dev/fd/9999"} {
		check, write := CheckOutput(path), WriteOutput(path, hello)
		if check == nil || write == nil || !strings.HasPrefix(check.Error(), "cannot write "+path+": ") || !strings.HasPrefix(write.Error(), "cannot write "+path+": ") {
			t.Errorf("%s: %v, %v", path, check, write)
		}
	}
	f, err := os.OpenFile(open, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	descriptor := fmt.Sprintf("/dev/fd/%d", f.Fd())
	for _, path := range []string{filepath.Join(dir, "new"), link, descriptor, os.DevNull} {
		if err := errors.Join(CheckOutput(path), WriteOutput(path, hello)); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.WriteString(" after"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"new": "hello", "target": "hello", "open": "before hello after"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	failed := errors.New("failed")
	if err := WriteOutput(filepath.Join(dir, "half"), func(w io.Writer) error { return errors.Join(hello(w), failed) }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := WriteOutput(link, func(w io.Writer) error { return errors.Join(hello(w), failed) }); !errors.Is(err, failed) {
		t.Error(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	hidden, hiddenErr := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || hiddenErr != nil || len(files) != 5 || len(hidden) != 0 {
		t.Errorf("%q, %q", files, hidden)
	}
}
