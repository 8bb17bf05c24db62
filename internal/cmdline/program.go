// Package cmdline parses shell programs and lists the commands that they run, with their arguments
// and their known effects.
//
// It guarantees two things. A Program whose Unresolved is empty lists every command that its
// text runs, including those in substitutions, here-documents, wrappers (env, xargs, find -exec)
// and arguments that are programs themselves (sh -c, eval). A command whose Effect is Reads
// writes no file, runs no program that is not listed and opens no connection, whatever its words
// expand to.
//
// It works on the text alone, and does not read files or the environment. The caller determines
// where paths lead, and which programs a repository's configuration starts (see Command.Git). It
// understands bash and POSIX shells and guarantees nothing for other shells.
package cmdline

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Effect is the known effect of a command.
type Effect int

// Effects. Programs on no list are Unknown.
const (
	Unknown Effect = iota
	Reads          // reads, and nothing else
	Changes        // its purpose is to change something
)

// Command is one simple command.
type Command struct {
	Name string   // the first word without quotes; as written if it contains expansions
	Args []string // the other words, in the same form
	Text string   // assignments and words without quotes, separated by single spaces

	Source string // as written; the same as Text for a command in the arguments of another one

	Effect Effect
	Why    string // why Effect is not Reads; empty if it is

	// Key is the text under which an approval is remembered: the name, and the subcommand for
	// programs that have one. It is empty for commands that must not be remembered: those that run
	// other programs, and those with options that change what the command does.
	Key string

	// Forms are the texts that the command may have after the variables that the program sets
	// are expanded.
	Forms []string

	// Values are the values that words with such variables may have. For words that are computed
	// otherwise, they are what likelyWords expects.
	Values []string

	// Demands lists what a pattern must mention by name to cover this command, in addition
	// to matching it: an option that runs or writes something, an assignment, the command that
	// a wrapper runs.
	Demands []string

	// HiddenOption is true if a computed argument may become an option that a pattern must mention.
	HiddenOption bool

	// Destroys describes the work that the command loses irreversibly (git reset --hard); empty
	// if none is known. Deletes names folders and files that are deleted with their contents
	// (rm -r). Discards names words that lose their changes if they are files rather than
	// branches (git checkout).
	Destroys string
	Deletes  []string
	Discards []string

	// Paths are the words of a reading command that may name files, before globs are expanded.
	Paths []Path

	// Git is true if the command is git and reads a repository, whose configuration may name
	// programs to run. GitContents is true if it also reads the contents of files there; then
	// git runs filters and diff programs.
	Git         bool
	GitContents bool
	Dir         string // argument of git -C, relative to the working directory of the command
}

// Path is a word that may name a file.
type Path struct {
	Name string
	Glob bool // has * or ? that the shell expands

	Top      bool // the top of the current git work tree; Name is not a path
	Anywhere bool // any file: the names are read at run time (xargs)
	Follows  bool // the command follows symlinks in it, if it is a folder
}

// Program describes the commands that a text runs.
type Program struct {
	// Commands are in the order of the text. A command that a wrapper runs follows the wrapper;
	// a command in a substitution precedes the command that uses its output.
	Commands []Command

	// Unresolved is the reason why commands may run that are not listed; empty if Commands is
	// complete.
	Unresolved string

	// Computed is the reason why arguments are not known before the program runs, although its
	// commands are; empty if all arguments are known.
	Computed string

	// Expands is true if the shell computes words from variables, home folders or the output of
	// commands. Values are the values of assignments and the words of loops, from which such
	// words may be made.
	Expands bool
	Values  []string

	// Data is true if commands read files whose names another command reads or prints.
	Data bool

	// Writes are the files that redirections write, as written.
	Writes []string

	// Demands lists what a pattern must mention to cover the whole program: ">" for Writes.
	Demands []string

	// TwoReadings is the reason why a shell may parse the text differently; empty if it cannot.
	// Such a program is also Unresolved.
	TwoReadings string

	tree *tree // nil if the text was not parsed
}

// Limits of one program. A program that exceeds them is unresolved.
const (
	maxText     = 64 << 10
	maxCommands = 200
	maxNesting  = 8  // programs in arguments
	maxNested   = 64 // statements in statements
)

// Reads reports whether the program only reads. If not, why is the first reason found.
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

// Changes reports whether a part of the program is known to change something, and which part.
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

// computedInput stands for standard input that the shell computes.
const computedInput = "$computed"

