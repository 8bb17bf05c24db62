package lang

import "strings"

// braces finds definitions that keywords introduce (`fn name`, `class Name {`) in languages whose
// bodies are in braces. It reads bodies that contain definitions and skips all other bodies and
// braces.
type braces struct {
	lines     bool // a statement ends with its line, unless it is continued
	typeBrace bool // types can contain braces: `f(): {a: number} {`
	indents   bool // bodies may be indented instead of in braces

	// name returns the index of the name that the keyword with index at defines; -1 if it defines
	// nothing. If name is nil, the name is the next token.
	name func(o *outline, at int) int
	// withoutKeyword reads a definition without a keyword. It returns the index of the token after the
	// definition, or 0 if there is no definition.
	withoutKeyword func(o *outline, at int) int
	// anyName means that keywords can be the names of functions in types.
	anyName bool
	// operators are the marks that operator names consist of: `def +(x`.
	operators string
	// typeHead returns the index at which the signature of a type continues after its apparent end
	// i. If the signature does not continue, it returns i.
	typeHead func(o *outline, i int) int
	// value returns the end of the signature if the value that begins with token at is a function,
	// otherwise 0.
	value func(o *outline, at int) int
}

func (b *braces) read(o *outline) {
	for i := 0; i < len(o.tokens); {
		if n := len(o.levels); n > 0 && (i >= o.levels[n-1].end || b.indents && o.levels[n-1].col >= 0 && o.tokens[i].first && int(o.tokens[i].col) <= o.levels[n-1].col) {
			if i == o.levels[n-1].end {
				i++
			}
			o.levels = o.levels[:n-1]
			continue
		}
		if o.word(i).role == definer && !o.isMark(i-1, '.') && (!o.isMark(i-1, ':') || o.tokens[i].first) {
			if next := b.definition(o, i); next > i {
				i = next
				continue
			}
		}
		if b.withoutKeyword != nil {
			if next := b.withoutKeyword(o, i); next > i {
				i = next
				continue
			}
		}
		i = o.skip(i)
	}
}

// definition reads a definition, given the index of its keyword.
func (b *braces) definition(o *outline, at int) int {
	w := o.word(at)
	if o.word(at+1).role == definer && !o.word(at+1).canBeName { // `enum class`: the last keyword is used
		return at + 1
	}
	name := at + 1
	if b.name != nil {
		name = b.name(o, at)
	}
	if name < 0 {
		return 0
	}
	operator := ""
	if name != at && b.operators != "" {
		operator = b.operator(o, name)
	}
	word := b.anyName && w.kind == Function && o.inType() && o.at(name).kind == nameToken && o.isMark(name+1, '(')
	if name != at && !o.isName(name) && operator == "" && !word {
		if w.hasMembers && !w.canBeName && o.isMark(name, '{') && o.at(name).mate > 0 { // anonymous: its members belong to the enclosing definition
			o.levels = append(o.levels, level{end: int(o.at(name).mate), parent: o.parent(), col: -1, kind: w.kind})
			return name + 1
		}
		return 0
	}
	from, kind := b.startOf(o, at), w.kind
	for i := from; i < at; i++ {
		if before := o.word(i); before.role == definer && before.kind == Enum {
			kind = Enum
		}
	}
	if kind == Function && o.inType() {
		kind = Method
	}
	if operator != "" {
		return b.operatorDefinition(o, w, kind, at, name, operator)
	}
	end := b.end(o, name+1, kind == Property || kind == Constant || kind == Variable)
	if w.hasMembers && b.typeHead != nil {
		if i := b.typeHead(o, end); i > end {
			end = b.end(o, i, false)
		}
	}
	if (kind == Constant || kind == Variable) && b.value != nil && o.isMark(end, '=') {
		if signatureEnd := b.value(o, end+1); signatureEnd > 0 {
			kind, end = Function, signatureEnd
		}
	}
	return b.body(o, w, o.define(kind, name, from, end), kind, from, end)
}

// operator returns an operator name: one that consists of marks, or ends with marks, such as
// `unary_-`. It returns "" for other names.
func (b *braces) operator(o *outline, name int) string {
	i := name
	if o.at(i).kind == nameToken {
		if text := o.text(i); text[len(text)-1] != '_' || !o.adjoins(i) {
			return ""
		}
		i++
	}
	const maxLen = 8
	end := i
	for end < i+maxLen && o.at(end).mark != 0 && strings.IndexByte(b.operators, o.at(end).mark) >= 0 && (end == i || o.adjoins(end-1)) {
		end++
	}
	if end == i {
		return ""
	}
	return string(o.src[o.at(name).start:o.at(end-1).end])
}

