package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The store of whole outputs removes its oldest files, by age and by total size. It removes no files
// that are not outputs.
func TestOutputsAreBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "outputs")
	now := time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	o := NewOutputs(dir, func() time.Time { return now })
	save := func(age time.Duration, size int64) string {
		t.Helper()
		path, err := o.save("call/1", 0, "text")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old := save(maxAge+time.Hour, 4)
	fresh := save(maxAge-3*time.Hour, 4)
	other := filepath.Join(dir, "notes.md")
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(other, now.Add(-2*maxAge), now.Add(-2*maxAge)); err != nil {
		t.Fatal(err)
	}
	there := func(what string, want map[string]bool) {
		t.Helper()
		for path, want := range want {
			if _, err := os.Stat(path); (err == nil) != want {
				t.Errorf("%s: %s exists: %v, want %v", what, filepath.Base(path), !want, want)
			}
		}
	}
	there("before it is time to look", map[string]bool{old: true, fresh: true, other: true})
	now = now.Add(sweepInterval)
	first := save(0, maxTotalBytes/2)
	there("after an hour", map[string]bool{old: false, fresh: true, other: true, first: true})
	second := save(-time.Second, maxTotalBytes/2)
	if _, err := o.save("call", 1, strings.Repeat("x", sweepAfterBytes)); err != nil {
		t.Fatal(err)
	}
	there("after much was written", map[string]bool{fresh: false, first: false, second: true, other: true})
}
