//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The answer is not written to a named pipe, which blocks until another program reads it: that is said
// before the model is asked. It is written to devices, and to what a shell passes as >(...).
func TestOutputToPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := checkOutput(pipe); err == nil || !strings.Contains(err.Error(), "it is not a regular file") {
		t.Errorf("%v", err)
	}
	if err := checkOutput(os.DevNull); err != nil {
		t.Error(err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	path := "/dev/fd/" + strconv.Itoa(int(in.Fd()))
	if err := checkOutput(path); err != nil {
		t.Fatal(err)
	}
	if err := writeOutput(path, []byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(out); err != nil || string(text) != "answer" {
		t.Errorf("%q, %v", text, err)
	}
}
