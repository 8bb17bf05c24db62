// Package cmdline takes shell programs apart: which commands a text runs, with which
// words, and what is known about them.
//
// It guarantees that a Program without Unresolved lists every command that its text
// runs, also those in substitutions, here-documents, wrappers (env, xargs, find -exec)
// and texts that are themselves programs (sh -c, eval); and that a command whose Effect
// is Reads writes no file, runs no program that is not listed and opens no network,
// whatever its words expand to.
//
// It knows text only: no files, no environment. What a path leads to, and which helpers
// a repository's own configuration brings in (see Command.Git), the caller looks up.
// Programs are those of bash and of POSIX shells; for another shell nothing here holds.
package cmdline

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Effect is what is known of a command.
type Effect int

// Effects. Programs on no list are Unknown.
const (
	Unknown Effect = iota
	Reads          // reads, and nothing else
	Changes        // its purpose is to change something
)

// Command is one simple command.
type Command struct {
	Name string   // the first word without quotes; as written if it is computed
	Args []string // the others, likewise
	Text string   // assignments and words without quotes, with one space between

	Source string // as written, unless it is an argument of another command; else Text

	Effect Effect
	Why    string // why it does not only read; empty if it does

	// Key is what "remember this" remembers: the name, with the subcommand for programs
	// that have them. It is empty for what must not be remembered: programs that run
	// others, and options that turn a harmless command into another.
	Key string

	// Forms are the texts that it may have, where it uses variables that the program sets.
	Forms []string

	// Demands is what a pattern has to mention by name to cover this command, besides
	// matching it: an option that runs or writes, an assignment, the command that a
	// wrapper runs.
	Demands []string

	// Destroys says what of somebody's work the command ends for good (git reset --hard);
	// empty if it is not known to. Deletes names what goes with all that is in it (rm -r),
	// and Discards what loses its changes if it is a file and no branch (git checkout).
	Destroys string
	Deletes  []string
	Discards []string

	// Paths are the words that may name files, for a command that reads. A glob among
	// them is unexpanded.
	Paths []Path

	// Git says that the command is git and looks at a repository, whose own configuration
	// may name programs to run. GitContents says that it looks at the contents of files
	// there, where git runs filters and programs that show differences.
	Git         bool
	GitContents bool
	Dir         string // of git -C, relative to where the command runs; empty: there
}

// Path is a word that may name a file.
type Path struct {
	Name string
	Glob bool // has * or ? that the shell expands

	Top      bool // is the top of the work tree that git is called in, whatever its name
	Anywhere bool // stands for names that are read (xargs), and may be of any file
	Follows  bool // the links in it are followed, if it is a folder
}

// Program is what a text runs.
type Program struct {
	// Commands in the order of the text. Those that a wrapper or a substitution runs
	// follow or precede the command they belong to.
	Commands []Command

	// Unresolved says why commands may run that are not listed; empty if none can.
	Unresolved string

	// Computed says why words are not known before the program runs, though its commands
	// are; empty if all are known.
	Computed string

	// Expands says that words are computed while the program runs, from variables, home folders or
	// the output of commands. Values are the values of assignments and the words of loops, which
	// such words may have.
	Expands bool
	Values  []string

	// Data says that commands read files that no word names: their names are what another command
	// reads or prints.
	Data bool

	// Writes are the files that redirections write, as written.
	Writes []string

	// Demands is what a pattern has to mention to cover the whole: ">" for Writes.
	Demands []string

	// TwoReadings says why a shell may read the text differently from what is listed here;
	// empty if it cannot. Such a program is Unresolved too.
	TwoReadings string

	tree *tree // nil if the text was not parsed
}

// limits of one program; beyond them it is unresolved.
const (
	maxText     = 64 << 10
	maxCommands = 200
	maxNesting  = 8  // programs in arguments
	maxNested   = 64 // statements in statements
)

// Parse takes a text apart.
func Parse(text string) Program {
	return parse(text, syntax.NewParser(syntax.Variant(syntax.LangBash)))
}

func parse(text string, parser *syntax.Parser) Program {
	w := &walker{parser: parser}
	w.text(text, 0, true)
	if w.out.tree != nil {
		w.out.tree.parser.Store(parser)
	}
	return w.out
}

// Reads says whether the program does nothing but read; if not, why is a reason.
func (p Program) Reads() (ok bool, why string) {
	switch {
	case p.Unresolved != "":
		return false, p.Unresolved
	case p.Computed != "":
		return false, p.Computed
	case len(p.Writes) > 0:
		return false, "it writes " + p.Writes[0]
	case len(p.Commands) == 0:
		return false, "it runs nothing"
	}
	for _, c := range p.Commands {
		if c.Effect != Reads {
			return false, c.Why
		}
	}
	return true, ""
}

