//go:build unix

package fs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe or a device is not read or written, and does not block the call.
func TestPipes(t *testing.T) {
	root := t.TempDir()
	pipe := filepath.Join(root, "pipe")
	for name, args := range map[string]map[string]any{
		"read_file": {}, "write_file": {"content": "x"}, "edit_file": {"original_content": "one", "new_content": "two"},
	} {
		if err := os.WriteFile(pipe, []byte("one\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		args["path"] = pipe
		res, err := attack(t, name, root, args, func() {
			if err := os.Remove(pipe); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if err == nil {
			t.Errorf("%s: %+v", name, res)
		}
		if err := os.Remove(pipe); err != nil {
			t.Fatal(err)
		}
	}
	for _, device := range []string{"/dev/zero", "/dev/stdin"} {
		args := map[string]any{"path": device}
		if _, err := attack(t, "read_file", root, args, func() {}); err == nil {
			t.Errorf("read_file read the device %s", device)
		}
	}
}
