package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call prints a simple command.
func (p *printer) call(c *syntax.CallExpr) {
	sep := ""
	p.onlyLiterals = p.onlyLiterals && len(c.Assigns) == 0
	for _, a := range c.Assigns {
		p.write(sep)
		p.assign(a)
		sep = " "
	}
	command := ""
	if len(c.Args) > 0 {
		command = c.Args[0].Lit()
	}
	named := false
	for i, w := range c.Args {
		p.nameIsNext = !named
		if i > 0 {
			sep = " "
		}
		p.words(w, command, sep)
		named = named || !p.mayVanish
	}
	p.filesChanged = p.filesChanged || slices.Contains(p.changingCalls, c)
	switch command {
	case "cd", "pushd", "popd", "builtin", "command", "eval", "exit", "return", "source", ".":
		if command == "exit" || command == "return" {
			return
		}
		p.folderChanges++
		to := ""
		if command == "cd" && len(c.Args) == 2 {
			to = constant(c.Args[1])
		}
		p.dir = p.folderAfterCd(to)
	}
}

// folderAfterCd returns the folder that cd changes to; empty if it is not known.
func (p *printer) folderAfterCd(to string) string {
	switch {
	case p.dir == "" || to == "" || to[0] == '-' || to[0] == '~' || strings.Contains(to, ".."):
		return ""
	case to[0] == '/':
		return to
	}
	return strings.TrimSuffix(p.dir, "/") + "/" + to
}

// constant returns the value of a word without expansions; empty for other words.
func constant(w *syntax.Word) string {
	if text, ok := literal(w); ok {
		return text
	}
	return ""
}

func singleLiteral(parts []syntax.WordPart) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	lit, ok := parts[0].(*syntax.Lit)
	if !ok {
		return "", false
	}
	return lit.Value, true
}

func (p *printer) assign(a *syntax.Assign) {
	if a.Naked && a.Name == nil { // an option of declare
		p.words(a.Value, "", " ")
		return
	}
	p.write(p.name(a.Name))
	if a.Naked {
		return
	}
	if a.Index != nil {
		p.bashOnly("arrays")
		p.write("[")
		p.arithm(a.Index)
		p.write("]")
	}
	if a.Append {
		p.bashOnly("+=")
		p.write("+")
	}
	p.write("=")
	switch {
	case a.Array != nil:
		p.bashOnly("arrays")
		p.write("(")
		for _, e := range a.Array.Elems {
			if e.Index != nil {
				p.refuse("it has a list with indexes")
				return
			}
			p.words(e.Value, "", " ")
		}
		p.write(" )")
	case a.Value != nil:
		p.write(p.join(p.assignedValue(a.Value)))
	}
}

func (p *printer) declaration(d *syntax.DeclClause) {
	if v := d.Variant.Value; v != "export" && v != "readonly" {
		p.bashOnly(v)
	}
	p.filesChanged = true
	p.write(d.Variant.Value)
	for _, a := range d.Args {
		if !a.Naked || a.Name != nil {
			p.write(" ")
		}
		p.assign(a)
	}
}

func (p *printer) redirect(r *syntax.Redirect) {
	p.onlyLiterals = p.onlyLiterals && (r.Op == syntax.DplIn || r.Op == syntax.DplOut)
	if r.N != nil {
		if strings.Trim(r.N.Value, "0123456789") != "" {
			p.refuse("a redirection sets a variable")
			return
		}
		p.write(r.N.Value)
	}
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		p.document(r)
	case syntax.WordHdoc:
		p.bashOnly("<<<")
		p.write("<<< ")
		if n := p.nested[r.Word]; n != nil {
			p.write(p.program(n))
			return
		}
		p.write(p.join(p.assignedValue(r.Word)))
	case syntax.DplIn, syntax.DplOut:
		to, ok := singleLiteral(r.Word.Parts)
		if ok && to != "" && strings.Trim(strings.TrimSuffix(to, "-"), "0123456789") == "" {
			p.write(r.Op.String() + to)
			return
		}
		p.onlyLiterals = false
		if r.N != nil || r.Op == syntax.DplIn {
			p.refuse("a redirection's descriptor is computed")
			return
		}
		p.bashOnly(">& with a file")
		p.file("> ", r)
		p.write(" 2>&1")
	case syntax.RdrAll, syntax.AppAll: // older shells parse them differently
		p.bashOnly(r.Op.String())
		op := "> "
		if r.Op == syntax.AppAll {
			op = ">> "
		}
		p.file(op, r)
		p.write(" 2>&1")
	case syntax.RdrOut, syntax.AppOut, syntax.RdrIn, syntax.RdrInOut, syntax.RdrClob:
		p.file(r.Op.String()+" ", r)
	default:
		p.refuse("it has a redirection that eca does not print")
	}
}

// file prints the name of a redirection's file.
func (p *printer) file(op string, r *syntax.Redirect) {
	p.write(op + p.join(p.plainWord(r.Word)))
	if r.Op != syntax.RdrIn && constant(r.Word) != "/dev/null" {
		p.filesChanged = true
	}
}

// document prints a here-document as a here-string, which has no delimiter that could end it
// early. Older shells also misread here-documents in substitutions.
func (p *printer) document(r *syntax.Redirect) {
	p.bashOnly("here-documents")
	if n := p.nested[r.Word]; n != nil {
		p.write("<<< " + p.program(n))
		return
	}
	pieces, ok := p.documentText(r)
	switch {
	case !ok:
	case len(pieces) == 0:
		p.write("< '/dev/null'")
	default:
		p.write("<<< " + p.join(pieces))
	}
}

// program prints a nested program as a quoted word.
func (p *printer) program(n *nestedText) string {
	inner := &printer{Form: p.Form, tree: p.tree, line: 1, posix: p.posix || n.posix, filesChanged: true}
	stmts := n.stmts
	if n.script {
		// A shell reads a program from standard input while it runs it, and its commands may
		// read from there, too. It reads a group completely before it runs any of it.
		if block, ok := group(stmts); ok {
			stmts = block
		}
		inner.body("{", stmts, "}")
	} else {
		inner.stmts(stmts)
	}
	if inner.why != "" {
		p.refuse(inner.why)
	}
	text := inner.out.String()
	p.line += strings.Count(text, "\n")
	return p.quote(text)
}

// group returns the statements in the braces of a program that is a single group.
func group(stmts []*syntax.Stmt) ([]*syntax.Stmt, bool) {
	if len(stmts) != 1 || len(stmts[0].Redirs) > 0 || stmts[0].Negated || stmts[0].Background {
		return nil, false
	}
	block, ok := stmts[0].Cmd.(*syntax.Block)
	if !ok {
		return nil, false
	}
	return block.Stmts, true
}
