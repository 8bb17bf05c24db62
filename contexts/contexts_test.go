package contexts

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const (
	png  = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00...."
	jpeg = "\xff\xd8\xff\xc0\x00\x11\x08\x00\x01\x00\x01"
)

// render writes blocks and problems as lines, with the root as $WS.
func render(root string, blocks []Block, problems []string) string {
	var out []string
	for _, b := range blocks {
		line := b.Label + "=" + b.Text
		if b.Data != nil {
			line = fmt.Sprintf("%s=%s %d", b.Label, b.MediaType, len(b.Data))
		}
		out = append(out, line)
	}
	for _, p := range problems {
		out = append(out, "! "+p)
	}
	return strings.ReplaceAll(strings.Join(out, "\n"), root, "$WS")
}

func resolve(root, message string, refs ...Ref) string {
	blocks, problems := Local{}.Resolve(context.Background(), Query{Roots: []string{root}, Message: message, Refs: refs})
	return render(root, blocks, problems)
}

func TestResolve(t *testing.T) {
	root := testkit.Folder(t, map[string]string{
		"a.txt": "1\n2\n3\n4\n", "bin": "a\x00b", "big": strings.Repeat("x", maxBlock+1), "long": strings.Repeat("line\n", maxBlock),
		"pic": png, "cut": png[:8], "sub/b.txt": "b", "empty/.hidden": "",
	})
	encoded := base64.StdEncoding.EncodeToString([]byte(jpeg))
	for _, c := range []struct {
		ref  Ref
		want string
	}{
		{Ref{Type: "text", Label: "l", Text: "t"}, "l=t"},
		{Ref{Type: "text", Label: "huge", Text: strings.Repeat("x", maxBlock+1)}, "! huge is larger than 262144 bytes"},
		{Ref{Type: "file", Path: filepath.Join(root, "a.txt")}, "$WS/a.txt=1\n2\n3\n4\n"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 2, LastLine: 3}, "$WS/a.txt:L2-L3=2\n3\n"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 3, LastLine: 99}, "$WS/a.txt:L3-L4=3\n4"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 2}, "$WS/a.txt:L2-L2=2\n"},
		{Ref{Type: "file", Path: "a.txt", FirstLine: 5, LastLine: 6}, "! $WS/a.txt has no line 5"},
		{Ref{Type: "file", Path: "long", FirstLine: 7, LastLine: 7}, "$WS/long:L7-L7=line\n"},
		{Ref{Type: "file", Path: "none"}, "! $WS/none does not exist"},
		{Ref{Type: "file", Path: "bin"}, "! $WS/bin is a binary file"},
		{Ref{Type: "file", Path: "big"}, "! $WS/big has 262145 bytes, which is too much"},
		{Ref{Type: "file", Path: os.DevNull}, "! " + os.DevNull + " is not a regular file"},
		{Ref{Type: "file", Path: "pic"}, "$WS/pic=image/png 33"},
		{Ref{Type: "file"}, "! a file without a path"},
		{Ref{Type: "file", Path: "sub"}, "$WS/sub/b.txt=b"}, // a link to a folder looks like a file
		{Ref{Type: "directory", Path: "a.txt"}, "$WS/a.txt=1\n2\n3\n4\n"},
		{Ref{Type: "directory", Path: "empty"}, "! $WS/empty has no files (hidden and ignored ones do not count)"},
		{Ref{Type: "cursor"}, ""},
		{Ref{Type: "cursor", Path: "a.txt"}, "cursor=$WS/a.txt"},
		{Ref{Type: "cursor", Path: "a.txt", Start: Position{2, 3}, End: Position{2, 3}}, "cursor=$WS/a.txt, line 2, character 3"},
		{Ref{Type: "cursor", Path: "a.txt", Start: Position{2, 3}, End: Position{4, 1}}, "cursor=$WS/a.txt, line 2, character 3 to line 4, character 1 (selected)"},
		{Ref{Type: "image", Base64: encoded}, "image=image/jpeg 11"},
		{Ref{Type: "image", Base64: "data:image/png;base64," + strings.TrimRight(encoded, "=") + "\n"}, "image=image/jpeg 11"},
		{Ref{Type: "image", Base64: "%%%"}, "! an image is not valid base64: illegal base64 data at input byte 0"},
		{Ref{Type: "image", Base64: "aGVsbG8="}, "! an image is not a PNG, JPEG, GIF or WebP"},
		{Ref{Type: "file", Path: "cut"}, "! $WS/cut is a damaged image: its header is incomplete or invalid; export or download it again"},
		{Ref{Type: "image", Base64: "iVBORw0KGgo="}, "! an attachment is a damaged image: its header is incomplete or invalid; export or download it again"},
		{Ref{Type: "image"}, "! an image is not a PNG, JPEG, GIF or WebP"},
		{Ref{Type: "image", Base64: strings.Repeat("A", 5_000_004)}, "! an image has more than 3750000 bytes"},
		{Ref{Type: "web", URL: "https://x.example/"}, "! https://x.example/ is a web page: those cannot be fetched here"},
		{Ref{Type: "mcpResource", URL: "db://t", Server: "pg"}, "! db://t of MCP server pg is a resource of an MCP server: those cannot be read here"},
		{Ref{Type: "hologram", Path: "a.txt"}, `! this version does not know contexts of type "hologram"`},
	} {
		if got := resolve(root, "", c.ref); got != c.want {
			t.Errorf("%.100v:\ngot  %.200s\nwant %s", c.ref, got, c.want)
		}
	}
	if blocks, problems := (Local{}).Resolve(context.Background(), Query{Refs: []Ref{{Type: "repoMap"}}}); blocks != nil || problems != nil {
		t.Errorf("a map of nothing: %v %v", blocks, problems)
	}
}

