package lang

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
)

// oracleFile is a line of what oracle/definitions.py writes.
type oracleFile struct {
	Language    string
	Path        string
	Error       bool // the oracle's grammar met what it does not know
	Definitions [][2]any
}

// score counts the definitions that both found, that only Scan found, and that only the oracle found.
type score struct {
	files, skipped       int
	right, wrong, missed int
}

func (s score) String() string {
	return fmt.Sprintf("%d files (%d not parsed by the oracle), %d definitions: precision %.4f, recall %.4f", s.files, s.skipped,
		s.right+s.missed, float64(s.right)/float64(max(1, s.right+s.wrong)), float64(s.right)/float64(max(1, s.right+s.missed)))
}

// compare adds a file to the score. Two definitions are the same if they have the same name and line.
func (s *score) compare(t *testing.T, f oracleFile, defs []Definition) {
	want := map[string]int{}
	for _, d := range f.Definitions {
		want[fmt.Sprintf("%v: %v", d[1], d[0])]++
	}
	const shown = 40 // of each kind and language
	for _, d := range defs {
		key := fmt.Sprintf("%d: %s", d.Line, d.Name)
		if want[key] > 0 {
			want[key]--
			s.right++
			continue
		}
		if s.wrong++; s.wrong <= shown {
			t.Logf("not one: %s:%s (%s)", f.Path, key, d.Kind)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if n := want[key]; n > 0 {
			if s.missed += n; s.missed <= shown {
				t.Logf("missing: %s:%s", f.Path, key)
			}
		}
	}
}

// Compare with the definitions that tree-sitter finds in public code. oracle/definitions.py writes the
// list of these, and docs/repomap.md has the scores.
func TestOracle(t *testing.T) {
	list := os.Getenv("REPOMAP_ORACLE")
	if list == "" {
		t.Skip("NOT TESTED: set REPOMAP_ORACLE to a list that oracle/definitions.py wrote (how stands there)")
	}
	in, err := os.Open(list)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	ls, scores := New(), map[string]*score{}
	var s Scanner
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		var f oracleFile
		if err := json.Unmarshal(lines.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		l := ls.ByName(f.Language)
		if l == nil {
			t.Fatalf("%s: no language %q", f.Path, f.Language)
		}
		if scores[l.Name] == nil {
			scores[l.Name] = &score{}
		}
		if scores[l.Name].files++; f.Error {
			scores[l.Name].skipped++
			continue
		}
		src, err := os.ReadFile(f.Path)
		if err != nil {
			t.Fatal(err)
		}
		defs, _ := s.Scan(l, src)
		scores[l.Name].compare(t, f, defs)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(scores)) {
		t.Logf("SCORE %s: %s", name, scores[name])
	}
}
