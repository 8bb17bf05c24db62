package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A glob finds the same files as the system's own, up to a limit.
func TestExpand(t *testing.T) {
	dir := makeFiles(t, map[string]string{"a.txt": "", "b.txt": "", "sub/a.go": "", "sub/deep/a.go": "", "sub/.hidden": "", "other/a.go": "", "[id]/page.ts": "", "i/page.ts": ""})
	for _, glob := range []string{"*", "*.txt", "?.txt", "*/a.go", "sub/*", "*/*/*", "none/*", "a.txt/*", "sub/../*.txt", "*/deep/?.go", "**"} {
		path := filepath.Join(dir, glob)
		want, err := filepath.Glob(path)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := expandGlob(path)
		slices.Sort(got)
		slices.Sort(want)
		if !ok || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", glob, got, ok, want)
		}
	}
	if got, ok := expandGlob(filepath.Join(dir, "[id]", "*.ts")); !ok || len(got) != 1 || !strings.Contains(got[0], "[id]") {
		t.Errorf("brackets: %v", got)
	}
	if got, ok := expandGlob(filepath.Join(t.TempDir(), "*")); !ok || len(got) != 0 {
		t.Errorf("an empty folder: %v, %v", got, ok)
	}
	many := t.TempDir()
	for i := range maxGlobMatches + 1 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := expandGlob(filepath.Join(many, "*")); ok {
		t.Errorf("expand returned a result for more than %d files", maxGlobMatches)
	}
	if got, ok := expandGlob(filepath.Join(many, "1??")); !ok || len(got) != 100 {
		t.Errorf("some of many: %d, %v", len(got), ok)
	}
	left := maxGlobMatches
	if _, ok := matchComponent(many, "x*", &left); ok {
		t.Errorf("matching looked at more than %d names", maxGlobMatches)
	}
}
