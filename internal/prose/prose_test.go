// Package prose holds no code: its tests keep banned constructions out of everything that people
// and models read in this repository, and hold documents to what they describe. The style guide is
// in CONTRIBUTING.md. Nothing here judges spelling: `make prose` runs misspell for that.
package prose

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

const top = "../.."

// isSkipped reports whether a directory has texts that are not ours: recordings, samples, builds,
// packages.
func isSkipped(path string) bool {
	base := filepath.Base(path)
	return slices.Contains([]string{"testdata", "node_modules", "dist", ".git", "pictures", "third_party"}, base) || path == "internal/prose" || strings.HasPrefix(base, testkit.OutOfTempPrefix)
}

func TestProse(t *testing.T) {
	files, rules := 0, rules()
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			if isSkipped(name) {
				return filepath.SkipDir
			}
			return nil
		}
		passages := passagesOf(t, path)
		if len(passages) > 0 {
			files++
		}
		for _, p := range passages {
			for _, f := range check(rules, p.text, p.line) {
				t.Errorf("%s:%d: %s", name, f.line, f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	const fewest = 500
	if files < fewest {
		t.Errorf("only %d files were read", files)
	}
}

// passagesOf reads the prose of a file; other files have none.
func passagesOf(t *testing.T, path string) []passage {
	read := func() []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(strings.ReplaceAll(string(data), "\r\n", "\n"))
	}
	switch filepath.Ext(path) {
	case ".go":
		return goSource(t, path, read(), strings.HasSuffix(path, "_test.go"))
	case ".md":
		return markdown(string(read()))
	case ".ts", ".tsx", ".js", ".mjs", ".cjs", ".lua", ".el", ".kt", ".html":
		return script(string(read()))
	}
	if base := filepath.Base(path); base == "Makefile" || base == "run" {
		return script(string(read()))
	}
	return nil
}

// Every rule finds its example, and finds it in each kind of file at its line.
func TestRules(t *testing.T) {
	for _, r := range rules() {
		if len(check(rules(), r.holds, 1)) == 0 {
			t.Errorf("%s does not match its example %q", r.ban, r.holds)
		}
		source := "package p\n\n// Good.\n// " + r.holds + "\nvar x = " + "\"a good text\"\n"
		for name, passages := range map[string][]passage{
			"comment":  goSource(t, "p.go", []byte(source), true),
			"markdown": markdown("# Title\n\nGood.\n" + r.holds + "\n"),
			"script":   script("one\ntwo\nthree\n// " + r.holds),
		} {
			if got := findings(passages); len(got) == 0 || got[0].line != 4 {
				t.Errorf("%s: %q: %v", name, r.holds, got)
			}
		}
	}
}

func findings(passages []passage) []finding {
	rules := rules()
	var all []finding
	for _, p := range passages {
		all = append(all, check(rules, p.text, p.line)...)
	}
	return all
}

// Quotations, code, directives and legitimate uses are not judged; texts of programs are.
func TestWhatIsJudged(t *testing.T) {
	for name, passages := range map[string][]passage{
		"quoted":     markdown("It once said \"can not\" and `is none`.\n\n```\nWhat is read stays.\n```\n\n> anew\n"),
		"legitimate": markdown("It can not only read. There is no reason. The value is no longer used. There is room for more. None of them is none of ours.\n"),
		"questions":  markdown("## What is it\n\nWhat does it do? Who pays?\n\n| What happens to it? | x |\n"),
		"code":       goSource(t, "p.go", []byte("package p\n\n// F does:\n//\n//\twhat is none\nvar f = `a`\n"), false),
		"test":       goSource(t, "p_test.go", []byte("package p\n\nvar f = \"it can not be\"\n"), true),
	} {
		if got := findings(passages); len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, passages := range map[string][]passage{
		"string":  goSource(t, "p.go", []byte("package p\n\nvar f = \"it can not be\"\n"), false),
		"raw":     goSource(t, "p.go", []byte("package p\n\nvar f = `\nit can not be\n`\n"), false),
		"tag":     goSource(t, "p.go", []byte("package p\n\ntype t struct {\n\tA int `json:\"a\" doc:\"it can not be\"`\n}\n"), false),
		"table":   markdown("| a | b |\n|---|---|\n| x | it can not be |\n"),
		"wrapped": markdown("It can\nnot be.\n"),
	} {
		if got := findings(passages); len(got) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
