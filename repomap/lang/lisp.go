package lang

// lisp finds definitions in parentheses that begin their line: `(defn name`.
type lisp struct {
	// name returns the token of the name behind the word at a token; -1 if there is none.
	name func(o *outline, at int) int
	// params says whether a token is the parameters, which end a signature.
	params func(o *outline, i int) bool
}

func (l *lisp) read(o *outline) {
	for i := 0; i+1 < len(o.tokens); i++ {
		if !o.isMark(i, '(') || !o.tokens[i].first && o.tokens[i].col > 0 {
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
		close := mate(o, i)
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
