package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// source is a file of ours.
type source struct {
	path, room string // the room with slashes
	test       bool
	file       *ast.File
	places     *token.FileSet
}

func (s source) at(n ast.Node) token.Position { return s.places.Position(n.Pos()) }

// sources parses all Go files, whatever system they are for.
func sources(t *testing.T) (list []source) {
	t.Helper()
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		s := source{path: path, test: strings.HasSuffix(path, "_test.go"), places: token.NewFileSet()}
		s.room = filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, root+string(filepath.Separator))))
		if s.file, err = parser.ParseFile(s.places, path, nil, parser.ParseComments); err != nil {
			return err
		}
		list = append(list, s)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSkips holds every test that is left out to say so in words of its own: what is
// missing, and how one gets it. An error of the system's says neither. (That the words say it
// is for readers to see.)
func TestSkips(t *testing.T) {
	seen := 0
	for _, src := range sources(t) {
		if !src.test && !forTests(src.room) {
			continue
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			switch who, _ := sel.X.(*ast.Ident); {
			case who == nil || who.Name != "t" && who.Name != "b" && who.Name != "f":
			case sel.Sel.Name == "SkipNow":
				t.Errorf("%s: SkipNow says nothing; use Skip, or what internal/needs has", src.at(call))
			case sel.Sel.Name == "Skip" || sel.Sel.Name == "Skipf":
				seen++
				const fewest = 3
				if len(strings.Fields(leading(call.Args))) < fewest {
					t.Errorf("%s: say NOT TESTED (or NOT MEASURED), what is missing, and how one gets it; or use what internal/needs has", src.at(call))
				}
			}
			return true
		})
	}
	const some = 20
	if seen < some {
		t.Errorf("only %d are seen", seen)
	}
}

// leading returns the text that a call's first argument begins with, if it is written there.
func leading(args []ast.Expr) string {
	if len(args) == 0 {
		return ""
	}
	first := args[0]
	for {
		sum, ok := first.(*ast.BinaryExpr)
		if !ok {
			break
		}
		first = sum.X
	}
	lit, ok := first.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return text
}
