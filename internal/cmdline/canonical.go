package cmdline

import (
	"slices"
	"strings"
	"sync/atomic"

	"mvdan.cc/sh/v3/syntax"
)

// Form says how a program is printed.
type Form struct {
	Home string // stands for ~; empty: a program with ~ has no canonical form
	Dir  string // where the program starts, absolute

	// Glob returns the names that a pattern matches in a folder, as bash would list them. In
	// the pattern, * ? and [ ] are special unless a backslash precedes them. ok is false if
	// there are too many to list. A nil Glob leaves all patterns to the shell.
	Glob func(dir, pattern string) (names []string, ok bool)
}

// tree is what a program was judged by.
type tree struct {
	stmts  []*syntax.Stmt
	nested map[*syntax.Word]*nestedText
	acts   map[*syntax.CallExpr]bool // calls that may do more than read
	source string

	options map[*syntax.Word]string // printed instead of others

	unprintable string // why there is no canonical form, whatever its words are

	parser atomic.Pointer[syntax.Parser] // that made it, to be used again: it has large buffers
}

// act notes that a call may do more than read.
func (t *tree) act(c *syntax.CallExpr) {
	if t.acts == nil {
		t.acts = map[*syntax.CallExpr]bool{}
	}
	t.acts[c] = true
}

// replaceOption has another option printed.
func (t *tree) replaceOption(w *syntax.Word, option string) {
	if t.options == nil {
		t.options = map[*syntax.Word]string{}
	}
	t.options[w] = option
}

// nestedText is a word that is itself a program: the text of sh -c, or what a shell reads.
type nestedText struct {
	stmts  []*syntax.Stmt
	posix  bool // for a shell that may know less than bash
	script bool // read as input, a line at a time
}

// Canonical prints the program from the syntax tree that it was judged by: words quoted,
// comments gone, ~, braces and globs expanded where that can be done, here-documents as
// here-strings. bash therefore runs what was judged, however the text was written. Programs
// in arguments (sh -c, eval) are printed in the same way.
//
// judged is the canonical text, judged again: it runs the same commands, but the words that
// were expanded are known. Statements keep their lines, so that the shell reports the same
// line numbers. why says why there is no canonical form; it is empty if there is one.
func (p Program) Canonical(f Form) (text string, judged Program, why string) {
	if p.tree == nil {
		return "", Program{}, p.Unresolved
	}
	if text, why = p.tree.print(f); why != "" {
		return "", Program{}, why
	}
	parser := p.tree.parser.Swap(nil)
	if parser == nil {
		parser = syntax.NewParser(syntax.Variant(syntax.LangBash))
	}
	judged = parse(text, parser)
	const differs = "its printed form would not be read as it was judged"
	if judged.tree == nil || judged.TwoReadings != "" || p.Unresolved == "" && judged.Unresolved != "" || !sameCommands(p, judged) {
		return "", Program{}, differs
	}
	f.Glob = nil // what is still a pattern stays one
	if again, why := judged.tree.print(f); why != "" || again != text {
		return "", Program{}, differs
	}
	return text, judged, ""
}

// sameCommands says whether two programs run the same commands.
func sameCommands(a, b Program) bool {
	return slices.EqualFunc(a.Commands, b.Commands, func(x, y Command) bool { return x.Name == y.Name || x.Effect != Reads && y.Effect != Reads })
}

func (t *tree) print(f Form) (text, why string) {
	p := &printer{Form: f, tree: t, line: 1, dir: f.Dir, why: t.unprintable}
	p.out.Grow(2 * len(t.source)) //nolint:mnd // quotes, mostly
	p.stmts(t.stmts)
	return p.out.String(), p.why
}

// printer prints a syntax tree. Text is written through out; line is the number of the line that out
// has reached. It has more than 40 methods because each kind of node is printed by its own.
type printer struct {
	Form
	*tree
	out  strings.Builder
	line int
	why  string // the first reason why there is no form

	posix bool                  // for a shell that may know less than bash
	errs  map[*syntax.Stmt]bool // whose standard error follows their output into a pipe
	dir   string                // where globs are expanded; empty: not known
	moves int                   // commands so far that change the folder

	substitutions int // around what is printed

	first      bool // word of a command
	vanishes   bool // the last word may come to nothing, so that the next is the first
	inDocument bool // whose lines are not those of the text any more
	acted      bool // a command before this one may have changed what globs match
}

