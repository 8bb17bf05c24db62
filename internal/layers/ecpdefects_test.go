package layers

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// docs/ecp-defects.md has each number once and in order, and names only tests that exist.
func TestECPDefects(t *testing.T) {
	const (
		top  = "../../"
		last = 32
	)
	doc, err := os.ReadFile(filepath.FromSlash(top + "docs/ecp-defects.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The defects of 0.10.0 have separate numbers, some of which are not listed.
	row := regexp.MustCompile(`^\| ((?:0\.10/)?\d+) \| .+ \| (.+) \|$`)
	name := regexp.MustCompile("`([a-z0-9/]+)\\.(Test[A-Za-z0-9]+)(?:/([^`]+))?`")
	tests, parts := map[string]map[string]bool{}, map[string]map[string]bool{} // by package
	next := 1
	for line := range strings.Lines(string(doc)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			if n != next {
				t.Errorf("%d stands where %d should", n, next)
			}
			next++
		}
		named := name.FindAllStringSubmatch(m[2], -1)
		if len(named) == 0 {
			t.Errorf("%s has no test", m[1])
		}
		for _, n := range named {
			room, test, part := n[1], n[2], n[3]
			if tests[room] == nil {
				dir := filepath.FromSlash(top + room)
				tests[room], parts[room] = testsOf(t, dir), partsOf(t, dir)
			}
			if !tests[room][test] || part != "" && !parts[room][test+"/"+part] {
				t.Errorf("%s: %s has no %s %s", m[1], room, test, part)
			}
		}
	}
	if next != last+1 {
		t.Errorf("%d of %d defects are there", next-1, last)
	}
}

// partsOf lists the subtests of a package that are called by a literal name, as Test/name.
func partsOf(t *testing.T, dir string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, f := range functionsOf(t, dir) {
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if name, ok := ranBy(n); ok {
				out[f.Name.Name+"/"+name] = true
			}
			return true
		})
	}
	return out
}

// ranBy returns the name in t.Run("name", ...).
func ranBy(n ast.Node) (name string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 2 {
		return "", false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "Run" {
		return "", false
	}
	literal, ok := call.Args[0].(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	name, err := strconv.Unquote(literal.Value)
	return name, err == nil
}
