package workspace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/watch"
)

// forest creates a workspace with n files, ten in each folder.
func forest(b *testing.B, n int) string {
	b.Helper()
	root := b.TempDir()
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	for i := 0; i < n; i += 10 {
		dir := filepath.Join(root, fmt.Sprintf("package%d", i%50), fmt.Sprintf("component%d", i%1000/10), fmt.Sprintf("part%d", i))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		for j := range 10 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("Source%d.go", i+j)), nil, 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("*.o\n/build/\nnode_modules/\n*.pyc\n.DS_Store\n/dist\n**/generated/**\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	return root
}

func ask(b *testing.B, f *Finder, root, text string) {
	if found, err := f.Find(context.Background(), []string{root}, text); err != nil || len(found) == 0 {
		b.Fatal(found, err)
	}
}

// BenchmarkQueryFiles measures the first and later queries in 100,000 files. The floor is a walk that
// does nothing.
func BenchmarkQueryFiles(b *testing.B) {
	root := forest(b, 100_000)
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			if err := filepath.WalkDir(root, func(string, os.DirEntry, error) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			f := &Finder{watchLimit: -1}
			ask(b, f, root, "source1")
			b.StopTimer()
			f.Close()
			b.StartTimer()
		}
	})
	f := &Finder{}
	defer f.Close()
	ask(b, f, root, "source1")
	settle(b, f, root)
	for name, text := range map[string]string{"nothing": "", "letter": "s", "common": "source1", "one": "source99999", "fuzzy": "p7c3src42", "none": "zzqqzz", "words": "part99 source", "path": "component9/part99"} {
		b.Run("warm/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := f.Find(context.Background(), []string{root}, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// settle waits until notifications of changes work, if the system supports them.
func settle(b *testing.B, f *Finder, root string) {
	if watch.TreeLimit() == 0 {
		return
	}
	for {
		ask(b, f, root, "source1")
		f.mu.Lock()
		s := f.current.current.Load()
		f.mu.Unlock()
		if s.watched || len(s.folders) > watch.TreeLimit() {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// BenchmarkMillion measures an index of a million files: memory, and time for the walk and for a query.
func BenchmarkMillion(b *testing.B) {
	root := forest(b, 1_000_000)
	f := &Finder{watchLimit: -1}
	defer f.Close()
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	start := time.Now()
	ask(b, f, root, "source1")
	walked := time.Since(start)
	after := heap()
	for b.Loop() {
		ask(b, f, root, "source99")
	}
	b.ReportMetric((after-before)/(1<<20), "MiB")
	b.ReportMetric(walked.Seconds(), "s-cold")
}

// BenchmarkCheckout replaces 10,000 files, as a checkout does. It measures the longest query meanwhile,
// the time until the index contains all changes, and the time of the checkout itself.
func BenchmarkCheckout(b *testing.B) {
	if watch.TreeLimit() == 0 {
		b.Skip("NOT MEASURED: trees are not watched here; run it on Linux, on a local disk")
	}
	const files = 10_000
	root := b.TempDir()
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	name := func(generation, i int) string {
		return filepath.Join(root, fmt.Sprintf("package%d", i%500), fmt.Sprintf("Source%d-%d.go", i, generation))
	}
	checkout := func(generation int) {
		for i := range files {
			_ = os.Remove(name(generation-1, i)) // it does not exist the first time
			if err := os.MkdirAll(filepath.Dir(name(generation, i)), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(name(generation, i), []byte("package x\n"), 0o644); err != nil {
				b.Fatal(err)
			}
		}
	}
	checkout(0)
	f := &Finder{}
	defer f.Close()
	ask(b, f, root, "source1")
	settle(b, f, root)
	generation, worst, checkouts, known := 0, time.Duration(0), time.Duration(0), time.Duration(0)
	for b.Loop() {
		generation++
		done := make(chan time.Duration)
		go func() {
			start := time.Now()
			checkout(generation)
			done <- time.Since(start)
		}()
		for running := true; running; {
			start := time.Now()
			_, err := f.Find(context.Background(), []string{root}, "source1")
			if worst = max(worst, time.Since(start)); err != nil {
				b.Fatal(err)
			}
			select {
			case took := <-done:
				checkouts += took
				running = false
			default:
			}
		}
		start := time.Now()
		for {
			found, err := f.Find(context.Background(), []string{root}, fmt.Sprintf("source%d-%d.go", files-1, generation))
			if err != nil {
				b.Fatal(err)
			}
			if len(found) > 0 && filepath.Base(found[0].Path) == filepath.Base(name(generation, files-1)) {
				break
			}
		}
		known += time.Since(start)
	}
	n := float64(generation)
	b.ReportMetric(float64(worst.Milliseconds()), "ms-worst-query")
	b.ReportMetric(float64(checkouts.Milliseconds())/n, "ms-checkout")
	b.ReportMetric(float64(known.Milliseconds())/n, "ms-until-known")
}
