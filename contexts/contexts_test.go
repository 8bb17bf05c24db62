package contexts

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResolve(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{"a.txt": "1\n2\n3\n4\n", "bin": "a\x00b", "big": strings.Repeat("x", maxBlock+1), "long": strings.Repeat("line\n", maxBlock)} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := func(name string) string { return filepath.Join(root, name) }
	for _, c := range []struct {
		ref         Ref
		label, text string // or problem, if label is empty
	}{
		{Ref{Type: "text", Label: "l", Text: "t"}, "l", "t"},
		{Ref{Type: "file", Path: path("a.txt")}, path("a.txt"), "1\n2\n3\n4\n"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 2, LastLine: 3}, path("a.txt") + ":L2-L3", "2\n3\n"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 3, LastLine: 99}, path("a.txt") + ":L3-L5", "3\n4\n"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 50, LastLine: 60}, path("a.txt") + ":L50-L5", ""},
		{Ref{Type: "file", Path: "long", FirstLine: 7, LastLine: 7}, path("long") + ":L7-L7", "line\n"},
		{Ref{Type: "file", Path: "none"}, "", "can not be read"},
		{Ref{Type: "file", Path: root}, "", "not a regular file"},
		{Ref{Type: "file", Path: "bin"}, "", "binary"},
		{Ref{Type: "file", Path: "big"}, "", "too much"},
		{Ref{Type: "text", Label: "huge", Text: strings.Repeat("x", maxBlock+1)}, "", "huge"},
	} {
		blocks, problems := Files{}.Resolve(context.Background(), []string{root}, []Ref{c.ref})
		switch {
		case c.label == "" && (len(blocks) > 0 || len(problems) != 1 || !strings.Contains(problems[0], c.text)):
			t.Errorf("%+v: %v %v", c.ref, len(blocks), problems)
		case c.label != "" && (len(problems) > 0 || len(blocks) != 1 || blocks[0] != Block{c.label, c.text}):
			t.Errorf("%+v: %v %v", c.ref, blocks, problems)
		}
	}
	// Types this version does not serve are ignored; together they have a budget.
	refs := []Ref{{Type: "cursor"}, {Type: "repoMap"}}
	for range 10 {
		refs = append(refs, Ref{Type: "text", Label: "x", Text: strings.Repeat("x", maxBlock)})
	}
	if blocks, problems := (Files{}).Resolve(context.Background(), nil, refs); len(blocks) != maxTotal/maxBlock || len(problems) != 10-maxTotal/maxBlock {
		t.Errorf("%d blocks, %d problems", len(blocks), len(problems))
	}
}
