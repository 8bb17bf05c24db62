package lang

import (
	"bytes"
	"slices"
	"strings"
)

// text describes the lexical elements of a language.
type text struct {
	line      []string // the marks that begin a line comment
	block     []block
	quotes    []quote
	nameStart string // bytes that can begin names, besides letters and _
	nameBytes string // bytes that names can contain, besides letters, digits and _
	nameEnd   string // bytes with which a name may end, as in `empty?`
	// special reads other elements. It is called first at each byte in specialBytes, and returns
	// false if it finds no such element.
	specialBytes string
	special      func(*lexer) bool

	imports importing

	ticks    bool // numbers may have ticks between digits, as in 1'000
	caseless bool // names are case-insensitive
}

// block is a block comment.
type block struct {
	open, close string
	nested      bool
}

// quote is a kind of string literal.
type quote struct {
	open, close   string
	escape        byte   // escapes the next byte; 0 if there is no escape
	multiline     bool   // it may span lines; otherwise a line end closes it
	interpolation string // begins embedded code, such as ${; may be empty
	doubled       bool   // a doubled closing quote stands for itself
}

// class is the lexical class of a byte.
type class uint8

const (
	other class = iota
	space
	lineEnd
	letter
	digit
	special // may begin a comment, a string or another special element
	bracket
)

type tokenKind uint8

const (
	nameToken tokenKind = iota + 1
	numberToken
	stringToken
	markToken // one byte of punctuation
)

// token is a word, number, string or mark.
type token struct {
	start, end int32
	line       int32 // 1-based
	col        int32 // bytes before it on its line
	mate       int32 // index of the matching bracket; -1 if none
	word       uint8 // index into Language.meaning; 0 for ordinary names
	kind       tokenKind
	mark       byte
	first      bool // the first on its line
}

