package ignore

import "strings"

// segment is the part of a glob between two slashes. any is `**`, which matches any number of
// folders.
type segment struct {
	any    bool
	tokens []token
}

// token matches one byte, or with star any number of bytes. Like git, it works on bytes instead of
// characters.
type token struct {
	star bool
	set  set
}

// set is a set of bytes.
type set [4]uint64

func (s *set) add(b byte)      { s[b>>6] |= 1 << (b & 63) }
func (s *set) has(b byte) bool { return s[b>>6]&(1<<(b&63)) != 0 }

func (s *set) addRange(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		s.add(byte(b))
	}
}

func (s *set) invert() {
	for i := range s {
		s[i] = ^s[i]
	}
}

// compile parses a glob. ok is false for an invalid glob (an unclosed set, a backslash at the end),
// which matches nothing.
func compile(glob string) (path []segment, ok bool) {
	var seg segment
	end := func() {
		seg.any = seg.any && len(seg.tokens) == 1 // only stars
		path = append(path, seg)
		seg = segment{}
	}
	for i := 0; i < len(glob); i++ {
		var t token
		switch c := glob[i]; c {
		case '/':
			end()
			continue
		case '*':
			if n := len(seg.tokens); n > 0 && seg.tokens[n-1].star {
				seg.any = true // the second star
				continue
			}
			t.star = true
		case '?':
			t.set.invert()
		case '[':
			n, ok := t.set.parse(glob[i+1:])
			if !ok {
				return nil, false
			}
			i += n
		case '\\':
			if i++; i == len(glob) {
				return nil, false
			}
			if glob[i] == '/' {
				if seg.any && len(seg.tokens) == 1 { // for git, only a bare slash makes the pattern empty
					path = append(path, segment{tokens: seg.tokens})
				}
				end()
				continue
			}
			t.set.add(glob[i])
		default:
			t.set.add(c)
		}
		seg.tokens = append(seg.tokens, t)
	}
	end()
	return path, true
}

// parse parses a bracket expression after its `[`, and returns its length including the `]`.
func (s *set) parse(text string) (n int, ok bool) {
	i, negate := 0, false
	if i < len(text) && (text[i] == '!' || text[i] == '^') {
		negate = true
		i++
	}
	last, hasLast := byte(0), false // a possible start of a range
	for first := true; ; first = false {
		if i >= len(text) {
			return 0, false
		}
		c := text[i]
		switch {
		case c == ']' && !first:
			if negate {
				s.invert()
			}
			return i + 1, true
		case c == '\\':
			if i++; i >= len(text) {
				return 0, false
			}
			s.add(text[i])
			last, hasLast = text[i], true
		case c == '-' && hasLast && i+1 < len(text) && text[i+1] != ']':
			if i++; text[i] == '\\' {
				if i++; i >= len(text) {
					return 0, false
				}
			}
			s.addRange(last, text[i])
			hasLast = false
		case c == '[' && strings.HasPrefix(text[i+1:], ":"):
			length := strings.IndexByte(text[i+2:], ']')
			if length < 0 {
				return 0, false
			}
			name, closed := strings.CutSuffix(text[i+2:i+2+length], ":")
			if !closed { // literal characters
				s.add('[')
				last, hasLast = '[', true
				break
			}
			if !s.addClass(name) {
				return 0, false
			}
			i += 2 + length
			hasLast = false
		default:
			s.add(c)
			last, hasLast = c, true
		}
		i++
	}
}

// addClass adds an ASCII class such as `alpha`.
func (s *set) addClass(name string) bool {
	in, ok := map[string]func(byte) bool{
		"alnum":  func(b byte) bool { return isAlpha(b) || isDigit(b) },
		"alpha":  isAlpha,
		"blank":  func(b byte) bool { return b == ' ' || b == '\t' },
		"cntrl":  func(b byte) bool { return b < ' ' || b == 0x7f },
		"digit":  isDigit,
		"graph":  func(b byte) bool { return b > ' ' && b < 0x7f },
		"lower":  func(b byte) bool { return isAlpha(b) && b >= 'a' },
		"print":  func(b byte) bool { return b >= ' ' && b < 0x7f },
		"punct":  func(b byte) bool { return b > ' ' && b < 0x7f && !isAlpha(b) && !isDigit(b) },
		"space":  func(b byte) bool { return b == ' ' || b >= '\t' && b <= '\r' },
		"upper":  func(b byte) bool { return isAlpha(b) && b < 'a' },
		"xdigit": func(b byte) bool { return isDigit(b) || isAlpha(b) && b|0x20 <= 'f' },
	}[name]
	if !ok {
		return false
	}
	for b := range 256 {
		if in(byte(b)) {
			s.add(byte(b))
		}
	}
	return true
}

func isAlpha(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' }
func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// matchPath matches a whole path. A `**` first matches no folder, and one more each time the rest
// does not match. Only the last `**` needs to backtrack, so the work is limited by the product of
// the lengths.
func matchPath(segs []segment, path string) bool {
	at, pos := 0, 0         // in segs, and in path at the beginning of a name
	star, starPos := -1, -1 // the last `**`, and the position at which the part after it was tried
	for {
		if pos > len(path) {
			return at == len(segs)
		}
		end := len(path)
		if i := strings.IndexByte(path[pos:], '/'); i >= 0 {
			end = pos + i
		}
		switch {
		case at < len(segs) && segs[at].any:
			if at++; at == len(segs) {
				return true
			}
			star, starPos = at, pos
			continue
		case at < len(segs) && matchName(segs[at].tokens, path[pos:end]):
			at, pos = at+1, end+1
			continue
		case star < 0:
			return false
		}
		i := strings.IndexByte(path[starPos:], '/')
		if i < 0 {
			return false
		}
		starPos += i + 1
		at, pos = star, starPos
	}
}

// matchName matches one name; stars work as `**` does for folders.
func matchName(tokens []token, name string) bool {
	at, pos := 0, 0
	star, starPos := -1, -1
	for pos < len(name) || at < len(tokens) {
		switch {
		case at < len(tokens) && tokens[at].star:
			at++
			star, starPos = at, pos
			continue
		case at < len(tokens) && pos < len(name) && tokens[at].set.has(name[pos]):
			at, pos = at+1, pos+1
			continue
		case star < 0 || starPos == len(name):
			return false
		}
		starPos++
		at, pos = star, starPos
	}
	return true
}
