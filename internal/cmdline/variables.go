package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// scope holds what is known about the variables of a script that runs in its own shell (sh -c, or the
// whole text).
type scope struct {
	stmts []*syntax.Stmt

	// assigned has all values that the script assigns to each variable; nil until it is needed. A
	// variable that is set at some point of the script has one of these values.
	assigned map[string]*assignments

	// At the current point of the walk, the variables in setOnSuccess are set if the last statement
	// succeeded, and those in setAlways even if it failed.
	setOnSuccess []string
	setAlways    []string
}

// assignments holds the values that a script assigns to a variable.
type assignments struct {
	words   []*syntax.Word
	data    bool // a value may come from the input or output of a command
	unknown bool // there may be other values
}

// Limits of the values of words. Beyond them, a value is not known.
const (
	maxValues     = 1000   // values of a word, and combinations for a command
	maxSteps      = 50_000 // work for one program: variables, words of combinations, bytes of values
	maxReferences = 8      // depth of variables whose values contain variables
)

const tooManyValues = "its arguments have too many possible values"

// settable reports whether a script may set a variable without changing how a shell or a program that
// only reads behaves, even if the variable is exported.
func settable(name string) bool {
	if !isName(name) || name[0] == '_' {
		return false
	}
	if strings.IndexFunc(name, func(r rune) bool { return r >= 'A' && r <= 'Z' }) < 0 {
		return true
	}
	return len(name) == 1 || slices.Contains([]string{"BASE", "BRANCH", "COMMIT", "DIR", "DIRS", "FILE", "FILES", "LOG", "NAME", "OUT", "PATTERN", "REPO", "ROOT", "SRC", "TARGET"}, name)
}

// collectAssignments records the values that the script assigns to its variables.
func (s *scope) collectAssignments() {
	if s.assigned != nil {
		return
	}
	s.assigned = map[string]*assignments{}
	of := func(name string) *assignments {
		if s.assigned[name] == nil {
			s.assigned[name] = &assignments{}
		}
		return s.assigned[name]
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
				case *syntax.CStyleLoop: // is refused elsewhere
				}
			}
			return true
		})
	}
}

// valueSet holds the possible values of a word with variables, substitutions or arithmetic.
type valueSet struct {
	values []string
	glob   bool // the values have * or ? that the shell expands
	data   bool // the value may be anything: the input or output of a command
	status bool // the value may be any exit code
	splits bool // the word may become any number of words
}

