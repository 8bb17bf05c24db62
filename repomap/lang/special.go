package lang

import "bytes"

// special reads comments, strings and the special elements of the language.
func (x *lexer) special() bool {
	src, l := x.src, x.l
	c := src[x.pos]
	if l.text.special != nil && bytes.IndexByte([]byte(l.text.specialBytes), c) >= 0 && l.text.special(x) {
		return true
	}
	rest := src[x.pos:]
	for _, open := range l.text.line {
		if c == open[0] && hasPrefix(rest, open) {
			x.skipLine()
			return true
		}
	}
	for i := range l.text.block {
		if b := &l.text.block[i]; c == b.open[0] && hasPrefix(rest, b.open) {
			x.comment(b)
			return true
		}
	}
	for i := range l.text.quotes {
		if q := &l.text.quotes[i]; c == q.open[0] && hasPrefix(rest, q.open) {
			x.quoted(q, x.pos, x.pos+len(q.open))
			return true
		}
	}
	if c == '\\' && len(rest) > 1 && rest[1] == '\n' { // the line is continued
		x.pos += 2
		x.line++
		x.lineStart = x.pos
		return true
	}
	return false
}

func hasPrefix(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

// skipLine skips to the end of the line.
func (x *lexer) skipLine() {
	if i := bytes.IndexByte(x.src[x.pos:], '\n'); i >= 0 {
		x.pos += i
	} else {
		x.pos = len(x.src)
	}
}

// skipTo skips to a later position and counts lines.
func (x *lexer) skipTo(end int) {
	skipped := x.src[x.pos:end]
	if n := bytes.Count(skipped, []byte{'\n'}); n > 0 {
		x.line += n
		x.lineStart = x.pos + bytes.LastIndexByte(skipped, '\n') + 1
	}
	x.pos = end
}

func (x *lexer) comment(b *block) {
	line := x.line
	x.skipTo(endOfBlock(x.src, x.pos, b))
	if x.line > line {
		x.first = true
	}
}

// endOfBlock returns the end of a comment that begins at pos.
func endOfBlock(src []byte, pos int, b *block) int {
	i, depth := pos+len(b.open), 1
	if !b.nested {
		if end := bytes.Index(src[min(i, len(src)):], []byte(b.close)); end >= 0 {
			return i + end + len(b.close)
		}
		return len(src)
	}
	for i < len(src) {
		switch rest := src[i:]; {
		case rest[0] == b.close[0] && hasPrefix(rest, b.close):
			i += len(b.close)
			if depth--; depth == 0 {
				return i
			}
		case rest[0] == b.open[0] && hasPrefix(rest, b.open):
			i += len(b.open)
			depth++
		default:
			i++
		}
	}
	return len(src)
}

// quoted adds the string that begins at start and whose content begins at body.
func (x *lexer) quoted(q *quote, start, body int) {
	end := endOfQuote(x.src, body, q, 0)
	x.stringTo(start, end)
}

// stringTo adds the string from start to end.
func (x *lexer) stringTo(start, end int) {
	x.add(stringToken, start, end)
	x.skipTo(end)
}

// mayScanAhead reports whether the lexer may search for an end that may be missing. It limits
// unsuccessful searches to a multiple of the text read so far, so that the total time is linear.
func (x *lexer) mayScanAhead() bool {
	const allowance = 1 << 16
	return x.wastedScans <= 4*x.pos+allowance
}