// walker builds a Program from a syntax tree.
type walker struct {
	out Program
	src string // the text that is being parsed

	parser   *syntax.Parser
	reader   strings.Reader
	assessed []*assessment // of the commands so far
	original []*assessment // of the text of which this is the canonical form

	stdin     *hereText // standard input of the current statement, unless it redirects it
	lastInput *hereText // standard input of the last simple command

	scope *scope // of the text; nil if its variables are not known
	steps int    // taken to compute the values of words, up to maxSteps
	loops int    // number of loops around the current node

	nested int // number of statements around the current one

	substitutionEnd int          // offset where the current substitution ends; 0 outside one
	compound        int          // number of compound commands around the current node
	cases           bool         // the program has a case
	documents       []documentAt // here-documents of the text, so far
}

// text parses a program, which may be an argument of another one, and returns its statements.
// own is true if a separate shell runs it.
func (w *walker) text(text string, depth int, ownShell bool) []*syntax.Stmt {
	if len(text) > maxText || depth > maxNesting {
		w.markUnresolved("it is too long or nested too deep")
		return nil
	}
	if i := strings.IndexFunc(text, isHidden); i >= 0 {
		w.markUnresolved("it has control characters")
		return nil
	}
	w.reader.Reset(text)
	file, err := w.parser.Parse(&w.reader, "")
	if err != nil {
		_, cause, _ := strings.Cut(err.Error(), ": ") // the error begins with a position
		w.markUnresolved("the program cannot be parsed: " + cause)
		return nil
	}
	outer, end, documents, variables := w.src, w.substitutionEnd, w.documents, w.scope
	w.src, w.substitutionEnd, w.documents, w.scope = text, 0, nil, nil
	if ownShell {
		w.scope = &scope{stmts: file.Stmts}
	}
	if w.out.tree == nil {
		w.out.tree = &tree{stmts: file.Stmts, source: text}
		w.out.Commands = make([]Command, 0, min(1+strings.Count(text, "|")+strings.Count(text, "&&")+strings.Count(text, ";"), 8)) //nolint:mnd // most programs have fewer commands
	}
	w.comments(text)
	w.stmts(file.Stmts, depth)
	w.src, w.substitutionEnd, w.documents, w.scope = outer, end, documents, variables
	return file.Stmts
}

// nest records that a word is a program.
func (w *walker) nest(at *syntax.Word, n nestedText) {
	if at == nil || n.stmts == nil {
		return
	}
	if w.out.tree.nested == nil {
		w.out.tree.nested = map[*syntax.Word]*nestedText{}
	}
	w.out.tree.nested[at] = &n
}

// isHidden reports whether a character is invisible, or is read differently by different shells.
func isHidden(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r >= 0x80 && r < 0xa0 || r >= 0x200b && r <= 0x200f ||
		r >= 0x2028 && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0xfeff || r == '�'
}

func (w *walker) markUnresolved(why string) {
	if w.out.Unresolved == "" {
		w.out.Unresolved = why
	}
}

func (w *walker) markComputed(why string) {
	if w.out.Computed == "" {
		w.out.Computed = why
	}
}

func (w *walker) addDemand(what string) {
	if !slices.Contains(w.out.Demands, what) {
		w.out.Demands = append(w.out.Demands, what)
	}
}

func (w *walker) add(c Command) {
	if len(w.out.Commands) == maxCommands {
		w.markUnresolved(fmt.Sprintf("it has more than %d commands", maxCommands))
		return
	}
	w.out.Commands = append(w.out.Commands, c)
}

func (w *walker) stmts(list []*syntax.Stmt, depth int) {
	for _, s := range list {
		w.stmt(s, depth)
		if w.scope != nil {
			w.scope.setOnSuccess = w.scope.setAlways
		}
	}
}

