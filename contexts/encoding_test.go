package contexts

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestEncodings(t *testing.T) {
	root := testkit.Folder(t, map[string]string{
		"le":      "\xff\xfeg\x00r\x00\xfc\x00n\x00\n\x00=\xd8\x00\xde",
		"be":      "\xfe\xff\x00g\x00r\x00\xfc\x00n\x00\n\xd8=\xde\x00",
		"odd":     "\xff\xfea\x00b",
		"latin":   "gr\xfcn stra\xdfe\n",
		"win":     "\x80 5 \x96 \x93x\x94",
		"bom":     "\xef\xbb\xbfgrün",
		"flawed":  "grün und schön \xff\n",
		"noise":   "\x01\x02\x03\xff\x9c\xe1\x04\x05",
		"zeros16": "\xff\xfe\x00\x00\x00\x00",
		"be0":     "\xfe\xffa\x00\x00\x00",
		"long":    strings.Repeat("x", 7999) + "ü" + strings.Repeat("y", 10),
	})
	for name, want := range map[string]string{
		"le": "grün\n😀", "be": "grün\n😀", "odd": "a", "latin": "grün straße\n", "win": "€ 5 – “x”", "bom": "grün", "flawed": "grün und schön \uFFFD\n",
		"long": strings.Repeat("x", 7999) + "ü" + strings.Repeat("y", 10),
	} {
		if got := resolve(root, "", Ref{Type: "file", Path: name}); got != "$WS/"+name+"="+want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{"noise", "zeros16", "be0"} {
		if got := resolve(root, "", Ref{Type: "file", Path: name}); got != "! $WS/"+name+" is a binary file" {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got, want := resolve(root, "", Ref{Type: "file", Path: "le", FirstLine: 2}), "$WS/le:L2-L2=😀"; got != want {
		t.Errorf("a range of UTF-16: %q", got)
	}
}

// A file, or a range of its lines, is included once, under any of its names.
func TestLinesOnce(t *testing.T) {
	root := testkit.Folder(t, map[string]string{"a": "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "d/b": "b"})
	lines := func(first, last int) Ref { return Ref{Type: "file", Path: "a", FirstLine: first, LastLine: last} }
	for _, c := range []struct {
		refs []Ref
		want string
	}{
		{[]Ref{lines(3, 4), lines(3, 4), lines(4, 4)}, "$WS/a:L3-L4=3\n4\n"},
		{[]Ref{lines(3, 4), lines(2, 6)}, "$WS/a:L3-L4=3\n4\n\n$WS/a:L2-L2=2\n\n$WS/a:L5-L6=5\n6\n"},
		{[]Ref{lines(5, 20), lines(1, 6)}, "$WS/a:L5-L9=5\n6\n7\n8\n9\n$WS/a:L1-L4=1\n2\n3\n4\n"},
		{[]Ref{lines(2, 3), {Type: "file", Path: "a"}}, "$WS/a=1\n2\n3\n4\n5\n6\n7\n8\n9\n"},
		{[]Ref{{Type: "file", Path: filepath.Join(root, "d", "..", "a")}, {Type: "file", Path: "a"}}, "$WS/a=1\n2\n3\n4\n5\n6\n7\n8\n9\n"},
	} {
		if got := resolve(root, "", c.refs...); got != c.want {
			t.Errorf("%v:\ngot  %q\nwant %q", c.refs, got, c.want)
		}
	}
	needs.Symlink(t, "d", filepath.Join(root, "way"))
	if got := resolve(root, "", Ref{Type: "directory", Path: "d"}, Ref{Type: "file", Path: "way/b"}, Ref{Type: "directory", Path: "way"}); got != "$WS/d/b=b" {
		t.Errorf("by a link: %q", got)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\xff\xfeg\x00"))
	f.Add([]byte("gr\xfcn"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if text, ok := decode(data); ok && !utf8.ValidString(text) {
			t.Errorf("%q is not text", text)
		}
	})
}
