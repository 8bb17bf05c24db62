package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/tailscale/hujson"
)

func TestEdit(t *testing.T) {
	const commented = `// top
{
  // one
  "a": 1, // why one
  "b": {"c": [1, 2] /* list */, "d.e": "x"},

  "f": {
    "g": null // last
  }
}
// end
`
	for name, c := range map[string]struct {
		src     string
		changes []Change
		want    string
	}{
		"empty":                {"", []Change{Set("v", "a", "b.c")}, "{\n  \"a\": {\n    \"b.c\": \"v\"\n  }\n}\n"},
		"null":                 {"// x\nnull\n", []Change{Set(1, "a")}, "// x\n{\n  \"a\": 1\n}\n"},
		"nothing to delete":    {"", []Change{Delete("a", "b")}, ""},
		"equal":                {commented, []Change{Set(map[string]any{"d.e": "x", "c": []int{1, 2}}, "b")}, commented},
		"value":                {commented, []Change{Set("<2>", "a")}, strings.Replace(commented, `"a": 1`, `"a": "<2>"`, 1)},
		"list stays a line":    {commented, []Change{Set([]int{3}, "b", "c")}, strings.Replace(commented, "[1, 2]", "[3]", 1)},
		"through null":         {commented, []Change{Set(1, "f", "g", "h")}, strings.Replace(commented, "null", "{\n      \"h\": 1\n    }", 1)},
		"in a line":            {commented, []Change{Set(true, "b", "z")}, strings.Replace(commented, `"x"}`, `"x", "z": true}`, 1)},
		"after a line comment": {commented, []Change{Set(true, "f", "z")}, strings.Replace(commented, "null // last\n", "null, // last\n    \"z\": true\n", 1)},
		"at the end":           {commented, []Change{Set(map[string]any{"x": 1}, "z")}, strings.Replace(commented, "  }\n}", "  },\n  \"z\": {\n    \"x\": 1\n  }\n}", 1)},
		"delete the first":     {commented, []Change{Delete("a")}, strings.Replace(commented, `"a": 1, // why`, `// why`, 1)},
		"delete a line":        {commented, []Change{Delete("b")}, strings.Replace(commented, "  \"b\": {\"c\": [1, 2] /* list */, \"d.e\": \"x\"},\n", "", 1)},
		"delete the last":      {commented, []Change{Delete("b", "d.e")}, strings.Replace(commented, ` /* list */, "d.e": "x"`, ` /* list */`, 1)},
		"delete keeps comment": {commented, []Change{Delete("b", "c")}, strings.Replace(commented, `"c": [1, 2] /* list */, `, `/* list */ `, 1)},
		"delete all":           {"{\"a\": 1, \"b\": 2}", []Change{Delete("b"), Delete("a")}, "{}"},
		"trailing comma":       {"{\n\t\"a\": 1,\n}", []Change{Set(2, "b"), Delete("a")}, "{\n\t\"b\": 2,\n}"},
		"object into object": {
			"{\n  \"o\": {\n    // x\n    \"x\": 1,\n    // y\n    \"y\": 2\n  }\n}",
			[]Change{Set(map[string]int{"x": 1, "y": 3, "z": 4}, "o")},
			"{\n  \"o\": {\n    // x\n    \"x\": 1,\n    // y\n    \"y\": 3,\n    \"z\": 4\n  }\n}",
		},
		"empty object":        {"{\n\t\"a\": 1,\n\t\"b\": {}\n}", []Change{Set(1, "b", "c")}, "{\n\t\"a\": 1,\n\t\"b\": {\n\t\t\"c\": 1\n\t}\n}"},
		"comment in object":   {"{ // c\n}", []Change{Set(1, "a")}, "{ // c\n  \"a\": 1\n}"},
		"CRLF and mark":       {"\xef\xbb\xbf{\r\n  \"a\": 1 // c\r\n}\r\n", []Change{Set(1, "b")}, "\xef\xbb\xbf{\r\n  \"a\": 1, // c\r\n  \"b\": 1\r\n}\r\n"},
		"provider's spelling": {`{"providers": {"myCompany": {"key": "a"}}}`, []Change{Set("b", "providers", "my-company", "key")}, `{"providers": {"myCompany": {"key": "b"}}}`},
		"new spelling":        {`{"providers": {"myCompany": 1}}`, []Change{Set(map[string]any{"my-company": 2}, "providers")}, "{\"providers\": {\n  \"my-company\": 2\n}}"},
		"comment without end": {"{} // c", []Change{Set(1, "a")}, "{\n  \"a\": 1\n} // c"},
		"the last of equals":  {`{"a": 1, "a": 2}`, []Change{Set(3, "a")}, `{"a": 1, "a": 3}`},
		"all of equals":       {`{"a": 1, "a": 2}`, []Change{Delete("a")}, `{}`},
	} {
		got, err := edit("configuration", []byte(c.src), c.changes)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if diff := cmp.Diff(c.want, string(got)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for _, c := range []struct {
		src    string
		change Change
		want   string
	}{
		{"{\n  oops\n}", Set(1, "a"), "configuration:2:3: "},
		{"[1]", Set(1, "a"), "must be a JSON object"},
		{`{"a": {"b": 5}}`, Set(1, "a", "b", "c"), "a.b is not an object"},
		{`{}`, Set(1), "not a path"},
		{`{}`, Set(1, "\xff"), "not a path"},
		{`{}`, Set(func() {}, "a"), "unsupported type"},
	} {
		if got, err := edit("configuration", []byte(c.src), []Change{c.change}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %q, %v", c.src, got, err)
		}
	}
}

// comments returns all comments of a value except those in the members at a path.
func comments(v *hujson.Value, path ...string) []string {
	out := append(split(v.BeforeExtra), split(v.AfterExtra)...)
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			m := &c.Members[i]
			if len(path) > 0 && m.Name.Value.(hujson.Literal).String() == path[0] {
				if len(path) > 1 {
					out = append(out, comments(&m.Value, path[1:]...)...)
				}
				out = append(append(out, split(m.Name.BeforeExtra)...), split(m.Value.AfterExtra)...)
				continue
			}
			out = append(append(out, comments(&m.Name)...), comments(&m.Value)...)
		}
		out = append(out, split(c.AfterExtra)...)
	case *hujson.Array:
		for i := range c.Elements {
			out = append(out, comments(&c.Elements[i])...)
		}
		out = append(out, split(c.AfterExtra)...)
	}
	return out
}