// Changes says whether a part of the program is known to change something, and what.
func (p Program) Changes() (yes bool, why string) {
	for _, c := range p.Commands {
		if c.Effect == Changes {
			return true, c.Why
		}
	}
	if len(p.Writes) > 0 {
		return true, "it writes " + p.Writes[0]
	}
	return false, ""
}

// computedInput stands for what a command reads, where that is computed.
const computedInput = "$computed"

// walker collects a program.
type walker struct {
	out Program
	src string // the text that is being taken apart

	parser *syntax.Parser

	scope *scope // of the text; nil if what its variables are is not known
	steps int    // to find what words may be
	loops int    // around what is looked at

	nested int // statements around the one that is looked at

	substitutionEnd int          // of the substitution that is looked at; 0 outside of one
	compound        int          // compound commands around what is looked at
	cases           bool         // the program has a case
	documents       []documentAt // of the text, so far
}

// text parses a program, or one that is an argument of another, and returns its statements. own says
// that a shell of its own runs it.
func (w *walker) text(text string, depth int, own bool) []*syntax.Stmt {
	if len(text) > maxText || depth > maxNesting {
		w.unresolved("it is too long to be judged")
		return nil
	}
	if i := strings.IndexFunc(text, hidden); i >= 0 {
		w.unresolved("it has control characters")
		return nil
	}
	file, err := w.parser.Parse(strings.NewReader(text), "")
	if err != nil {
		w.unresolved("the program cannot be parsed")
		return nil
	}
	outer, end, documents, variables := w.src, w.substitutionEnd, w.documents, w.scope
	w.src, w.substitutionEnd, w.documents, w.scope = text, 0, nil, nil
	if own {
		w.scope = &scope{stmts: file.Stmts}
	}
	if w.out.tree == nil {
		w.out.tree = &tree{stmts: file.Stmts, source: text}
	}
	w.comments(text)
	w.stmts(file.Stmts, depth)
	w.src, w.substitutionEnd, w.documents, w.scope = outer, end, documents, variables
	return file.Stmts
}

// nest notes that a word is itself a program.
func (w *walker) nest(at *syntax.Word, n nestedText) {
	if at == nil || n.stmts == nil {
		return
	}
	if w.out.tree.nested == nil {
		w.out.tree.nested = map[*syntax.Word]*nestedText{}
	}
	w.out.tree.nested[at] = &n
}

// hidden tells characters that a shell and a reader, or two shells, see differently.
func hidden(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x200b && r <= 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff || r == '�'
}

func (w *walker) unresolved(why string) {
	if w.out.Unresolved == "" {
		w.out.Unresolved = why
	}
}

func (w *walker) computed(why string) {
	if w.out.Computed == "" {
		w.out.Computed = why
	}
}

func (w *walker) demand(what string) {
	if !slices.Contains(w.out.Demands, what) {
		w.out.Demands = append(w.out.Demands, what)
	}
}

func (w *walker) add(c Command) {
	if len(w.out.Commands) == maxCommands {
		w.unresolved(fmt.Sprintf("it has more than %d commands", maxCommands))
		return
	}
	w.out.Commands = append(w.out.Commands, c)
}

func (w *walker) stmts(list []*syntax.Stmt, depth int) {
	for _, s := range list {
		w.stmt(s, depth)
		if w.scope != nil {
			w.scope.set = w.scope.sure
		}
	}
}

func (w *walker) stmt(s *syntax.Stmt, depth int) {
	if w.nested++; w.nested > maxNested {
		w.unresolved("it is nested too deep")
		w.out.tree.unprintable = "it is nested too deep" // which would take long
		return
	}
	defer func() { w.nested-- }()
	defer w.ended(s, w.scope.variables())
	if s.Coprocess {
		w.unresolved("it starts a coprocess")
	}
	if s.Background {
		w.computed("a part of it goes on in the background")
	}
	var input *hereText // what a here-document gives the command
	for _, r := range s.Redirs {
		w.redirect(r, depth, &input)
	}
	switch s.Cmd.(type) {
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.Block, *syntax.Subshell, *syntax.FuncDecl:
		w.compound++
		defer func() { w.compound-- }()
	}
	switch cmd := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		w.call(cmd, depth, input)
	case *syntax.BinaryCmd:
		if _, timed := cmd.Y.Cmd.(*syntax.TimeClause); timed && (cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll) {
			w.unresolved("after a pipe, time is a program") // not the shell's own word
		}
		w.binary(cmd, depth)
	case *syntax.Subshell:
		w.apart(func() { w.stmts(cmd.Stmts, depth) })
	case *syntax.Block:
		w.stmts(cmd.Stmts, depth)
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			w.apart(func() {
				w.stmts(c.Cond, depth)
				w.stmts(c.Then, depth)
			})
		}
	case *syntax.TimeClause:
		if cmd.Stmt != nil {
			w.stmt(cmd.Stmt, depth)
		}
	case *syntax.WhileClause:
		w.whileClause(cmd, depth)
	case *syntax.ForClause:
		w.forClause(cmd, depth)
	case *syntax.CaseClause:
		w.caseClause(cmd, depth)
	case *syntax.FuncDecl:
		w.unresolved("it defines a function")
		w.apart(func() { w.stmt(cmd.Body, depth) })
	case *syntax.TestClause:
		if !w.test(cmd, depth) {
			w.unresolved("it has a construct whose effect is not known")
			w.inside(cmd, depth)
		}
	default: // (( )), let, declare, coproc: they evaluate texts, or name variables
		w.unresolved("it has a construct whose effect is not known")
		w.inside(cmd, depth)
	}
}

