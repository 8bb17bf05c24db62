package cmdline

import "mvdan.cc/sh/v3/syntax"

// loop walks commands that may run any number of times.
func (w *walker) loop(walk func()) {
	w.loops++
	w.withOwnScope(walk)
	w.loops--
}

func (w *walker) whileClause(cmd *syntax.WhileClause, depth int) {
	if w.scope == nil || cmd.Until || !readsLines(cmd.Cond) {
		w.markComputed("it contains a loop that might not end")
	}
	w.loop(func() {
		w.stmts(cmd.Cond, depth)
		w.stmts(cmd.Do, depth)
	})
}

func (w *walker) forClause(cmd *syntax.ForClause, depth int) {
	w.addDemand("for ") // it assigns a variable
	iter, ok := cmd.Loop.(*syntax.WordIter)
	if !ok || cmd.Select {
		w.markUnresolved("it has an arithmetic loop or a select")
		w.withOwnScope(func() { w.stmts(cmd.Do, depth) })
		return
	}
	name := iter.Name.Value
	if w.scope == nil || !settable(name) {
		w.markComputed("it has a loop that sets " + name)
	}
	listed := Command{Name: "for", Args: []string{name}, Text: "for " + name, Source: "for " + name, Effect: Reads}
	for _, item := range iter.Items {
		value := w.word(item, depth)
		w.out.Values = append(w.out.Values, value.text)
		if value.glob { // eca expands it
			listed.Paths = append(listed.Paths, Path{Name: value.text, Glob: true})
		}
	}
	w.add(listed)
	w.loop(func() {
		w.scope.assign(name)
		w.stmts(cmd.Do, depth)
	})
}

func (w *walker) caseClause(cmd *syntax.CaseClause, depth int) {
	w.cases = true
	if len(w.documents) > 0 {
		w.markAmbiguous(caseWithDocument)
	}
	w.word(cmd.Word, depth)
	for _, item := range cmd.Items {
		for _, p := range item.Patterns {
			if !w.word(p, depth).known {
				w.markComputed("it chooses by a pattern that is computed")
			}
		}
		w.withOwnScope(func() { w.stmts(item.Stmts, depth) })
	}
}

// read lists a `read` that sets variables.
func (w *walker) read(c *syntax.CallExpr, names []string) {
	listed := Command{Name: "read", Text: w.source(c), Source: w.source(c), Effect: Reads}
	for _, arg := range c.Args[1:] {
		listed.Args = append(listed.Args, w.source(arg))
	}
	for _, name := range names {
		w.scope.assign(name)
		w.addDemand(name + "=")
	}
	w.add(listed)
}

// readNames returns the variables that a command sets if it is a `read` without other effects.
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

// quotedConstant returns the value of a word without expansions. Unlike constant, it also accepts an
// empty value in quotes.
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

// readsLines reports whether the condition of a loop is a single `read`.
func readsLines(cond []*syntax.Stmt) bool {
	if len(cond) != 1 || cond[0].Negated || cond[0].Background || len(cond[0].Redirs) > 0 {
		return false
	}
	call, ok := cond[0].Cmd.(*syntax.CallExpr)
	return ok && len(readNames(call)) > 0
}
