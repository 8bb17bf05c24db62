package sandbox

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loaderOf finds the same loader as debug/elf, including in truncated and damaged files.
func TestLoaderOf(t *testing.T) {
	expected := func(path string) string {
		f, err := elf.Open(path)
		if err != nil {
			return ""
		}
		defer f.Close()
		for _, part := range f.Progs {
			if part.Type == elf.PT_INTERP {
				name := make([]byte, part.Filesz)
				_, _ = part.ReadAt(name, 0)
				return strings.TrimRight(string(name), "\x00")
			}
		}
		return ""
	}
	programs, err := filepath.Glob("/bin/*")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range append(programs, os.Args[0], "/dev/null", t.TempDir()) {
		if got, want := loaderOf(path), expected(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		} else if got != "" {
			found++
		}
	}
	if found == 0 {
		t.Skip("no program of /bin has a loader")
	}
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(t.TempDir(), "damaged")
	for size := range 200 {
		if err := os.WriteFile(damaged, shell[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		_ = loaderOf(damaged) // must not panic
	}
	for at := range 64 {
		changed := append([]byte{}, shell...)
		changed[at] = ^changed[at]
		if err := os.WriteFile(damaged, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = loaderOf(damaged)
	}
}
