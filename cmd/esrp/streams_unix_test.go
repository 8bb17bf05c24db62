//go:build unix

package main

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

	"github.com/seed-dec29ce4/eca/internal/usage"
)

// A command that names a pipe, which blocks until another program opens it, fails at once. What a shell
// passes as <(...) is read, and waiting for it ends with a signal.
func TestPipes(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"validate", pipe}, {"hash", pipe}, {"canonicalize", pipe}} {
		if code, out, errs := call("", args...); code != exitData || !strings.Contains(errs, "it is not a regular file") {
			t.Errorf("%q: exit code %d: %s%s", args, code, out, errs)
		}
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	path := fmt.Sprintf("/dev/fd/%d", out.Fd())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stderr strings.Builder
	silent, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = errors.Join(silent.Close(), open.Close()) }()
	if code := run(ctx, []string{"hash", fmt.Sprintf("/dev/fd/%d", silent.Fd())}, strings.NewReader(""), io.Discard, &stderr); code != usage.Interrupted || stderr.String() != "esrp: interrupted\n" {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if _, err := in.WriteString(response); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := call("", "validate", "--response", path); code != 0 || out != "Valid ESRP response\n" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
