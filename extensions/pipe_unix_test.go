//go:build unix

package extensions

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A pipe in place of a file is reported, and eca does not wait for it.
func TestPipesAreReported(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"agents/a.md", "commands/b.md", "rules/c", "skills/d/SKILL.md"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set, _ := NewLoader(time.Now).Load(Inputs{ConfigHome: home})
	if len(set.Problems) != 4 {
		t.Errorf("%d problems, want 4: %v", len(set.Problems), set.Problems)
	}
	for _, p := range set.Problems {
		if !strings.Contains(p.Cause, "it is not a regular file; replace it with one, or remove it") {
			t.Errorf("%s: %s", p.Source, p.Cause)
		}
	}
}
