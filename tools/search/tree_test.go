package search

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A search in many files, some of them longer than a block, finds the same lines, with the same
// numbers and in the same order, as reading the files one after another.
func TestGrepTree(t *testing.T) {
	needs.Long(t)
	root := t.TempDir()
	random := rand.New(rand.NewPCG(3, 4))
	words := []string{"needle", "Needle", "hay", "stack", "x", "\n", "\n", "\r\n", "  ", "ne", "edle", "\u00e9"}
	re := regexp.MustCompile(`(?i)needle|^x`)
	var lines, files, counts []string
	var names []string
	for i := range 300 {
		names = append(names, fmt.Sprintf("d%d/f%d", i%7, i))
	}
	slices.Sort(names)
	for i, name := range names {
		var text bytes.Buffer
		size := random.IntN(2000)
		if i%60 == 7 {
			size = 3*blockSize + random.IntN(blockSize)
		}
		for text.Len() < size {
			text.WriteString(words[random.IntN(len(words))])
		}
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		n, count := 0, 0
		for line := range bytes.Lines(text.Bytes()) {
			n++
			if line = bytes.TrimRight(line, "\r\n"); re.Match(line) {
				count++
				lines = append(lines, fmt.Sprintf("%s:%d:%s", path, n, line))
			}
		}
		if count > 0 {
			files = append(files, path)
			counts = append(counts, fmt.Sprintf("%s:%d", path, count))
		}
	}
	const stopped = "\n\n[stopped after max_results; narrow the search to see the rest]"
	for mode, want := range map[string][]string{modeContent: lines, modeFiles: files, modeCount: counts} {
		for _, most := range []int{1, 3, len(want) - 1, len(want), len(want) + 1} {
			got, _ := grepCall(t, map[string]any{"path": root, "pattern": re.String(), "output_mode": mode, "max_results": most})
			exp := strings.Join(want[:min(most, len(want))], "\n")
			if most < len(want) {
				exp += stopped
			}
			if got != exp {
				t.Errorf("%s, at most %d: %d bytes instead of %d; they begin with %.200q instead of %.200q", mode, most, len(got), len(exp), got, exp)
			}
		}
	}
}

// A line that is longer than a block is searched at its beginning, and the lines after it
// keep their numbers.
func TestGrepLongLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	text := "one\nneedle" + strings.Repeat("x", 3*blockSize) + "needle\nthree needle\n" + strings.Repeat("y", blockSize) + "\nfive needle"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got, _ := grepCall(t, map[string]any{"path": path, "pattern": "needle", "output_mode": modeContent})
	want := fmt.Sprintf("%[1]s:2:needle%[2]s…\n%[1]s:3:three needle\n%[1]s:5:five needle", path, strings.Repeat("x", maxShown-len("needle")))
	if got != want {
		t.Errorf("got %.2000q", got)
	}
	got, _ = grepCall(t, map[string]any{"path": path, "pattern": "needle", "output_mode": modeCount})
	if got != path+":3" {
		t.Errorf("counted %q", got)
	}
}

// A search whose context is cancelled returns an error and, as TestMain checks, leaves no goroutine.
func TestGrepStopsInTree(t *testing.T) {
	root := t.TempDir()
	for i := range 200 {
		if err := os.WriteFile(filepath.Join(root, fmt.Sprint(i)), []byte("needle\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := grep(ctx, root, nil, grepArgs{Pattern: "needle"}); err == nil {
		t.Error("grep returned no error although its context was cancelled")
	}
}
