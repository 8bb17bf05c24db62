package layers

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// Some calls have a better place; this test names it.
func TestMisusedCalls(t *testing.T) {
	bareHTTP := []string{"http.Transport", "http.DefaultTransport", "http.DefaultClient", "http.ProxyFromEnvironment", "http.Get", "http.Head", "http.Post", "http.PostForm"}
	seen := 0
	for _, src := range sources(t) {
		if src.test {
			continue
		}
		seen++
		path, room := src.path, src.room
		for _, decl := range src.file.Decls {
			if vars, ok := decl.(*ast.GenDecl); ok && calls(vars, "regexp", "MustCompile") && room != "examples/entry-point" {
				t.Errorf("%s compiles a regular expression at each start; use pattern.Lazy", path)
			}
		}
		ast.Inspect(src.file, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok {
				return true
			}
			switch name := pkg.Name + "." + sel.Sel.Name; {
			case name == "time.Now" && (room == "chat" || strings.HasPrefix(room, "llm")):
				t.Errorf("%s uses time.Now; use the injected clock (Deps.Now, Endpoint.Now)", path)
			case (name == "fmt.Print" || name == "fmt.Println" || name == "fmt.Printf" || name == "os.Stdout") && level(room) != 1 && room != "internal/proc" && !forTests(room):
				t.Errorf("%s uses %s; stdout belongs to the protocol, log with slog", path, name)
			case name == "os.Exit" && level(room) != 1 && room != "internal/proc" && !forTests(room): // a supervisor is a process of its own, and so is a test's server
				t.Errorf("%s uses os.Exit; return an error", path)
			case name == "os.Getenv" && level(room) != 1 && room != "daemon" && !forTests(room):
				t.Errorf("%s uses os.Getenv; take the environment as a function", path)
			case room != "internal/netclient" && room != "internal/testkit" && slices.Contains(bareHTTP, name):
				t.Errorf("%s uses %s; what speaks HTTP is given a client of internal/netclient, with the user's proxies and certificates", path, name)
			}
			return true
		})
	}
	if seen < 40 {
		t.Errorf("only %d files seen", seen)
	}
}

// calls reports whether a declaration calls a function of a package while the program starts.
func calls(decl *ast.GenDecl, pkg, function string) (found bool) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == function {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == pkg
		}
		_, deferred := n.(*ast.FuncLit)
		return !deferred
	})
	return found
}
