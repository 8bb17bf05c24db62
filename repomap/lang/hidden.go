package lang

// hidden is the state of the lexer in a body that the outline skips. The lexer counts the names in
// the body and produces no tokens. Most of a program is in such bodies.
type hidden struct {
	on           bool
	unterminated bool   // a body had no end, so the lexer has already counted all names up to the end of the file
	open         []byte // the open brackets, the body's own first
	scratch      token  // what lexer.add returns while a body is hidden
}

// skipBody skips to the bracket that ends the body that just began. If there is no such bracket, as
// in unfinished code, the lexer reads the body as ordinary code, because it may be the rest of the
// file.
func (x *lexer) skipBody() {
	h := &x.hidden
	h.on, h.open = true, append(h.open[:0], '{')
	pos, line, lineStart := x.pos, x.line, x.lineStart
	x.readHiddenBody()
	if h.on {
		h.on, h.unterminated = false, true
		x.pos, x.line, x.lineStart, x.first = pos, line, lineStart, false
	}
}

// readHiddenBody reads a hidden body up to its end.
func (x *lexer) readHiddenBody() {
	src, l, pos := x.src, x.l, x.pos
	for pos < len(src) {
		c := src[pos]
		switch l.classes[c] {
		case letter:
			end, h := l.readName(src, pos)
			if end-pos >= minNameLen {
				x.uses.addUnlessKeyword(l, h^l.seed, c)
			}
			pos = end
			x.first = false
		case space:
			pos++
		case lineEnd:
			pos++
			x.pos = pos
			x.newLine()
		case bracket:
			if x.pos = pos; x.closesHiddenBody(c) {
				return
			}
			pos++
			x.first = false
		case other:
			pos++
			x.first = false
		case digit:
			x.pos = pos
			x.number()
			pos = x.pos
		case special:
			x.pos = pos
			if !x.special() {
				x.pos++
				x.first = false
			}
			pos = x.pos
		}
	}
	x.pos = pos
}

// closesHiddenBody pairs a bracket in a hidden body, as lexer.close does. It reports whether the bracket
// ends the body.
func (x *lexer) closesHiddenBody(c byte) bool {
	h := &x.hidden
	switch c {
	case '(', '[', '{':
		h.open = append(h.open, c)
		return false
	}
	want := opening(c)
	for depth := 1; depth <= min(maxOpenBrackets, len(h.open)); depth++ {
		i := len(h.open) - depth
		if h.open[i] == want {
			h.open = h.open[:i]
			break
		}
		if h.open[i] == '{' {
			break
		}
	}
	h.on = len(h.open) > 0
	return !h.on
}
