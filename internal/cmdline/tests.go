package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// testPrograms are programs for which exit code 1 only means a negative answer. If they fail, they exit
// with another code or print a message to stderr.
var testPrograms = []string{"grep", "egrep", "fgrep", "rg", "test", "[", "jq", "echo", "printf", "cat", "head", "tail", "cut", "tr", "true", ":"}

// OnlyTests reports whether a script that printed no message and exited with 1 did so because of a
// negative test, such as a grep without matches. It must consist of programs that distinguish that
// from a failure, and must not hide messages.
func OnlyTests(text string) bool {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	tests := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			tests = tests && (len(n.Args) == 0 || slices.Contains(testPrograms, n.Args[0].Lit()) || exitsOtherwise(n))
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

// exitsOtherwise reports whether a call is an exit with 0 or 2, and so never the cause of exit code 1.
func exitsOtherwise(n *syntax.CallExpr) bool {
	return len(n.Args) == 2 && n.Args[0].Lit() == "exit" && (n.Args[1].Lit() == "0" || n.Args[1].Lit() == "2")
}