// inside lists the commands in the substitutions of what is not understood otherwise.
func (w *walker) inside(n syntax.Node, depth int) {
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CmdSubst:
			w.stmts(n.Stmts, depth)
			return false
		case *syntax.ProcSubst:
			outer := w.substitutionEnd
			w.substitutionEnd = int(n.Rparen.Offset())
			w.stmts(n.Stmts, depth)
			w.substitutionEnd = outer
			return false
		case *syntax.Stmt:
			w.stmt(n, depth)
			return false
		}
		return true
	})
}

// hereText is what a command reads, if the text says so.
type hereText struct {
	text string
	from *syntax.Word // the here-document's end, or the here-string
}

// redirect notes what a redirection writes. input is set to what the command reads then.
func (w *walker) redirect(r *syntax.Redirect, depth int, input **hereText) {
	if r.Word == nil {
		w.unresolved("it has a redirection to nowhere")
		return
	}
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		w.unresolved("a redirection sets a variable")
	}
	standard := r.N == nil && strings.HasPrefix(r.Op.String(), "<") || r.N != nil && strings.Trim(r.N.Value, "0") == "" // input
	if standard {
		*input = nil
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		text := w.hereDocument(r, depth)
		if standard {
			*input = &hereText{text, r.Word}
		}
		return
	}
	to := w.word(r.Word, depth)
	name := to.text
	if r.Op == syntax.RdrIn && to.bound != nil && !to.bound.data && !to.bound.status && !to.bound.glob {
		w.readFile(name, to.bound.values...)
		return
	}
	if !to.known || to.glob {
		w.computed("a redirection's file is computed")
	}
	switch r.Op {
	case syntax.RdrIn:
		if name != "/dev/null" {
			w.readFile(name, name)
		}
	case syntax.WordHdoc:
		if !to.known {
			name = computedInput
		}
		if standard {
			*input = &hereText{name, r.Word}
		}
	case syntax.DplIn, syntax.DplOut:
		if strings.Trim(name, "0123456789-") == "" && to.known {
			return // a duplicate, or closed
		}
		w.write(name)
	default: // everything else opens a file for writing, <> too
		if name == "/dev/null" && to.known {
			return
		}
		w.write(name)
	}
}

// hereDocument returns the text of a here-document.
func (w *walker) hereDocument(r *syntax.Redirect, depth int) string {
	w.document(r)
	if r.Hdoc == nil {
		return ""
	}
	known := true
	text := &strings.Builder{}
	for _, part := range r.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case !ok:
			known = false
		case quoted(r.Word):
			text.WriteString(lit.Value)
		default:
			text.WriteString(unquoted(lit.Value, "$`\\\n"))
		}
	}
	if !known {
		w.word(r.Hdoc, depth)
		w.computed("its here-document is computed")
		return computedInput
	}
	if r.Op == syntax.DashHdoc {
		return unindent(text.String(), true)
	}
	return text.String()
}

// readFile notes the files that a redirection may read: they are judged as cat would be. The
// names with which bash opens connections are not files.
func (w *walker) readFile(written string, names ...string) {
	listed := Command{Name: "<", Args: names, Text: "< " + written, Source: "< " + written, Effect: Reads}
	for _, name := range names {
		if network(name) {
			w.unresolved("it opens a connection")
			return
		}
		listed.Paths = append(listed.Paths, Path{Name: name})
		if name != written {
			listed.Forms = append(listed.Forms, "< "+name)
		}
	}
	w.add(listed)
}

func (w *walker) write(name string) {
	if network(name) {
		w.unresolved("it opens a connection")
	}
	w.out.Writes = append(w.out.Writes, name)
	w.demand(">")
}

func network(name string) bool {
	return strings.HasPrefix(name, "/dev/tcp/") || strings.HasPrefix(name, "/dev/udp/")
}
