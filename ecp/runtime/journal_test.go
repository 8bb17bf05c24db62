package runtime

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

func line(id string) Line {
	return Line{Case: id, Variant: "v", Digest: "d" + id, Attempt: 1, Name: "s" + id, Result: report.Attempt{Status: report.Passed, Steps: []report.Step{}, Errors: []report.Problem{}}}
}

// Written lines are read again; an incomplete line is overwritten.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "j")
	put := func(keep int64, ids ...string) {
		t.Helper()
		j, err := OpenJournal(path, keep)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if err := j.Write(line(id)); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	put(0, "1", "2")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"case":"3","di`); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	lines, size, err := ReadJournal(path)
	if diff := cmp.Diff([]Line{line("1"), line("2")}, lines); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	put(size, "4")
	lines, _, err = ReadJournal(path)
	if diff := cmp.Diff([]Line{line("1"), line("2"), line("4")}, lines); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	put(0, "5") // a new run keeps the old journal under another name
	if old, _, err := ReadJournal(path + ".old"); err != nil || len(old) != 3 {
		t.Errorf("%v %v", old, err)
	}
	if _, _, err := ReadJournal(path + ".missing"); err == nil {
		t.Error("a journal that is not there can be read")
	}
}

// The last line of an attempt counts, and only with its current digest; a stopped attempt has not
// finished.
func TestFinished(t *testing.T) {
	first, second, other, broken := line("1"), line("1"), line("1"), line("2")
	first.Result.Status, second.Result.DurationMS, other.Digest = report.Error, 7, "changed"
	broken.Result.Status, broken.Result.Errors = report.Error, []report.Problem{{Kind: kindInterrupted}}
	got := finished([]Line{first, second, other, broken}, false)
	if a := got[attemptKey{"1", "v", "d1", 1}]; a.DurationMS != 7 || a.Status != report.Passed || len(got) != 2 {
		t.Errorf("%+v", got)
	}
	if got := finished([]Line{second, first}, true); len(got) != 0 {
		t.Errorf("an error is not made again: %+v", got)
	}
}

// A journal of a version that identified scenarios by position is refused, with a remedy.
func TestOlderJournal(t *testing.T) {
	_, _, err := parseJournal([]byte(`{"id":"0","digest":"x","scenario":{"name":"a"}}` + "\n"))
	if err == nil || !strings.Contains(err.Error(), "older") || !strings.Contains(err.Error(), "--journal") {
		t.Error(err)
	}
}

// A journal has complete lines, which give the same when read again.
func FuzzJournal(f *testing.F) {
	f.Add([]byte(`{"case":"0","variant":"v","digest":"x","attempt":1,"result":{"verdict":"passed","steps":[]}}` + "\n{\"case\""))
	f.Add([]byte("\n \n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, size, err := parseJournal(data)
		if err != nil {
			if !strings.Contains(err.Error(), "not a line of a journal") {
				t.Fatal(err)
			}
			return
		}
		kept := data[:size]
		if len(kept) > 0 && kept[size-1] != '\n' || bytes.ContainsRune(data[size:], '\n') {
			t.Fatalf("%q is kept of %q", kept, data)
		}
		again, n, err := parseJournal(kept)
		if err != nil || n != size || len(again) != len(lines) {
			t.Fatalf("%d lines of %d bytes, %v", len(again), n, err)
		}
	})
}
