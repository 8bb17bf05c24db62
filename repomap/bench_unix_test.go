//go:build unix

package repomap

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// bigTree creates a repository with n files of about 6 KB in Go, Python and TypeScript, which use each
// other's names.
func bigTree(b *testing.B, n int) string {
	b.Helper()
	root := b.TempDir()
	for i := range n {
		var s strings.Builder
		ext, def, use := ".go", "func Function%d_%d(first string, second int) error {\n", "\tvalue%d := Function%d_%d(\"some text\", %d) // and a comment\n"
		switch i % 3 {
		case 1:
			ext, def, use = ".py", "def Function%d_%d(first, second):\n", "    value%d = Function%d_%d(\"some text\", %d) # and a comment\n"
		case 2:
			ext, def, use = ".ts", "export function Function%d_%d(first: string, second: number): void {\n", "  const value%d = Function%d_%d(\"some text\", %d) // and a comment\n"
		default:
			s.WriteString("package p\n\n")
		}
		for j := range 10 {
			fmt.Fprintf(&s, def, i, j)
			for k := range 8 {
				fmt.Fprintf(&s, use, k, (i*7+j*31+k*3*13)%n, k, j)
			}
			if ext != ".py" {
				s.WriteString("}\n")
			}
			s.WriteString("\n")
		}
		name := fmt.Sprintf("part%d/dir%d/file%d%s", i%13, i%60, i, ext)
		testkit.WriteFiles(b, root, map[string]string{name: s.String()})
		// A file written a moment ago is looked at again.
		if err := os.Chtimes(filepath.Join(root, filepath.FromSlash(name)), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			b.Fatal(err)
		}
	}
	return root
}

// floor walks a tree and reads its files in one goroutine, which is the least work for any map.
func floor(b *testing.B, root string) (bytes int64) {
	b.Helper()
	buf := make([]byte, maxBytes)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n, _ := f.Read(buf)
		bytes += int64(n)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// trees returns the folders to measure: that in REPOMAP_TREE if it is set, otherwise a generated one.
func trees(b *testing.B) map[string]string {
	if dir := os.Getenv("REPOMAP_TREE"); dir != "" {
		return map[string]string{"given": dir}
	}
	return map[string]string{"made": bigTree(b, 8000)}
}

// BenchmarkCold measures the first map of 8,000 files, relative to floor in the same run. It reports the
// elapsed time, and the processor time, which other programs affect less.
func BenchmarkCold(b *testing.B) {
	for name, root := range trees(b) {
		b.Run(name, func(b *testing.B) {
			floor(b, root)
			var least, spent, leastSpent time.Duration
			var size int64
			begin := processorTime()
			for b.Loop() {
				at, cpu := time.Now(), processorTime()
				size = floor(b, root)
				least += time.Since(at)
				leastSpent += processorTime() - cpu
				x := New(Options{})
				if m, err := x.Map(context.Background(), root, Focus{}); err != nil || m.Text(4000) == "" {
					b.Fatal(err)
				}
				x.Close()
			}
			whole := b.Elapsed() - least
			spent = processorTime() - begin - leastSpent
			b.ReportMetric(float64(spent)/float64(leastSpent), "cpu-ratio")
			b.ReportMetric(float64(whole.Milliseconds())/float64(b.N), "map-ms")
			b.ReportMetric(float64(least.Milliseconds())/float64(b.N), "floor-ms")
			b.ReportMetric(float64(whole)/float64(least), "ratio")
			b.ReportMetric(float64(size)/1e6, "source-MB")
		})
	}
}

// BenchmarkEdit measures the next map after an edit of one file that adds a definition. On a busy machine,
// only the processor time (cpu-ms) is meaningful. For an index with notifications, it includes their cost.
func BenchmarkEdit(b *testing.B) {
	root := bigTree(b, 8000)
	for name, index := range map[string]func(b *testing.B) *Index{
		"looks": func(b *testing.B) *Index {
			x := New(Options{})
			b.Cleanup(x.Close)
			mapOf(b, x, root, Focus{})
			return x
		},
		"told": func(b *testing.B) *Index {
			x, s := newNotifiedIndex(b, root)
			known := s.listings
			b.Cleanup(func() { b.Logf("told %d times of %d", s.listings-known, b.N) })
			return x
		},
	} {
		b.Run(name, func(b *testing.B) {
			x := index(b)
			n := 0
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				n++
				testkit.WriteFiles(b, root, map[string]string{"part0/dir0/edited.go": fmt.Sprintf("package p\n\nfunc Edited%d() { Function7_7() }\n", n)})
				b.StartTimer()
				cpu := processorTime()
				if mapOf(b, x, root, Focus{}).Text(4000) == "" {
					b.Fatal("no map")
				}
				spent += processorTime() - cpu
			}
			b.ReportMetric(float64(spent.Microseconds())/1000/float64(b.N), "cpu-ms")
		})
	}
}

// BenchmarkStored measures the first map of a process that loads a stored map.
func BenchmarkStored(b *testing.B) {
	for name, root := range trees(b) {
		b.Run(name, func(b *testing.B) {
			o := Options{CacheDir: b.TempDir()}
			x := New(o)
			mapOf(b, x, root, Focus{})
			x.Close()
			for b.Loop() {
				x := New(o)
				if mapOf(b, x, root, Focus{}).Text(4000) == "" {
					b.Fatal("no map")
				}
			}
		})
	}
}

// BenchmarkMemory measures the memory of a complete index, and the peak while it is built, absolute and
// relative to the size of the sources.
func BenchmarkMemory(b *testing.B) {
	for name, root := range trees(b) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				x := New(Options{})
				peak := peakMemory(func() { mapOf(b, x, root, Focus{}) })
				runtime.GC()
				runtime.ReadMemStats(&after)
				retained, source := float64(after.HeapAlloc)-float64(before.HeapAlloc), 0.0
				for _, f := range x.tree(mustAbs(b, root)).order {
					source += float64(f.size)
				}
				b.ReportMetric(retained/1e6, "kept-MB")
				b.ReportMetric(source/1e6, "source-MB")
				b.ReportMetric(retained/source, "ratio")
				b.ReportMetric(peak/1e6, "peak-MB")
				b.ReportMetric(peak/source, "peak-ratio")
				runtime.KeepAlive(x)
			}
		})
	}
}

// peakMemory returns by how many bytes the memory of the process grows at most while f runs.
func peakMemory(f func()) float64 {
	debug.FreeOSMemory()
	inUse := func() float64 {
		s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(s)
		return float64(s[0].Value.Uint64()) - float64(s[1].Value.Uint64())
	}
	before, peak, done := inUse(), 0.0, make(chan struct{})
	var sampling sync.WaitGroup
	sampling.Go(func() {
		for tick := time.NewTicker(time.Millisecond); ; {
			peak = max(peak, inUse()-before)
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				return
			}
		}
	})
	f()
	close(done)
	sampling.Wait()
	return peak
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
