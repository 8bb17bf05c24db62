package fs

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// runFor runs a tool of a registry for a chat.
func runFor(t *testing.T, all *tools.Registry, name string, call tools.Call, args map[string]any) (tools.Result, error) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	tool, ok := all.Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	call.Arguments = raw
	return tool.Run(t.Context(), call, nil)
}

// While a client hangs in saving a file, edits of other files do not wait, and an edit of the same
// file in another chat waits for at most lockWait. The edit of the hanging call is then refused,
// because the file has changed.
func TestSavingClientHoldsUpNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		same, other := writeTestFile(t, root, "a.txt", "one two three"), writeTestFile(t, root, "b.txt", "b")
		all := tools.NewRegistry(Tools(Options{})...)
		const hang = 10 * time.Second
		hanging := tools.Call{ChatID: "hanging", Roots: []string{root}}
		hanging.Save = func(string, string) bool { time.Sleep(hang); return false }
		result := make(chan string, 1)
		go func() {
			res, err := runFor(t, all, "edit_file", hanging, map[string]any{"path": same, "original_content": "one", "new_content": "ONE"})
			if err == nil {
				result <- strings.Join(res.Outputs, "")
				return
			}
			result <- err.Error()
		}()
		synctest.Wait()
		began := time.Now()
		for _, c := range []struct {
			name string
			args map[string]any
			most time.Duration
		}{
			{"edit_file", map[string]any{"path": other, "original_content": "b", "new_content": "B"}, 0},
			{"write_file", map[string]any{"path": root + "/new/c.txt", "content": "c"}, 0},
			{"move_file", map[string]any{"source": other, "destination": root + "/moved.txt"}, 0},
			{"multi_edit", map[string]any{"path": same, "edits": []any{map[string]any{"original_content": "three", "new_content": "THREE"}}}, lockWait},
		} {
			res, err := runFor(t, all, c.name, tools.Call{ChatID: "another", Roots: []string{root}}, c.args)
			if took := time.Since(began); err != nil || res.Failed || took > c.most {
				t.Errorf("%s: after %s, %v %v", c.name, took, res.Outputs, err)
			}
		}
		if got := <-result; !strings.Contains(got, "was changed in the meantime") {
			t.Errorf("the edit of the hanging call returned %q", got)
		}
		if got := readTestFile(t, same); got != "one two THREE" {
			t.Errorf("%q", got)
		}
	})
}

// In a chat whose client saves slowly, edits of one file wait for each other, so the file has both.
func TestEditsOfOneChatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		path := writeTestFile(t, root, "a.txt", "one two")
		all := tools.NewRegistry(Tools(Options{})...)
		call := tools.Call{ChatID: "chat", Roots: []string{root}}
		call.Unsaved = func(string) (string, bool) { return readTestFile(t, path), true }
		call.Save = func(_, text string) bool {
			time.Sleep(5 * lockWait)
			writeTestFile(t, root, "a.txt", text)
			return true
		}
		var failed atomic.Int32
		done := make(chan struct{})
		for from, to := range map[string]string{"one": "ONE", "two": "TWO"} {
			go func() {
				if _, err := runFor(t, all, "edit_file", call, map[string]any{"path": path, "original_content": from, "new_content": to}); err != nil {
					failed.Add(1)
				}
				done <- struct{}{}
			}()
		}
		<-done
		<-done
		if got := readTestFile(t, path); got != "ONE TWO" || failed.Load() > 0 {
			t.Errorf("%q, %d failed", got, failed.Load())
		}
	})
}

// If the client refuses to save an edit, the tool writes the file itself and says so. If the editor
// has unsaved changes, the tool refuses the edit instead.
func TestRefusedSave(t *testing.T) {
	for name, c := range map[string]struct{ disk, editor, want, says string }{
		"nothing unsaved": {"two", "two", "TWO", "the change is only on disk"},
		"unsaved text":    {"two", "two and more", "two", "unsaved changes"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			path := writeTestFile(t, root, "a.txt", c.disk)
			call := tools.Call{ChatID: "chat", Roots: []string{root}}
			call.Unsaved = func(string) (string, bool) { return c.editor, true }
			call.Save = func(string, string) bool { return false }
			all := tools.NewRegistry(Tools(Options{})...)
			res, err := runFor(t, all, "edit_file", call, map[string]any{"path": path, "original_content": "two", "new_content": "TWO"})
			says := strings.Join(res.Outputs, "")
			if err != nil {
				says = err.Error()
			}
			if got := readTestFile(t, path); got != c.want || !strings.Contains(says, c.says) {
				t.Errorf("%q: %s", got, says)
			}
		})
	}
}

// If the client saved the file and failed afterwards, the edit counts as done and is not made twice.
func TestSavedAndRefused(t *testing.T) {
	root := t.TempDir()
	path := writeTestFile(t, root, "a.txt", "x")
	call := tools.Call{ChatID: "chat", Roots: []string{root}}
	call.Save = func(_, text string) bool { writeTestFile(t, root, "a.txt", text); return false }
	res, err := runFor(t, tools.NewRegistry(Tools(Options{})...), "edit_file", call, map[string]any{"path": path, "original_content": "x", "new_content": "xx"})
	if got := readTestFile(t, path); err != nil || res.Failed || got != "xx" {
		t.Errorf("%q: %v %v", got, res.Outputs, err)
	}
}
