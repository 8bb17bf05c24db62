package permission

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// eca remembers only a bounded number of names that are not in a folder, and still finds programs
// there afterwards.
func TestNamesThatAreTriedAreBounded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), []byte("\x7fELF"), 0o755); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Hour) // eca remembers nothing about folders that have just changed
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	s := newPrograms(os.Getenv)
	in := func() *search {
		return s.search(dir, func(string) bool { return false })
	}
	most := 0
	for i := range 3 * maxCacheEntries {
		if file, _ := in().find("name" + strconv.Itoa(i)); file != "" {
			t.Fatal(file)
		}
		most = max(most, len(s.folders[dir].missing))
	}
	if most == 0 || most > maxCacheEntries {
		t.Errorf("%d names are known at a time", most)
	}
	if file, p := in().find("there"); file != filepath.Join(dir, "there") || p.why != "" {
		t.Errorf("%q %+v", file, p)
	}
}