// operatorDefinition reads the definition of an operator.
func (b *braces) operatorDefinition(o *outline, w word, kind Kind, at, name int, operator string) int {
	from, nameEnd := b.startOf(o, at), name
	for stop := int(o.at(name).start) + len(operator); nameEnd < len(o.tokens) && int(o.at(nameEnd).start) < stop; {
		nameEnd++
	}
	end := b.end(o, nameEnd, false)
	return b.body(o, w, o.defineAs(operator, kind, name, "", from, end), kind, from, end)
}

// startOf returns where a definition begins: at its modifiers before the keyword.
func (b *braces) startOf(o *outline, at int) int {
	for range 16 {
		switch before := o.word(at - 1); {
		case (before.role == modifier || before.role == definer) && !o.isMark(at-2, '.'):
			at--
			continue
		case o.at(at-1).kind == stringToken && o.word(at-2).role == modifier: // as in `extern "C"`
			at -= 2
			continue
		case o.isMark(at-1, ')') || o.isMark(at-1, ']'): // as in `pub(crate)`
			if m := int(o.tokens[at-1].mate); m > 0 && m < at && o.word(m-1).role == modifier && o.adjoins(m-1) {
				at = m - 1
				continue
			}
		}
		break
	}
	return at
}

// body enters or skips the body after a signature.
func (b *braces) body(o *outline, w word, def int, kind Kind, from, end int) int {
	col := int(o.at(from).col)
	if b.indents {
		col = o.indentation(from)
	}
	switch {
	case o.isMark(end, '{') && o.at(end).mate > 0:
		if !w.hasMembers {
			return o.skip(end)
		}
		o.levels = append(o.levels, level{end: int(o.at(end).mate), parent: def, col: -1, kind: kind})
		return end + 1
	case o.isMark(end, '{'):
		return end + 1
	case b.indents && w.hasMembers && o.isMark(end, ':'):
		o.levels = append(o.levels, level{end: len(o.tokens), parent: def, col: col, kind: kind})
		return end + 1
	case b.indents && o.isMark(end, '='):
		limit := len(o.tokens)
		if n := len(o.levels); n > 0 {
			limit = o.levels[n-1].end
		}
		i := end + 1
		for i < limit && (!o.tokens[i].first || int(o.tokens[i].col) > col) {
			i = o.skip(i)
		}
		return min(i, limit)
	}
	return end
}

// end returns the index of the token after a signature. The signature continues at i.
func (b *braces) end(o *outline, i int, value bool) int {
	angles := 0
	for i < len(o.tokens) {
		t := &o.tokens[i]
		if t.first && b.lines && angles <= 0 && b.lineEnds(o, i) {
			return i
		}
		switch t.mark {
		case '{':
			if (angles <= 0 || t.mate <= 0) && (!b.typeBrace || !b.inTypeExpression(o, i)) {
				return i
			}
		case ';', '}', ')', ']':
			return i
		case ',':
			if angles <= 0 && value {
				return i
			}
		case '=':
			if !o.isMark(i+1, '>') && (!o.isMark(i+1, '=') || !o.adjoins(i)) {
				if angles <= 0 {
					return i
				}
			} else {
				i++ // an arrow
			}
		case '<':
			if !b.indents { // without braces, type parameters are in other brackets
				angles++
			}
		case '>':
			if !o.isMark(i-1, '-') && !b.indents {
				angles--
			}
		case ':':
			if b.indents && (i+1 == len(o.tokens) || o.tokens[i+1].first) {
				return i
			}
		}
		i = o.skip(i)
	}
	return i
}

// inTypeExpression reports whether a brace belongs to a type rather than a body.
func (b *braces) inTypeExpression(o *outline, i int) bool {
	p := o.at(i - 1)
	return o.at(i).mate > 0 && (p.mark == ':' || p.mark == '|' || p.mark == '&' || p.mark == '>' && o.isMark(i-2, '='))
}

// lineEnds reports whether a statement ends before the first token of a line.
func (b *braces) lineEnds(o *outline, i int) bool {
	t := &o.tokens[i]
	if o.word(i).role == continuing {
		return false
	}
	switch o.at(i - 1).mark {
	case ',', ':', '=', '|', '&', '+', '<', '.':
		return false
	}
	if before := o.word(i - 1); before.role == continuing && !before.standsAlone {
		return false
	}
	return t.kind == nameToken || t.kind == stringToken || t.mark == '@' || t.mark == '#' || t.mark == '}' || t.mark == '(' && !o.isMark(i-1, '>') && (!b.indents || !o.isMark(i-1, ']') && !o.isMark(i-1, ')'))
}
