package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope is what is known of the variables of a text that a shell of its own runs.
type scope struct {
	stmts []*syntax.Stmt

	// given is all that the text gives a variable, wherever it does; nil until it is needed. What
	// a variable has at one place of the text is one of these, if it is set there.
	given map[string]*given

	set []string // variables that the text has set wherever the walk is now

	// sure are those that are set however the last statement ended; set, if it succeeded.
	sure []string
}

// given is what a text gives a variable.
type given struct {
	words   []*syntax.Word
	data    bool // also what a command reads or prints
	unknown bool // also something else
}

// limits of what a word may be; beyond them, its value is not known.
const (
	maxValues     = 1000   // of a word, or combinations of those of a command
	maxSteps      = 50_000 // to find what words may be: variables, and words of the combinations
	maxReferences = 8      // of variables to variables
)

const tooManyValues = "its words may have too many values"

// settable tells variables that neither a shell nor a program that only reads obeys, should the
// environment have one of that name.
func settable(name string) bool {
	if !isName(name) || name[0] == '_' {
		return false
	}
	if strings.IndexFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return true
	}
	return len(name) == 1 || slices.Contains([]string{"BASE", "BRANCH", "COMMIT", "DIR", "DIRS", "FILE", "FILES", "LOG", "NAME", "OUT", "PATTERN", "REPO", "ROOT", "SRC", "TARGET"}, name)
}

// gather notes what the text gives its variables.
func (s *scope) gather() {
	if s.given != nil {
		return
	}
	s.given = map[string]*given{}
	of := func(name string) *given {
		if s.given[name] == nil {
			s.given[name] = &given{}
		}
		return s.given[name]
	}
	for _, stmt := range s.stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.CallExpr:
				for _, a := range n.Assigns {
					if a.Name == nil {
						continue
					}
					if v := of(a.Name.Value); a.Append || a.Index != nil || a.Array != nil || len(n.Args) > 0 {
						v.unknown = true
					} else if a.Value != nil {
						v.words = append(v.words, a.Value)
					} else {
						v.words = append(v.words, &syntax.Word{})
					}
				}
				for _, name := range readNames(n) {
					of(name).data = true
				}
			case *syntax.ForClause:
				switch loop := n.Loop.(type) {
				case *syntax.WordIter:
					v := of(loop.Name.Value)
					v.words = append(v.words, loop.Items...)
					v.unknown = v.unknown || n.Select || !loop.InPos.IsValid()
				case *syntax.CStyleLoop: // which is refused
				}
			}
			return true
		})
	}
}

// bound is what a word may be that has variables or substitutions.
type bound struct {
	values []string
	glob   bool // they have * or ? that the shell expands
	data   bool // anything: what a command reads or prints
	status bool // any exit code
	splits bool // not one word, but any number of them
}

// valuesOf returns what a word may be. unknown names what of it is not known; empty if all is.
func (w *walker) valuesOf(from *syntax.Word, references int) (b bound, unknown string) {
	b.values = []string{""}
	patterns := false // are in values
	add := func(more []string) {
		if len(b.values)*len(more) > maxValues {
			unknown = tooManyValues
			return
		}
		var out []string
		size := 0
		for _, value := range b.values {
			for _, m := range more {
				out = append(out, value+m)
				size += len(value) + len(m)
			}
		}
		if size > maxText {
			unknown = tooManyValues
			return
		}
		b.values = out
	}
	var part func(p syntax.WordPart, inQuotes, first bool)
	part = func(p syntax.WordPart, inQuotes, first bool) {
		switch p := p.(type) {
		case *syntax.Lit:
			text, glob, ok := unescape(p.Value, inQuotes, first)
			if glob && references > 0 || !ok || !inQuotes && strings.Contains(p.Value, "~") {
				unknown = "the value of a variable is a pattern"
			}
			b.glob = b.glob || glob
			add([]string{text})
		case *syntax.SglQuoted:
			if p.Dollar {
				unknown = "it has an escaped text"
			}
			add([]string{p.Value})
		case *syntax.DblQuoted:
			if p.Dollar {
				unknown = "it has a text to translate"
			}
			for _, inner := range p.Parts {
				part(inner, true, false)
			}
		case *syntax.CmdSubst:
			b.data, b.splits = true, b.splits || !inQuotes
		case *syntax.ParamExp:
			of, why := w.variable(p, references)
			b.data, b.status, b.splits = b.data || of.data, b.status || of.status, b.splits || of.data && !inQuotes
			patterns = patterns || slices.ContainsFunc(of.values, isPattern)
			if why == "" && !inQuotes && !of.data && slices.ContainsFunc(of.values, splits) {
				why = "the value of " + p.Param.Value + " is not in quotes, and may become other words"
			}
			if why != "" {
				unknown = why
				return
			}
			add(of.values)
		default:
			unknown = "it has an expansion whose effect is not known"
		}
	}
	for i, p := range from.Parts {
		if unknown == "" {
			part(p, false, i == 0)
		}
	}
	if unknown == "" && b.glob && patterns {
		unknown = "the value of a variable is a pattern"
	}
	return b, unknown
}

