package hooks

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/seed-dec29ce4/eca/internal/regular"
)

// sayNo are programs that end with 1 only to say no, and with another code or a message on
// stderr if they fail.
var sayNo = []string{"grep", "egrep", "fgrep", "rg", "test", "[", "jq", "echo", "printf", "cat", "head", "tail", "cut", "tr", "true", ":"}

// foundNothing says whether a script ended with 1 because a test in it said no, as
// `grep -q secret && echo '{...}'` does without a match, and not because it failed: it was
// silent, it is made only of programs that tell the two apart, and it hides no messages.
func foundNothing(a action, root string, r ran) bool {
	if !r.ran || r.problem != "" || r.status != 1 || !r.whole || r.stdout != "" || r.stderr != "" {
		return false
	}
	text := a.Shell
	if a.File != "" {
		data, err := regular.Read(scriptPath(a.File, root), maxOutput)
		if err != nil {
			return false
		}
		text = string(data)
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false
	}
	tests := true
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			tests = tests && (len(n.Args) == 0 || slices.Contains(sayNo, n.Args[0].Lit()))
		case *syntax.FuncDecl, *syntax.ProcSubst:
			tests = false
		case *syntax.Redirect:
			tests = tests && (n.Op == syntax.RdrIn || n.Op == syntax.WordHdoc || (n.Op == syntax.RdrOut && n.N == nil))
		case *syntax.BinaryCmd:
			tests = tests && n.Op != syntax.PipeAll
		}
		return tests
	})
	return tests
}
