package lang

// lisp finds definitions such as `(defn name`. Their parentheses must begin a line or not be nested.
type lisp struct {
	conditions bool // a definition may also follow the keyword of a reader conditional: `#?(:clj (defn name`
	// name returns the index of the name after the keyword with index at, or -1.
	name func(o *outline, at int) int
	// params reports whether a token begins the parameter list, which ends a signature.
	params func(o *outline, i int) bool
}

func (l *lisp) read(o *outline) {
	top := -1 // the end of the current top-level form
	for i := 0; i+1 < len(o.tokens); i++ {
		if data := o.isMark(i, '\''); (data || o.is(i, "_") && o.isMark(i-1, '#')) && o.isMark(i+1, '(') && o.adjoins(i) { // quoted or commented out
			i = o.skip(i+1) - 1
			continue
		}
		if !o.isMark(i, '(') {
			continue
		}
		topLevel := i > top
		if topLevel {
			top = closingToken(o, i)
		}
		if !o.tokens[i].first && !topLevel && (!l.conditions || !o.isMark(i-2, ':') || !o.adjoins(i-2)) {
			continue
		}
		w := o.word(i + 1)
		if w.role != definer {
			continue
		}
		name := l.name(o, i+1)
		if name < 0 || o.at(name).kind != nameToken {
			continue
		}
		close := closingToken(o, i)
		end := name + 1
		if o.isMark(end, ')') && end < close { // `(name options)`
			end++
		}
		for j := end; j < min(end+6, close); j = o.skip(j) {
			if l.params(o, j) {
				end = o.skip(j)
				break
			}
		}
		o.define(w.kind, name, i, min(end, close))
	}
}
