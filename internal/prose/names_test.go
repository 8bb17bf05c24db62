package prose

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A comment that begins with an identifier begins with that of its declaration: otherwise it describes
// something that was renamed. Comments of tests are sentences about behaviour, so they are exempt.
func TestCommentsBeginWithTheirNames(t *testing.T) {
	identifier, test := regexp.MustCompile(`^[a-z]\w*\b`), regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)`)
	files, set := 0, token.NewFileSet()
	check := func(doc *ast.CommentGroup, names ...string) {
		if doc == nil {
			return
		}
		if first := identifier.FindString(doc.Text()); first != "" && !slices.Contains(names, first) {
			t.Errorf("%s: the comment of %s begins with %q", set.Position(doc.Pos()), strings.Join(names, ", "), first)
		}
	}
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() && isSkipped(filepath.ToSlash(name)) {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				if !test.MatchString(d.Name.Name) {
					check(d.Doc, d.Name.Name)
				}
			case *ast.GenDecl:
				var all []string
				for _, spec := range d.Specs {
					var names []string
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						names = []string{spec.Name.Name}
						check(spec.Doc, names...)
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							names = append(names, name.Name)
						}
						check(spec.Doc, names...)
					}
					all = append(all, names...)
				}
				check(d.Doc, all...)
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
