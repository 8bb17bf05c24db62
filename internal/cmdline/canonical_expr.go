package cmdline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expansion prints an expansion: a variable, a substitution or an arithmetic expression.
func (p *printer) expansion(part syntax.WordPart) string {
	switch part := part.(type) {
	case *syntax.ParamExp:
		return p.parameter(part)
	case *syntax.CmdSubst:
		if part.TempFile || part.ReplyVar {
			p.refuse("it has an expansion that eca does not print")
		}
		return p.substitution("$(", part.Stmts)
	case *syntax.ProcSubst:
		p.bashOnly("<( )")
		return p.substitution(part.Op.String(), part.Stmts)
	case *syntax.ArithmExp:
		return p.capture(func() {
			p.write("$(( ")
			p.arithm(part.X)
			p.write(" ))")
		})
	}
	p.refuse("it has an expansion that eca does not print")
	return ""
}

// substitution returns the printed commands of a substitution.
func (p *printer) substitution(open string, stmts []*syntax.Stmt) string {
	p.substitutions++
	defer func() { p.substitutions-- }()
	return p.capture(func() { p.withOwnFolder(func() { p.body(open, stmts, ")") }) })
}

// capture returns the text that a function prints.
func (p *printer) capture(print func()) string {
	outer := p.out
	p.out = strings.Builder{}
	print()
	text := p.out.String()
	p.out = outer
	return text
}

// parameter prints an expansion of a variable. Text after an operator is printed only if it is
// plain, because shells treat quotes there differently.
func (p *printer) parameter(e *syntax.ParamExp) string {
	if e.Param == nil || e.Flags != nil || e.NestedParam != nil || len(e.Modifiers) > 0 || e.Slice != nil || e.Repl != nil || e.Names != 0 || e.Excl || e.Width || e.IsSet {
		p.refuse("it has an expansion that eca does not print")
		return ""
	}
	name := e.Param.Value
	if name == "_" || !isName(name) && strings.Trim(name, "0123456789") != "" && name != "?" && name != "$" && name != "!" && name != "#" {
		p.refuse("it uses $" + name)
		return ""
	}
	if name == "?" { // shells differ after a failed redirection, and after a substitution
		p.bashOnly("$?")
	}
	if e.Index != nil {
		p.bashOnly("arrays")
		index := ""
		if w, ok := e.Index.(*syntax.Word); ok {
			index = w.Lit()
		}
		if index != "@" && !isName(index) && (index == "" || strings.Trim(index, "0123456789") != "") {
			p.refuse("it has an index that eca does not print")
			return ""
		}
		name += "[" + index + "]"
	}
	switch {
	case e.Length:
		return "${#" + name + "}"
	case e.Exp == nil:
		return "${" + name + "}"
	case e.Exp.Op == syntax.OtherParamOps || e.Exp.Op >= syntax.UpperFirst && e.Exp.Op <= syntax.LowerAll:
		p.refuse("it has an expansion that eca does not print")
	}
	word := ""
	if e.Exp.Word != nil {
		var ok bool
		if word, ok = singleLiteral(e.Exp.Word.Parts); !ok || !plainOperand(word) {
			p.refuse("it has an expansion that eca does not print")
		}
	}
	return "${" + name + e.Exp.Op.String() + word + "}"
}

// arithm prints an arithmetic expression of numbers and variables.
func (p *printer) arithm(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		p.arithm(x.X)
		p.write(" " + x.Op.String() + " ")
		p.arithm(x.Y)
	case *syntax.UnaryArithm:
		if x.Post {
			p.arithm(x.X)
			p.write(x.Op.String())
			return
		}
		p.write(x.Op.String())
		p.arithm(x.X)
	case *syntax.ParenArithm:
		p.write("(")
		p.arithm(x.X)
		p.write(")")
	case *syntax.Word:
		if len(x.Parts) == 1 {
			switch part := x.Parts[0].(type) {
			case *syntax.Lit:
				if isName("a" + part.Value) {
					p.write(part.Value)
					return
				}
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
				p.write(p.expansion(part))
				return
			}
		}
		p.refuse("it has an arithmetic expression that eca does not print")
	default:
		p.refuse("it has an arithmetic expression that eca does not print")
	}
}

// test prints a condition of [[ ]].
func (p *printer) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		p.write(p.join(p.tilde(p.pieces(x, valueWord), false)))
	case *syntax.ParenTest:
		p.write("( ")
		p.test(x.X)
		p.write(" )")
	case *syntax.UnaryTest:
		p.write(x.Op.String() + " ")
		p.test(x.X)
	case *syntax.BinaryTest:
		p.test(x.X)
		p.write(" " + x.Op.String() + " ")
		word, isWord := x.Y.(*syntax.Word)
		switch {
		case x.Op == syntax.TsReMatch:
			p.refuse("it matches a regular expression")
		case isWord && (x.Op == syntax.TsMatch || x.Op == syntax.TsNoMatch || x.Op == syntax.TsMatchShort):
			p.write(p.pattern(word))
		default:
			p.test(x.Y)
		}
	default:
		p.refuse("it has a condition that eca does not print")
	}
}
