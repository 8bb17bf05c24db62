package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// test lists a [[ ]] that only compares texts and tests files. ok is false for other conditions.
func (w *walker) test(cmd *syntax.TestClause, depth int) (ok bool) {
	before := len(w.out.Commands)
	listed := Command{Name: "[[", Text: w.source(cmd), Source: w.source(cmd), Effect: Reads}
	operand := func(x syntax.TestExpr, file bool) bool {
		from, isWord := x.(*syntax.Word)
		if !isWord {
			return false
		}
		value := w.word(from, depth)
		listed.Args = append(listed.Args, value.text)
		switch {
		case !file:
		case value.known:
			listed.Paths = append(listed.Paths, Path{Name: value.text})
		case value.possible == nil || value.possible.data:
			listed.Paths = append(listed.Paths, Path{Name: "/", Anywhere: true})
		default:
			for _, name := range value.possible.values {
				listed.Paths = append(listed.Paths, Path{Name: name})
			}
		}
		return value.known || value.possible != nil
	}
	var known func(x syntax.TestExpr) bool
	known = func(x syntax.TestExpr) bool {
		switch x := x.(type) {
		case *syntax.Word:
			return operand(x, false)
		case *syntax.ParenTest:
			return known(x.X)
		case *syntax.UnaryTest:
			switch x.Op {
			case syntax.TsNot:
				return known(x.X)
			case syntax.TsEmpStr, syntax.TsNempStr:
				return operand(x.X, false)
			case syntax.TsExists, syntax.TsRegFile, syntax.TsDirect, syntax.TsSmbLink, syntax.TsRead, syntax.TsWrite, syntax.TsExec, syntax.TsNoEmpty:
				return operand(x.X, true)
			}
		case *syntax.BinaryTest:
			switch x.Op {
			case syntax.AndTest, syntax.OrTest:
				return known(x.X) && known(x.Y)
			case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsBefore, syntax.TsAfter:
				return operand(x.X, false) && operand(x.Y, false)
			case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
				return operand(x.X, true) && operand(x.Y, true)
			}
		}
		return false // the others evaluate a text as an expression, or test a variable
	}
	if !known(cmd.X) {
		w.out.Commands = w.out.Commands[:before]
		return false
	}
	w.add(listed)
	return true
}

// isOperand reports whether argument i of test is an operand of one of the operators, whatever its
// value is. Elsewhere it might become an operator itself, and -v evaluates its operand.
func isOperand(name string, args []word, i int, operators ...string) bool {
	switch {
	case args[i].possible.splits:
		return false
	case name == "[" && args[len(args)-1].text == "]":
		args = args[:len(args)-1]
	case name != "test":
		return false
	}
	if len(args) == 3 && args[0].known && args[0].text == "!" {
		args, i = args[1:], i-1
	}
	at := len(args) - 2 // index of the operator
	if len(args) < 2 || len(args) > 3 || i == at || !args[at].known || !slices.Contains(operators, args[at].text) {
		return false
	}
	unary := strings.Contains("-n -z -e -f -d -h -L -r -w -x -s", args[at].text)
	return unary == (at == 0)
}
