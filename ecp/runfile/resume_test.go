package runfile_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
)

// mustWriter is a writer whose calls must succeed.
type mustWriter struct {
	*testing.T
	*runfile.Writer
}

func (w mustWriter) attempt(key byte, n int, status string, stopped bool) {
	cost := 0.5
	a := report.Attempt{Status: status, Steps: []report.Step{{CostUSD: &cost}}}
	w.check(w.Attempt([16]byte{key}, n, int64(key), a, stopped))
}

func (w mustWriter) result(key byte, place int, statuses ...string) {
	s := report.Scenario{ID: string(key), Name: string(key), Status: report.Passed, ExitReason: report.ReasonOK}
	for _, status := range statuses {
		s.Attempts = append(s.Attempts, report.Attempt{Status: status})
		if status != report.Passed {
			s.Status = status
		}
	}
	w.check(w.Result([16]byte{key}, place, &s))
}

func (w mustWriter) check(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// grid returns the names of the rows of a run file, and the numbers of their attempts.
func grid(t *testing.T, path string) (out string) {
	t.Helper()
	f, err := runfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, _, err := f.Grid(t.Context(), report.Query{}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range g.Rows {
		id, err := strconv.ParseInt(row.Cells[0].Href, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		d, _, _, err := f.Result(t.Context(), id, 1, 100)
		if err != nil || len(d.Shown) != row.Cells[0].N || d.Total != row.Cells[0].N || d.Name != row.Name {
			t.Errorf("%s: %d attempts of %d are shown, %v", row.Name, len(d.Shown), row.Cells[0].N, err)
		}
		out += row.Name + string(rune('0'+row.Cells[0].N))
	}
	return out
}

// keep keeps the cases of a plan, and returns those whose result is complete.
func (w mustWriter) keep(plan string, repeat int) (complete string) {
	w.Helper()
	for place, c := range plan {
		key := [16]byte{byte(c)}
		stored, ok := w.Has([][16]byte{key, {byte(c) | 0x20}}) // the lower case is an alias
		if !ok {
			continue
		}
		done, err := w.Keep(report.Planned{Key: key, StoredKey: stored, Index: place, Repeat: repeat, Agent: int64(stored[0] | 0x20), Selected: true})
		w.check(err)
		if done {
			complete += string(c)
		}
	}
	return complete
}

// writeKilledRun writes the run file of a run that was killed, and returns its path. In each
// result, one attempt is missing.
func writeKilledRun(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	made, err := runfile.Create(path, &report.Report{Name: "made"})
	w := mustWriter{t, made}
	w.check(err)
	w.attempt('a', 1, report.Passed, false)
	w.result('a', 0, report.Passed)
	w.attempt('b', 1, report.Error, false)
	w.result('b', 1, report.Error)
	w.attempt('c', 1, report.Passed, false) // of two
	w.attempt('d', 1, report.Passed, true)
	w.attempt('e', 1, report.Passed, false)
	w.result('e', 4, report.Passed)
	for end := time.Now().Add(time.Minute); grid(t, path) != "a1b1e1"; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("others see %q", grid(t, path))
		}
	}
	copied := filepath.Join(t.TempDir(), "killed"+runfile.Extension)
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		w.check(err)
		w.check(os.WriteFile(copied+suffix, data, 0o644))
	}
	w.check(w.Close(&report.Report{}))
	return copied
}

// A file that is open while the run adds its first results shows them.
func TestReadWhileResultsAreAdded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	made, err := runfile.Create(path, &report.Report{})
	w := mustWriter{t, made}
	w.check(err)
	f, err := runfile.Open(path)
	w.check(err)
	w.attempt('a', 1, report.Passed, false)
	w.result('a', 0, report.Passed)
	w.check(w.Close(nil))
	g, _, err := f.Grid(t.Context(), report.Query{}, "", 100)
	if err != nil || len(g.Rows) != 1 || len(g.Rows[0].Cells) != 1 || !g.Rows[0].Cells[0].Ran {
		t.Errorf("%+v, %v", g, err)
	}
	w.check(f.Close())
}

