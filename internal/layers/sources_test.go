package layers

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// source is a file of ours.
type source struct {
	path, room string // the room with slashes
	test       bool
	file       *ast.File
	places     *token.FileSet
}

func (s source) at(n ast.Node) token.Position { return s.places.Position(n.Pos()) }

// parsed returns all Go files, including those for other systems. Several tests use them.
var parsed = sync.OnceValues(func() (list []source, err error) {
	root := filepath.Join("..", "..")
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == "testdata" || isModule(path) || strings.HasPrefix(d.Name(), testkit.OutOfTempPrefix)) {
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
	return list, err
})

func sources(t *testing.T) []source {
	t.Helper()
	list, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestSkips fails if a test is skipped without a text of at least three words. The text has to say
// what is missing and how to get it, which an error of the system does not say. Only readers can
// check that it does.
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
				if len(strings.Fields(leadingText(call.Args))) < fewest {
					t.Errorf("%s: say NOT TESTED (or NOT MEASURED), what is missing, and how one gets it; or use what internal/needs has", src.at(call))
				}
			}
			return true
		})
	}
	const some = 20
	if seen < some {
		t.Errorf("found %d calls of Skip, want at least %d", seen, some)
	}
}

// isModule says whether a folder is a module of its own: a task of an example.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && filepath.Clean(dir) != filepath.Join("..", "..")
}

// leadingText returns the text that a call's first argument begins with, if it is written there.
func leadingText(args []ast.Expr) string {
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

// TestPackageComments holds each package to a comment that says what it is for, and what it does
// not do.
func TestPackageComments(t *testing.T) {
	const fewest = 25 // words; less is a name, not a description
	comments := map[string]string{}
	for _, src := range sources(t) {
		if src.test && !forTests(src.room) {
			continue
		}
		comments[src.room] += src.file.Doc.Text()
	}
	for room, text := range comments {
		words := strings.Fields(strings.ToLower(text))
		switch {
		case len(words) < 2 || words[0] != "package" && words[0] != "command":
			t.Errorf("%s has no comment at its package clause", room)
		case len(words) < fewest && !forTests(room):
			t.Errorf("the comment of %s has %d words: say what the package does and guarantees, and what it does not do, in %d words or more", room, len(words), fewest)
		case !forTests(room) && !slices.ContainsFunc(words, denies):
			t.Errorf("the comment of %s does not say what the package does not do", room)
		}
	}
	if len(comments) < 40 {
		t.Errorf("only %d packages are seen", len(comments))
	}
}

func denies(word string) bool {
	return slices.Contains([]string{"not", "no", "nothing", "never", "neither", "nobody", "none", "without", "elsewhere", "cannot"}, strings.Trim(word, ".,:;()"))
}

// TestFileLength holds files to a length that one can read in a sitting.
func TestFileLength(t *testing.T) {
	const most = 500
	for _, src := range sources(t) {
		if n := src.places.File(src.file.Pos()).LineCount(); n > most {
			t.Errorf("%s has %d lines; more than %d want a seam", src.path, n, most)
		}
	}
}
