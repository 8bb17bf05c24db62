package lang

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
)

// role is the syntactic role of a word.
type role uint8

const (
	reserved   role = iota + 1 // not a name, and no other meaning
	definer                    // introduces a definition
	modifier                   // may precede a definition
	continuing                 // continues a definition on another line
)

// word is a word with a role.
type word struct {
	role role
	kind Kind // of a definer
	// hasMembers means that the body contains definitions of interest.
	hasMembers bool
	// canBeName means that the word can be a name as well.
	canBeName bool
	// standsAlone means that nothing has to follow a continuing word on its line.
	standsAlone bool
}

// words merges tables of words.
func words(lists ...map[string]word) map[string]word {
	out := map[string]word{}
	for _, l := range lists {
		for name, w := range l {
			out[name] = w
		}
	}
	return out
}

// wordsAs assigns one meaning to each word in a space-separated list.
func wordsAs(w word, list string) map[string]word {
	out := map[string]word{}
	for _, name := range strings.Fields(list) {
		out[name] = w
	}
	return out
}

// Scanner reads files one after the other and reuses its memory. It is not safe for concurrent use.
// The zero value is ready.
type Scanner struct {
	lex lexer
	out outline
}

// Scan reads one file. The caller owns the results.
func (s *Scanner) Scan(l *Language, src []byte) ([]Definition, Uses) {
	s.lex.reset(l, src)
	s.lex.run()
	s.out.reset(l, src, s.lex.tokens)
	l.outline(&s.out)
	uses := s.lex.uses.result()
	uses.Imports = s.out.imports(s.lex.included)
	return s.out.result(), uses
}

// outline collects the definitions of one file.
type outline struct {
	l           *Language
	src         []byte
	tokens      []token
	defs        []rawDefinition
	levels      []level
	sig         []byte // all signatures and names, concatenated
	steps       int    // number of calls of skip, for tests
	wastedScans int    // tokens read in searches for a missing end
}

// rawDefinition is a definition whose strings are in outline.sig.
type rawDefinition struct {
	nameFrom, nameTo int
	sigFrom, sigTo   int
	line             int
	parent           int
	kind             Kind
}

// level is a body that the outline is reading.
type level struct {
	end    int // index of the closing token; in OCaml, the column in which the parts of the body begin
	parent int // index of the definition that it belongs to; -1 if none
	col    int // column of the definition, if indentation determines where the body ends
	kind   Kind
}

func (o *outline) reset(l *Language, src []byte, tokens []token) {
	*o = outline{l: l, src: src, tokens: tokens, defs: o.defs[:0], levels: o.levels[:0], sig: o.sig[:0]}
}

// result copies the definitions, with one allocation for all strings.
func (o *outline) result() []Definition {
	if len(o.defs) == 0 {
		return nil
	}
	all := string(o.sig)
	out := make([]Definition, len(o.defs))
	for i, f := range o.defs {
		d := Definition{Kind: f.kind, Line: f.line, Parent: f.parent, Signature: all[f.sigFrom:f.sigTo]}
		d.Name = all[f.nameFrom:f.nameTo]
		out[i] = d
	}
	return out
}

// at returns the token at index i. For an index out of range, it returns a token without kind and
// mate.
func (o *outline) at(i int) *token {
	if i < 0 || i >= len(o.tokens) {
		return &token{mate: -1}
	}
	return &o.tokens[i]
}

// text returns the text of a token.
func (o *outline) text(i int) []byte {
	t := o.at(i)
	return o.src[t.start:t.end]
}

func (o *outline) is(i int, text string) bool { return string(o.text(i)) == text }

func (o *outline) isMark(i int, c byte) bool {
	return i < len(o.tokens) && i >= 0 && o.tokens[i].mark == c
}

// isName reports whether a token can be a name.
func (o *outline) isName(i int) bool {
	t := o.at(i)
	return t.kind == nameToken && (t.word == 0 || o.l.meaning[t.word].canBeName)
}

// word returns the meaning of a token; the zero word if it has none.
func (o *outline) word(i int) word { return o.l.meaning[o.at(i).word] }

// adjoins reports whether the next token follows without a gap.
func (o *outline) adjoins(i int) bool { return i+1 < len(o.tokens) && o.at(i).end == o.at(i+1).start }

// marks reports whether the tokens from i on are the given marks without gaps.
func (o *outline) marks(i int, marks string) bool {
	for k := range len(marks) {
		if !o.isMark(i+k, marks[k]) || k > 0 && !o.adjoins(i+k-1) {
			return false
		}
	}
	return true
}

