package testkit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Case is one test file: the input, the steps, and the golden output.
type Case struct {
	t       testing.TB
	path    string
	update  bool
	archive *txtar.Archive
}

// RunCases runs fn for every file that matches pattern, as parallel subtests. With update,
// goldens are rewritten instead of compared.
func RunCases(t *testing.T, pattern string, update bool, fn func(*testing.T, *Case)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no test files match %s (%v)", pattern, err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fn(t, &Case{t: t, path: path, update: update, archive: a})
		})
	}
}

// Section returns a section of the file, or "" if it is missing.
func (c *Case) Section(name string) string {
	for _, f := range c.archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// Unpack writes the sections below prefix (like "ws/") as files below dir.
func (c *Case) Unpack(prefix, dir string) {
	c.t.Helper()
	files := map[string]string{}
	for _, f := range c.archive.Files {
		if rel, ok := strings.CutPrefix(f.Name, prefix); ok {
			files[rel] = string(f.Data)
		}
	}
	WriteFiles(c.t, dir, files)
}

// Golden compares got with a section, or rewrites the section. A case may lack the section unless
// it is required.
func (c *Case) Golden(name, got string, required bool) {
	c.t.Helper()
	i := slices.IndexFunc(c.archive.Files, func(f txtar.File) bool { return f.Name == name })
	switch {
	case i < 0 && !required:
		return
	case c.update:
		if i < 0 {
			c.archive.Files = append(c.archive.Files, txtar.File{Name: name})
			i = len(c.archive.Files) - 1
		}
		c.archive.Files[i].Data = []byte(got)
		if err := os.WriteFile(c.path, txtar.Format(c.archive), 0o644); err != nil {
			c.t.Fatal(err)
		}
	case i < 0:
		c.t.Errorf("%s has no section %q; run with -update", c.path, name)
	default:
		if diff := cmp.Diff(string(c.archive.Files[i].Data), got); diff != "" {
			c.t.Errorf("%s differs (-want +got):\n%s", name, diff)
		}
	}
}
