package cmdline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Form configures how a program is printed.
type Form struct {
	Home string // replaces ~; if empty, a program with ~ has no canonical form
	Dir  string // absolute working directory of the program

	// Glob returns the names that a pattern matches in a folder, as bash would list them. In
	// the pattern, * ? and [ ] are special unless a backslash precedes them. ok is false if
	// there are too many to list. A nil Glob leaves all patterns to the shell.
	Glob func(dir, pattern string) (names []string, ok bool)
}

// tree is the syntax tree from which a program was judged.
type tree struct {
	stmts         []*syntax.Stmt
	nested        map[*syntax.Word]*nestedText
	changingCalls []*syntax.CallExpr // calls that may do more than read
	source        string

	assessed []*assessment // of its commands, in order

	options map[*syntax.Word]string // options that are printed in place of a word

	unprintable string // why there is no canonical form, whatever Form is

	parsers *Parser
}

// replaceOption makes the printer print another option in place of a word.
func (t *tree) replaceOption(w *syntax.Word, option string) {
	if t.options == nil {
		t.options = map[*syntax.Word]string{}
	}
	t.options[w] = option
}

// nestedText is a word that is a program: the argument of sh -c, or standard input of a shell.
type nestedText struct {
	stmts  []*syntax.Stmt
	posix  bool // the shell may lack features of bash
	script bool // the shell reads it from standard input, line by line
}

// Canonical prints the program from the syntax tree that it was judged by: words are quoted,
// comments are removed, ~, braces and globs are expanded where possible, and here-documents become
// here-strings. bash therefore runs what was judged, however the text was written. Programs in
// arguments (sh -c, eval) are printed in the same way.
//
// judged is the result of parsing the canonical text. It runs the same commands, with the expanded
// words as arguments. A program of literal words in lists and pipes is not parsed again: its canonical
// form only has other quotes, so judged is p itself. Statements keep their line numbers, for the
// messages of the shell. If there is no canonical form, text is empty and why is the reason.
func (p Program) Canonical(f Form) (text string, judged Program, why string) {
	if p.tree == nil {
		return "", Program{}, p.Unresolved
	}
	text, plain, why := p.tree.print(f)
	if why != "" {
		return "", Program{}, why
	}
	if plain && p.allKnown() {
		return text, p, ""
	}
	return p.reparse(text, f)
}

// allKnown reports whether all commands of a program and their arguments are known.
func (p Program) allKnown() bool { return p.Unresolved == "" && p.Computed == "" && !p.Expands }

// reparse parses a canonical form and compares it with the program that it was printed from.
func (p Program) reparse(text string, f Form) (canonical string, judged Program, why string) {
	judged = p.tree.parsers.parse(text, p.tree.assessed)
	const differs = "bash would read its canonical form differently"
	if judged.tree == nil || judged.TwoReadings != "" || p.Unresolved == "" && judged.Unresolved != "" || !sameCommands(p, judged) {
		return "", Program{}, differs
	}
	f.Glob = nil // globs that were not expanded stay
	if again, _, why := judged.tree.print(f); why != "" || again != text {
		return "", Program{}, differs
	}
	return text, judged, ""
}

// sameCommands reports whether two programs run the same commands.
func sameCommands(a, b Program) bool {
	if len(a.Commands) != len(b.Commands) {
		return false
	}
	for i := range a.Commands {
		if x, y := &a.Commands[i], &b.Commands[i]; x.Name != y.Name && (x.Effect == Reads || y.Effect == Reads) {
			return false
		}
	}
	return true
}

// print prints the tree. plain is true if it consists of commands of literal words in lists and pipes.
func (t *tree) print(f Form) (text string, plain bool, why string) {
	p := &printer{Form: f, tree: t, line: 1, dir: f.Dir, why: t.unprintable, onlyLiterals: true}
	p.out.Grow(2 * len(t.source)) //nolint:mnd // quotes, mostly
	p.stmts(t.stmts)
	return p.out.String(), p.onlyLiterals, p.why
}

