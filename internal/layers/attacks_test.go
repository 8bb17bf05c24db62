package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestAttacks fails if docs/attacks.md names a test that does not exist, or if a row of its table
// names no test.
func TestAttacks(t *testing.T) {
	const top = "../../"
	doc, err := os.ReadFile(filepath.FromSlash(top + "docs/attacks.md"))
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)`")
	tests := map[string]map[string]bool{} // by package
	rows, inTable := 0, false
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		switch {
		case !strings.HasPrefix(line, "|"):
			inTable = false
		case strings.HasPrefix(line, "|---"):
			inTable = true
			continue
		}
		named := name.FindAllStringSubmatch(line, -1)
		if inTable {
			rows++
			if len(cells) != 5 || len(name.FindAllString(cells[3], -1)) == 0 {
				t.Errorf("a row without a test: %s", line)
			}
		}
		for _, m := range named {
			room, test := m[1], m[2]
			if tests[room] == nil {
				tests[room] = testsOf(t, filepath.FromSlash(top+room))
			}
			if !tests[room][test] {
				t.Errorf("%s has no %s", room, test)
			}
		}
	}
	const some = 50
	if rows < some {
		t.Errorf("found %d rows in docs/attacks.md, want at least %d", rows, some)
	}
}

// testsOf lists the tests of a package, including those for other systems.
func testsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, f := range functionsOf(t, dir) {
		out[f.Name.Name] = true
	}
	return out
}

// functionsOf lists the functions of a package's tests that do something.
func functionsOf(t *testing.T, dir string) []*ast.FuncDecl {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var out []*ast.FuncDecl
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Body != nil && len(f.Body.List) > 0 {
				out = append(out, f)
			}
		}
	}
	return out
}
