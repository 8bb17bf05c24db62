//go:build unix

package permission

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
)

// A workspace folder that is replaced by a symlink to another folder is judged by where it leads now.
func TestReplacedRootIsOutside(t *testing.T) {
	dir := testkit.Folder(t, map[string]string{"ws/a.txt": "", "other/a.txt": ""})
	root := filepath.Join(dir, "ws")
	p := policyFor(t, `{"toolCall": {"approval": {"byDefault": "allow"}}}`, root)
	file := filepath.Join(root, "a.txt")
	judge := func() tools.Verdict {
		return p.Judge(tools.Call{Agent: "code", Roots: []string{root}}, spec("eca__read_file"), tools.Plan{Paths: []string{file}})
	}
	for range 2 { // the second time with the cached root
		if v := judge(); v.Decision != tools.Allow || len(v.Places) != 1 || v.Places[0] != file {
			t.Fatalf("%+v", v)
		}
	}
	if err := os.Rename(root, root+" moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("other", root); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if v := judge(); v.Decision != tools.Ask || v.Rule != RuleOutside {
			t.Errorf("%+v", v)
		}
	}
}

// eca forgets the path of a program that was removed or changed. Later it finds a new program in an
// earlier folder of PATH.
func TestPlacesOfPrograms(t *testing.T) {
	dir := testkit.Folder(t, map[string]string{"first/x": "", "second/x": "", "second/tool": "\x7fELF"})
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	old := time.Now().Add(-time.Hour)
	settle := func(paths ...string) {
		t.Helper()
		for _, path := range paths {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	tool := filepath.Join(second, "tool")
	if err := os.Chmod(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	settle(first, second, tool)
	s := newPrograms(os.Getenv)
	find := func() (string, program) {
		return s.search(first+string(filepath.ListSeparator)+second, func(string) bool { return false }).find("tool")
	}
	for range 2 {
		if file, p := find(); file != tool || p.why != "" {
			t.Fatalf("%q %+v", file, p)
		}
	}
	if err := os.Chmod(tool, 0o777); err != nil {
		t.Fatal(err)
	}
	if file, p := find(); file != tool || p.why == "" {
		t.Errorf("a program that anybody can write: %q %+v", file, p)
	}
	if err := os.Remove(tool); err != nil {
		t.Fatal(err)
	}
	if file, _ := find(); file != "" {
		t.Errorf("find returned a program that was removed: %q", file)
	}
	for _, path := range []string{tool, filepath.Join(first, "tool")} {
		if err := os.WriteFile(path, []byte("\x7fELF"), 0o755); err != nil {
			t.Fatal(err)
		}
		settle(path)
		s.path = nil // as after foundProgramTTL
		if file, _ := find(); file != path {
			t.Errorf("%q, want %q", file, path)
		}
	}
}

// Neither the beginning of an expression nor a shortcut for strings changes what is matched.
func TestShortcuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.StringMatching(`[ab /-]{0,3}([ab|()?*+.]|\(\?i\)|\{0\}|\[a\|\]|\\\||\(a\|b\)|a\|b){0,4}`).Draw(t, "pattern")
		text := rapid.StringMatching(`[abA /|-]{0,6}`).Draw(t, "text")
		re, err := compileExpression(source)
		if err != nil || re.re == nil {
			return
		}
		want, _ := re.re.MatchString(text)
		if got, _ := re.MatchString(text); got != want {
			t.Errorf("%q: %q: %v, begins with %q", source, text, got, re.text)
		}
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if plain, ok := plainString(raw); ok && plain != text {
			t.Errorf("%s is %q", raw, plain)
		}
	})
	for source, want := range map[string]string{
		"npm (test|run).*": "npm ", "go test": "go test", "ab?c": "a", "ab*": "a", "a|b": "", "(a|b)c": "", "(?i)abc": "", "make( test)?": "make", `a\|(b|c)`: "", "a(b)|c": "", "rm -rf /.*": "rm -rf /",
	} {
		if got := literalPrefix(source); got != want {
			t.Errorf("%s begins with %q, want %q", source, got, want)
		}
	}
	for _, raw := range []string{`1`, `"`, ``, `"a\n"`, `"\u0061"`, `"ä"`, `null`, `["a"]`} {
		if text, ok := plainString(json.RawMessage(raw)); ok {
			t.Errorf("%s is %q", raw, text)
		}
	}
}