func (p *printer) none(why string) {
	if p.why == "" {
		p.why = why
	}
}

func (p *printer) str(s string) { p.out.WriteString(s) }

// next goes to the line of a statement, or writes sep if it is on this one.
func (p *printer) next(s *syntax.Stmt, sep string) {
	line := int(s.Pos().Line())
	if line <= p.line || p.inDocument {
		p.str(sep)
		return
	}
	for ; p.line < line; p.line++ {
		p.str("\n")
	}
}

func (p *printer) stmts(list []*syntax.Stmt) {
	for i, s := range list {
		switch {
		case i == 0:
			p.next(s, "")
		case list[i-1].Background:
			p.next(s, " ")
		default:
			p.next(s, "; ")
		}
		p.stmt(s)
	}
}

// body prints the statements between two words of a compound command.
func (p *printer) body(open string, list []*syntax.Stmt, end string) {
	p.str(open)
	if len(list) > 0 {
		p.next(list[0], " ")
	}
	p.stmts(list)
	if len(list) == 0 || list[len(list)-1].Background || end == ")" {
		p.str(" " + end)
		return
	}
	p.str("; " + end)
}

func (p *printer) stmt(s *syntax.Stmt) {
	if p.why != "" {
		return
	}
	if s.Coprocess || s.Disown {
		p.none("it starts a coprocess")
	}
	if s.Negated {
		p.str("! ")
	}
	merge := p.errs[s]
	empty := p.command(s.Cmd)
	for _, r := range s.Redirs {
		if !empty {
			p.str(" ")
		}
		p.redirect(r)
		empty = false
	}
	if merge {
		p.str(" 2>&1")
	}
	if s.Background {
		p.str(" &")
	}
	if _, timed := s.Cmd.(*syntax.TimeClause); timed && len(s.Redirs) > 0 {
		p.none("it redirects what time prints")
	}
}

// command prints a command; empty says that it has none.
func (p *printer) command(cmd syntax.Command) (empty bool) {
	switch cmd := cmd.(type) {
	case nil:
		return true
	case *syntax.CallExpr:
		p.call(cmd)
	case *syntax.BinaryCmd:
		p.binary(cmd)
	case *syntax.Subshell:
		p.apart(func() { p.body("(", cmd.Stmts, ")") })
	case *syntax.Block:
		p.body("{", cmd.Stmts, "}")
	case *syntax.IfClause:
		p.branch(func() { p.ifClause(cmd) })
	case *syntax.WhileClause:
		word := "while"
		if cmd.Until {
			word = "until"
		}
		p.loop(func() {
			p.body(word, cmd.Cond, "do")
			p.rest(cmd.Do, "done")
		})
	case *syntax.ForClause:
		p.forClause(cmd)
	case *syntax.CaseClause:
		p.branch(func() { p.caseClause(cmd) })
	case *syntax.TimeClause:
		if p.posix {
			p.none("sh takes time for a program")
		}
		p.str("time")
		if cmd.PosixFormat {
			p.str(" -p")
		}
		if cmd.Stmt != nil {
			p.str(" ")
			p.stmt(cmd.Stmt)
		}
	case *syntax.FuncDecl:
		p.function(cmd)
	case *syntax.DeclClause:
		p.declaration(cmd)
	case *syntax.TestClause:
		p.bashOnly("[[ ]]")
		p.str("[[ ")
		p.test(cmd.X)
		p.str(" ]]")
	case *syntax.ArithmCmd:
		p.bashOnly("(( ))")
		p.str("(( ")
		p.arithm(cmd.X)
		p.str(" ))")
	default:
		p.none("it has a construct that eca does not print")
	}
	return false
}

// bashOnly refuses what sh need not know.
func (p *printer) bashOnly(what string) {
	if p.posix {
		p.none("sh need not read " + what + " as bash does")
	}
}

// rest prints the statements up to a word, after the word that precedes them.
func (p *printer) rest(list []*syntax.Stmt, end string) { p.body("", list, end) }

