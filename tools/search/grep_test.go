package search

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

func TestGrep(t *testing.T) {
	root := t.TempDir()
	long := strings.Repeat("x", 200_000)
	for name, text := range map[string]string{
		"a.go": "package a\n\nfunc Hello() {}\n", "sub/b.go": "func hello() {}\nhello()\n", "sub/c.txt": "hello\r\n",
		"bin": "hello\x00", ".gitignore": "ignored/\n", "ignored/d.go": "hello", ".git/config": "hello",
		"long.txt": "hello " + long + "\nhello again\n", "empty": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args   map[string]any
		want   string
		failed bool
	}{
		{map[string]any{"pattern": "hello"}, "$/long.txt\n$/sub/b.go\n$/sub/c.txt", false},
		{map[string]any{"pattern": "(?i)hello", "include": "*.go"}, "$/a.go\n$/sub/b.go", false},
		{map[string]any{"pattern": "hello", "include": "sub/**/*.{go,txt}"}, "$/sub/b.go\n$/sub/c.txt", false},
		{map[string]any{"pattern": "hello", "output_mode": "count"}, "$/long.txt:2\n$/sub/b.go:2\n$/sub/c.txt:1", false},
		{map[string]any{"pattern": "hello", "output_mode": "content", "include": "*.go"}, "$/sub/b.go:1:func hello() {}\n$/sub/b.go:2:hello()", false},
		{map[string]any{"pattern": "hello$", "output_mode": "content"}, "$/sub/c.txt:1:hello", false},
		{map[string]any{"pattern": "hello again", "output_mode": "content"}, "$/long.txt:2:hello again", false},
		{map[string]any{"pattern": "hello", "max_results": 1}, "$/long.txt\n\n[stopped after max_results; narrow the search to see the rest]", false},
		{map[string]any{"pattern": "hello", "output_mode": "content", "max_results": 1, "include": "b.go"}, "$/sub/b.go:1:func hello() {}\n\n[stopped after max_results; narrow the search to see the rest]", false},
		{map[string]any{"pattern": "nowhere"}, "No matches found for nowhere", false},
		{map[string]any{"pattern": "hello", "path": "$/sub/c.txt"}, "$/sub/c.txt", false},
		{map[string]any{"pattern": "("}, "INVALID_ARGS: pattern: error parsing regexp: missing closing ): `(`", true},
		{map[string]any{"pattern": "x", "include": "[a"}, `INVALID_ARGS: include "[a" is not a valid glob`, true},
		{map[string]any{"pattern": "x", "include": strings.Repeat("{a,aa}", 30)}, "INVALID_ARGS: the braces of include have more than 200 combinations", true},
		{map[string]any{"pattern": "x", "output_mode": "loud"}, "INVALID_ARGS: grep: ", true},
		{map[string]any{"pattern": "x", "path": "/nowhere"}, "/nowhere does not exist", true},
	} {
		if _, ok := c.args["path"]; !ok {
			c.args["path"] = root
		}
		c.args["path"] = strings.ReplaceAll(c.args["path"].(string), "$", root)
		got, failed := grepCall(t, c.args)
		want := strings.ReplaceAll(c.want, "$", root)
		if c.want == "$/sub/c.txt:1:hello" {
			want = root + "/sub/c.txt:1:hello"
		}
		if failed != c.failed || got != want && (!c.failed || !strings.HasPrefix(got, want)) {
			t.Errorf("%v:\ngot  %q\nwant %q", c.args, got, want)
		}
	}
}

func grepCall(t *testing.T, args map[string]any) (string, bool) {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	tool := Tools()[0]
	call := tools.Call{Arguments: raw}
	if _, err := tool.Plan(context.Background(), call); err != nil {
		return err.Error(), true
	}
	res, err := tool.Run(context.Background(), call, nil)
	if err != nil {
		return err.Error(), true
	}
	return res.Outputs[0], res.Failed
}

func TestGrepIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	raw, _ := json.Marshal(map[string]any{"path": t.TempDir(), "pattern": "x"})
	if _, err := Tools()[0].Run(ctx, tools.Call{Arguments: raw}, nil); err == nil {
		t.Error("a cancelled search went on")
	}
}

func TestGlob(t *testing.T) {
	root := t.TempDir()
	for i, name := range []string{"old.go", "sub/deep/b.go", "sub/c.ts", "sub/d.tsx", ".hidden/e.go", "ignored/f.go", "new.go"} {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		when := time.Unix(1_700_000_000+int64(i), 0)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".gitignore"), []byte("ignored/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tool, _ := tools.NewRegistry(Tools()...).Lookup("glob")
	for _, c := range []struct{ pattern, path, want string }{
		{"*.go", "", "new.go sub/deep/b.go old.go"},
		{"**/*.go", "", "new.go sub/deep/b.go old.go"},
		{"./sub/**", "", "sub/d.tsx sub/c.ts sub/deep/b.go"},
		{"sub/*.{ts,tsx}", "", "sub/d.tsx sub/c.ts"},
		{"deep/*", "sub", "sub/deep/b.go"},
		{"*.rs", "", "No files match *.rs"},
		{"[a", "", "!INVALID_ARGS: pattern"},
		{"../*", "", "!INVALID_ARGS: pattern \"../*\" leads out"},
		{"/etc/*", "", "!INVALID_ARGS: pattern \"/etc/*\" leads out"},
		{strings.Repeat("{a,", 400), "", "!INVALID_ARGS: pattern is longer"},
		{strings.Repeat("{a,aa}", 30) + "b", "", "!INVALID_ARGS: the braces of pattern have more than 200 combinations"},
		{"{old,new,none}.{go,c,h,cc,hh}", "", "new.go old.go"},
		{"*", "none", "!" + filepath.Join(root, "none") + " does not exist"},
		{"*", "old.go", "!" + filepath.Join(root, "old.go") + " is not a directory"},
	} {
		raw, err := json.Marshal(map[string]any{"pattern": c.pattern, "path": c.path})
		if err != nil {
			t.Fatal(err)
		}
		res, err := tool.Run(t.Context(), tools.Call{Roots: []string{root}, Arguments: raw}, nil)
		if want, failed := strings.CutPrefix(c.want, "!"); failed {
			if err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q: %v", c.pattern, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		got := filepath.ToSlash(strings.ReplaceAll(strings.ReplaceAll(res.Outputs[0], root+string(filepath.Separator), ""), "\n", " "))
		if got != c.want {
			t.Errorf("%q in %q: %s, want %s", c.pattern, c.path, got, c.want)
		}
	}
	if _, err := tool.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"pattern":"*"}`)}, nil); err == nil {
		t.Error("a search nowhere")
	}
}
