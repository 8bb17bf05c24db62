package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// sayNo are programs that end with 1 only to say no, and with another code or a message on
// stderr if they fail.
var sayNo = []string{"grep", "egrep", "fgrep", "rg", "test", "[", "jq", "echo", "printf", "cat", "head", "tail", "cut", "tr", "true", ":"}

// OnlyTests reports whether a script that ends with 1 in silence ended so because a test in it said
// no: it is made only of programs that tell that from a failure, and it hides no messages.
func OnlyTests(text string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	tests := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			tests = tests && (len(n.Args) == 0 || slices.Contains(sayNo, n.Args[0].Lit()) || endsOtherwise(n))
		case *syntax.FuncDecl, *syntax.ProcSubst:
			tests = false
		case *syntax.Redirect:
			tests = tests && (n.Op == syntax.RdrIn || n.Op == syntax.WordHdoc || (n.Op == syntax.RdrOut && n.N == nil) || (n.Op == syntax.DplOut && n.N == nil && n.Word.Lit() == "2"))
		case *syntax.BinaryCmd:
			tests = tests && n.Op != syntax.PipeAll
		}
		return tests
	})
	return tests
}

// endsOtherwise reports whether a call is an exit with 0 or 2, which is never why a script ends with 1.
func endsOtherwise(n *syntax.CallExpr) bool {
	return len(n.Args) == 2 && n.Args[0].Lit() == "exit" && (n.Args[1].Lit() == "0" || n.Args[1].Lit() == "2")
}
