package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

func hunk(was, will string) diff { return diff{will, &was, "/p", "diff"} }

func TestDiffs(t *testing.T) {
	for name, c := range map[string]struct {
		unified string
		want    []diff
		line    int64
	}{
		"none": {"", nil, 0},
		"new":  {"@@ -0,0 +1,2 @@\n+a\n+b", []diff{{"a\nb\n", nil, "/p", "diff"}}, 1},
		"two hunks": {"@@ -3,3 +3,3 @@\n a\n-b\n+c\n d\n@@ -20,1 +20,0 @@\n-z\n", []diff{
			hunk("a\nb\nd\n", "a\nc\nd\n"),
			hunk("z\n", ""),
		}, 3},
		"an end without a newline": {"@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file", []diff{
			hunk("a", "b"),
		}, 1},
		"CRLF": {"@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n", []diff{
			hunk("a\nb\n", "a\nc\n"),
		}, 1},
		"only the ends of lines": {"@@ -1,1 +1,1 @@\n-b\r\n+b\n", []diff{
			hunk("b\r\n", "b\n"),
		}, 1},
		"no diff": {"what is this", nil, 0},
	} {
		if d := cmp.Diff(c.want, diffs("/p", c.unified)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if got := firstLine(c.unified); got != c.line {
			t.Errorf("%s begins at %d", name, got)
		}
	}
}

// A question shows one diff with all hunks.
func TestDiffsAsOne(t *testing.T) {
	want := []diff{hunk("a\nb\n⋯\nz\n", "a\nc\n⋯\n")}
	if d := cmp.Diff(want, joinHunks(diffs("/p", "@@ -3,2 +3,2 @@\n a\n-b\n+c\n@@ -20,1 +20,0 @@\n-z\n"))); d != "" {
		t.Error(d)
	}
	if one := diffs("/p", "@@ -0,0 +1,1 @@\n+a\n"); cmp.Diff(one, joinHunks(one)) != "" {
		t.Errorf("%v", joinHunks(one))
	}
}

// Replacing the old texts by the new ones turns the old file into the new one.
func TestDiffsApply(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "-x\n", "+y\n", "@@ z\n"})
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(line, 0, 12).Draw(t, "lines"), "") + rapid.SampledFrom([]string{"", "end"}).Draw(t, "end")
		})
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		unified, err := udiff.ToUnified("a", "b", before, udiff.Lines(before, after), 1000)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(unified, "@@"); i >= 0 {
			unified = unified[i:]
		}
		list := diffs("/p", strings.TrimSuffix(unified, "\n"))
		if before == after {
			if len(list) != 0 {
				t.Fatalf("%v", list)
			}
			return
		}
		old := ""
		if list[0].OldText != nil {
			old = *list[0].OldText
		}
		if len(list) != 1 || old != before || list[0].NewText != after {
			t.Fatalf("%q -> %q is told as %v\n%s", before, after, list, unified)
		}
	})
}

// Reading any line gives a message, or an error that can be answered.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`, "\n\n{}\n", "[1]\n", "{\"id\":null}", "\"x\"", "nul",
		`{"jsonrpc":"2.0","id":"a","result":null}`, `{"jsonrpc":"2.0","id":[],"method":"x"}`, `{"jsonrpc":"2.0","error":{"code":1}}`,
		"x\r\n" + strings.Repeat("y", 200) + "\n{}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const limit = 100
		r := jsonrpc.Lines(bytes.NewReader(data), limit)
		for range len(data) + 2 {
			line, err := r.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			var long *jsonrpc.Error
			if errors.As(err, &long) {
				continue
			}
			if err != nil || len(line) == 0 || len(line) > limit {
				t.Fatalf("%q: %v", line, err)
			}
			m, bad := readMessage(line)
			switch {
			case bad != nil && bad.Message == "":
				t.Fatalf("%q: an error without a cause", line)
			case bad == nil && m.Method == "" && !m.IsAnswer():
				t.Fatalf("%q is no message", line)
			}
			if m.ID != nil && !json.Valid(m.ID) {
				t.Fatalf("%q has the id %q", line, m.ID)
			}
			var c client
			_ = decode(m.Params, &c)
			var w setupParams
			if decode(m.Params, &w) == nil {
				_, _ = w.setup()
			}
		}
		t.Fatal("reading does not end")
	})
}