func (w *walker) stmt(s *syntax.Stmt, depth int) {
	if w.nested++; w.nested > maxNested {
		w.markUnresolved("it is nested too deep")
		w.out.tree.unprintable = "it is nested too deep" // printing it would take long
		return
	}
	defer func() { w.nested-- }()
	defer w.updateSetVariables(s, w.scope.snapshot())
	if s.Coprocess {
		w.markUnresolved("it starts a coprocess")
	}
	if s.Background {
		w.markComputed("a part of it continues in the background")
	}
	input := w.stdin
	for _, r := range s.Redirs {
		w.redirect(r, depth, &input)
	}
	switch s.Cmd.(type) {
	case *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.Block, *syntax.Subshell, *syntax.FuncDecl:
		w.compound++
		outer := w.stdin
		w.stdin = input.inherited()
		defer func() { w.compound, w.stdin = w.compound-1, outer }()
	}
	switch cmd := s.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		w.call(cmd, depth, input)
		w.lastInput = input
	case *syntax.BinaryCmd:
		if _, timed := cmd.Y.Cmd.(*syntax.TimeClause); timed && (cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll) {
			w.markUnresolved("after a pipe, time is a program") // not the keyword of the shell
		}
		w.binary(cmd, depth)
	case *syntax.Subshell:
		w.withOwnScope(func() { w.stmts(cmd.Stmts, depth) })
	case *syntax.Block:
		w.stmts(cmd.Stmts, depth)
	case *syntax.IfClause:
		for c := cmd; c != nil; c = c.Else {
			w.withOwnScope(func() {
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
		w.markUnresolved("it defines a function")
		w.withOwnScope(func() { w.stmt(cmd.Body, depth) })
	case *syntax.TestClause:
		if !w.test(cmd, depth) {
			w.markUnresolved("it contains a construct that eca does not support")
			w.listSubstitutions(cmd, depth)
		}
	default: // (( )), let, declare and coproc evaluate their arguments, or set variables
		w.markUnresolved("it contains a construct that eca does not support")
		w.listSubstitutions(cmd, depth)
	}
}

// listSubstitutions lists the commands in the substitutions of a node that is not understood otherwise.
func (w *walker) listSubstitutions(n syntax.Node, depth int) {
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

// redirect records the file that a redirection writes, and sets input if it redirects standard
// input.
func (w *walker) redirect(r *syntax.Redirect, depth int, input **hereText) {
	if r.Word == nil {
		w.markUnresolved("it has a redirection to nowhere")
		return
	}
	if r.N != nil && strings.Trim(r.N.Value, "0123456789") != "" {
		w.markUnresolved("a redirection sets a variable")
	}
	isStdin := r.N == nil && strings.HasPrefix(r.Op.String(), "<") || r.N != nil && strings.Trim(r.N.Value, "0") == ""
	if isStdin {
		*input = nil
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		text := w.hereDocument(r, depth)
		if isStdin {
			*input = &hereText{text: text, from: r.Word}
		}
		return
	}
	to := w.word(r.Word, depth)
	name := to.text
	if r.Op == syntax.RdrIn && to.possible != nil && !to.possible.data && !to.possible.status && !to.possible.glob {
		w.readFile(name, to.possible.values...)
		return
	}
	if !to.known || to.glob {
		w.markComputed("a redirection's file is computed")
	}
	if b := to.possible; b != nil && !b.data && !b.status && r.Op != syntax.RdrIn && r.Op != syntax.WordHdoc {
		for _, value := range b.values {
			w.addWrite(value)
		}
		return
	}
	for _, likely := range (expansions{w}).likelyWords(to) {
		if likely != "" && r.Op != syntax.RdrIn && r.Op != syntax.WordHdoc {
			w.addWrite(likely)
		}
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
		if isStdin {
			*input = &hereText{text: name, from: r.Word}
		}
	case syntax.DplIn, syntax.DplOut:
		if strings.Trim(name, "0123456789-") == "" && to.known {
			return // a duplicate, or closed
		}
		w.addWrite(name)
	default: // all others open a file for writing, including <>
		if name == "/dev/null" && to.known {
			return
		}
		w.addWrite(name)
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
		w.markComputed("its here-document is computed")
		return computedInput
	}
	if r.Op == syntax.DashHdoc {
		return unindent(text.String(), true)
	}
	return text.String()
}

// readFile records the files that a redirection may read; they are judged like arguments of cat.
// The names with which bash opens connections are refused.
func (w *walker) readFile(written string, names ...string) {
	listed := Command{Name: "<", Args: names, Text: "< " + written, Source: "< " + written, Effect: Reads}
	for _, name := range names {
		if isNetworkPath(name) {
			w.markUnresolved("it opens a connection")
			return
		}
		listed.Paths = append(listed.Paths, Path{Name: name})
		if name != written {
			listed.Forms = append(listed.Forms, "< "+name)
		}
	}
	w.add(listed)
}

func (w *walker) addWrite(name string) {
	if isNetworkPath(name) {
		w.markUnresolved("it opens a connection")
	}
	w.out.Writes = append(w.out.Writes, name)
	w.addDemand(">")
}

func isNetworkPath(name string) bool {
	return strings.HasPrefix(name, "/dev/tcp/") || strings.HasPrefix(name, "/dev/udp/")
}