// valuesOf returns the possible values of a word. If they are not known, unknown is the reason.
func (w *walker) valuesOf(from *syntax.Word, references int) (b valueSet, unknown string) {
	b.values = []string{""}
	patterns := false // values have special characters of globs
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
		case *syntax.ArithmExp:
			values, why := (arithmetic{w, references}).values(p)
			if why != "" {
				unknown = why
				return
			}
			add(values)
		default:
			unknown = "it contains an expansion that eca does not support"
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

// splits reports whether a shell expands an unquoted value to other words.
func splits(value string) bool {
	return value == "" || strings.ContainsAny(value, " \t\n") || isPattern(value)
}

func isPattern(value string) bool { return strings.ContainsAny(value, `*?[\`) }

// variable returns the possible values of an expansion at the current point of the walk.
func (w *walker) variable(p *syntax.ParamExp, references int) (b valueSet, unknown string) {
	name := p.Param.Value
	if name == "?" && isPlainVariable(p) {
		return valueSet{values: []string{"0"}, status: true}, ""
	}
	if b, unknown = w.variableValues(name, references); unknown != "" || isPlainVariable(p) {
		return b, unknown
	}
	for _, value := range b.values {
		w.steps += len(value)
	}
	values, ok := derive(p, b.values)
	if !ok || w.steps > maxSteps {
		return b, "eca does not know the value of " + name
	}
	b.values = values
	return b, ""
}

// variableValues returns the possible values of a variable at the current point of the walk. references counts
// the variables whose values led to this one.
func (w *walker) variableValues(name string, references int) (b valueSet, unknown string) {
	if w.steps++; w.steps > maxSteps {
		return b, tooManyValues
	}
	unknown = "eca does not know the value of " + name
	if w.scope == nil || references == maxReferences || references == 0 && !slices.Contains(w.scope.setOnSuccess, name) {
		return b, unknown
	}
	w.scope.collectAssignments()
	v := w.scope.assigned[name]
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

// assign records that a variable is set from now on.
func (s *scope) assign(name string) {
	if s != nil && !slices.Contains(s.setOnSuccess, name) {
		s.setOnSuccess = append(slices.Clip(s.setOnSuccess), name)
	}
}

// snapshot returns the variables that are set now, for restore.
func (s *scope) snapshot() []string {
	if s == nil {
		return nil
	}
	return s.setOnSuccess
}

// restore undoes the assignments since snapshot was called.
func (s *scope) restore(set []string) {
	if s != nil {
		s.setOnSuccess, s.setAlways = set, set
	}
}

// judgeEach judges a command for all possible values of its words. forms lists the command written out
// for each combination of values; nil if no word contains an expansion.
func (w *walker) judgeEach(name string, args []word, loose bool) (j judgement, forms []string) {
	if !slices.ContainsFunc(args, func(arg word) bool { return arg.possible != nil }) {
		return judge(name, args, loose), nil
	}
	choice := slices.Clone(args)
	var varying []int // the arguments whose values are known
	count, anywhere := 1, false
	for i, arg := range args {
		switch b := arg.possible; {
		case b == nil:
		case !b.data && !b.status:
			varying = append(varying, i)
			if count *= len(b.values); count > maxValues {
				return judgement{why: tooManyValues}, nil
			}
		case name == "cd" || name == "jq": // a script of jq may print the environment
			return judgement{why: "eca does not know all arguments of " + name}, nil
		case isOperand(name, args, i, "-n", "-z", "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"):
			choice[i] = word{text: arg.text, known: true}
		case isOperand(name, args, i, "-e", "-f", "-d", "-h", "-L", "-r", "-w", "-x", "-s", "-nt", "-ot", "-ef"):
			choice[i], anywhere = word{text: arg.text, known: true}, true
		default:
			loose, anywhere = true, anywhere || b.splits // a value that is split may also be a glob, which can match any file
		}
	}
	if w.steps += (count - 1) * (len(args) + 1); w.steps > maxSteps {
		return judgement{why: tooManyValues}, nil
	}
	for n := range count {
		text := name
		choose(choice, args, varying, n)
		if len(varying) > 0 {
			for _, word := range choice {
				text += " " + word.text
			}
			forms = append(forms, text)
		}
		if n > 0 && j.effect != Reads {
			if j.option == "" {
				j.option = judge(name, choice, loose).option
			}
			continue
		}
		one := judge(name, choice, loose)
		if n > 0 && one.effect == Reads && one.dir != j.dir {
			one = judgement{why: "eca does not know the working directory of " + name}
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

// choose replaces the arguments with the given indexes by combination n of their values.
func choose(choice, args []word, varying []int, n int) {
	for _, i := range varying {
		b := args[i].possible
		choice[i] = word{text: b.values[n%len(b.values)], known: true, glob: b.glob}
		n /= len(b.values)
	}
}

// expandedTexts returns a command with the values of its variables, also without the folder of its program:
// one text for each combination of values, none if there are too many. It counts steps, up to maxSteps.
func expandedTexts(words []word, steps *int) (forms []string) {
	choice, count := slices.Clone(words), 1
	var varying []int
	for i, word := range words {
		if b := word.possible; b != nil && !b.data && !b.status {
			varying = append(varying, i)
			if count *= len(b.values); count > maxValues {
				return nil
			}
		}
	}
	if *steps += count * len(words); len(varying) == 0 || *steps > maxSteps {
		return nil
	}
	for n := range count {
		choose(choice, words, varying, n)
		all := texts(choice)
		forms = append(forms, strings.Join(all, " "))
		if name := programName(all[0]); name != all[0] {
			all[0] = name
			forms = append(forms, strings.Join(all, " "))
		}
	}
	return forms
}

// findLossesForValues returns what a command loses with any of the known values of its words. It counts
// steps, up to maxSteps.
func findLossesForValues(words []word, steps *int) (all loss) {
	var varying []int
	count := 1
	for i, word := range words {
		if b := word.possible; b != nil && !b.data && !b.status && count*len(b.values) <= maxValues {
			varying = append(varying, i)
			count *= len(b.values)
		}
	}
	if *steps += (count - 1) * len(words); *steps > maxSteps {
		varying, count = nil, 1
	}
	if len(varying) == 0 {
		return findLosses(words[0].text, words[1:])
	}
	choice := slices.Clone(words)
	for n := range count {
		choose(choice, words, varying, n)
		all.add(findLosses(choice[0].text, choice[1:]))
	}
	return all
}

// withOwnScope walks commands that might not run (`a || b`), or that run in a subshell: variables that they
// set do not count afterwards.
func (w *walker) withOwnScope(walk func()) {
	set := w.scope.snapshot()
	walk()
	w.scope.restore(set)
}

// updateSetVariables updates the set variables after a statement; before are those that were set before it.
func (w *walker) updateSetVariables(s *syntax.Stmt, before []string) {
	if w.scope == nil {
		return
	}
	if s.Background || len(s.Redirs) > 0 { // a redirection may fail
		w.scope.restore(before)
		return
	}
	if _, ok := s.Cmd.(*syntax.BinaryCmd); !ok {
		w.scope.setAlways = w.scope.setOnSuccess
	}
	if s.Negated {
		w.scope.setOnSuccess = w.scope.setAlways
	}
}

// binary walks two statements that are joined by an operator.
func (w *walker) binary(cmd *syntax.BinaryCmd, depth int) {
	before := w.scope.snapshot()
	w.stmt(cmd.X, depth)
	if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
		outer := w.stdin
		w.stdin = textLister{w}.outputOf(cmd.X)
		defer func() { w.stdin = outer }()
	}
	if w.scope == nil {
		w.stmt(cmd.Y, depth)
		return
	}
	switch sure := w.scope.setAlways; cmd.Op {
	case syntax.AndStmt:
		w.stmt(cmd.Y, depth)
		w.scope.setAlways = sure
	case syntax.OrStmt:
		w.scope.setOnSuccess = sure
		w.stmt(cmd.Y, depth)
		w.scope.restore(sure)
	default: // a pipe
		w.scope.restore(before)
		w.stmt(cmd.Y, depth)
		w.scope.restore(before)
	}
}

// recordAssignments reports whether a command only sets variables that affect no program, and records them.
func (w *walker) recordAssignments(c *syntax.CallExpr) bool {
	if w.scope == nil || len(c.Assigns) == 0 {
		return false
	}
	for _, a := range c.Assigns {
		if a.Name == nil || a.Append || a.Index != nil || a.Array != nil || !settable(a.Name.Value) {
			return false
		}
	}
	for _, a := range c.Assigns {
		w.scope.assign(a.Name.Value)
		w.addDemand(a.Name.Value + "=")
	}
	return true
}
