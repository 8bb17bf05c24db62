package linesearch

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// literal is a literal to search for.
type literal struct {
	text     string // in lower case if fold
	fold     bool   // ASCII letters match in both cases
	complete bool   // it is the whole literal of the expression

	rare int // offset of its rarest byte
}

// maxRequired is the most literals that are searched for at the same time.
const maxRequired = 6

// requiredLiterals returns literals of which every match contains at least one; nil if none are known.
func requiredLiterals(re *syntax.Regexp) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		if l, ok := newLiteral(re); ok {
			return []literal{l}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredLiterals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredLiterals(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []literal
		for _, sub := range re.Sub {
			if n := requiredLiterals(sub); len(n) > 0 && (best == nil || score(n) > score(best)) {
				best = n
			}
		}
		return best
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			n := requiredLiterals(sub)
			if len(n) == 0 || len(all)+len(n) > maxRequired {
				return nil
			}
			all = append(all, n...)
		}
		return all
	}
	return nil
}

// newLiteral converts a literal expression. If the expression ignores case, it takes the longest
// part whose case variants are all ASCII.
func newLiteral(re *syntax.Regexp) (literal, bool) {
	if slices.Contains(re.Rune, utf8.RuneError) { // invalid UTF-8 bytes match it as well
		return literal{}, false
	}
	if re.Flags&syntax.FoldCase == 0 {
		l := literal{text: string(re.Rune), complete: true}
		l.rare = rarest(l.text)
		return l, true
	}
	parts := strings.FieldsFunc(strings.ToLower(string(re.Rune)), func(r rune) bool { return !foldsInASCII(r) })
	if len(parts) == 0 {
		return literal{}, false
	}
	longest := slices.MaxFunc(parts, func(a, b string) int { return len(a) - len(b) })
	return literal{text: longest, fold: true, complete: len(longest) == len(re.Rune), rare: rarest(longest)}, true
}

// foldsInASCII reports whether all case variants of a rune are ASCII: k, for example, has the
// Kelvin sign as a variant.
func foldsInASCII(r rune) bool {
	for f := unicode.SimpleFold(r); ; f = unicode.SimpleFold(f) {
		if f >= utf8.RuneSelf {
			return false
		}
		if f == r {
			return true
		}
	}
}

// frequent are the bytes of programs and prose, the most frequent first. All others are rarer.
const frequent = " etnaroisldc\tupmf\nhg_b.,()v;y\"=w/-k:{}0x*>1S<'TCEI[]2A&Rj+RNq#PDLOFzMB"

// rank returns how rare a byte is.
func rank(c byte) int {
	if i := strings.IndexByte(frequent, c); i >= 0 {
		return i
	}
	return len(frequent)
}

func rarest(text string) int {
	best := 0
	for i := range len(text) {
		if rank(text[i]) > rank(text[best]) {
			best = i
		}
	}
	return best
}

// score compares lists of literals: the longer and rarer the worst literal is, the better.
func score(list []literal) int {
	worst := 1 << 30
	for _, l := range list {
		worst = min(worst, min(len(l.text), 8)*20+rank(l.text[l.rare]))
	}
	return worst - 10*len(list)
}

// index returns the first position of the literal, or -1.
func (l *literal) index(text []byte) int {
	c := l.text[l.rare]
	upper := c
	if l.fold && 'a' <= c && c <= 'z' {
		upper -= 'a' - 'A'
	}
	last := len(text) - (len(l.text) - l.rare) // last possible position of the rarest byte
	nextLower, nextUpper := -1, -1
	for at := l.rare; at <= last; at++ {
		if nextLower < at {
			nextLower = indexFrom(text, c, at)
		}
		best := nextLower
		if upper != c {
			if nextUpper < at {
				nextUpper = indexFrom(text, upper, at)
			}
			best = min(best, nextUpper)
		}
		if at = best; at > last {
			break
		}
		if l.equal(text[at-l.rare : at-l.rare+len(l.text)]) {
			return at - l.rare
		}
	}
	return -1
}

// indexFrom returns the position of a byte at or after from; otherwise the end of the text.
func indexFrom(text []byte, c byte, from int) int {
	if i := bytes.IndexByte(text[from:], c); i >= 0 {
		return from + i
	}
	return len(text)
}

func (l *literal) equal(text []byte) bool {
	if !l.fold {
		return string(text) == l.text
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != l.text[i] {
			return false
		}
	}
	return true
}