// prepare builds the lexer's tables.
func (l *Language) prepare() {
	for c := range l.classes {
		switch {
		case c <= ' ' && c != '\n': // control characters in the source count as space, because token.mark uses them for artificial tokens
			l.classes[c] = space
		case c == '\n':
			l.classes[c] = lineEnd
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 0x80:
			l.classes[c] = letter
			l.tails[c] = true
		case c >= '0' && c <= '9':
			l.classes[c] = digit
			l.tails[c] = true
		case strings.IndexByte("()[]{}", byte(c)) >= 0:
			l.classes[c] = bracket
		}
	}
	l.plain = l.text.nameStart+l.text.nameBytes == ""
	for _, c := range []byte(l.text.nameStart) {
		l.classes[c] = letter
	}
	for _, c := range []byte(l.text.nameStart + l.text.nameBytes) {
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
	for _, c := range []byte(l.text.specialBytes) {
		l.classes[c] = special
	}
	if l.family == "" {
		l.family = l.Name
	}
	l.seed = hash([]byte("family " + l.family))
	l.meaning, l.importKinds = []word{{}}, []uint8{0}
	begins := map[string]uint8{}
	for _, w := range strings.Fields(l.text.imports.paths) {
		begins[w] = importsPath
	}
	for _, w := range strings.Fields(l.text.imports.texts) {
		begins[w] = importsText
	}
	for w := range begins {
		if _, known := l.words[w]; !known {
			l.words[w] = word{role: reserved, canBeName: true}
		}
	}
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
		l.meaning, l.importKinds = append(l.meaning, l.words[w]), append(l.importKinds, begins[w])
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

// lexer splits text into tokens and reuses its memory.
type lexer struct {
	l                *Language
	src              []byte
	pos              int
	line             int
	lineStart        int
	first            bool // no token precedes pos on its line
	tokens           []token
	open             []int32 // unmatched brackets
	openAtConditions []int   // by enclosing #if: the length of open there
	lower            []byte
	wastedScans      int // bytes searched for a missing end
	uses             counter
	hidden           hidden   // the function body that is being skipped
	included         []string // files named by preprocessor lines
}

func (x *lexer) reset(l *Language, src []byte) {
	*x = lexer{
		l: l, src: src, line: 1, first: true, tokens: x.tokens[:0], open: x.open[:0], openAtConditions: x.openAtConditions[:0], lower: x.lower,
		uses: x.uses, hidden: hidden{open: x.hidden.open[:0]},
	}
	x.uses.begin(len(src))
}

// byteOrderMark may begin a file, and is skipped.
const byteOrderMark = "\xef\xbb\xbf"

// run reads the whole text.
func (x *lexer) run() {
	src, l := x.src, x.l
	if hasPrefix(src, byteOrderMark) {
		x.pos, x.lineStart = len(byteOrderMark), len(byteOrderMark)
	}
	for x.pos < len(src) {
		c := src[x.pos]
		switch l.classes[c] {
		case space:
			end := x.pos + 1
			for end < len(src) && l.classes[src[end]] == space {
				end++
			}
			x.pos = end
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

// add adds a token. The pointer is valid until the next call.
func (x *lexer) add(kind tokenKind, start, end int) *token {
	t := token{
		start: int32(start), end: int32(end), line: int32(x.line), col: int32(start - x.lineStart), mate: -1, kind: kind, first: x.first,
	}
	x.first = false
	if x.hidden.on {
		x.hidden.scratch = t
		return &x.hidden.scratch
	}
	x.tokens = append(x.tokens, t)
	return &x.tokens[len(x.tokens)-1]
}

func (x *lexer) name() {
	start, src, l := x.pos, x.src, x.l
	end, h := l.readName(src, start)
	if l.text.nameEnd != "" && end < len(src) && bytes.IndexByte([]byte(l.text.nameEnd), src[end]) >= 0 && (end+1 == len(src) || src[end+1] != '=') {
		end++
		h = hash(src[start:end])
	}
	x.pos = end
	if l.text.caseless {
		x.lower = append(x.lower[:0], src[start:end]...)
		for i, c := range x.lower {
			if c >= 'A' && c <= 'Z' {
				x.lower[i] = c | 0x20
			}
		}
		h = hash(x.lower)
	}
	h ^= l.seed
	word := l.wordOf(h)
	if word == 0 {
		x.countUse(h, start, end)
	}
	x.add(nameToken, start, end).word = word
}

// countUse counts a name that is not a keyword.
func (x *lexer) countUse(h uint64, start, end int) {
	if end-start >= minNameLen && !x.hidden.unterminated {
		x.uses.add(x.l.withPrivacyBit(h, x.src[start]))
	}
}

func (x *lexer) number() {
	start, src, l := x.pos, x.src, x.l
	end := start + 1
	for end < len(src) {
		switch c := src[end]; {
		case l.classes[c] == digit || l.classes[c] == letter:
			end = l.alphanumeric(src, end+1)
			continue
		case (c == '.' || c == '\'' && l.text.ticks) && end+1 < len(src) && l.classes[src[end+1]] == digit:
			end++
			continue
		}
		break
	}
	x.pos = end
	x.add(numberToken, start, end)
}

func (x *lexer) mark(c byte) {
	x.add(markToken, x.pos, x.pos+1).mark = c
	x.pos++
	at := int32(len(x.tokens) - 1)
	switch c {
	case '(', '[', '{':
		x.open = append(x.open, at)
		if c == '{' && x.l.skipsBody != nil && len(x.open) == 1 && !x.hidden.unterminated && x.l.skipsBody(x) {
			x.skipBody()
		}
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

// maxOpenBrackets is how many of the innermost open brackets the function close compares with a closing
// bracket.
const maxOpenBrackets = 8

// close pairs a bracket. If brackets are unbalanced, as in unfinished code, it takes the nearest
// match; a brace also closes other brackets inside it.
func (x *lexer) close(at int32, want byte) {
	for depth := 1; depth <= min(maxOpenBrackets, len(x.open)); depth++ {
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

// last returns the token before pos; at the beginning, it returns the zero token.
func (x *lexer) last() token {
	if len(x.tokens) == 0 {
		return token{}
	}
	return x.tokens[len(x.tokens)-1]
}