// printer prints a syntax tree to out; line is the line number that out has reached. It has more
// than 40 methods because each kind of node has its own.
type printer struct {
	Form
	*tree
	out  strings.Builder
	line int
	why  string // the first reason why there is no canonical form

	posix         bool                  // print for a shell that may lack features of bash
	errs          map[*syntax.Stmt]bool // statements whose standard error goes to the pipe, too (|&)
	dir           string                // current folder, where globs are expanded; empty if not known
	folderChanges int                   // number of commands so far that change the folder

	substitutions int // number of substitutions around the current node

	nameIsNext   bool // the next word is the name of a command
	mayVanish    bool // the last word may expand to nothing, so that the next one is the name
	inDocument   bool // in a here-document, whose lines are not printed as lines
	filesChanged bool // an earlier command may have changed what globs match
	onlyLiterals bool // so far, there are only commands of literal words in lists and pipes
}

func (p *printer) refuse(why string) {
	if p.why == "" {
		p.why = why
	}
}

func (p *printer) write(s string) { p.out.WriteString(s) }

// next advances to the line of a statement, or writes sep if it is on the current line.
func (p *printer) next(s *syntax.Stmt, sep string) {
	line := int(s.Pos().Line())
	if line <= p.line || p.inDocument {
		p.write(sep)
		return
	}
	for ; p.line < line; p.line++ {
		p.write("\n")
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
	p.write(open)
	if len(list) > 0 {
		p.next(list[0], " ")
	}
	p.stmts(list)
	if len(list) == 0 || list[len(list)-1].Background || end == ")" {
		p.write(" " + end)
		return
	}
	p.write("; " + end)
}

func (p *printer) stmt(s *syntax.Stmt) {
	if p.why != "" {
		return
	}
	if s.Coprocess || s.Disown {
		p.refuse("it starts a coprocess")
	}
	if s.Negated {
		p.write("! ")
	}
	merge := p.errs[s]
	p.onlyLiterals = p.onlyLiterals && !s.Negated && !s.Background && !merge
	empty := p.command(s.Cmd)
	for _, r := range s.Redirs {
		if !empty {
			p.write(" ")
		}
		p.redirect(r)
		empty = false
	}
	if merge {
		p.write(" 2>&1")
	}
	if s.Background {
		p.write(" &")
	}
	if _, timed := s.Cmd.(*syntax.TimeClause); timed && len(s.Redirs) > 0 {
		p.refuse("it redirects what time prints")
	}
}

// command prints a command. empty reports whether cmd is nil.
func (p *printer) command(cmd syntax.Command) (empty bool) {
	switch cmd.(type) {
	case *syntax.CallExpr, *syntax.BinaryCmd:
	default:
		p.onlyLiterals = false
	}
	switch cmd := cmd.(type) {
	case nil:
		return true
	case *syntax.CallExpr:
		p.call(cmd)
	case *syntax.BinaryCmd:
		p.binary(cmd)
	case *syntax.Subshell:
		p.withOwnFolder(func() { p.body("(", cmd.Stmts, ")") })
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
			p.refuse("sh takes time for a program")
		}
		p.write("time")
		if cmd.PosixFormat {
			p.write(" -p")
		}
		if cmd.Stmt != nil {
			p.write(" ")
			p.stmt(cmd.Stmt)
		}
	case *syntax.FuncDecl:
		p.function(cmd)
	case *syntax.DeclClause:
		p.declaration(cmd)
	case *syntax.TestClause:
		p.bashOnly("[[ ]]")
		p.write("[[ ")
		p.test(cmd.X)
		p.write(" ]]")
	case *syntax.ArithmCmd:
		p.bashOnly("(( ))")
		p.write("(( ")
		p.arithm(cmd.X)
		p.write(" ))")
	default:
		p.refuse("it has a construct that eca does not print")
	}
	return false
}

// bashOnly refuses a construct that sh need not support.
func (p *printer) bashOnly(what string) {
	if p.posix {
		p.refuse("sh need not read " + what + " as bash does")
	}
}

