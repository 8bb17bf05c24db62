package server_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// extensionsDoc describes extensions that clients get only if they request them in initialize.
const extensionsDoc = `
## Extensions

A client gets these only if it asks for them in ` + "`initialize`" + `.

| capability of the client | what it gets | test |
|---|---|---|
| ` + "`codeAssistant.chatCapabilities.remount: true`" + ` | after each ` + "`chat/list`" + `, the server sends the state that does not belong to a chat again: ` + "`config/updated`, `tool/serverUpdated`, `providers/updated`, `jobs/updated`" + `. A page that was reloaded or opened late needs this | ` + "`TestRemountIsNegotiated`" + ` |
| ` + "`codeAssistant.chatCapabilities.search: true`" + ` | the request ` + "`chat/search`" + `: messages of all chats of the machine ([search.md](search.md)). Without it, the method does not exist | ` + "`TestSearchIsNegotiated`" + ` |

` + "`eca web`" + ` and the extension for VS Code sit between the daemon and the page that they serve. The page calls them with methods that begin with ` + "`host/`" + ` ([web.md](web.md#messages-between-page-and-host)). The daemon never sees these calls.
`

// TestProtocolDoc compares docs/protocol.md with the code: the methods are those of
// protocol.Methods. A line "Covers:" in the comment of a test names the methods whose behaviour the
// test shows best. The test mentions them, directly or in a function that it uses.
func TestProtocolDoc(t *testing.T) {
	t.Parallel()
	tests, coveredBy := parseTests(t)
	var doc strings.Builder
	doc.WriteString("# Protocol\n\nEvery method of the ECA protocol that eca speaks. This page is generated: `go test ./server -run TestProtocolDoc -update`.\n\n" +
		"\"Section\" is the section of the [contract](contracts/README.md). \"Since\" is *first* for methods of the first published protocol, and *current* for later ones. " +
		"\"Device\" is the right that a device of [the remote server](remote.md) needs. \"Test\" is a test in `server`. `TestConformance` in `server` and `cmd/eca` works through the checklist of the contract; `TestMatrix` shows what each client needs (the clients' scripts are in `server/testdata/clients`).\n\n" +
		"| method | direction | kind | since | section | device | test |\n|---|---|---|---|---|---|---|\n")
	for _, m := range protocol.Methods() {
		test := coveredBy[m.Name]
		switch {
		case test == "":
			t.Errorf("no test covers %s: add \"Covers: %s\" to the comment of one", m.Name, m.Name)
		case !tests.mention(test, regexp.MustCompile(regexp.QuoteMeta(m.Name)+`([^A-Za-z]|$)`), map[string]bool{}):
			t.Errorf("%s is covered by %s, which does not mention it", m.Name, test)
		}
		delete(coveredBy, m.Name)
		kind, since, device := "notification", "current", ""
		if m.Request {
			kind = "request"
		}
		if m.InFirstVersion {
			since = "first"
		}
		if m.Direction == protocol.ToServer {
			device = m.Needs.String()
		}
		fmt.Fprintf(&doc, "| `%s` | %s | %s | %s | %s | %s | `%s` |\n", m.Name, m.Direction, kind, since, m.Section, device, test)
	}
	doc.WriteString(extensionsDoc)
	for name, test := range coveredBy {
		t.Errorf("%s covers %s, which is not a method", test, name)
	}
	page := filepath.Join("..", "docs", "protocol.md")
	if *update {
		if err := os.WriteFile(page, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, page) != doc.String() {
		t.Errorf("%s is out of date: go test ./server -run TestProtocolDoc -update", page)
	}
}

// declarations are the declarations of the package's tests, by name; methods of several types may
// share a name.
type declarations map[string][]ast.Node

// parseTests returns the declarations of the tests, and the test that covers each method.
func parseTests(t *testing.T) (out declarations, coveredBy map[string]string) {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	out, coveredBy = declarations{}, map[string]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				out[d.Name.Name] = append(out[d.Name.Name], d)
				for line := range strings.Lines(d.Doc.Text()) {
					if methods, ok := strings.CutPrefix(strings.TrimSpace(line), "Covers: "); ok {
						for method := range strings.SplitSeq(methods, ", ") {
							coveredBy[method] = d.Name.Name
						}
					}
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok {
						for _, name := range v.Names {
							out[name.Name] = append(out[name.Name], v)
						}
					}
				}
			}
		}
	}
	return out, coveredBy
}

// mention reports whether a declaration, or one that it uses, has a string with the method.
func (d declarations) mention(name string, method *regexp.Regexp, seen map[string]bool) (found bool) {
	if seen[name] {
		return false
	}
	seen[name] = true
	for _, node := range d[name] {
		ast.Inspect(node, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					found = found || method.MatchString(s)
				}
			case *ast.Ident:
				found = found || d.mention(n.Name, method, seen)
			}
			return !found
		})
	}
	return found
}
