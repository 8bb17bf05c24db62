package lang

// lines finds definitions at the beginning of lines, in languages whose bodies end with a keyword
// or with less indentation. Nesting is determined by indentation.
type lines struct {
	// name returns the index of the name that the keyword with index at defines; -1 if it defines
	// nothing. If name is nil, the name is the next token.
	name func(o *outline, at int) int
	// withoutKeyword reads a definition without a keyword that begins with the first token of a line. It
	// returns the index of the token after the definition, or 0 if there is no definition.
	withoutKeyword func(o *outline, at int) int
	// endsSignature reports whether a signature ends before token i, although its line goes on.
	endsSignature func(o *outline, i int) bool
	// beginsLocalBody reports whether a token inside a line begins a body with local definitions. The body
	// ends at the first line that is not indented further than its own.
	beginsLocalBody func(o *outline, i int) bool
	// methods means that functions in types are methods.
	methods bool
	// locals means that functions in functions are reported.
	locals bool
}

func (l *lines) read(o *outline) {
	for i := 0; i < len(o.tokens); {
		t := &o.tokens[i]
		if !t.first && !o.isMark(i-1, ';') {
			if l.beginsLocalBody != nil && l.beginsLocalBody(o, i) {
				o.levels = append(o.levels, level{parent: o.parent(), col: o.indentation(i), kind: Function})
			}
			i++
			continue
		}
		for n := len(o.levels); n > 0 && t.first && int(t.col) <= o.levels[n-1].col; n-- {
			o.levels = o.levels[:n-1]
		}
		if n := len(o.levels); n > 0 && !l.locals && o.levels[n-1].kind == Function {
			i++
			continue
		}
		at := i
		for o.word(at).role == modifier && at < i+8 {
			at++
		}
		if w := o.word(at); w.role == definer {
			from := i
			if o.at(at).first { // a word alone on the line before is not part of it
				from = at
			}
			if next := l.definition(o, w, from, at); next > i {
				i = next
				continue
			}
		}
		if l.withoutKeyword != nil {
			if next := l.withoutKeyword(o, i); next > i {
				i = next
				continue
			}
		}
		i++
	}
}

func (l *lines) definition(o *outline, w word, from, at int) int {
	name := at + 1
	if l.name != nil {
		name = l.name(o, at)
	}
	if name < 0 || o.at(name).kind != nameToken {
		return 0
	}
	end := name + 1
	for end < len(o.tokens) && !o.tokens[end].first && !o.isMark(end, ';') && (l.endsSignature == nil || !l.endsSignature(o, end)) {
		end = o.skip(end)
	}
	kind := w.kind
	if l.methods && kind == Function && (o.inType() || len(o.levels) > 0 && o.levels[len(o.levels)-1].kind == Module) {
		kind = Method
	}
	d := o.define(kind, name, from, end)
	level := level{parent: d, col: int(o.tokens[from].col), kind: kind}
	if kind == Method || kind == Macro {
		level.kind = Function
	}
	if w.hasMembers || level.kind == Function && !l.locals {
		o.levels = append(o.levels, level)
	}
	return end
}
