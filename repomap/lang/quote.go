package lang

// maxInterpolations is the maximum nesting of strings in embedded code.
const maxInterpolations = 12

// endOfQuote returns the end of a string whose content begins at i.
func endOfQuote(src []byte, i int, q *quote, depth int) int {
	for i < len(src) {
		c := src[i]
		switch {
		case c == '\n' && !q.multiline:
			return i
		case q.interpolation != "" && depth < maxInterpolations && c == q.interpolation[0] && hasPrefix(src[i:], q.interpolation):
			i = endOfInterpolation(src, i+len(q.interpolation), q, depth)
		case c == q.escape && c != 0:
			i += 2
		case c == q.close[0] && hasPrefix(src[i:], q.close):
			i += len(q.close)
			if q.doubled && hasPrefix(src[i:], q.close) {
				i += len(q.close)
				continue
			}
			return i
		default:
			i++
		}
	}
	return len(src)
}

// endOfInterpolation returns the end of embedded code in a string.
func endOfInterpolation(src []byte, i int, q *quote, depth int) int {
	closing := byte('}')
	if q.interpolation[len(q.interpolation)-1] == '(' {
		closing = ')'
	}
	open, braces := q.interpolation[len(q.interpolation)-1], 1
	for i < len(src) {
		switch c := src[i]; {
		case c == '\n' && !q.multiline:
			return i
		case c == open:
			braces++
			i++
		case c == closing:
			i++
			if braces--; braces == 0 {
				return i
			}
		case open == '(' && q.interpolation[0] == '$' && c == '\\': // in a shell: an escaped byte
			i += 2
		case open == '(' && q.interpolation[0] == '$' && c == '\'':
			i = endOfQuote(src, i+1, &quote{close: "'", multiline: q.multiline}, depth+1)
		case c == '"' || c == '`' && q.open == "`":
			inner := quote{open: string(c), close: string(c), escape: '\\', multiline: q.multiline, interpolation: q.interpolation}
			if c == '"' && q.open == "`" { // in a script: an ordinary string
				inner.interpolation, inner.multiline = "", false
			}
			i = endOfQuote(src, i+1, &inner, depth+1)
		case c == '\'' && q.open == "`":
			i = endOfQuote(src, i+1, &quote{close: "'", escape: '\\'}, depth+1)
		case c == '\'' && open == '{' && charLiteralLen(src, i) > 0:
			i += charLiteralLen(src, i)
		case c == '/' && q.open == "`" && beginsRegexp(src, i):
			if end := endOfRegexp(src, i); end > 0 {
				i = end
			} else {
				i++
			}
		default:
			i++
		}
	}
	return len(src)
}

// charLiteralLen returns the length of a character literal, such as '"' or '\n'; otherwise 0.
func charLiteralLen(src []byte, i int) int {
	if i+2 < len(src) && src[i+1] != '\\' && src[i+2] == '\'' {
		return 3
	}
	if i+3 < len(src) && src[i+1] == '\\' && src[i+3] == '\'' {
		return 4
	}
	return 0
}
