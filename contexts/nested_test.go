package contexts

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestNested(t *testing.T) {
	root := testkit.Folder(t, map[string]string{
		"AGENTS.md": "root", "a/AGENTS.md": "a @more.md @../AGENTS.md @/etc/hosts.x", "a/more.md": "more", "a/b/c/AGENTS.md": "c", "a/b/c/x.go": "",
		"a/b/CLAUDE.md": "b", "out/AGENTS.md": "ignored", "out/deep/AGENTS.md": "ignored, too", ".git/HEAD": "ref: refs/heads/main", ".gitignore": "/out/\n",
		".github/AGENTS.md": "hidden", "inner/AGENTS.md": "another root", "inner/sub/AGENTS.md": "below it", "big/AGENTS.md": strings.Repeat("line\n", maxNestedTotal),
	})
	elsewhere := testkit.Folder(t, map[string]string{"AGENTS.md": "outside", "x": ""})
	needs.Symlink(t, elsewhere, filepath.Join(root, "way"))
	for _, c := range []struct {
		paths, known []string
		claude       bool
		want         string
	}{
		{paths: []string{"a/b/c/x.go"}, want: "a a/more.md a/b/c"},
		{paths: []string{"a/b/c"}, claude: true, want: "a a/more.md a/b a/b/c"},
		{paths: []string{"a/b/c/none/yet.go", "a/x", "a"}, want: "a a/more.md a/b/c"},
		{paths: []string{"a/b/c/x.go"}, known: []string{"a/AGENTS.md"}, want: "a/b/c"},
		{paths: []string{"x.go", "", "../" + filepath.Base(elsewhere) + "/x", "..", "way/x"}, want: ""},
		{paths: []string{"out/x", "out/deep/x"}, want: ""},
		{paths: []string{".github/workflows/ci.yml"}, want: ".github"},
		{paths: []string{"inner/sub/x"}, want: "inner/sub"},
	} {
		q := NestedQuery{Roots: []string{root, filepath.Join(root, "inner")}, Claude: c.claude}
		for _, p := range c.paths {
			q.Paths = append(q.Paths, filepath.Join(root, p))
		}
		for _, k := range c.known {
			q.Known = append(q.Known, filepath.Join(root, k))
		}
		files, problems := Nested(context.Background(), q)
		var got []string
		for _, f := range files {
			rel, _ := filepath.Rel(root, f.Path)
			got = append(got, strings.TrimSuffix(strings.TrimSuffix(filepath.ToSlash(rel), "/AGENTS.md"), "/CLAUDE.md"))
		}
		if strings.Join(got, " ") != c.want || len(problems) > 0 {
			t.Errorf("%v: %v, want %s; %v", c.paths, got, c.want, problems)
		}
	}
	files, problems := Nested(context.Background(), NestedQuery{Roots: []string{root}, Paths: []string{filepath.Join(root, "big", "x")}})
	if len(problems) != 1 || len(files) == 1 && len(files[0].Text) > maxNestedTotal+100 {
		t.Errorf("a large one: %d files, %v", len(files), problems)
	}
}
