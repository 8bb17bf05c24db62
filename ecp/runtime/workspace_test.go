package runtime

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A workspace is a copy, and detects changes in it.
func TestWorkspace(t *testing.T) {
	needs.POSIX(t)
	from := t.TempDir()
	put := func(dir, name, text string, mode os.FileMode) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put(from, "fix/kept", "k", 0o644)
	put(from, "fix/edited", "old", 0o444)
	put(from, "fix/gone", "g", 0o644)
	put(from, "fix/run.sh", "#!/bin/sh\n", 0o755)
	if err := os.Symlink("kept", filepath.Join(from, "fix", "link")); err != nil {
		t.Fatal(err)
	}
	w, err := newWorkspace(t.Context(), from, Fixture{Copy: "fix", Git: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := w.changedFiles(); err != nil || len(changed) > 0 {
		t.Errorf("%v, %v", changed, err)
	}
	if info, err := os.Stat(filepath.Join(w.dir, "run.sh")); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	put(w.dir, "edited", "new", 0o644)
	put(w.dir, "sub/added", "a", 0o644)
	if err := os.Remove(filepath.Join(w.dir, "gone")); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(w.dir, "link"))
	if err := os.Symlink("edited", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	got, err := w.changedFiles()
	want := []grade.Change{{Path: "edited", Kind: "modified"}, {Path: "gone", Kind: "removed"}, {Path: "link", Kind: "modified"}, {Path: "sub/added", Kind: "added"}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if data, err := os.ReadFile(filepath.Join(from, "fix", "edited")); err != nil || string(data) != "old" {
		t.Errorf("the fixture was changed: %s, %v", data, err)
	}
	status := shell("git status --porcelain -uall | sort")
	status.Dir = w.dir
	if code, out, err := runCaptured(t.Context(), status, nil); err != nil || code != 0 || !strings.Contains(out, "?? sub/added") || !strings.Contains(out, "M edited") {
		t.Errorf("%d %s %v", code, out, err)
	}
	put(w.dir, "locked/x", "x", 0o644) // an agent that removes its own permissions
	if err := os.Chmod(filepath.Join(w.dir, "locked"), 0); err != nil {
		t.Fatal(err)
	}
	w.remove()
	if _, err := os.Lstat(w.dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
	for copied, want := range map[string]string{"missing": "no such file", "fix/kept": "not a folder"} {
		if _, err := newWorkspace(t.Context(), from, Fixture{Copy: copied}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", copied, err)
		}
	}
}

// Axes are combined, and invalid ones are refused.
func TestMatrix(t *testing.T) {
	got, err := Matrix([]string{"model=p/a,p/b", "target=x,y", "opts.n=1,true"})
	if err != nil || len(got) != 8 {
		t.Fatalf("%v, %v", got, err)
	}
	want := Variant{Labels: map[string]string{"model": "p/b", "target": "y", "opts.n": "true"}, Target: "y", Config: map[string]any{"model": "p/b", "opts": map[string]any{"n": true}}}
	if diff := cmp.Diff(want, got[7]); diff != "" {
		t.Error(diff)
	}
	if got, err := Matrix([]string{"target=1,1.0"}); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range [][]string{{"model"}, {"=a"}, {"model="}, {"a=1", "a=2"}, {"a=1", "a.b=2"}, {"a=x,y,x"}, {"a=1,1.0"}, {"target=1,1"}, {"a=" + strings.Repeat("x,", 1001)}} {
		if v, err := Matrix(bad); err == nil {
			t.Errorf("%.20v: %d variants", bad, len(v))
		}
	}
	config, err := ParseConfig([]string{"a.b=1", "a.c=[\"x\"]", "d=no json", "e="})
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": 1.0, "c": []any{"x"}}, "d": "no json", "e": ""}, config); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"a", "=1"} {
		if _, err := ParseConfig([]string{bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}