// skip returns the index of the token after i, or after the group that i opens.
func (o *outline) skip(i int) int {
	o.steps++
	if t := o.at(i); t.mate > int32(i) {
		return int(t.mate) + 1
	}
	return i + 1
}

// indentation returns the column at which the line of a token begins. Code after a multi-line
// string belongs to the line where the string begins.
func (o *outline) indentation(i int) int {
	if i >= len(o.tokens) {
		return 0
	}
	const maxStrings = 8 // number of strings considered
	for range maxStrings {
		line := o.tokens[i].line
		i, _ = slices.BinarySearchFunc(o.tokens[:i], line, func(t token, line int32) int { return cmp.Compare(t.line, line) })
		if i == 0 || o.tokens[i].first {
			break
		}
		i--
	}
	return int(o.tokens[i].col)
}

// maxDepth is the maximum nesting of definitions. Deeper definitions get a parent at that depth.
const maxDepth = 12

// parent returns the index of the definition of the current body; -1 at the top level.
func (o *outline) parent() int {
	if len(o.levels) == 0 {
		return -1
	}
	return o.levels[min(len(o.levels), maxDepth)-1].parent
}

// inType reports whether the current body is that of a type.
func (o *outline) inType() bool {
	if len(o.levels) == 0 {
		return false
	}
	switch o.levels[len(o.levels)-1].kind {
	case Class, Interface, Struct, Enum, Trait, Object, Extension:
		return true
	}
	return false
}

// define adds a definition whose name is the token with index name. Its signature begins with token
// from, and ends before token to. It returns the index of the definition.
func (o *outline) define(kind Kind, name, from, to int) int {
	return o.defineAs(plainName(string(o.text(name))), kind, name, "", from, to)
}

// plainName removes the quoting that makes a keyword a name.
func plainName(name string) string { return strings.TrimPrefix(strings.Trim(name, "`"), "r#") }

// defineAs is define for a name that may differ from the text of the token, and for a signature with
// a prefix.
func (o *outline) defineAs(name string, kind Kind, at int, prefix string, from, to int) int {
	f := rawDefinition{kind: kind, line: int(o.at(at).line), parent: o.parent(), sigFrom: len(o.sig)}
	o.sig = append(o.sig, prefix...)
	f.nameFrom = o.appendSignature(from, to, f.sigFrom, at)
	f.sigTo = len(o.sig)
	if !hasPrefix(o.sig[f.nameFrom:], name) { // it differs from the token's text, or was truncated
		f.nameFrom = f.sigFrom + bytes.Index(o.sig[f.sigFrom:], []byte(name))
	}
	if f.nameFrom < f.sigFrom {
		f.nameFrom = len(o.sig)
		o.sig = append(o.sig, name...)
	}
	f.nameTo = f.nameFrom + len(name)
	o.defs = append(o.defs, f)
	return len(o.defs) - 1
}

// formatTokens returns tokens as one line; see appendSignature.
func (o *outline) formatTokens(from, to int) string {
	start := len(o.sig)
	o.appendSignature(from, to, start, from)
	text := string(o.sig[start:])
	o.sig = o.sig[:start]
	return text
}

// appendSignature appends tokens to o.sig, as one line without comments that begins at offset start,
// and truncates the line if it is too long. It returns the offset of the token with index name, or
// start if the line does not contain that token.
func (o *outline) appendSignature(from, to, start, name int) (nameFrom int) {
	const ellipsis = "…"
	limit := start + MaxSignature - len(ellipsis)
	nameFrom = start
	for i := from; i < to && i < len(o.tokens); i++ {
		t := &o.tokens[i]
		gap := i > from && o.tokens[i-1].end < t.start
		part := o.src[t.start:t.end]
		if gap && (!t.first || t.mark != ')' && t.mark != ']') && (!t.first || !o.isMark(i-1, '(') && !o.isMark(i-1, '[')) {
			o.sig = append(o.sig, ' ')
		}
		if i == name {
			nameFrom = len(o.sig)
		}
		if t.kind == stringToken {
			for _, c := range part {
				if c < ' ' {
					c = ' '
				}
				o.sig = append(o.sig, c)
				if len(o.sig) > limit {
					break
				}
			}
		} else {
			o.sig = append(o.sig, part[:min(len(part), MaxSignature)]...)
		}
		if len(o.sig) > limit {
			cut := limit
			for cut > start && o.sig[cut]&0xC0 == 0x80 {
				cut--
			}
			o.sig = append(o.sig[:cut], ellipsis...)
			break
		}
	}
	return min(nameFrom, len(o.sig))
}