// A run that was killed keeps its attempts, also those whose result is missing. The continued run adds
// the missing ones, replaces results and moves them.
func TestContinue(t *testing.T) {
	path := writeKilledRun(t)
	made, err := runfile.Continue(path, true)
	w := mustWriter{t, made}
	w.check(err)
	if tokens, cost, unpriced := w.Spent(); tokens != 0 || cost != 2.5 || unpriced {
		t.Errorf("%d, %g, %t", tokens, cost, unpriced)
	}
	if got := w.keep("ecadbf", 1); got != "ea" {
		t.Errorf("complete: %q", got)
	}
	w.check(w.Matched(6))
	for key, want := range map[byte]bool{'a': true, 'b': false, 'c': true, 'd': false, 'e': true, 'f': false} {
		if w.Find([16]byte{key}, 1) != want {
			t.Errorf("%c: %t", key, !want)
		}
	}
	if a, err := w.Load([16]byte{'c'}, 1); err != nil || len(a.Steps) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	w.attempt('c', 2, report.Failed, false)
	w.result('c', 1, report.Passed, report.Failed)
	w.attempt('d', 1, report.Passed, false)
	w.result('d', 3, report.Passed)
	w.attempt('b', 1, report.Passed, false)
	w.result('b', 4, report.Passed)
	r := &report.Report{}
	w.check(w.Sum(r, 6))
	if r.Counts != (report.Counts{Passed: 4, Failed: 1}) || r.NotRun != 1 || r.Summary.Attempts != 6 || len(r.Scenarios) != 1 || r.Scenarios[0].Name != "c" || len(r.Scenarios[0].Steps) != 1 {
		t.Errorf("%+v", r)
	}
	w.check(w.Close(r))
	if got := grid(t, path); got != "e1c2a1d1b1" {
		t.Errorf("%q", got)
	}
	f, err := runfile.Open(path)
	w.check(err)
	for place, id := range []int64{5, 3, 1, 4, 2} {
		if got, err := f.ID(t.Context(), place); err != nil || got != id {
			t.Errorf("%d is at %d, %v", got, place, err)
		}
	}
	w.check(f.Close())
	if left, err := filepath.Glob(path + "-*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// While attempts that ended in errors are made again, each attempt counts once, whenever the process is
// killed. A new attempt that is stopped does not replace the old one.
func TestRetriesCountOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	made, err := runfile.Create(path, &report.Report{})
	w := mustWriter{t, made}
	w.check(err)
	for _, key := range []byte("ab") {
		for n := range 3 {
			w.attempt(key, n+1, report.Error, false)
		}
		w.result(key, int(key-'a'), report.Error, report.Error, report.Error)
	}
	w.check(w.Close(&report.Report{}))

	made, err = runfile.Continue(path, true)
	w = mustWriter{t, made}
	w.check(err)
	w.keep("ab", 3)
	w.check(w.Matched(2))
	w.attempt('a', 1, report.Passed, false)
	w.attempt('b', 1, report.Passed, true)
	r := &report.Report{}
	w.check(w.Sum(r, 2))
	if r.Counts != (report.Counts{Error: 1}) || r.NotRun != 1 || r.Summary.Attempts != 3 || r.Summary.Errors != 3 {
		t.Errorf("%+v, %+v, %d not run", r.Counts, r.Summary, r.NotRun)
	}
	w.check(w.Close(nil)) // as if killed
	if got := grid(t, path); got != "b3" {
		t.Errorf("%q", got)
	}

	made, err = runfile.Continue(path, false)
	w = mustWriter{t, made}
	w.check(err)
	if _, cost, _ := w.Spent(); cost != 4 {
		t.Errorf("%g", cost)
	}
	if got := w.keep("ab", 3); got != "b" {
		t.Errorf("complete: %q", got)
	}
	w.check(w.Matched(2))
	for n := range 3 {
		a, err := w.Load([16]byte{'a'}, n+1)
		want := []string{report.Passed, report.Error, report.Error}[n]
		if err != nil || !w.Find([16]byte{'a'}, n+1) || a.Status != want {
			t.Errorf("attempt %d: %s, %v", n+1, a.Status, err)
		}
	}
	w.result('a', 0, report.Passed, report.Error, report.Error)
	w.check(w.Sum(r, 2))
	if r.Counts != (report.Counts{Error: 2}) || r.NotRun != 0 || r.Summary.Attempts != 6 || r.Summary.Errors != 5 {
		t.Errorf("%+v, %+v", r.Counts, r.Summary)
	}
	w.check(w.Close(r))
}

// A run whose plan lacks a finished case is not continued, and its file does not change. A new run
// takes the others from it.
func TestOtherRun(t *testing.T) {
	path := writeKilledRun(t)
	whole, err := runfile.Continue(path, false) // adds what SQLite keeps beside the file
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Close(nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for plan, want := range map[string]runfile.OtherRunError{
		"dcba": {Cases: 1, Name: "e"},
		"eb":   {Cases: 2, Name: "a"}, // an attempt of c finished, that of d did not
	} {
		made, err := runfile.Continue(path, false)
		w := mustWriter{t, made}
		w.check(err)
		w.keep(plan, 1)
		var other *runfile.OtherRunError
		if err := w.Matched(len(plan)); !errors.As(err, &other) || *other != want {
			t.Errorf("%s: %v", plan, err)
		}
		w.check(w.Close(nil))
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the file changed, %v", plan, err)
		}
	}

	again := filepath.Join(t.TempDir(), "again"+runfile.Extension)
	made, err := runfile.Reuse(path, again, &report.Report{Name: "again"}, false)
	w := mustWriter{t, made}
	w.check(err)
	if got := w.keep("Edcb", 1); got != "b" { // E was e
		t.Errorf("complete: %q", got)
	}
	w.check(w.Matched(4))
	if !w.Find([16]byte{'E'}, 1) || !w.Find([16]byte{'c'}, 1) || w.Find([16]byte{'d'}, 1) {
		t.Error("other attempts are reused")
	}
	if _, cost, _ := w.Spent(); cost != 0 {
		t.Errorf("%g", cost)
	}
	w.result('E', 0, report.Passed)
	w.attempt('d', 1, report.Passed, false)
	w.result('d', 1, report.Passed)
	w.result('c', 2, report.Passed)
	r := &report.Report{Name: "again"}
	w.check(w.Sum(r, 4))
	w.check(w.Close(r))
	if got := grid(t, again); got != "E1d1c1b1" || r.Counts != (report.Counts{Passed: 3, Error: 1}) || r.NotRun != 0 {
		t.Errorf("%q, %+v", got, r.Counts)
	}
	made, err = runfile.Continue(again, false)
	w = mustWriter{t, made}
	w.check(err)
	if got := w.keep("Edcb", 1); got != "Edcb" {
		t.Errorf("complete: %q", got)
	}
	w.check(w.Matched(4))
	w.check(w.Close(nil))
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file of the other run changed, %v", err)
	}
}

