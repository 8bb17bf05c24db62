package lang

import (
	"flag"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// oracle lists the definitions of a Go file according to go/parser; ok is false if the file is
// invalid.
func oracle(src []byte) (lines map[string]int, ok bool) {
	f, err := parser.ParseFile(gotoken.NewFileSet(), "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil, false
	}
	out := map[string]int{}
	add := func(kind string, name *ast.Ident) {
		if name.Name != "_" {
			out[kind+" "+name.Name]++
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			kind := "function"
			if d.Recv != nil {
				kind = "method"
			}
			add(kind, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					kind := "type"
					switch s.Type.(type) {
					case *ast.StructType:
						kind = "struct"
					case *ast.InterfaceType:
						kind = "interface"
					}
					add(kind, s.Name)
				case *ast.ValueSpec:
					kind := "variable"
					if d.Tok == gotoken.CONST {
						kind = "constant"
					}
					for _, n := range s.Names {
						add(kind, n)
					}
				}
			}
		}
	}
	return out, true
}

var everyFile = flag.Bool("all", false, "test more: all files of Go's library instead of every tenth, and generated texts of ten megabytes")

// Compare with Go's own parser, for the files of Go's library.
func TestGoAgainstParser(t *testing.T) {
	needs.Long(t)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("the go command does not say where its library is: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("NOT TESTED: this Go came without its sources; install it from https://go.dev/dl: %v", err)
	}
	l := New().ByName("go")
	var s Scanner
	var right, wrong, missed, files int
	err = filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata") {
			return err
		}
		if files++; !*everyFile && files%10 != 0 {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		want, ok := oracle(src)
		if !ok {
			return nil
		}
		defs, _ := s.Scan(l, src)
		for _, d := range defs {
			key := d.Kind.String() + " " + d.Name
			if want[key] > 0 {
				want[key]--
				right++
				continue
			}
			if wrong++; wrong < 20 {
				t.Logf("%s:%d: %s is not a definition", path, d.Line, key)
			}
		}
		for key, n := range want {
			if missed += n; n > 0 && missed < 20 {
				t.Logf("%s: %s is missing", path, key)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	precision, recall := float64(right)/float64(right+wrong), float64(right)/float64(right+missed)
	t.Logf("%d definitions: precision %.5f, recall %.5f", right, precision, recall)
	if right < 1000 || precision < .99 || recall < .97 {
		t.Errorf("precision %.5f, recall %.5f of %d definitions", precision, recall, right)
	}
}