// splits says whether a shell makes other words of a value that is not in quotes.
func splits(value string) bool {
	return value == "" || strings.ContainsAny(value, " \t\n") || isPattern(value)
}

func isPattern(value string) bool { return strings.ContainsAny(value, `*?[\`) }

// variable returns what a variable may be at this place.
func (w *walker) variable(p *syntax.ParamExp, references int) (b bound, unknown string) {
	name := p.Param.Value
	if name == "?" {
		return bound{values: []string{"0"}, status: true}, ""
	}
	if w.steps++; w.steps > maxSteps {
		return b, tooManyValues
	}
	unknown = "the value of " + name + " is not known"
	if w.scope == nil || !plain(p) || references == maxReferences || references == 0 && !slices.Contains(w.scope.set, name) {
		return b, unknown
	}
	w.scope.gather()
	v := w.scope.given[name]
	if v == nil || v.unknown {
		return b, unknown
	}
	b.data = v.data
	for _, from := range v.words {
		w.steps++
		of, why := w.valuesOf(from, references+1)
		if why != "" {
			return b, why
		}
		b.data, b.status = b.data || of.data, b.status || of.status
		if b.values = append(b.values, of.values...); len(b.values) > maxValues {
			return b, tooManyValues
		}
	}
	switch {
	case len(b.values) > 0:
	case b.data:
		b.values = []string{""}
	default:
		return b, unknown
	}
	return b, ""
}

// assign notes that a variable is set from now on.
func (w *walker) assign(name string) {
	if w.scope != nil && !slices.Contains(w.scope.set, name) {
		w.scope.set = append(slices.Clip(w.scope.set), name)
	}
}

// variablesSet returns the variables that are set now, for restore.
func (w *walker) variablesSet() []string {
	if w.scope == nil {
		return nil
	}
	return w.scope.set
}

// restore forgets what was set since.
func (w *walker) restore(set []string) {
	if w.scope != nil {
		w.scope.set, w.scope.sure = set, set
	}
}

// readNames returns the variables that a command sets if it is `read`, used in a way that has no
// other effect.
func readNames(c *syntax.CallExpr) (names []string) {
	if len(c.Args) == 0 || constant(c.Args[0]) != "read" || len(c.Assigns) > 1 {
		return nil
	}
	if len(c.Assigns) == 1 {
		if a := c.Assigns[0]; a.Name == nil || a.Name.Value != "IFS" || a.Append || a.Index != nil || a.Array != nil || a.Value != nil && !isConstant(a.Value) {
			return nil
		}
	}
	for i := 1; i < len(c.Args); i++ {
		text := constant(c.Args[i])
		switch {
		case text == "-r":
		case text == "-d" && i+1 < len(c.Args) && len(names) == 0:
			if end, ok := quotedConstant(c.Args[i+1]); !ok || len(end) > 1 {
				return nil
			}
			i++
		case settable(text):
			names = append(names, text)
		default:
			return nil
		}
	}
	return names
}

func isConstant(w *syntax.Word) bool {
	_, ok := quotedConstant(w)
	return ok
}

// quotedConstant returns the value of a word in quotes in which nothing is expanded; it may be empty.
func quotedConstant(w *syntax.Word) (text string, ok bool) {
	if value := constant(w); value != "" {
		return value, true
	}
	if len(w.Parts) != 1 {
		return "", false
	}
	switch part := w.Parts[0].(type) {
	case *syntax.SglQuoted:
		return "", part.Value == "" && !part.Dollar
	case *syntax.DblQuoted:
		return "", len(part.Parts) == 0 && !part.Dollar
	}
	return "", false
}

// readsLines says whether the condition of a loop is a single `read`.
func readsLines(cond []*syntax.Stmt) bool {
	if len(cond) != 1 || cond[0].Negated || cond[0].Background || len(cond[0].Redirs) > 0 {
		return false
	}
	call, ok := cond[0].Cmd.(*syntax.CallExpr)
	return ok && len(readNames(call)) > 0
}

// judgeEach judges a command for all that its words may be. forms are its texts, if it has several.
func (w *walker) judgeEach(name string, args []word, loose bool) (j judgement, forms []string) {
	choice := slices.Clone(args)
	var varying []int // the arguments whose values are known
	count, anywhere := 1, false
	for i, arg := range args {
		switch b := arg.bound; {
		case b == nil:
		case !b.data && !b.status:
			varying = append(varying, i)
			if count *= len(b.values); count > maxValues {
				return judgement{why: tooManyValues}, nil
			}
		case name == "cd" || name == "jq": // whose script may print the environment
			return judgement{why: "words of " + name + " are not known"}, nil
		case isOperand(name, args, i, "-n", "-z", "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
			choice[i] = word{text: arg.text, known: true}
		case isOperand(name, args, i, "-e", "-f", "-d", "-h", "-L", "-r", "-w", "-x", "-s", "-nt", "-ot", "-ef"):
			choice[i], anywhere = word{text: arg.text, known: true}, true
		default:
			loose, anywhere = true, anywhere || b.splits // it may be a pattern
		}
	}
	if w.steps += (count - 1) * (len(args) + 1); w.steps > maxSteps {
		return judgement{why: tooManyValues}, nil
	}
	for n := range count {
		text, rest := name, n
		for _, i := range varying {
			b := args[i].bound
			choice[i] = word{text: b.values[rest%len(b.values)], known: true, glob: b.glob}
			rest /= len(b.values)
		}
		if len(varying) > 0 {
			for _, word := range choice {
				text += " " + word.text
			}
			forms = append(forms, text)
		}
		if n > 0 && j.effect != Reads {
			continue
		}
		one := judge(name, choice, loose)
		if n > 0 && one.effect == Reads && one.dir != j.dir {
			one = judgement{why: "where " + name + " runs is not known"}
		}
		if one.effect == Reads {
			one.paths, one.git, one.contents = append(j.paths, one.paths...), one.git || j.git, one.contents || j.contents
		}
		j = one
	}
	if anywhere && j.effect == Reads {
		j.paths = append(j.paths, Path{Name: "/", Anywhere: true})
	}
	return j, forms
}

// isOperand says whether an argument of test is the operand of one of some operators, whatever it
// is. Elsewhere it might be an operator itself, and -v evaluates its operand.
func isOperand(name string, args []word, i int, operators ...string) bool {
	switch {
	case args[i].bound.splits:
		return false
	case name == "[" && args[len(args)-1].text == "]":
		args = args[:len(args)-1]
	case name != "test":
		return false
	}
	if len(args) == 3 && args[0].known && args[0].text == "!" {
		args, i = args[1:], i-1
	}
	at := len(args) - 2 // of the operator
	if len(args) < 2 || len(args) > 3 || i == at || !args[at].known || !slices.Contains(operators, args[at].text) {
		return false
	}
	unary := strings.Contains("-n -z -e -f -d -h -L -r -w -x -s", args[at].text)
	return unary == (at == 0)
}

// apart looks at what need not run, or runs in a shell of its own.
func (w *walker) apart(look func()) {
	set := w.variablesSet()
	look()
	w.restore(set)
}

// loop looks at what may run any number of times.
func (w *walker) loop(look func()) {
	w.loops++
	w.apart(look)
	w.loops--
}

// ended notes what a statement has set; before is what was set before it.
func (w *walker) ended(s *syntax.Stmt, before []string) {
	if w.scope == nil {
		return
	}
	if s.Background || len(s.Redirs) > 0 { // a redirection may fail
		w.restore(before)
		return
	}
	if _, ok := s.Cmd.(*syntax.BinaryCmd); !ok {
		w.scope.sure = w.scope.set
	}
	if s.Negated {
		w.scope.set = w.scope.sure
	}
}

// binary looks at two statements with an operator between.
func (w *walker) binary(cmd *syntax.BinaryCmd, depth int) {
	before := w.variablesSet()
	w.stmt(cmd.X, depth)
	if w.scope == nil {
		w.stmt(cmd.Y, depth)
		return
	}
	switch sure := w.scope.sure; cmd.Op {
	case syntax.AndStmt:
		w.stmt(cmd.Y, depth)
		w.scope.sure = sure
	case syntax.OrStmt:
		w.scope.set = sure
		w.stmt(cmd.Y, depth)
		w.restore(sure)
	default: // a pipe
		w.restore(before)
		w.stmt(cmd.Y, depth)
		w.restore(before)
	}
}

// assigned says whether a command does nothing but set variables that no program obeys.
func (w *walker) assigned(c *syntax.CallExpr) bool {
	if w.scope == nil || len(c.Assigns) == 0 {
		return false
	}
	for _, a := range c.Assigns {
		if a.Name == nil || a.Append || a.Index != nil || a.Array != nil || !settable(a.Name.Value) {
			return false
		}
	}
	for _, a := range c.Assigns {
		w.assign(a.Name.Value)
		w.demand(a.Name.Value + "=")
	}
	return true
}

// read lists a `read` that sets variables.
func (w *walker) read(c *syntax.CallExpr, names []string) {
	listed := Command{Name: "read", Text: w.source(c), Source: w.source(c), Effect: Reads}
	for _, arg := range c.Args[1:] {
		listed.Args = append(listed.Args, w.source(arg))
	}
	for _, name := range names {
		w.assign(name)
		w.demand(name + "=")
	}
	w.add(listed)
}

// test lists a [[ ]] that only looks at files and texts; ok is false for another.
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
		case value.bound == nil || value.bound.data:
			listed.Paths = append(listed.Paths, Path{Name: "/", Anywhere: true})
		default:
			for _, name := range value.bound.values {
				listed.Paths = append(listed.Paths, Path{Name: name})
			}
		}
		return value.known || value.bound != nil
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
		return false // the others evaluate a text, or name a variable
	}
	if !known(cmd.X) {
		w.out.Commands = w.out.Commands[:before]
		return false
	}
	w.add(listed)
	return true
}
