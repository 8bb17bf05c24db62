package safeio

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	if _, err := Read(path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := os.WriteFile(path, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := Read(path, 4); err != nil || string(data) != "1234" {
		t.Errorf("%q, %v", data, err)
	}
	if data, err := Read(path, 3); err == nil {
		t.Errorf("too large: %q", data)
	}
	if err := os.Truncate(path, 1<<40); err == nil {
		if _, err := Read(path, 1<<20); err == nil {
			t.Error("a huge file is read")
		}
	}
	if _, err := Read(dir, 10); err == nil {
		t.Error("a folder is read")
	}
}
