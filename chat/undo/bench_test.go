package undo

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// BenchmarkUndoPoint measures looking at 2,000 files before a command when one has changed.
func BenchmarkUndoPoint(b *testing.B) {
	root, state := b.TempDir(), b.TempDir()
	for i := range 2000 {
		dir := filepath.Join(root, fmt.Sprint("dir", i/40))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".go")), []byte(strings.Repeat(fmt.Sprint("line ", i, "\n"), 1000)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	floor := func() time.Duration {
		start := time.Now()
		_ = filepath.WalkDir(root, func(_ string, d fs.DirEntry, _ error) error { _, err := d.Info(); return err })
		return time.Since(start)
	}
	f := commandFiles(state)
	look := func() time.Duration {
		start := time.Now()
		p, _, err := f.Begin(context.Background(), "chat", tools.Call{ID: "c", Roots: []string{root}}, tools.Plan{})
		if err != nil {
			b.Fatal(err)
		}
		took := time.Since(start)
		if err := f.End(*p); err != nil {
			b.Fatal(err)
		}
		return took
	}
	first := look()
	var changed, walk time.Duration
	n := 0
	for b.Loop() {
		n++
		if err := os.WriteFile(filepath.Join(root, "dir0", "0.go"), []byte(fmt.Sprint(n)), 0o644); err != nil {
			b.Fatal(err)
		}
		changed += look()
		walk += floor()
	}
	b.ReportMetric(float64(first.Microseconds())/1000, "first-ms")
	b.ReportMetric(float64(changed.Microseconds())/1000/float64(n), "point-ms")
	b.ReportMetric(float64(walk.Microseconds())/1000/float64(n), "walk-ms")
}