// rest prints statements and the keyword that ends them.
func (p *printer) rest(list []*syntax.Stmt, end string) { p.body("", list, end) }

func (p *printer) binary(cmd *syntax.BinaryCmd) {
	before, moves := p.dir, p.folderChanges
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
	p.write(" " + op.String())
	p.next(cmd.Y, " ")
	reached := p.dir
	switch {
	case pipe:
		p.dir = before
	case op == syntax.OrStmt && p.folderChanges != moves: // it is unknown whether the left side changed the folder before it failed
		p.dir = ""
	}
	moves = p.folderChanges
	p.stmt(cmd.Y)
	switch {
	case pipe:
		p.dir = before
	case p.folderChanges != moves: // it is unknown whether the right side ran
		p.dir = ""
	case op == syntax.OrStmt:
		p.dir = reached
	}
}

// withOwnFolder prints commands that do not change the folder of the following ones: a subshell, or a
// branch that runs in place of them.
func (p *printer) withOwnFolder(print func()) {
	dir := p.dir
	print()
	p.dir = dir
}

// branch prints a command of which only a part runs.
func (p *printer) branch(print func()) {
	moves := p.folderChanges
	print()
	if p.folderChanges != moves {
		p.dir = ""
	}
}

// loop prints a loop: what the end of its body changes affects the beginning of the next round.
func (p *printer) loop(print func()) {
	p.filesChanged = p.filesChanged || len(p.changingCalls) > 0 || strings.ContainsAny(p.source, ">")
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
			p.withOwnFolder(func() { p.rest(c.Then, "else") })
			p.rest(next.Then, "fi")
			return
		default:
			p.withOwnFolder(func() { p.rest(c.Then, "elif") })
			p.rest(next.Cond, "then")
			c = next
		}
	}
}

func (p *printer) forClause(c *syntax.ForClause) {
	if c.Select {
		p.refuse("it has a select")
	}
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		p.write("for " + p.name(loop.Name))
		if loop.InPos.IsValid() {
			p.write(" in")
			for _, w := range loop.Items {
				p.words(w, "", " ")
			}
		}
	case *syntax.CStyleLoop:
		p.bashOnly("for (( ))")
		p.write("for (( ")
		for i, x := range []syntax.ArithmExpr{loop.Init, loop.Cond, loop.Post} {
			if i > 0 {
				p.write("; ")
			}
			if x != nil {
				p.arithm(x)
			}
		}
		p.write(" ))")
	default:
		p.refuse("it has a loop that eca does not print")
	}
	p.loop(func() { p.body("; do", c.Do, "done") })
}

func (p *printer) caseClause(c *syntax.CaseClause) {
	p.write("case " + p.join(p.plainWord(c.Word)) + " in")
	for _, item := range c.Items {
		p.write(" (")
		for i, pattern := range item.Patterns {
			if i > 0 {
				p.write(" | ")
			}
			p.write(p.pattern(pattern))
		}
		p.write(")")
		if len(item.Stmts) > 0 {
			p.next(item.Stmts[0], " ")
			moves, dir := p.folderChanges, p.dir
			p.stmts(item.Stmts)
			if p.dir = dir; item.Op != syntax.Break && p.folderChanges != moves { // the next ones may run there
				p.dir = ""
			}
		}
		if item.Op != syntax.Break {
			p.bashOnly(item.Op.String())
		}
		p.write(" " + item.Op.String())
	}
	p.write(" esac")
}

func (p *printer) function(f *syntax.FuncDecl) {
	if f.Name == nil {
		p.refuse("it defines a function without a name")
		return
	}
	p.filesChanged = true
	p.dir = ""
	p.write(p.name(f.Name) + " () ")
	p.stmt(f.Body)
}

// name returns the name of a variable or a function.
func (p *printer) name(l *syntax.Lit) string {
	if l == nil || !isName(l.Value) {
		p.refuse("it has a name that eca does not print")
		return ""
	}
	return l.Value
}

func isName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_'
	}) < 0 && (s[0] < '0' || s[0] > '9')
}