func (p *printer) binary(cmd *syntax.BinaryCmd) {
	before, moves := p.dir, p.moves
	op := cmd.Op
	pipe := op == syntax.Pipe || op == syntax.PipeAll
	if op == syntax.PipeAll { // older shells read it as something else
		last := cmd.X
		for {
			inner, ok := last.Cmd.(*syntax.BinaryCmd)
			if !ok || inner.Op != syntax.Pipe && inner.Op != syntax.PipeAll {
				break
			}
			last = inner.Y
		}
		if p.errs == nil {
			p.errs = map[*syntax.Stmt]bool{}
		}
		p.errs[last], op = true, syntax.Pipe
	}
	p.stmt(cmd.X)
	p.str(" " + op.String())
	p.next(cmd.Y, " ")
	reached := p.dir
	switch {
	case pipe:
		p.dir = before
	case op == syntax.OrStmt && p.moves != moves: // it did not move, or not as far
		p.dir = ""
	}
	moves = p.moves
	p.stmt(cmd.Y)
	switch {
	case pipe:
		p.dir = before
	case p.moves != moves: // perhaps
		p.dir = ""
	case op == syntax.OrStmt:
		p.dir = reached
	}
}

// apart prints what runs in a shell of its own, or not before what follows.
func (p *printer) apart(print func()) {
	dir := p.dir
	print()
	p.dir = dir
}

// branch prints what runs in part only.
func (p *printer) branch(print func()) {
	moves := p.moves
	print()
	if p.moves != moves {
		p.dir = ""
	}
}

// loop prints what runs more than once: what its end changes, its beginning meets.
func (p *printer) loop(print func()) {
	p.acted = p.acted || len(p.acts) > 0 || strings.ContainsAny(p.source, ">")
	if strings.Contains(p.source, "cd") {
		p.dir = ""
	}
	p.branch(print)
}

func (p *printer) ifClause(c *syntax.IfClause) {
	p.body("if", c.Cond, "then")
	for {
		switch next := c.Else; {
		case next == nil:
			p.rest(c.Then, "fi")
			return
		case len(next.Cond) == 0:
			p.apart(func() { p.rest(c.Then, "else") })
			p.rest(next.Then, "fi")
			return
		default:
			p.apart(func() { p.rest(c.Then, "elif") })
			p.rest(next.Cond, "then")
			c = next
		}
	}
}

func (p *printer) forClause(c *syntax.ForClause) {
	if c.Select {
		p.none("it asks for a choice")
	}
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		p.str("for " + p.name(loop.Name))
		if loop.InPos.IsValid() {
			p.str(" in")
			for _, w := range loop.Items {
				p.words(w, "", " ")
			}
		}
	case *syntax.CStyleLoop:
		p.bashOnly("for (( ))")
		p.str("for (( ")
		for i, x := range []syntax.ArithmExpr{loop.Init, loop.Cond, loop.Post} {
			if i > 0 {
				p.str("; ")
			}
			if x != nil {
				p.arithm(x)
			}
		}
		p.str(" ))")
	default:
		p.none("it has a loop that eca does not print")
	}
	p.loop(func() { p.body("; do", c.Do, "done") })
}

func (p *printer) caseClause(c *syntax.CaseClause) {
	p.str("case " + p.join(p.plainWord(c.Word)) + " in")
	for _, item := range c.Items {
		p.str(" (")
		for i, pattern := range item.Patterns {
			if i > 0 {
				p.str(" | ")
			}
			p.str(p.pattern(pattern))
		}
		p.str(")")
		if len(item.Stmts) > 0 {
			p.next(item.Stmts[0], " ")
			moves, dir := p.moves, p.dir
			p.stmts(item.Stmts)
			if p.dir = dir; item.Op != syntax.Break && p.moves != moves { // the next ones may run there
				p.dir = ""
			}
		}
		if item.Op != syntax.Break {
			p.bashOnly(item.Op.String())
		}
		p.str(" " + item.Op.String())
	}
	p.str(" esac")
}

func (p *printer) function(f *syntax.FuncDecl) {
	if f.Name == nil {
		p.none("it defines a function without a name")
		return
	}
	p.acted = true
	p.dir = ""
	p.str(p.name(f.Name) + " () ")
	p.stmt(f.Body)
}

// name returns the name of a variable or a function.
func (p *printer) name(l *syntax.Lit) string {
	if l == nil || !isName(l.Value) {
		p.none("it has a name that eca does not print")
		return ""
	}
	return l.Value
}

func isName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}) < 0 && (s[0] < '0' || s[0] > '9')
}
