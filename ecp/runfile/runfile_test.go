package runfile_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
)

// newReport returns a report of n cases and two variants; with the second variant, every seventh
// case failed.
func newReport(n int) *report.Report {
	r := &report.Report{Name: "made", RunID: "r", SchemaVersion: report.SchemaVersion}
	for _, v := range []string{"a", "b"} {
		for i := range n {
			s := report.Scenario{Name: fmt.Sprintf("task %05d", n-i), ID: fmt.Sprint("id", i), VariantKey: "key" + v, Variant: map[string]string{"model": v}, Status: report.Passed, DurationMS: int64(i % 5)}
			s.Steps = []report.Step{{Input: "do it", Checks: []report.Check{{Type: "file", Passed: true}}}}
			if v == "b" && i%7 == 0 {
				s.Status = report.Failed
				s.Steps[0].Checks[0] = report.Check{Type: "file", Reasoning: fmt.Sprint("100% of ", i, " is gone")}
			}
			r.Scenarios = append(r.Scenarios, s)
		}
	}
	r.Sum()
	return r
}

// openReport writes a run file of a report, and opens it.
func openReport(t testing.TB, r *report.Report) *runfile.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	if err := runfile.Write(path, r); err != nil {
		t.Fatal(err)
	}
	f, err := runfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// pages reads a grid to its end, and returns the names of its rows.
func pages(t *testing.T, f *runfile.File, q report.Query, limit int) (names []string, total int) {
	t.Helper()
	after := ""
	for {
		g, next, err := f.Grid(t.Context(), q, after, limit)
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Rows) > limit {
			t.Fatalf("a page has %d rows", len(g.Rows))
		}
		for _, row := range g.Rows {
			names = append(names, row.Name)
		}
		total = g.Total
		if after = next; next == "" {
			return names, total
		}
	}
}

// Each row is on one page, in the requested order, and filters keep the matching rows.
func TestGrid(t *testing.T) {
	f := openReport(t, newReport(50))
	for name, c := range map[string]struct {
		q           report.Query
		n           int
		first, last string
	}{
		"all":     {report.Query{}, 50, "task 00050", "task 00001"},
		"name":    {report.Query{Sort: report.SortName}, 50, "task 00001", "task 00050"},
		"rate":    {report.Query{Sort: report.SortRate}, 50, "task 00050", "task 00002"},
		"time":    {report.Query{Sort: report.SortTime}, 50, "task 00046", "task 00005"},
		"cost":    {report.Query{Sort: report.SortCost}, 50, "task 00050", "task 00001"},
		"unknown": {report.Query{Sort: "; DROP TABLE run"}, 50, "task 00050", "task 00001"},
		"failed":  {report.Query{Status: report.Failed, Kind: "file"}, 8, "task 00050", "task 00001"},
		"passed":  {report.Query{Status: report.Passed}, 50, "task 00050", "task 00001"},
		"both":    {report.Query{Status: report.Passed, Text: "100% of"}, 8, "task 00050", "task 00001"},
		"mixed":   {report.Query{Status: report.Passed, Kind: "file"}, 0, "", ""},
		"error":   {report.Query{Status: report.Error}, 0, "", ""},
		"flaky":   {report.Query{Status: report.StatusFlaky}, 0, "", ""},
		"text":    {report.Query{Text: "0004"}, 10, "task 00049", "task 00004"},
		"why":     {report.Query{Text: "100% of 14 "}, 1, "task 00036", "task 00036"},
		"percent": {report.Query{Text: "1_0%"}, 0, "", ""},
	} {
		if name == "text" {
			c.q.Text, c.n, c.first, c.last = "0000", 9, "task 00009", "task 00001"
		}
		names, total := pages(t, f, c.q, 7)
		if len(names) != c.n || total != c.n {
			t.Errorf("%s: %d rows of %d, want %d", name, len(names), total, c.n)
			continue
		}
		seen := map[string]bool{}
		for _, n := range names {
			seen[n] = true
		}
		if len(seen) != c.n {
			t.Errorf("%s: rows are there twice", name)
		}
		if c.n > 0 && (names[0] != c.first || names[c.n-1] != c.last) {
			t.Errorf("%s: from %s to %s, want %s to %s", name, names[0], names[c.n-1], c.first, c.last)
		}
	}
}

// The filter for passed cases selects a case if at least one of its results passed.
func TestGridPassed(t *testing.T) {
	r := newReport(8)
	r.Scenarios[0].Status = report.Failed // the other variant failed, too
	r.Sum()
	if names, total := pages(t, openReport(t, r), report.Query{Status: report.Passed}, 7); total != 7 || len(names) != 7 || names[0] != "task 00007" || names[6] != "task 00001" {
		t.Errorf("%d: %s", total, names)
	}
}

