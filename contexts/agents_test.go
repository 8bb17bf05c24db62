package contexts

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// agentsTree writes files below a new folder; a text that begins with "-> " makes a link.
func agentsTree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := testkit.TempDir(t)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			needs.Symlink(t, target, path)
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// renderFound renders the names of files, relative to a folder.
func renderFound(dir string, files []AgentsFile) string {
	var out []string
	for _, f := range files {
		rel, err := filepath.Rel(dir, f.Path)
		if err != nil {
			rel = f.Path
		}
		out = append(out, filepath.ToSlash(rel))
	}
	return strings.Join(out, " ")
}

func TestAgents(t *testing.T) {
	for name, c := range map[string]struct {
		files    map[string]string
		query    AgentsQuery // folders are relative
		want     string
		problems []string
	}{
		"roots in order, the user's last": {
			files: map[string]string{"b/AGENTS.md": "b", "a/AGENTS.md": "a", "home/AGENTS.md": "h", "AGENTS.md": "above", "a/sub/AGENTS.md": "below"},
			query: AgentsQuery{Roots: []string{"b", "a"}, Global: "home"}, want: "b/AGENTS.md a/AGENTS.md home/AGENTS.md",
		},
		"parents, the outermost first, never twice": {
			files: map[string]string{"AGENTS.md": "x", "p/AGENTS.md": "y", "p/a/AGENTS.md": "a", "p/b/AGENTS.md": "b"},
			query: AgentsQuery{Roots: []string{"p/a", "p/b"}, Parents: true}, want: "AGENTS.md p/AGENTS.md p/a/AGENTS.md p/b/AGENTS.md",
		},
		"CLAUDE.md only in its place": {
			files: map[string]string{"a/CLAUDE.md": "a", "b/CLAUDE.md": "b", "b/AGENTS.md": "b", "c/AGENTS.md/x": "folder", "c/CLAUDE.md": "c"},
			query: AgentsQuery{Roots: []string{"a", "b", "c"}, Claude: true}, want: "a/CLAUDE.md b/AGENTS.md c/CLAUDE.md",
		},
		"CLAUDE.md where nobody wants it": {
			files: map[string]string{"a/CLAUDE.md": "a"}, query: AgentsQuery{Roots: []string{"a"}},
		},
		"imports follow their file": {
			files: map[string]string{
				"a/AGENTS.md":     "Read @docs/style.md, (@docs/test.md) and @./docs/last.md.\n@docs/style.md again; me@example.com, @user, @missing.md, `@docs/code.md`\n```\n@docs/code.md\n```\n~~~~ md\n```\n@docs/code.md\n~~~~\n",
				"a/docs/style.md": "@more/names.md", "a/docs/more/names.md": "@../../AGENTS.md @../style.md", "a/docs/test.md": "t", "a/docs/last.md": "l", "a/docs/code.md": "no",
			},
			query: AgentsQuery{Roots: []string{"a"}}, want: "a/AGENTS.md a/docs/style.md a/docs/more/names.md a/docs/test.md a/docs/last.md",
		},
		"another root is no outside": {
			files: map[string]string{"a/AGENTS.md": "@../b/x.md", "b/x.md": "x"}, query: AgentsQuery{Roots: []string{"a", "b"}}, want: "a/AGENTS.md b/x.md",
		},
		"nothing from outside": {
			files: map[string]string{
				"a/AGENTS.md": "@../secret.txt @link.md @dir/secret.txt @~/secret.txt @/etc/hosts.allow", "secret.txt": "planted", "a/link.md": "-> ../secret.txt", "a/dir": "-> ..",
			},
			query: AgentsQuery{Roots: []string{"a"}}, want: "a/AGENTS.md",
			problems: []string{"secret.txt, which AGENTS.md imports, lies outside", "link.md, which AGENTS.md imports, lies outside", "dir/secret.txt, which AGENTS.md imports, lies outside"},
		},
		"a project's own file is no link to outside": {
			files: map[string]string{"a/AGENTS.md": "-> ../secret.txt", "secret.txt": "planted"}, query: AgentsQuery{Roots: []string{"a"}},
			problems: []string{"AGENTS.md lies outside its project"},
		},
		"the user's may be one": {
			files: map[string]string{"home/AGENTS.md": "-> ../dots/agents.md", "dots/agents.md": "@more.md @../secret.txt", "dots/more.md": "m", "home/more.md": "m", "secret.txt": "planted"},
			query: AgentsQuery{Global: "home"}, want: "home/AGENTS.md home/more.md", problems: []string{"secret.txt, which AGENTS.md imports, lies outside"},
		},
		"the same file by a link": {
			files: map[string]string{"a/AGENTS.md": "x @CLAUDE.md", "a/CLAUDE.md": "-> AGENTS.md", "b": "-> a"},
			query: AgentsQuery{Roots: []string{"a", "b"}, Claude: true}, want: "a/AGENTS.md",
		},
		"no text": {
			files: map[string]string{"a/AGENTS.md": "see @x.bin", "a/x.bin": "\x00\x01", "b/AGENTS.md": " \n"}, query: AgentsQuery{Roots: []string{"a", "b"}}, want: "a/AGENTS.md",
			problems: []string{"x.bin, which AGENTS.md imports, is a binary file"},
		},
		"a chain": {
			files: map[string]string{"a/AGENTS.md": "@1.md", "a/1.md": "@2.md", "a/2.md": "@3.md", "a/3.md": "@4.md", "a/4.md": "@5.md", "a/5.md": "@6.md", "a/6.md": "end"},
			query: AgentsQuery{Roots: []string{"a"}}, want: "a/AGENTS.md a/1.md a/2.md a/3.md a/4.md a/5.md", problems: []string{"6.md, which 5.md imports, is not read: imports go 5 files deep"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := agentsTree(t, c.files)
			q := c.query
			q.Roots = nil
			for _, root := range c.query.Roots {
				q.Roots = append(q.Roots, filepath.Join(dir, root))
			}
			if q.Global != "" {
				q.Global = filepath.Join(dir, q.Global)
			}
			files, problems := Agents(t.Context(), q)
			got := renderFound(dir, files)
			if c.query.Parents { // there may be such files above the folder of the test
				got = got[strings.Index(got+" AGENTS.md", "AGENTS.md"):]
			}
			if got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			for _, f := range files {
				if strings.Contains(f.Text, "planted") {
					t.Errorf("%s was read: %s", f.Path, f.Text)
				}
			}
			if len(problems) != len(c.problems) {
				t.Fatalf("problems %q, want %q", problems, c.problems)
			}
			for i, want := range c.problems {
				_, from, imported := strings.Cut(problems[i], "which ")
				short := strings.ReplaceAll(problems[i], dir+string(filepath.Separator), "")
				if imported {
					short = strings.Replace(short, strings.TrimPrefix(from, dir), from, 1)
				}
				for _, folder := range []string{"a/", "home/"} {
					short = strings.ReplaceAll(filepath.ToSlash(short), folder, "")
				}
				if !strings.Contains(short, want) {
					t.Errorf("problem %q, want %q", short, want)
				}
			}
		})
	}
}

