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
			p.none("it has an expansion that eca does not print")
		}
		return p.inSubstitution("$(", part.Stmts)
	case *syntax.ProcSubst:
		p.bashOnly("<( )")
		return p.inSubstitution(part.Op.String(), part.Stmts)
	case *syntax.ArithmExp:
		return p.inText(func() {
			p.str("$(( ")
			p.arithm(part.X)
			p.str(" ))")
		})
	}
	p.none("it has an expansion that eca does not print")
	return ""
}

// inSubstitution returns the printed commands of a substitution.
func (p *printer) inSubstitution(open string, stmts []*syntax.Stmt) string {
	p.substitutions++
	defer func() { p.substitutions-- }()
	return p.inText(func() { p.apart(func() { p.body(open, stmts, ")") }) })
}

// inText returns the text that a function prints.
func (p *printer) inText(print func()) string {
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
		p.none("it has an expansion that eca does not print")
		return ""
	}
	name := e.Param.Value
	if name == "_" || !isName(name) && strings.Trim(name, "0123456789") != "" && name != "?" && name != "$" && name != "!" && name != "#" {
		p.none("it uses $" + name)
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
			p.none("it has an index that eca does not print")
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
		p.none("it has an expansion that eca does not print")
	}
	word := ""
	if e.Exp.Word != nil {
		var ok bool
		if word, ok = soleLit(e.Exp.Word.Parts); !ok || !plainOperand(word) {
			p.none("it has an expansion that eca does not print")
		}
	}
	return "${" + name + e.Exp.Op.String() + word + "}"
}

// arithm prints an arithmetic expression of numbers and variables.
func (p *printer) arithm(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		p.arithm(x.X)
		p.str(" " + x.Op.String() + " ")
		p.arithm(x.Y)
	case *syntax.UnaryArithm:
		if x.Post {
			p.arithm(x.X)
			p.str(x.Op.String())
			return
		}
		p.str(x.Op.String())
		p.arithm(x.X)
	case *syntax.ParenArithm:
		p.str("(")
		p.arithm(x.X)
		p.str(")")
	case *syntax.Word:
		if len(x.Parts) == 1 {
			switch part := x.Parts[0].(type) {
			case *syntax.Lit:
				if isName("a" + part.Value) {
					p.str(part.Value)
					return
				}
			case *syntax.ParamExp, *syntax.CmdSubst, *syntax.ArithmExp:
				p.str(p.expansion(part))
				return
			}
		}
		p.none("it has an arithmetic expression that eca does not print")
	default:
		p.none("it has an arithmetic expression that eca does not print")
	}
}

// test prints a condition of [[ ]].
func (p *printer) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		p.str(p.join(p.tilde(p.pieces(x, aValue), false)))
	case *syntax.ParenTest:
		p.str("( ")
		p.test(x.X)
		p.str(" )")
	case *syntax.UnaryTest:
		p.str(x.Op.String() + " ")
		p.test(x.X)
	case *syntax.BinaryTest:
		p.test(x.X)
		p.str(" " + x.Op.String() + " ")
		word, isWord := x.Y.(*syntax.Word)
		switch {
		case x.Op == syntax.TsReMatch:
			p.none("it matches a regular expression")
		case isWord && (x.Op == syntax.TsMatch || x.Op == syntax.TsNoMatch || x.Op == syntax.TsMatchShort):
			p.str(p.pattern(word))
		default:
			p.test(x.Y)
		}
	default:
		p.none("it has a condition that eca does not print")
	}
}
