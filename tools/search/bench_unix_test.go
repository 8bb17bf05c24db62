//go:build unix

package search

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/workspace"
)

// sourceTree makes files that look like programs, about size bytes together, the same files at each
// call. Their sizes are distributed like those of source files (half below 5 KB), and their words
// as in texts (a few are frequent, most are rare).
func sourceTree(b *testing.B, size int) string {
	b.Helper()
	root := b.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("return if else func for range string int err nil var const struct type import package error value name path file list index buffer reader config client server handler request response context")
	letters := "etaoinsrlcdpumfghbvywkxjqz"
	for range 20_000 {
		n := 3 + random.IntN(10)
		word := make([]byte, n)
		for i := range word {
			word[i] = letters[int(float64(len(letters))*math.Pow(random.Float64(), 1.8))]
		}
		if random.IntN(3) == 0 {
			word[n/2] -= 'a' - 'A'
		}
		words = append(words, string(word))
	}
	common := rand.NewZipf(random, 1.1, 4, uint64(len(words)-1))
	marks := []string{" ", " ", " ", " ", ", ", "(", ") ", " = ", ".", ": ", "[", "] ", " + ", "\"", "\" ", " // ", "_", "{", "}"}
	var text bytes.Buffer
	for n, total := 0, 0; total < size; n++ {
		text.Reset()
		want := int(math.Exp(8.5 + 1.2*random.NormFloat64()))
		want = min(max(want, 100), 2<<20)
		for text.Len() < want {
			for range random.IntN(4) {
				text.WriteByte('\t')
			}
			for range random.IntN(14) {
				text.WriteString(words[common.Uint64()])
				text.WriteString(marks[random.IntN(len(marks))])
			}
			if random.IntN(200) == 0 {
				fmt.Fprintf(&text, "0x%08X %d", random.Uint32(), random.IntN(1e6))
			}
			text.WriteByte('\n')
		}
		if n%1000 == 77 {
			fmt.Fprintf(&text, "func NeedleInHaystack%d() error { return nil }\n", n)
		}
		path := filepath.Join(root, fmt.Sprintf("part%d", n%23), fmt.Sprintf("dir%d", n%211), fmt.Sprintf("file%d.%s", n, []string{"go", "py", "ts", "c"}[n%4]))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			b.Fatal(err)
		}
		total += text.Len()
	}
	return root
}

// BenchmarkGrep searches a tree of 150 MB, and has ripgrep search it too, one after the
// other. The answers have to be the same.
func BenchmarkGrep(b *testing.B) {
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("NOT MEASURED: there is no yardstick, ripgrep is missing (apt-get install ripgrep)")
	}
	root := sourceTree(b, 150<<20)
	for _, c := range []struct{ name, pattern, mode string }{
		{"literal, rare", "NeedleInHaystack", modeFiles},
		{"literal, rare, any case", "(?i)needleinhaystack", modeFiles},
		{"literal, frequent, counted", "return", modeCount},
		{"word, frequent, lines", `\berr\b`, modeContent},
		{"regexp, rare, with a literal", `func \w+Haystack\d+\(\)`, modeContent},
		{"regexp without a literal", `0x[0-9A-F]{6}77\b`, modeContent},
		{"classes only", `[A-Z][a-z]+[0-9]{4}\b`, modeContent},
		{"alternatives", "NeedleIn|neverThere|norThis", modeFiles},
		{"any case, frequent, counted", "(?i)context", modeCount},
		{"nothing", "zzzqqqxxx", modeFiles},
	} {
		b.Run(c.name, func(b *testing.B) {
			flag := map[string]string{modeFiles: "-l", modeCount: "-c", modeContent: "-n"}[c.mode]
			args := grepArgs{Path: root, Pattern: c.pattern, OutputMode: c.mode, MaxResults: 100_000_000} // all, as ripgrep
			var ours, theirs []float64
			var ourCPU, theirCPU time.Duration
			for b.Loop() {
				began, spent := time.Now(), cpu(b)
				res, err := grep(b.Context(), root, workspace.New(root), args)
				if err != nil {
					b.Fatal(err)
				}
				ours = append(ours, float64(time.Since(began))/1e6)
				ourCPU += cpu(b) - spent
				began = time.Now()
				cmd := exec.Command(rg, "--no-config", "--no-heading", "--color=never", flag, "-e", c.pattern, root)
				out, _ := cmd.Output() // 1 if nothing is found
				theirs = append(theirs, float64(time.Since(began))/1e6)
				theirCPU += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				if len(theirs) == 1 {
					compareLines(b, res.Outputs[0], string(out))
				}
			}
			slices.Sort(ours)
			slices.Sort(theirs)
			us, them := ours[len(ours)/2], theirs[len(theirs)/2]
			b.ReportMetric(0, "ns/op") // both together say nothing
			b.ReportMetric(us, "eca-ms")
			b.ReportMetric(them, "rg-ms")
			b.ReportMetric(us/them, "ratio")
			b.ReportMetric(float64(ourCPU)/float64(theirCPU), "cpu-ratio") // says more when others use the machine
		})
	}
}

// cpu is the time that all processors spent for this process so far.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// compareLines reports answers that differ.
func compareLines(b *testing.B, ours, theirs string) {
	b.Helper()
	sorted := func(s string) []string {
		lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
		slices.Sort(lines)
		return lines
	}
	if strings.HasPrefix(ours, "No matches found") {
		ours = ""
	}
	a, c := sorted(ours), sorted(theirs)
	if len(a) != len(c) {
		b.Errorf("%d lines, ripgrep has %d", len(a), len(c))
		return
	}
	for i := range a {
		if a[i] != c[i] && len(a[i]) < maxShown {
			b.Errorf("%q, ripgrep has %q", a[i], c[i])
			return
		}
	}
}