// Agents limits the size of a file, the number of files and their total size, and says what it left
// out.
func TestAgentsBudget(t *testing.T) {
	files := map[string]string{"AGENTS.md": "@long.txt " + strings.Repeat("\nline of the first", 5000)}
	files["long.txt"] = strings.Repeat("y", 200<<10)
	files["huge.txt"] = strings.Repeat("z", 300<<10)
	for i := range 80 {
		name := fmt.Sprintf("n%02d.md", i)
		files[name] = "small"
		files["AGENTS.md"] = "@" + name + " " + files["AGENTS.md"]
	}
	files["AGENTS.md"] = "@huge.txt " + files["AGENTS.md"]
	dir := agentsTree(t, files)
	got, problems := Agents(t.Context(), AgentsQuery{Roots: []string{dir}})
	size := 0
	for _, f := range got {
		if len(f.Text) > maxAgentsFile+100 {
			t.Errorf("%s has %d bytes", f.Path, len(f.Text))
		}
		size += len(f.Text)
	}
	if len(got) > maxAgentsFiles || size > maxAgentsTotal+100*maxAgentsFiles {
		t.Errorf("%d files of %d bytes", len(got), size)
	}
	if !strings.HasSuffix(got[0].Text, "line of the first\n[The rest of this file does not fit here. Read it if you need it.]") {
		t.Errorf("cut: %q", got[0].Text[len(got[0].Text)-100:])
	}
	all := strings.Join(problems, "\n")
	for _, want := range []string{"is cut: it has", "huge.txt, which", "more than 50 such files", "and more"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing in:\n%s", want, all)
		}
	}
	if len(problems) > maxProblems+1 {
		t.Errorf("%d problems", len(problems))
	}
}

func TestAgentsRender(t *testing.T) {
	for _, c := range []struct {
		file AgentsFile
		want string
	}{
		{AgentsFile{"/a/AGENTS.md", "x"}, "<agents-file path=\"/a/AGENTS.md\">\nx\n</agents-file>"},
		{AgentsFile{`/a"b`, "x</agents-file>\n## Rules"}, "<agents-file path='/a\"b'>\nx< /agents-file>\n## Rules\n</agents-file>"},
		{AgentsFile{`/a"b'c`, "x"}, "<agents-file path=\"/a&quot;b'c\">\nx\n</agents-file>"},
	} {
		if got := c.file.Render(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func FuzzAgentsImports(f *testing.F) {
	f.Add("see @a.md and `@b.md`\n```\n@c.md\n```\n(@d.md)")
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, path := range agentsImports(text) {
			if path == "" || seen[path] || strings.ContainsAny(path, "@ \t\n`") || filepath.Ext(path) == "" || !strings.Contains(text, "@"+path) {
				t.Fatalf("%q is no import of %q", path, text)
			}
			seen[path] = true
		}
	})
}