// Together they have a budget, and so have the reasons.
func TestBudget(t *testing.T) {
	var refs []Ref
	for i := range 10 {
		refs = append(refs, Ref{Type: "text", Label: fmt.Sprint(i), Text: strings.Repeat("x", maxBlock)})
	}
	blocks, problems := Local{}.Resolve(context.Background(), Query{Refs: refs})
	if len(blocks) != maxTotal/maxBlock || len(problems) != 10-maxTotal/maxBlock {
		t.Errorf("%d blocks, %d problems", len(blocks), len(problems))
	}
	refs = nil
	for i := range maxImages + 1 {
		refs = append(refs, Ref{Type: "image", Base64: base64.StdEncoding.EncodeToString(fmt.Append([]byte(png), i))})
	}
	if blocks, problems = (Local{}).Resolve(context.Background(), Query{Refs: refs}); len(blocks) != maxImages || len(problems) != 1 {
		t.Errorf("%d images, %v", len(blocks), problems)
	}
	refs = make([]Ref, 50)
	for i := range refs {
		refs[i] = Ref{Type: "web", URL: "u"}
	}
	if _, problems = (Local{}).Resolve(context.Background(), Query{Refs: refs}); len(problems) != maxProblems+1 || problems[maxProblems] != "and 30 more" {
		t.Errorf("problems: %v", problems)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if blocks, _ := (Local{}).Resolve(ended, Query{Refs: []Ref{{Type: "text", Text: "x"}}}); blocks != nil {
		t.Error("Resolve returned contexts although its context was cancelled")
	}
}

func TestNoDuplicates(t *testing.T) {
	root := testkit.Folder(t, map[string]string{"d/a": "1\n2\n", "d/b": "b", "c": "x\ny\n"})
	file := func(path string, first, last int) Ref {
		return Ref{Type: "file", Path: path, FirstLine: first, LastLine: last}
	}
	got := resolve(root, "see @./d/a and @./c:L2-L2 and @./c:L2-L2.",
		file("d/a", 1, 1), file("c", 1, 1), file("d/b", 0, 0), Ref{Type: "directory", Path: "d"}, Ref{Type: "directory", Path: "d/"},
		Ref{Type: "text", Label: "l", Text: "t"}, Ref{Type: "text", Label: "l", Text: "t"}, Ref{Type: "cursor", Path: "c"}, Ref{Type: "cursor", Path: "c"},
		Ref{Type: "image", Base64: base64.StdEncoding.EncodeToString([]byte(png))}, Ref{Type: "image", Base64: base64.StdEncoding.EncodeToString([]byte(png))})
	want := "$WS/d/b=b\n$WS/d/a=1\n2\n\nl=t\ncursor=$WS/c\nimage=image/png 33\n$WS/c:L1-L1=x\n\n$WS/c:L2-L2=y"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestDirectory(t *testing.T) {
	needs.Symlinks(t)
	files := map[string]string{".gitignore": "*.log\n", "x.log": "x", ".env": "x", "pic.png": png, "bin": "\x00", "huge": strings.Repeat("x", maxDirBytes+1), "sub/ok": "ok"}
	root := testkit.Folder(t, files)
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	reason := "bin is a binary file, huge has 262145 bytes, which is more than there is room for, link is not a regular file, pic.png is an image"
	want := "$WS/sub/ok=ok\n$WS=Not all files of this folder are given. Left out: " + reason + "\n! files of $WS: " + reason
	if got := resolve(root, "", Ref{Type: "directory", Path: root}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	many := map[string]string{}
	for i := range maxDirFiles + maxDirNamed + 5 {
		many[fmt.Sprintf("f%03d", i)] = "x"
	}
	root = testkit.Folder(t, many)
	blocks, problems := Local{}.Resolve(context.Background(), Query{Refs: []Ref{{Type: "directory", Path: root}}})
	if len(blocks) != maxDirFiles+1 || len(problems) != 1 || !strings.HasSuffix(problems[0], "f219 is beyond the first 200 files, 5 more files") {
		t.Errorf("%d blocks, %v", len(blocks), problems)
	}
	many = map[string]string{}
	for i := range 8 {
		many[fmt.Sprint(i)] = strings.Repeat("x", maxDirBytes/4-1)
	}
	many["small"] = "x"
	root = testkit.Folder(t, many)
	if blocks, _ = (Local{}).Resolve(context.Background(), Query{Refs: []Ref{{Type: "directory", Path: root}}}); len(blocks) != 4+1+1 {
		t.Errorf("%d blocks of large files", len(blocks))
	}
}

func TestDirectoryIsNotWalkedForever(t *testing.T) {
	needs.Long(t)
	root := t.TempDir()
	for i := range maxDirVisited + 1 {
		if err := os.Mkdir(filepath.Join(root, fmt.Sprint(i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := resolve(root, "", Ref{Type: "directory", Path: root}); !strings.HasSuffix(got, "! files of $WS: everything after its first 2000 entries") {
		t.Error(got)
	}
}

func TestRepoMap(t *testing.T) {
	files := map[string]string{"a/b/c/d": "", "z": "", ".git/x": "", ".gitignore": "out\n", "out/x": ""}
	for i := range mapFolder + 10 {
		files[fmt.Sprintf("many/%03d", i)] = ""
	}
	root := testkit.Folder(t, files)
	got := strings.Split(resolve(root, "", Ref{Type: "repoMap"}, Ref{Type: "repoMap"}), "\n")
	want := []string{"repository map=Files of the workspace. \"…\" stands for what is not shown.", "$WS", " a/", "  b/", "   c/", "    d", " many/", "  000"}
	if strings.Join(got[:len(want)], "\n") != strings.Join(want, "\n") || len(got) != len(want)+mapFolder-1+1+1+1 || strings.Join(got[len(got)-4:], "|") != "  049|  …| z|" {
		t.Errorf("the map:\n%s", strings.Join(got, "\n"))
	}
	// A level that does not fit is not shown at all, but for the first.
	for i := range 20 {
		for j := range mapFolder {
			files[fmt.Sprintf("wide%02d/%03d", i, j)] = ""
		}
	}
	if got := resolve(testkit.Folder(t, files), "", Ref{Type: "repoMap"}); strings.Count(got, "\n") != 2+23 || !strings.Contains(got, "\n wide19/…\n z\n") {
		t.Errorf("the map of a wide tree:\n%s", got)
	}
	files = map[string]string{}
	for i := range mapLines + 1 {
		files[fmt.Sprint("f", i)] = ""
	}
	if got := resolve(testkit.Folder(t, files), "", Ref{Type: "repoMap"}); strings.Count(got, "\n") != 2+mapLines+1 || !strings.HasSuffix(got, "\n …\n") {
		t.Errorf("the map of many files: %d lines", strings.Count(got, "\n"))
	}
}

type mapFunc func(roots []string, about About) (string, error)

func (f mapFunc) MapContext(_ context.Context, roots []string, about About) (string, error) {
	return f(roots, about)
}

// With a mapper, the map is made for what the prompt is about; without a map of it, the
// tree takes its place.
func TestRepoMapOfMapper(t *testing.T) {
	root := testkit.Folder(t, map[string]string{"a.go": "package a", "sub/b": ""})
	var asked About
	var text string
	var fail error
	local := Local{Mapper: mapFunc(func(roots []string, about About) (string, error) {
		if len(roots) != 1 || roots[0] != root {
			t.Errorf("roots %v", roots)
		}
		asked = about
		return text, fail
	})}
	resolve := func() Block {
		blocks, problems := local.Resolve(context.Background(), Query{Roots: []string{root}, Message: "why @./a.go?", Refs: []Ref{
			{Type: "repoMap"}, {Type: "cursor", Path: "sub/b"}, {Type: "repoMap"},
		}})
		if len(problems) > 0 || len(blocks) != 3 || blocks[0].Label != "repository map" {
			t.Fatalf("%v %v", blocks, problems)
		}
		return blocks[0]
	}
	text = "a.go\n func A()\n"
	if got := resolve(); got.Text != mapIntroduction+text {
		t.Errorf("the map: %q", got.Text)
	}
	if want := filepath.Join(root, "sub", "b") + "|" + filepath.Join(root, "a.go"); strings.Join(asked.Paths, "|") != want || asked.Message != "why @./a.go?" {
		t.Errorf("asked about %+v, want %s", asked, want)
	}
	for _, fail = range []error{nil, context.DeadlineExceeded} {
		text = ""
		if got := resolve(); !strings.HasPrefix(got.Text, "Files of the workspace.") || !strings.Contains(got.Text, " a.go\n") {
			t.Errorf("without a map (%v): %q", fail, got.Text)
		}
	}
}

func TestMentions(t *testing.T) {
	root := testkit.Folder(t, map[string]string{"a.txt": "", "b": "", "odd.": "", "sub/c": "", "sub/two words.txt": ""})
	up := "../" + filepath.Base(root)
	for _, leaving := range []string{"@sub/../" + up + "/b", "@sub/../../" + filepath.Base(root) + "/../../etc/hosts"} {
		for _, r := range mentions([]string{root}, leaving) {
			if !strings.HasPrefix(r.Path, root) {
				t.Errorf("%s leads to %s", leaving, r.Path)
			}
		}
	}
	for message, want := range map[string]string{
		"@./a.txt":                              "file a.txt",
		"see @" + root + "/a.txt, @./b.":        "file a.txt|file b",
		"(@./a.txt) \"@./b\"?! '@./sub/'":       "file a.txt|file b|directory sub",
		"@./odd. @" + up + "/b":                 "file odd.|file b",
		"@./a.txt:L1-L3, @./b:L2":               "file a.txt:1-3|file b:2-2",
		"@./a.txt:L3-L1, @./b:Lx @./b:L0":       "mistake L3-L1, of ./a.txt|mistake Lx of ./b|mistake L0 of ./b",
		"@b:10 @b:10-20 @a.txt#L3 @b:L1-4 @b:":  "mistake 10 of b|mistake 10-20 of b|mistake L3 of a.txt|mistake L1-4 of b|file b",
		"@b:1:2 @none:10 @sub:1 @./sub/:L3":     "mistake 1:2 of b|./sub/ is a folder, which has no lines",
		`(@"sub/two words.txt") @"b":L3 @"b" b`: "file sub/two words.txt|file b:3-3|file b",
		`@"sub/two words.txt:L1" @"none @b`:     "file sub/two words.txt:1-1|file b",
		"me@./a.txt me@/etc/passwd #./ #a.txt":  "",
		"@a.txt, @sub/c:L1. @sub/ @b":           "file a.txt|file sub/c:1-1|directory sub|file b",
		"@sub @none.txt @sub/../../x @sub/none": "", // a word that is the name of a folder may be meant as the name of a person
		"@./none @./none/ @ @. @.. @~ @/ @./":   "",
		"@./.. @../ @./... @~/ @/...":           "",
		"@@./b":                                 "file b",
		"@./b)))) @./b)))))":                    "file b",
	} {
		var got []string
		for _, r := range mentions([]string{root}, message) {
			rel, err := filepath.Rel(root, r.Path)
			if err != nil {
				t.Fatal(err)
			}
			line := r.Type + " " + rel
			if r.FirstLine > 0 {
				line += fmt.Sprintf(":%d-%d", r.FirstLine, r.LastLine)
			}
			if r.mistake != "" {
				line, _, _ = strings.Cut(r.mistake, "; write")
				line = regexp.MustCompile(`^[:#](.*) does not select lines (.*)$`).ReplaceAllString(line, "mistake $1 $2")
			}
			got = append(got, line)
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s:\ngot  %s\nwant %s", message, strings.Join(got, "|"), want)
		}
	}
	if runtime.GOOS != "windows" {
		refs := mentions([]string{root}, `see @sub/two\ words.txt, then`)
		if len(refs) != 1 || filepath.Base(refs[0].Path) != "two words.txt" {
			t.Errorf("%+v", refs)
		}
	}
	if n := len(mentions([]string{root}, strings.Repeat("@./b ", maxMentions+1))); n != maxMentions {
		t.Errorf("%d mentions", n)
	}
	// Neither is worth a look at the disk, nor more than one pass.
	if refs := mentions(nil, strings.Repeat("@/", 1<<20)+strings.Repeat("@", 1<<20)); refs != nil {
		t.Error(refs)
	}
}

func FuzzMentions(f *testing.F) {
	f.Add("@./a:L1-L2 @~/x")
	f.Add("a@/@../@./\xff:L")
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, message string) {
		for word := range mentionWords(message) {
			if plain := strings.NewReplacer(`"`, "", `\`, ""); !strings.Contains(plain.Replace(message), "@"+plain.Replace(word)) {
				t.Errorf("%q is not in the message", word)
			}
		}
		for _, r := range mentions([]string{root}, message) {
			if !filepath.IsAbs(r.Path) || r.FirstLine < 0 || r.LastLine < r.FirstLine {
				t.Errorf("%+v", r)
			}
		}
	})
}
