package workspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFuzzy(t *testing.T) {
	root := tree(t, "server/query.go", "server/queryFiles.go", "server/query_files_test.go", "qf", "docs/quiet/fix", "internal/jsonrpc/conn.go", "Straße/Ünder.txt",
		"my file.txt", "a/server/conn.md")
	f := newFinder(t)
	for query, want := range map[string]string{
		"qf":            "qf server/queryFiles.go server/query_files_test.go docs/quiet/fix",
		"sqf":           "server/queryFiles.go server/query_files_test.go docs/quiet/fix",
		"ijc":           "internal/jsonrpc/conn.go internal/jsonrpc/",
		"query server":  "server/query.go server/queryFiles.go server/query_files_test.go",
		"conn rpc":      "internal/jsonrpc/conn.go",
		"my file":       "my file.txt",
		"file my":       "my file.txt",
		"STRASSE":       "",
		"straße ünd":    "Straße/Ünder.txt",
		"server/qft":    "server/query_files_test.go",
		"conn.go":       "internal/jsonrpc/conn.go",
		"qxf":           "",
		"erver/query.g": "server/query.go",
	} {
		if got := find(t, f, []string{root}, query); got != want {
			t.Errorf("%q:\ngot  %s\nwant %s", query, got, want)
		}
	}
}

// Files in use come first among equally good matches, but not before better matches.
func TestInUse(t *testing.T) {
	root := tree(t, "main.go", "cmd/a/main.go", "cmd/b/main.go", "x/domain.go", "gone")
	f := newFinder(t)
	f.Touch(root+"/x/domain.go", root+"/none", root+"/cmd/b/main.go", "/elsewhere/main.go")
	if got, want := find(t, f, []string{root}, "main"), "cmd/b/main.go main.go cmd/a/main.go x/domain.go"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	f.Touch(root + "/x/domain.go")
	if got, want := find(t, f, []string{root}, ""), "x/domain.go cmd/b/main.go gone main.go cmd/a/main.go"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i := range 2 * maxRecent {
		f.Touch(root+"/gone", fmt.Sprint(root, "/", i))
	}
	if used := f.inUse(); len(used) != maxRecent || used[1] != root+"/gone" {
		t.Errorf("%d are remembered: %v", len(used), used)
	}
}

// The answer does not depend on how the entries are spread over folders and workers: it equals a sort
// of all entries.
func TestBestIsSorted(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.StringMatching(`[abAB_]{1,3}[.]?[ab]?`)
		top := &folder{}
		var grow func(f *folder, depth int)
		grow = func(f *folder, depth int) {
			files := rapid.SliceOfNDistinct(name, 0, 8, rapid.ID[string]).Draw(r, "files")
			slices.Sort(files)
			fill(f, files)
			if depth == 0 {
				return
			}
			subs := rapid.SliceOfNDistinct(name, 0, 3, rapid.ID[string]).Draw(r, "folders")
			slices.Sort(subs)
			for _, s := range subs {
				sub := &folder{text: newText(f.text.plain + s + "/")}
				f.subs = append(f.subs, sub)
				grow(sub, depth-1)
			}
		}
		grow(top, 3)
		s := &snapshot{roots: []indexRoot{{path: "/r", resolvedPath: "/r", folder: top}}}
		s.folders = top.appendTo(0, nil)
		q := newQuery(rapid.StringMatching(`[abAB/ ]{0,4}`).Draw(r, "query"))

		var all []match
		for _, p := range s.folders {
			m := matcher{query: q, kindLimit: noMatch}
			t := topOf(1 << 20)
			m.addMatches(p, t)
			all = append(all, t.matches...)
		}
		slices.SortFunc(all, func(a, b match) int { return a.compare(&b) })
		var want []string
		for _, m := range all[:min(len(all), maxFound)] {
			want = append(want, "/r/"+m.folder.text.plain+m.name)
		}
		var got []string
		for _, f := range bestMatches(s, q, nil) {
			got = append(got, strings.ReplaceAll(f.Path, "\\", "/"))
		}
		if !slices.Equal(got, want) {
			r.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}

func topOf(size int) *topMatches { return &topMatches{size: size} }

// fill puts files into a folder.
func fill(f *folder, names []string) {
	for _, n := range names {
		f.names += n
		f.ends = append(f.ends, uint32(len(f.names)))
		f.masks = append(f.masks, maskOf(toLowerSameLen(n)))
	}
	f.lower = toLowerSameLen(f.names)
}

func FuzzJudge(f *testing.F) {
	f.Add("Some/Path/", "NameOf.File", "npf")
	f.Add("é/", "ÉÀß", "éß")
	f.Fuzz(func(t *testing.T, dir, name, text string) {
		m := matcher{query: newQuery(text), kindLimit: noMatch}
		m.setFolder(&folder{text: newText(dir)})
		n := newText(name)
		if len(n.lower) != len(n.plain) {
			t.Fatalf("%q in lower case has another length: %q", n.plain, n.lower)
		}
		if q, ok := m.match(n, false); ok && (q.kind >= noMatch || q.at < 0) {
			t.Fatalf("%+v", q)
		}
	})
}
