package safeio

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	for _, text := range []string{"new", "replaced", ""} {
		if err := Write(path, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || string(data) != text {
			t.Errorf("%q, %v", data, err)
		}
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
	}
	// A failed write leaves nothing behind.
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(folder, []byte("x"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if err := Write(filepath.Join(dir, "missing", "a"), nil, 0o600); err == nil {
		t.Error("a folder was made")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("left behind: %v, %v", list, err)
	}
}
