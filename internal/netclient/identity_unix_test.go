//go:build unix

package netclient

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Read reports a named pipe where it expects a certificate, and does not block on it.
func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, problems := Read(Files{CA: []Source{{Name: "network.caCertFile", Path: path}}})
	if len(problems) != 1 || !strings.Contains(problems[0].Cause, "it is not a regular file") {
		t.Errorf("%v", problems)
	}
}
