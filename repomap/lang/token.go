package lang

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// text says what the text of a language is made of.
type text struct {
	line   []string // what begins a comment that reaches to the end of its line
	block  []block
	quotes []quote
	start  string // bytes that begin names, besides letters and _
	inside string // bytes that names have inside, besides letters, digits and _
	tail   string // bytes that one name may end with
	// special reads what no table says: it is asked at each byte of at, before anything
	// else, and returns false if there is nothing for it.
	at      string
	special func(*lexer) bool

	ticks    bool // numbers may have ticks between digits
	caseless bool // names differ by more than their case
}

// block is a comment with two ends.
type block struct {
	open, close string
	nested      bool
}

// quote is a kind of string.
type quote struct {
	open, close string
	escape      byte   // protects the next byte; 0 if nothing does
	lines       bool   // it may contain line ends; without it, a line end closes it
	hole        string // begins code in it, as ${; empty if there is none
	doubled     bool   // a doubled close stands for itself
}

// class is what a byte begins.
type class uint8

const (
	other class = iota
	space
	lineEnd
	letter
	digit
	special // a comment, a string or something else that needs a look
)

type tokenKind uint8

const (
	nameToken tokenKind = iota + 1
	numberToken
	stringToken
	markToken // one byte of punctuation
)

// token is one word, number, string or mark.
type token struct {
	hash       uint64 // of names, with the language's seed
	start, end int32
	line       int32 // 1-based
	col        int32 // bytes before it in its line
	mate       int32 // index of the other bracket; -1 without one
	word       uint8 // index into Language.meaning; 0 for ordinary names
	kind       tokenKind
	mark       byte
	first      bool // the first of its line
}

// prepare makes what the lexer looks up.
func (l *Language) prepare() {
	for c := range l.classes {
		switch {
		case c <= ' ' && c != '\n': // control characters mean nothing, and are marks of ours
			l.classes[c] = space
		case c == '\n':
			l.classes[c] = lineEnd
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80:
			l.classes[c] = letter
			l.tails[c] = true
		case c >= '0' && c <= '9':
			l.classes[c] = digit
			l.tails[c] = true
		}
	}
	for _, c := range []byte(l.text.start) {
		l.classes[c] = letter
	}
	for _, c := range []byte(l.text.start + l.text.inside) {
		l.tails[c] = true
	}
	l.classes['\\'] = special
	for _, open := range l.text.line {
		l.classes[open[0]] = special
	}
	for _, b := range l.text.block {
		l.classes[b.open[0]] = special
	}
	for _, q := range l.text.quotes {
		l.classes[q.open[0]] = special
	}
	for _, c := range []byte(l.text.at) {
		l.classes[c] = special
	}
	if l.family == "" {
		l.family = l.Name
	}
	l.seed = hash([]byte("family " + l.family))
	l.meaning = []word{{}}
	size := 8
	for size < 4*len(l.words) {
		size *= 2
	}
	l.table = make([]wordSlot, size)
	var sorted []string
	for w := range l.words {
		sorted = append(sorted, w)
	}
	slices.Sort(sorted)
	for _, w := range sorted {
		l.meaning = append(l.meaning, l.words[w])
		h := hash([]byte(w)) ^ l.seed
		i := int(h) & (size - 1)
		for l.table[i].word != 0 {
			i = (i + 1) & (size - 1)
		}
		l.table[i] = wordSlot{h, uint8(len(l.meaning) - 1)}
	}
}

type wordSlot struct {
	hash uint64
	word uint8
}

func (l *Language) wordOf(h uint64) uint8 {
	for i := int(h) & (len(l.table) - 1); l.table[i].word != 0; i = (i + 1) & (len(l.table) - 1) {
		if l.table[i].hash == h {
			return l.table[i].word
		}
	}
	return 0
}

// hash is fast and the same on every machine; it resists no attack.
func hash(b []byte) uint64 {
	const k0, k1 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := uint64(len(b)) * k0
	for ; len(b) >= 8; b = b[8:] {
		hi, lo := bits.Mul64(h^binary.LittleEndian.Uint64(b), k1)
		h = hi ^ lo
	}
	var rest uint64
	for _, c := range b {
		rest = rest<<8 | uint64(c)
	}
	hi, lo := bits.Mul64(h^rest, k0)
	h = hi ^ lo
	return h ^ h>>29
}

// lexer turns text into tokens. Its memory is used again.
type lexer struct {
	l         *Language
	src       []byte
	pos       int
	line      int
	lineStart int
	first     bool // no token stands before pos in its line
	tokens    []token
	open      []int32 // unmatched brackets
	marks     []int   // lengths of open at conditions of a preprocessor
	lower     []byte
	vain      int // bytes that were looked at for an end that was not there
}

func (x *lexer) reset(l *Language, src []byte) {
	*x = lexer{l: l, src: src, line: 1, first: true, tokens: x.tokens[:0], open: x.open[:0], marks: x.marks[:0], lower: x.lower}
}

