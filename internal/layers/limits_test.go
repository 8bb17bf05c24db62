package layers

import (
	"go/ast"
	"strings"
	"testing"
)

// The largest types and functions of ours. A type may be larger if its comment says why, in a
// sentence that begins with one of the phrases.
const (
	maxFields   = 25
	maxMethods  = 40
	maxLines    = 80 // of a function
	whyFields   = "It has more than 25 fields because"
	whyMethods  = "It has more than 40 methods because"
	whyTooLarge = ": split it, or say why not in its comment: "
)

// TestLimits holds structs, method sets and functions to sizes that a reader can keep in mind.
func TestLimits(t *testing.T) {
	docs := map[string]string{} // comments of types, by package and name
	methods := map[string]int{}
	place := map[string]string{}
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		for _, d := range src.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if recv := receiver(d); recv != "" {
					methods[src.room+"."+recv]++
				}
				if n := src.places.Position(d.End()).Line - src.at(d).Line + 1; n > maxLines {
					t.Errorf("%s: %s has %d lines, more than %d", src.at(d), d.Name.Name, n, maxLines)
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					ts, ok := s.(*ast.TypeSpec)
					if !ok {
						continue
					}
					name := src.room + "." + ts.Name.Name
					doc := onOneLine(d.Doc.Text() + ts.Doc.Text())
					docs[name] += doc // a type of several systems has several
					place[name] = src.at(ts).String()
					if st, ok := ts.Type.(*ast.StructType); ok && st.Fields.NumFields() > maxFields && !strings.Contains(doc, whyFields) {
						t.Errorf("%s: %s has %d fields, more than %d%s%s ...", src.at(ts), name, st.Fields.NumFields(), maxFields, whyTooLarge, whyFields)
					}
				}
			}
		}
	}
	for name, n := range methods {
		if n > maxMethods && !strings.Contains(docs[name], whyMethods) {
			t.Errorf("%s: %s has %d methods, more than %d%s%s ...", place[name], name, n, maxMethods, whyTooLarge, whyMethods)
		}
	}
	const some = 500
	if len(methods) < some || len(docs) < some {
		t.Errorf("only %d types with methods and %d types are seen", len(methods), len(docs))
	}
}

// onOneLine returns a comment on one line.
func onOneLine(doc string) string { return strings.Join(strings.Fields(doc), " ") }

// receiver returns the type that a function is a method of, or "".
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.IndexListExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