// split returns the comments between two tokens.
func split(extra hujson.Extra) (out []string) {
	s := string(extra)
	for {
		i := strings.IndexByte(s, '/')
		if i < 0 {
			return out
		}
		end := "*/"
		if s[i+1] == '/' {
			end = "\n"
		}
		n := i + 2 + strings.Index(s[i+2:], end) + len(end)
		out, s = append(out, s[i:n]), s[n:]
	}
}

// applyChange applies a change to a decoded file; ok is false where edit must fail.
func applyChange(v map[string]any, path []string, value any, remove bool) (ok bool) {
	for ; len(path) > 1; path = path[1:] {
		sub, isMap := v[path[0]].(map[string]any)
		switch {
		case isMap:
		case v[path[0]] != nil:
			return false
		case remove:
			return true
		default:
			sub = map[string]any{}
			v[path[0]] = sub
		}
		v = sub
	}
	v[path[0]] = value
	if remove {
		delete(v, path[0])
	}
	return true
}

// After an edit the value has changed, the comments still exist, and the same edit again changes
// nothing.
func FuzzEdit(f *testing.F) {
	for _, src := range []string{
		"", "null", "{}", "{ // c\n}", "{/*c*/}", "{\"a\": 1 /*x*/, // y\n /*z*/ \"b\" /*n*/ : /*v*/ {\"c\": [1, /*e*/ 2,], },}",
		"{\r\n\t\"a\": {\"b\": 1, \"b\": 2},\r\n\r\n\t// last\r\n}\r\n", "{\"a\": null, \"b\": {\"c\": {}}} // end\n", "{\"a\": 1} // c", "{\"a\":\n1\n,\"b\":2\n// x\n}",
	} {
		f.Add(src, "a", "b", "1", false)
		f.Add(src, "b", "c", `{"x": [], "c": {"y": "z"}}`, false)
		f.Add(src, "a", "", "", true)
		f.Add(src, "b", "c", "", true)
	}
	f.Fuzz(func(t *testing.T, src, key, sub, value string, remove bool) {
		l, broken := parse("fuzz", []byte(src))
		path := []string{key}
		if sub != "" {
			path = append(path, sub)
		}
		var v any
		if key == "providers" || !remove && json.Unmarshal([]byte(value), &v) != nil {
			return // not a change
		}
		change := Set(v, path...)
		if remove {
			change = Delete(path...)
		}
		out, err := edit("configuration", []byte(src), []Change{change})
		if broken != nil || !utf8.ValidString(key) || !utf8.ValidString(sub) {
			if err == nil {
				t.Fatalf("an edit of %q worked: %q", src, out)
			}
			return
		}
		want := l.content
		if ok := applyChange(want, path, v, remove); ok != (err == nil) {
			t.Fatalf("possible: %v, but %v", ok, err)
		}
		if err != nil {
			return
		}
		after, broken := parse("fuzz", out)
		if broken != nil || !reflect.DeepEqual(after.content, want) {
			t.Fatalf("%q became %q: %v", src, out, broken)
		}
		if again, err := edit("configuration", out, []Change{change}); err != nil || string(again) != string(out) {
			t.Errorf("%q became %q, then %q, %v", src, out, again, err)
		}
		standalone := func(s string) []byte { return withNewline([]byte(strings.TrimPrefix(s, "\xef\xbb\xbf"))) }
		before, err := hujson.Parse(standalone(src))
		if err != nil {
			return // empty
		}
		now, err := hujson.Parse(standalone(string(out)))
		if err != nil {
			t.Fatal(err)
		}
		left := comments(&now)
		for _, c := range comments(&before, path...) {
			i := slices.Index(left, c)
			if i < 0 {
				t.Fatalf("comment %q of %q is not in %q", c, src, out)
			}
			left = slices.Delete(left, i, i+1)
		}
	})
}

func TestEditFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "new", "eca", "config.json")
	read := func(path string) string {
		t.Helper()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if err := EditFile(path, Delete("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("deleting nothing made a file: %v", err)
	}
	if err := EditFile(path, Set(1, "a")); err != nil || read(path) != "{\n  \"a\": 1\n}\n" {
		t.Errorf("a new file: %v", err)
	}
	write(t, path, "{\n  oops\n}")
	if err := EditFile(path, Set(1, "a")); err == nil || !strings.Contains(err.Error(), path+":2:3: ") || read(path) != "{\n  oops\n}" {
		t.Errorf("a broken file: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if runtime.GOOS == "windows" {
		return // no modes or links on this system
	}
	write(t, path, "{}")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.json")
	for link, target := range map[string]string{link: "over/two.json", filepath.Join(dir, "over"): filepath.Dir(path), filepath.Join(dir, "new/eca/two.json"): "../eca/config.json"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := EditFile(link, Set(1, "a")); err != nil || !strings.Contains(read(path), `"a": 1`) {
		t.Errorf("through links: %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("EditFile replaced the link by a file: %v %v", info, err)
	}
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o640 {
		t.Errorf("mode: %v %v", info, err)
	}
	if err := os.Chmod(path, 0o440); err != nil {
		t.Fatal(err)
	}
	if err := EditFile(path, Set(2, "a")); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("a read-only file: %v", err)
	}
	loop := filepath.Join(dir, "loop")
	if err := os.Symlink("loop", loop); err != nil {
		t.Fatal(err)
	}
	if err := EditFile(loop, Set(2, "a")); err == nil {
		t.Error("a link to itself was edited")
	}
}

// Concurrent edits wait for each other.
func TestConcurrentEdits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.json")
	var all sync.WaitGroup
	const n = 20
	for i := range n {
		all.Go(func() {
			if err := EditFile(path, Set(i, "k", fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l, broken := parse(path, data)
	if broken != nil || len(l.content["k"].(map[string]any)) != n {
		t.Errorf("%v %s", broken, data)
	}
}
