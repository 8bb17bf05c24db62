package lang

import "bytes"

func haskell() *Language {
	return &Language{
		Name: "haskell",
		exts: []string{".hs", ".hs-boot", ".hsc"}, shebang: []string{"runhaskell", "runghc"},
		text: text{
			imports:   importing{paths: "import"},
			block:     []block{{open: "{-", close: "-}", nested: true}},
			quotes:    []quote{{open: `"`, close: `"`, escape: '\\', multiline: true}},
			nameBytes: "'", specialBytes: "'-#", special: haskellSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Type}, "data newtype type"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Extension, hasMembers: true}, "instance"),
			wordsAs(word{role: definer, kind: Module}, "module"),
			wordsAs(word{role: reserved}, "case deriving do else foreign if import in infix infixl infixr let of then where"),
			wordsAs(word{role: reserved, canBeName: true}, "family qualified hiding as forall String Int Maybe Bool Just Nothing True False return pure"),
		),
		outline: outlineHaskell,
	}
}

// outlineHaskell finds definitions at the left margin, and methods of classes.
func outlineHaskell(o *outline) {
	var last string // the function whose clauses are being read
	for i := 0; i < len(o.tokens); i++ {
		t := &o.tokens[i]
		if !t.first || t.col > 0 && len(o.levels) == 0 {
			continue
		}
		if t.col == 0 {
			o.levels = o.levels[:0]
		}
		end := i + 1
		for end < len(o.tokens) && (!o.tokens[end].first || o.tokens[end].col > t.col) {
			end++
		}
		w := o.word(i)
		switch {
		case t.col > 0: // in a class
			haskellSignature(o, Method, i, end)
		case w.role == definer:
			haskellType(o, w, i, end)
			last = ""
			if w.hasMembers && len(o.levels) > 0 {
				continue // its methods are next
			}
		case o.isName(i) && o.isMark(i+1, ':') && o.isMark(i+2, ':') || o.isMark(i+1, ','), o.isMark(i, '('):
			last = haskellSignature(o, Function, i, end)
		case o.isName(i) && string(o.text(i)) != last && !haskellSigned(o, i) && haskellEquation(o, i, end):
			to := i + 1
			for to < end && (!o.isMark(to, '=') && !o.isMark(to, '|')) {
				to = o.skip(to)
			}
			last = string(o.text(i))
			o.define(Function, i, i, to)
		}
		i = end - 1
	}
}

// signedTogether is the number of preceding definitions that haskellSigned checks.
const signedTogether = 128

// haskellSigned reports whether one of the preceding signatures declares the name.
func haskellSigned(o *outline, at int) bool {
	for i := len(o.defs) - 1; i >= max(0, len(o.defs)-signedTogether); i-- {
		if d := o.defs[i]; d.kind == Function && string(o.sig[d.nameFrom:d.nameTo]) == string(o.text(at)) {
			return true
		}
	}
	return false
}

// haskellEquation reports whether a line defines the name at its beginning.
func haskellEquation(o *outline, at, end int) bool {
	if c := o.src[o.at(at).start]; c >= 'A' && c <= 'Z' {
		return false
	}
	if o.isMark(at+1, '|') && o.adjoins(at+1) && o.at(at+2).mark != 0 {
		return false // of an operator
	}
	if t := o.at(at + 1); t.mark != 0 && bytes.IndexByte([]byte("=|([_!~@{"), t.mark) < 0 {
		return false // of an operator
	}
	for i := at + 1; i < end; i = o.skip(i) {
		if o.isMark(i, '=') || o.isMark(i, '|') {
			return true
		}
	}
	return false
}

// haskellSignature reads `name, name :: type` and returns the last name.
func haskellSignature(o *outline, kind Kind, at, end int) string {
	name, last := at, ""
	for name < end {
		at := name
		if o.isMark(name, '(') { // an operator
			to := o.skip(name)
			several := o.isMark(to, ',') && o.isMark(to+1, '(')
			if several || o.marks(to, "::") {
				last = string(o.src[o.at(name).start:o.at(to-1).end])
				o.defineAs(last, kind, name, "", name, end)
			}
			if !several {
				return last
			}
			name = to + 1
			continue
		}
		if !o.isName(at) {
			return last
		}
		if o.isMark(at+1, ':') && o.isMark(at+2, ':') || o.isMark(at+1, ',') {
			last = string(o.text(at))
			o.define(kind, at, at, end)
		}
		if !o.isMark(at+1, ',') {
			return last
		}
		name = at + 2
	}
	return last
}

// haskellType reads `data Name a = …`, `class (A a) => Name a where`.
func haskellType(o *outline, w word, at, end int) {
	name := at + 1
	if o.is(name, "family") || o.is(name, "instance") {
		if o.is(name, "instance") {
			return
		}
		name++
	}
	to := name
	for i := name; i < end; i = o.skip(i) {
		if o.marks(i, "=>") {
			name = i + 2
			i++
			to = i + 1
			continue
		}
		if o.isMark(i, '=') || o.is(i, "where") || o.is(i, "deriving") {
			break
		}
		to = o.skip(i)
	}
	for w.kind == Module && o.isMark(name+1, '.') {
		name += 2
	}
	if o.at(name).kind != nameToken {
		return
	}
	to = min(to, end)
	if w.kind == Module {
		to = name + 1
	}
	d := o.define(w.kind, name, at, to)
	if w.kind == Class {
		o.levels = append(o.levels, level{parent: d, kind: Class})
	}
}

// haskellSpecial reads comments, character literals, and preprocessor lines.
func haskellSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	switch src[i] {
	case '#':
		if x.first && i == x.lineStart {
			x.skipLine()
			return true
		}
		return false
	case '\'':
		return tickSpecial(x)
	}
	end := i
	for end < len(src) && src[end] == '-' {
		end++
	}
	if end-i < 2 || end < len(src) && bytes.IndexByte([]byte("!#$%&*+./<=>?@\\^|~:"), src[end]) >= 0 && end-i < 3 && src[end] != '|' {
		if end-i >= 2 {
			x.pos = end
			return true
		}
		return false
	}
	x.skipLine()
	return true
}