// byteOrderMark may stand before everything, and means nothing.
const byteOrderMark = "\xef\xbb\xbf"

// run reads everything.
func (x *lexer) run() {
	src, l := x.src, x.l
	if hasPrefix(src, byteOrderMark) {
		x.pos, x.lineStart = len(byteOrderMark), len(byteOrderMark)
	}
	for x.pos < len(src) {
		c := src[x.pos]
		switch l.classes[c] {
		case space:
			x.pos++
		case lineEnd:
			x.pos++
			x.newLine()
		case letter:
			x.name()
		case digit:
			x.number()
		case special:
			if !x.special() {
				x.mark(c)
			}
		default:
			x.mark(c)
		}
	}
}

func (x *lexer) newLine() {
	x.line++
	x.lineStart = x.pos
	x.first = true
}

func (x *lexer) add(kind tokenKind, start, end int) *token {
	x.tokens = append(x.tokens, token{
		start: int32(start), end: int32(end), line: int32(x.line), col: int32(start - x.lineStart), mate: -1, kind: kind, first: x.first,
	})
	x.first = false
	return &x.tokens[len(x.tokens)-1]
}

func (x *lexer) name() {
	start, src, l := x.pos, x.src, x.l
	end := start + 1
	for end < len(src) && l.tails[src[end]] {
		end++
	}
	if l.text.tail != "" && end < len(src) && bytes.IndexByte([]byte(l.text.tail), src[end]) >= 0 && (end+1 == len(src) || src[end+1] != '=') {
		end++
	}
	x.pos = end
	t := x.add(nameToken, start, end)
	name := src[start:end]
	if l.text.caseless {
		x.lower = append(x.lower[:0], name...)
		for i, c := range x.lower {
			if c >= 'A' && c <= 'Z' {
				x.lower[i] = c | 0x20
			}
		}
		name = x.lower
	}
	t.hash = hash(name) ^ l.seed
	t.word = l.wordOf(t.hash)
}

func (x *lexer) number() {
	start, src := x.pos, x.src
	end := start + 1
	for end < len(src) {
		c := src[end]
		if x.l.classes[c] == digit || x.l.classes[c] == letter || (c == '.' || c == '\'' && x.l.text.ticks) && end+1 < len(src) && x.l.classes[src[end+1]] == digit {
			end++
			continue
		}
		break
	}
	x.pos = end
	x.add(numberToken, start, end)
}

func (x *lexer) mark(c byte) {
	t := x.add(markToken, x.pos, x.pos+1)
	t.mark = c
	x.pos++
	at := int32(len(x.tokens) - 1)
	switch c {
	case '(', '[', '{':
		x.open = append(x.open, at)
	case ')', ']', '}':
		x.close(at, opening(c))
	}
}

func opening(closing byte) byte {
	switch closing {
	case ')':
		return '('
	case ']':
		return '['
	}
	return '{'
}

// close pairs a bracket. Where they do not fit, as in code that is being written, the
// nearest one that fits counts; braces close whatever is open in them.
func (x *lexer) close(at int32, want byte) {
	for depth := 1; depth <= min(8, len(x.open)); depth++ {
		i := len(x.open) - depth
		o := x.open[i]
		if x.tokens[o].mark == want {
			x.tokens[o].mate, x.tokens[at].mate = at, o
			x.open = x.open[:i]
			return
		}
		if x.tokens[o].mark == '{' {
			return
		}
	}
}

// special reads comments, strings and what is special to the language.
func (x *lexer) special() bool {
	src, l := x.src, x.l
	c := src[x.pos]
	if l.text.special != nil && bytes.IndexByte([]byte(l.text.at), c) >= 0 && l.text.special(x) {
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
	if c == '\\' && len(rest) > 1 && rest[1] == '\n' { // the line goes on
		x.pos += 2
		x.line++
		x.lineStart = x.pos
		return true
	}
	return false
}

func hasPrefix(b []byte, s string) bool { return len(b) >= len(s) && string(b[:len(s)]) == s }

// skipLine goes to the end of the line.
func (x *lexer) skipLine() {
	if i := bytes.IndexByte(x.src[x.pos:], '\n'); i >= 0 {
		x.pos += i
	} else {
		x.pos = len(x.src)
	}
}

// skipTo goes to a later position and counts lines.
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

// endOfBlock returns where a comment that begins at pos ends.
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

// hopeful says whether the end of something may be looked for that may have none. It keeps
// what is looked at for nothing in proportion to what was read.
func (x *lexer) hopeful() bool {
	const free = 1 << 16
	return x.vain <= 4*x.pos+free
}

// last returns the token before pos; the zero token at the beginning.
func (x *lexer) last() token {
	if len(x.tokens) == 0 {
		return token{}
	}
	return x.tokens[len(x.tokens)-1]
}
