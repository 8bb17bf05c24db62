package fs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// run plans and runs a call as the engine does.
func run(t *testing.T, root, name string, args map[string]any) (string, bool, tools.Plan) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := tools.NewRegistry(Tools(Options{ReadMaxLines: 5})...).Lookup(name)
	if !ok {
		t.Fatalf("no tool %s", name)
	}
	call := tools.Call{ID: "c", Roots: []string{root}, Arguments: raw}
	plan, err := tool.Plan(context.Background(), call)
	if err != nil {
		return err.Error(), true, plan
	}
	res, err := tool.Run(context.Background(), call, nil)
	if err != nil {
		return err.Error(), true, plan
	}
	return strings.Join(res.Outputs, "\n"), res.Failed, plan
}

func writeTestFile(t *testing.T, root, name, text string) string {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func readTestFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDirectoryTree(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{"b.txt", "a/x/deep.txt", "a/y.txt", "node_modules/lib/index.js", ".hidden/z", "out.log", "keep.log"} {
		writeTestFile(t, root, f, "")
	}
	writeTestFile(t, root, ".gitignore", "node_modules/\n*.log\n!keep.log\n")
	got, failed, _ := run(t, root, "directory_tree", map[string]any{"path": root})
	want := root + "\n a\n  x\n   deep.txt\n  y.txt\n b.txt\n keep.log\n\n2 directories, 4 files"
	if failed || got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	got, _, _ = run(t, root, "directory_tree", map[string]any{"path": root, "max_depth": 1})
	if want := root + "\n a\n b.txt\n keep.log\n\n1 directories, 2 files"; got != want {
		t.Errorf("depth 1:\n%s", got)
	}
	for _, path := range []string{filepath.Join(root, "b.txt"), filepath.Join(root, "none")} {
		if got, failed, _ := run(t, root, "directory_tree", map[string]any{"path": path}); !failed {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestReadFile(t *testing.T) {
	root := t.TempDir()
	writeTestFile(t, root, "a.txt", "1\n2\n3\n4\n5\n6\n7\n")
	for _, c := range []struct {
		args   map[string]any
		want   string
		failed bool
	}{
		{map[string]any{"path": filepath.Join(root, "a.txt")}, "1\n2\n3\n4\n5\n\n[lines 1-5 of 7; continue with line_offset=5]", false},
		{map[string]any{"path": "a.txt", "line_offset": 5}, "6\n7", false},
		{map[string]any{"path": "a.txt", "line_offset": 2, "limit": 1}, "3\n\n[lines 3-3 of 7; continue with line_offset=3]", false},
		{map[string]any{"path": "a.txt", "line_offset": 9}, "line_offset 9 is beyond the end: the file has 7 lines", true},
		{map[string]any{"path": root}, root + " is a directory", true},
		{map[string]any{"path": "none"}, filepath.Join(root, "none") + " does not exist", true},
	} {
		if got, failed, _ := run(t, root, "read_file", c.args); got != c.want || failed != c.failed {
			t.Errorf("%v: %q %v", c.args, got, failed)
		}
	}
	writeTestFile(t, root, "bin", "a\x00b")
	if got, failed, _ := run(t, root, "read_file", map[string]any{"path": "bin"}); !failed || !strings.Contains(got, "binary") {
		t.Errorf("binary: %q", got)
	}
	// The content shows the type; the name may be wrong.
	picture := writeTestFile(t, root, "picture.txt", "GIF89a\x01\x00")
	tool, _ := tools.NewRegistry(Tools(Options{ReadMaxLines: 5})...).Lookup("eca__read_file")
	res, err := tool.Run(t.Context(), tools.Call{Roots: []string{root}, Arguments: json.RawMessage(`{"path":"picture.txt","line_offset":7}`)}, nil)
	if err != nil || len(res.Images) != 1 || res.Images[0].MediaType != "image/gif" || string(res.Images[0].Data) != "GIF89a\x01\x00" || res.Outputs[0] != picture+" is an image (image/gif, 8 bytes)." {
		t.Errorf("image: %+v, %v", res, err)
	}
	if runtime.GOOS != "windows" {
		if got, failed, _ := run(t, root, "read_file", map[string]any{"path": "/dev/zero"}); !failed || !strings.Contains(got, "not a regular file") {
			t.Errorf("device: %q", got)
		}
	}
}

func TestWriteAndMove(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "new/dir/a.sh")
	_, failed, plan := run(t, root, "write_file", map[string]any{"path": path, "content": "x\ny\n"})
	if fc := plan.Details.FileChange; failed || readTestFile(t, path) != "x\ny\n" || fc.Diff != "@@ -0,0 +1,2 @@\n+x\n+y" || fc.LinesAdded != 2 || fc.LinesRemoved != 0 {
		t.Errorf("created: %+v", plan.Details.FileChange)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	_, _, plan = run(t, root, "write_file", map[string]any{"path": path, "content": "x\nz\n"})
	if fc := plan.Details.FileChange; fc.LinesAdded != 1 || fc.LinesRemoved != 1 {
		t.Errorf("replaced: %+v", fc)
	}
	if info, _ := os.Stat(path); runtime.GOOS != "windows" && info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v", info.Mode())
	}
	if got, failed, _ := run(t, root, "write_file", map[string]any{"path": root, "content": "x"}); !failed {
		t.Errorf("wrote to a directory: %s", got)
	}
	dst := filepath.Join(root, "moved/b.sh")
	if got, failed, _ := run(t, root, "move_file", map[string]any{"source": path, "destination": dst}); failed || readTestFile(t, dst) != "x\nz\n" {
		t.Errorf("move: %s", got)
	}
	writeTestFile(t, root, "c", "")
	for _, c := range [][2]string{{"c", dst}, {"none", "d"}} {
		if got, failed, _ := run(t, root, "move_file", map[string]any{"source": c[0], "destination": c[1]}); !failed {
			t.Errorf("%v: %s", c, got)
		}
	}
	// A link is followed, not replaced.
	if runtime.GOOS != "windows" {
		link := filepath.Join(root, "link")
		if err := os.Symlink(dst, link); err != nil {
			t.Fatal(err)
		}
		run(t, root, "write_file", map[string]any{"path": link, "content": "via link"})
		if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 || readTestFile(t, dst) != "via link" {
			t.Error("the link was replaced")
		}
	}
	left, _ := filepath.Glob(filepath.Join(root, "*/.eca-write-*"))
	if len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

// An edit that runs after the file has changed keeps the changes, and fails if the file no longer
// has the original.
func TestEditSeesChangesInBetween(t *testing.T) {
	root := t.TempDir()
	path := writeTestFile(t, root, "a.txt", "one\ntwo\n")
	tool, _ := tools.NewRegistry(Tools(Options{})...).Lookup("edit_file")
	raw, _ := json.Marshal(map[string]any{"path": path, "original_content": "two", "new_content": "2"})
	call := tools.Call{Roots: []string{root}, Arguments: raw}
	if _, err := tool.Plan(context.Background(), call); err != nil {
		t.Fatal(err)
	}
	writeTestFile(t, root, "a.txt", "zero\none\ntwo\n")
	if _, err := tool.Run(context.Background(), call, nil); err != nil || readTestFile(t, path) != "zero\none\n2\n" {
		t.Errorf("%v: %q", err, readTestFile(t, path))
	}
	if _, err := tool.Run(context.Background(), call, nil); err == nil || readTestFile(t, path) != "zero\none\n2\n" {
		t.Errorf("the second run: %v: %q", err, readTestFile(t, path))
	}
}

func TestReplaceMatch(t *testing.T) {
	for _, c := range []struct {
		name, text, original, replacement string
		all                               bool
		want                              string // or the beginning of the error after "!"
	}{
		{"exact", "a\nb\nc\n", "b", "B", false, "a\nB\nc\n"},
		{"exact twice", "x x", "x", "y", false, "!original_content occurs 2 times"},
		{"exact all", "x x", "x", "y", true, "y y"},
		{"not found", "abc", "xyz", "q", false, "!original_content was not found"},
		{"empty", "abc", "", "q", false, "!original_content is empty"},
		{"trailing blanks", "if x {  \n\ty()\t\n}\n", "if x {\n\ty()\n}", "z", false, "z\n"},
		{"trailing blanks all", "a \nb\na\t\nb\n", "a\nb\n", "c\n", true, "c\nc\n"},
		{"CRLF kept", "a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\n", false, "x\r\ny\r\nc\r\n"},
		{"indentation", "\tfunc() {\n\t\ta\n\t}\n", "func() {\n\ta\n}", "func() {\n\tb\n}", false, "\tfunc() {\n\t\tb\n\t}\n"},
		{"indentation, spaces for tabs", "\tif a {\n\t\tb\n\t}\n", "    if a {\n        b\n    }", "    if c {\n    }", false, "\tif c {\n\t}\n"},
		{"indentation not with all", "\ta\n\tb\n", "  a\n  b", "x", true, "!original_content was not found"},
		{"words", "call(a,\n     b,\n     c)", "call(a, b, c)", "call()", false, "call()"},
		{"words twice", "a  b\na   b", "a b", "x", false, "!original_content occurs 2 times"},
		{"no final newline", "a\nb", "b", "c", false, "a\nc"},
		{"blank original", "a\n\n\nb", "\n \n", "x", false, "!original_content was not found"},
		{"multi-byte", "grüße 👋 welt", "👋", "an die", false, "grüße an die welt"},
	} {
		got, err := replaceMatch(c.text, c.original, c.replacement, c.all)
		if want, isErr := strings.CutPrefix(c.want, "!"); isErr {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%s: %q, %v", c.name, got, err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

// An edit replaces one part of the text and leaves every byte around it unchanged. If the text has
// the original exactly once, that is the part.
func FuzzReplaceMatch(f *testing.F) {
	f.Add("a\nb\nc\n", "b", "B")
	f.Add("\tif x {\r\n\t}\r\n", "if x {\n}", "y")
	f.Add("f(a,\n  b)", "f(a, b)", "g")
	f.Fuzz(func(t *testing.T, text, original, replacement string) {
		got, err := replaceMatch(text, original, replacement, false)
		if err != nil {
			return
		}
		if strings.Count(text, original) == 1 {
			if want := strings.Replace(text, original, withEOL(replacement, usesCRLF(text)), 1); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
		prefix := 0
		for prefix < min(len(text), len(got)) && text[prefix] == got[prefix] {
			prefix++
		}
		suffix := 0
		for suffix < min(len(text), len(got))-prefix && text[len(text)-1-suffix] == got[len(got)-1-suffix] {
			suffix++
		}
		changed := text[prefix : len(text)-suffix]
		// A cut-out part has only words of the original.
		words := strings.Join(strings.Fields(original), "")
		if !strings.Contains(words, strings.Join(strings.Fields(changed), "")) {
			t.Errorf("edit of %q in %q cut out %q", original, text, changed)
		}
	})
}

// fileLog is a tools.FileLog that records its notifications, and what is on the disk then.
type fileLog struct {
	got []string
	err error
}

func (l *fileLog) Writing(_ context.Context, path string, content []byte) error {
	before, err := os.ReadFile(path)
	if err != nil {
		before = []byte("(none)")
	}
	l.got = append(l.got, fmt.Sprintf("%s: %s -> %s", filepath.Base(path), before, content))
	return l.err
}

func (l *fileLog) Moving(_ context.Context, from, to string) error {
	_, fromErr := os.Lstat(from)
	_, toErr := os.Lstat(to)
	l.got = append(l.got, fmt.Sprintf("%s (%v) => %s (%v)", filepath.Base(from), fromErr == nil, filepath.Base(to), toErr == nil))
	return l.err
}

// runLogged runs a call with a log.
func runLogged(ctx context.Context, t *testing.T, root string, log tools.FileLog, name string, args map[string]any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	tool, _ := tools.NewRegistry(Tools(Options{})...).Lookup(name)
	res, err := tool.Run(ctx, tools.Call{Roots: []string{root}, Arguments: raw, Files: log}, nil)
	return strings.Join(res.Outputs, "\n"), err
}

// The log is notified of each change before it is made, and of nothing else.
func TestFileLog(t *testing.T) {
	root := t.TempDir()
	log, ctx := &fileLog{}, context.Background()
	for _, c := range []struct {
		tool string
		args map[string]any
		want string // "" for a call that changes nothing
	}{
		{"write_file", map[string]any{"path": "d/a", "content": "1"}, "a: (none) -> 1"},
		{"write_file", map[string]any{"path": "d/a", "content": "12"}, "a: 1 -> 12"},
		{"edit_file", map[string]any{"path": "d/a", "original_content": "2", "new_content": "3"}, "a: 12 -> 13"},
		{"edit_file", map[string]any{"path": "d/a", "original_content": "2", "new_content": "3"}, ""},
		{"multi_edit", map[string]any{"path": "d/a", "edits": []any{map[string]any{"original_content": "1", "new_content": "2"}, map[string]any{"original_content": "23", "new_content": "13"}}}, ""},
		{"multi_edit", map[string]any{"path": "d/a", "edits": []any{map[string]any{"original_content": "1", "new_content": "2"}, map[string]any{"original_content": "23", "new_content": "14"}}}, "a: 13 -> 14"},
		{"preview_file_change", map[string]any{"path": "d/a", "original_content": "1", "new_content": "2"}, "none"},
		{"edit_file", map[string]any{"path": "d/a", "original_content": "14", "new_content": "13"}, "a: 14 -> 13"},
		{"move_file", map[string]any{"source": "d/a", "destination": "e/b"}, "a (true) => b (false)"},
		{"move_file", map[string]any{"source": "e", "destination": "f"}, "e (true) => f (false)"},
		{"move_file", map[string]any{"source": "e", "destination": "f"}, ""},
		{"write_file", map[string]any{"path": "f", "content": ""}, ""},
	} {
		log.got = nil
		_, err := runLogged(ctx, t, root, log, c.tool, c.args)
		if c.want == "none" && err == nil && len(log.got) == 0 {
			continue
		}
		if got := strings.Join(log.got, "; "); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s %v: the log got %q, %v; want %q", c.tool, c.args, got, err, c.want)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	// Content written through a link changes the file that it leads to.
	if err := os.Symlink(filepath.Join(root, "f/b"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	log.got = nil
	_, err := runLogged(ctx, t, root, log, "write_file", map[string]any{"path": "link", "content": "x"})
	if got := strings.Join(log.got, "; "); err != nil || got != "b: 13 -> x" {
		t.Errorf("link: %q, %v", got, err)
	}
}

// A change that cannot be undone is made, and says so.
func TestFileLogFails(t *testing.T) {
	root := t.TempDir()
	log, ctx := &fileLog{err: errors.New("the disk is full")}, context.Background()
	a, b := filepath.Join(root, "a"), filepath.Join(root, "b")
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"write_file", map[string]any{"path": "a", "content": "1"}, "Wrote " + a},
		{"edit_file", map[string]any{"path": "a", "original_content": "1", "new_content": "2"}, "Edited " + a},
		{"move_file", map[string]any{"source": "a", "destination": "b"}, "Moved " + a + " to " + b},
	} {
		got, err := runLogged(ctx, t, root, log, c.tool, c.args)
		if want := c.want + "\n[This change cannot be undone: the disk is full]"; err != nil || got != want {
			t.Errorf("%s: %q, %v", c.tool, got, err)
		}
	}
	if got := readTestFile(t, b); got != "2" {
		t.Errorf("the file has %q", got)
	}
}

// cancellingLog is a log in which the call is cancelled.
type cancellingLog struct{ cancel func() }

func (s cancellingLog) Writing(context.Context, string, []byte) error { s.cancel(); return nil }
func (s cancellingLog) Moving(context.Context, string, string) error  { s.cancel(); return nil }

// A call that is cancelled while the log records it changes no file.
func TestStoppedInFileLog(t *testing.T) {
	root := t.TempDir()
	writeTestFile(t, root, "a", "1")
	for tool, args := range map[string]map[string]any{
		"write_file": {"path": "a", "content": "2"},
		"edit_file":  {"path": "a", "original_content": "1", "new_content": "2"},
		"move_file":  {"source": "a", "destination": "b"},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		if got, err := runLogged(ctx, t, root, cancellingLog{cancel}, tool, args); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %q, %v", tool, got, err)
		}
	}
	files, err := os.ReadDir(root)
	if err != nil || len(files) != 1 || readTestFile(t, filepath.Join(root, "a")) != "1" {
		t.Errorf("%v, %v", files, err)
	}
}

// Concurrent edits of one file do not undo each other.
func TestEditsAtOnce(t *testing.T) {
	root := t.TempDir()
	var want strings.Builder
	const n = 30
	for i := range n {
		fmt.Fprintf(&want, "<%d>\n", i)
	}
	path := writeTestFile(t, root, "a", strings.ReplaceAll(strings.ReplaceAll(want.String(), "<", "["), ">", "]"))
	tool, _ := tools.NewRegistry(Tools(Options{})...).Lookup("edit_file")
	var wg sync.WaitGroup
	for i := range n {
		raw := fmt.Sprintf(`{"path": "a", "original_content": "[%d]", "new_content": "<%d>"}`, i, i)
		wg.Go(func() {
			if _, err := tool.Run(context.Background(), tools.Call{Roots: []string{root}, Arguments: json.RawMessage(raw)}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := readTestFile(t, path); got != want.String() {
		t.Errorf("edits are lost:\n%s", got)
	}
}

// multi_edit makes all of its edits or none.
func TestMultiEdit(t *testing.T) {
	root := t.TempDir()
	const text = "one\r\ntwo\r\nthree three\r\n"
	edit := func(args ...any) map[string]any {
		e := map[string]any{"original_content": args[0], "new_content": args[1]}
		if len(args) > 2 {
			e["all_occurrences"] = true
		}
		return e
	}
	for _, c := range []struct {
		edits  []map[string]any
		want   string // the file afterwards
		output string
	}{
		{[]map[string]any{edit("one", "1"), edit("1\ntwo", "12"), edit("three", "3", true)}, "12\r\n3 3\r\n", "Made 3 edits of $"},
		{[]map[string]any{edit("one", "1"), edit("three", "3")}, text, "edit 2 of 2: original_content occurs 2 times"},
		{[]map[string]any{edit("one", "1"), edit("one", "2")}, text, "edit 2 of 2: original_content was not found"},
		{[]map[string]any{edit("one", "1"), edit("1", "one")}, text, "together change nothing"},
		{[]map[string]any{edit("one", "one")}, text, "edit 1 of 1: the new content equals the original"},
		{[]map[string]any{}, text, "INVALID_ARGS: multi_edit needs at least one edit"},
		{[]map[string]any{{"original_content": "one"}}, text, "INVALID_ARGS"},
	} {
		path := writeTestFile(t, root, "a.txt", text)
		got, failed, plan := run(t, root, "multi_edit", map[string]any{"path": "a.txt", "edits": c.edits})
		if want := strings.ReplaceAll(c.output, "$", path); !strings.Contains(got, want) || failed != (c.want == text) || readTestFile(t, path) != c.want {
			t.Errorf("%v: %q, %v; the file is %q", c.edits, got, failed, readTestFile(t, path))
		}
		if !failed && (plan.Details.FileChange.LinesAdded != 2 || plan.Details.FileChange.LinesRemoved != 3) {
			t.Errorf("%v: planned %+v", c.edits, plan.Details.FileChange)
		}
	}
}

// A preview shows the diff that the edit would have, and writes nothing.
func TestPreviewFileChange(t *testing.T) {
	root := t.TempDir()
	path := writeTestFile(t, root, "a.txt", "one\ntwo\n")
	for _, c := range []struct {
		path, original, text, want string
		failed                     bool
	}{
		{"a.txt", "two", "2", "@@ -1,2 +1,2 @@\n one\n-two\n+2", false},
		{"new/b.txt", "", "x\n", "@@ -0,0 +1 @@\n+x", false},
		{"a.txt", "", "x\n", "already exists", true},
		{"a.txt", "three", "x", "not found", true},
		{"none.txt", "three", "x", "does not exist", true},
	} {
		got, failed, plan := run(t, root, "preview_file_change", map[string]any{"path": c.path, "original_content": c.original, "new_content": c.text})
		if failed != c.failed || !strings.Contains(got, c.want) || !failed && plan.Details.FileChange.Diff != c.want {
			t.Errorf("%+v: %q, %v", c, got, failed)
		}
	}
	if entries, _ := os.ReadDir(root); len(entries) != 1 || readTestFile(t, path) != "one\ntwo\n" {
		t.Errorf("something was written: %v", entries)
	}
}
