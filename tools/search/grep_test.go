package search

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		{map[string]any{"pattern": "x", "include": "[a"}, `INVALID_ARGS: include "[a" is not a glob`, true},
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