// A result equals the report's, and has links to its neighbours that did not pass.
func TestResult(t *testing.T) {
	r := newReport(10)
	r.Scenarios[3].Attempts = []report.Attempt{{Status: report.Passed}, {Status: report.Failed, Diff: "d"}, {Status: report.Passed}}
	r.Sum()
	f := openReport(t, r)
	g, _, err := f.Grid(t.Context(), report.Query{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Rows) != 10 || g.Rows[0].Cells[1].Status != report.Failed || g.Rows[0].Cells[1].Why != "file: 100% of 0 is gone" {
		t.Fatalf("%+v", g)
	}
	id, err := strconv.ParseInt(g.Rows[7].Cells[1].Href, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	d, prev, next, err := f.Result(t.Context(), id, 1, 20)
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "task 00003" || d.Total != 1 || prev != 11 || next != 0 || d.Reason != "file: 100% of 7 is gone" {
		t.Errorf("%+v, %d, %d", d, prev, next)
	}
	if diff := cmp.Diff(r.Scenarios[17].Steps, d.Shown[0].Steps); diff != "" {
		t.Error(diff)
	}
	d, _, next, err = f.Result(t.Context(), 4, 2, 1)
	if err != nil || d.Total != 3 || len(d.Shown) != 1 || d.Shown[0].Number != 2 || d.Shown[0].Diff != "d" || next != 11 {
		t.Errorf("%+v, %d, %v", d, next, err)
	}
	if _, _, _, err := f.Result(t.Context(), 999, 1, 1); !errors.Is(err, runfile.ErrNoResult) {
		t.Error(err)
	}
}

// The head is the report without its scenarios, and comparisons can be made from the file.
func TestSides(t *testing.T) {
	r := newReport(20)
	f := openReport(t, r)
	if diff := cmp.Diff(r.Summary, f.Report().Summary); diff != "" || f.Report().Name != "made" || len(f.Report().Scenarios) != 0 {
		t.Error(diff)
	}
	if diff := cmp.Diff([]report.Failure{{Kind: "file", Count: 3}}, f.Failures()); diff != "" {
		t.Error(diff)
	}
	a, err := f.Side(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := f.Side(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	got, want := report.NewPair(a, b), r.Comparisons[0]
	for i := range want.Changed { // places in a report begin with 0
		want.Changed[i].PlaceA++
		want.Changed[i].PlaceB++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A file that is not a run file is refused, and a failed write leaves nothing.
func TestRefused(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string]string{"empty": "", "json": `{"scenarios":[]}`, "cut": "SQLite format 3\x00", "junk": strings.Repeat("junk", 1000)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if f, err := runfile.Open(path); !errors.Is(err, runfile.ErrNotRun) {
			t.Errorf("%s: %v", name, err)
			_ = f.Close()
		}
	}
	if _, err := runfile.Open(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.MkdirAll(filepath.Join(folder, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runfile.Write(folder, newReport(1)); err == nil {
		t.Error("a folder was replaced")
	}
	notes := filepath.Join(dir, "json")
	if _, err := runfile.Create(notes, newReport(1)); err == nil || !strings.Contains(err.Error(), "not a run file; name another file") {
		t.Errorf("a file that is not a run file: %v", err)
	}
	if text, err := os.ReadFile(notes); err != nil || string(text) != `{"scenarios":[]}` {
		t.Errorf("%q, %v", text, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 5 {
		t.Errorf("%v, %v", left, err)
	}
}

// A file is readable if a process was killed within a transaction that had changed it.
func TestUnfinishedTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	if err := runfile.Write(path, newReport(200)); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	// With a small cache, the changed pages are written before the transaction ends.
	if _, err := db.Exec("PRAGMA cache_size=5; BEGIN IMMEDIATE; UPDATE result SET status = 'error'"); err != nil {
		t.Fatal(err)
	}
	killed := filepath.Join(t.TempDir(), "killed"+runfile.Extension)
	for _, suffix := range []string{"", "-journal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(killed+suffix, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := runfile.Open(killed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, total := pages(t, f, report.Query{Status: report.Error}, 100); total != 0 {
		t.Errorf("%d rows have changed", total)
	}
}

// BenchmarkOpen measures the time to the first page of a run with 100,000 attempts.
func BenchmarkOpen(b *testing.B) {
	path := filepath.Join(b.TempDir(), "x"+runfile.Extension)
	if err := runfile.Write(path, newReport(50_000)); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		f, err := runfile.Open(path)
		if err != nil {
			b.Fatal(err)
		}
		for _, q := range []report.Query{{}, {Sort: report.SortRate}, {Status: report.Failed}, {Text: "gone"}} {
			if _, _, err := f.Grid(b.Context(), q, "", 100); err != nil {
				b.Fatal(err)
			}
		}
		_ = f.Close()
	}
}