// The file of a report is not the file of a run that can be continued.
func TestContinueReport(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	if err := runfile.Write(path, newReport(2)); err != nil {
		t.Fatal(err)
	}
	w, err := runfile.Continue(path, false)
	if err != nil {
		t.Fatal(err)
	}
	var other *runfile.OtherRunError
	if err := w.Matched(4); !errors.As(err, &other) || other.Cases != 4 {
		t.Error(err)
	}
	if err := w.Close(nil); err != nil {
		t.Error(err)
	}
}

// A continued run that selects some cases has the sums of these, and its file has those of all.
func TestContinueSelected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	made, err := runfile.Create(path, &report.Report{})
	w := mustWriter{t, made}
	w.check(err)
	for i, key := range []byte("abc") {
		w.attempt(key, 1, report.Failed, false)
		w.result(key, i, report.Failed)
	}
	w.check(w.Close(&report.Report{}))
	made, err = runfile.Continue(path, false)
	w = mustWriter{t, made}
	w.check(err)
	for i, key := range []byte("abc") {
		_, err := w.Keep(report.Planned{Key: [16]byte{key}, StoredKey: [16]byte{key}, Index: i, Repeat: 1, Agent: int64(key), Selected: key == 'b'})
		w.check(err)
	}
	w.check(w.Matched(5))
	r := &report.Report{}
	w.check(w.Sum(r, 1))
	if r.Counts != (report.Counts{Failed: 1}) || r.NotRun != 0 || len(r.Scenarios) != 1 || r.Scenarios[0].Name != "b" || r.Omitted.NotPassed != 0 {
		t.Errorf("%+v", r)
	}
	w.check(w.Close(r))
	f, err := runfile.Open(path)
	w.check(err)
	defer f.Close()
	if got := f.Report(); got.Counts != (report.Counts{Failed: 3}) || got.NotRun != 2 {
		t.Errorf("%+v, %d not run", got.Counts, got.NotRun)
	}
}

// A new run does not overwrite an existing file. It replaces the unfinished file of a process that was
// killed.
func TestCreateKeepsOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	for _, name := range []string{"first", "second"} {
		for _, suffix := range []string{".new", ".new-journal"} {
			if err := os.WriteFile(path+suffix, []byte("unfinished"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		w, err := runfile.Create(path, &report.Report{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Close(&report.Report{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := runfile.Open(path + ".old")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if left, err := filepath.Glob(path + ".new*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	if f.Report().Name != "first" {
		t.Errorf("%+v", f.Report())
	}
}

// Until a Writer is closed, no other can write its file, also under another name, but it can be read.
// Nothing is left beside the file.
func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	w, err := runfile.Create(path, &report.Report{Name: "first"})
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other"+runfile.Extension)
	if err := runfile.Write(other, newReport(1)); err != nil {
		t.Fatal(err)
	}
	paths := []string{path}
	if link := filepath.Join(t.TempDir(), "link"); os.Symlink(path, link) == nil { // Windows may not allow it
		paths = append(paths, link)
	}
	for _, path := range paths {
		for name, open := range map[string]func() (*runfile.Writer, error){
			"create":   func() (*runfile.Writer, error) { return runfile.Create(path, &report.Report{Name: "second"}) },
			"continue": func() (*runfile.Writer, error) { return runfile.Continue(path, false) },
			"reuse":    func() (*runfile.Writer, error) { return runfile.Reuse(other, path, &report.Report{}, false) },
		} {
			if _, err := open(); err == nil || !strings.Contains(err.Error(), path+": another ecp process is adding results to it") {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
	}
	f, err := runfile.Open(path)
	if err != nil || f.Report().Name != "first" {
		t.Fatalf("%+v, %v", f, err)
	}
	if err := errors.Join(f.Close(), w.Close(&report.Report{Name: "first"})); err != nil {
		t.Fatal(err)
	}
	again, err := runfile.Continue(path, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(nil); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(path + "?*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}
