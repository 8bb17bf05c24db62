package esrp

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a Value.
type Kind uint8

// The kinds of values. The zero Value is null.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
	canonical // Text is the canonical form of any value
)

// String returns the name of the kind for error messages.
func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object", "canonical"}[k]
}

// Value is a JSON value that keeps the digits of numbers, the order of members, and repeated members,
// which determine the canonical form of a document and are lost by encoding/json.
type Value struct {
	Kind    Kind
	Bool    bool
	Text    string // a string's value, or a number's literal
	Items   []Value
	Members []Member
}

// Member is a member of an object.
type Member struct {
	Key   string
	Value Value
}

// Get returns the last member with a key, as JSON parsers do. It returns false if no member has the
// key.
func (v Value) Get(key string) (Value, bool) {
	for i := len(v.Members) - 1; i >= 0; i-- {
		if v.Members[i].Key == key {
			return v.Members[i].Value, true
		}
	}
	return Value{}, false
}

// Duplicate returns the path of the first repeated member; ok is false if no member is repeated.
func (v Value) Duplicate() (path string, ok bool) {
	seen := make(map[string]bool, len(v.Members))
	for _, m := range v.Members {
		if seen[m.Key] {
			return m.Key, true
		}
		seen[m.Key] = true
		if below, ok := m.Value.Duplicate(); ok {
			return join(m.Key, below), true
		}
	}
	for i, item := range v.Items {
		if below, ok := item.Duplicate(); ok {
			return join(fmt.Sprintf("[%d]", i), below), true
		}
	}
	return "", false
}

// join appends a path to the name of its container.
func join(name, below string) string {
	if strings.HasPrefix(below, "[") {
		return name + below
	}
	return name + "." + below
}

// StringValue returns a string.
func StringValue(s string) Value { return Value{Kind: String, Text: s} }

// IntValue returns a number.
func IntValue(n int64) Value { return Value{Kind: Number, Text: strconv.FormatInt(n, 10)} }

// BoolValue returns a boolean.
func BoolValue(b bool) Value { return Value{Kind: Bool, Bool: b} }

// ObjectValue returns an object.
func ObjectValue(members ...Member) Value { return Value{Kind: Object, Members: members} }

// maxDepth is how deeply arrays and objects may be nested (esrp.md 4, rule 8).
const maxDepth = 127

// SyntaxError is the error for a document that is not valid JSON or violates the stricter rules of
// ESRP.
type SyntaxError struct {
	Offset int // in bytes
	Line   int // from 1
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("line %d, byte %d: %s", e.Line, e.Offset, e.Reason)
}

// Parse reads one JSON value (esrp.md 4, rule 8): no byte order mark, no comments, no trailing
// commas or data, no lone surrogates, no invalid UTF-8, no raw control characters in strings, no
// number beyond the range of a double, at most 127 levels. The error is a *SyntaxError.
func Parse(doc []byte) (Value, error) {
	p := parser{doc: doc}
	v, err := p.document()
	if err == nil {
		return v, nil
	}
	line := 1
	for _, c := range doc[:min(p.at, len(doc))] {
		if c == '\n' {
			line++
		}
	}
	return Value{}, &SyntaxError{Offset: p.at, Line: line, Reason: err.Error()}
}

type parser struct {
	doc []byte
	at  int
}

func (p *parser) document() (Value, error) {
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	if p.space(); p.at < len(p.doc) {
		return Value{}, errors.New("unexpected data after the value")
	}
	return v, nil
}

func (p *parser) space() {
	for p.at < len(p.doc) {
		switch p.doc[p.at] {
		case ' ', '\t', '\n', '\r':
			p.at++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end.
func (p *parser) peek() byte {
	if p.at < len(p.doc) {
		return p.doc[p.at]
	}
	return 0
}

func (p *parser) value(depth int) (Value, error) {
	p.space()
	switch c := p.peek(); {
	case p.at >= len(p.doc):
		return Value{}, errors.New("missing value")
	case c == '{' || c == '[':
		if depth == maxDepth {
			return Value{}, fmt.Errorf("nested deeper than %d levels", maxDepth)
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		s, err := p.string()
		return StringValue(s), err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	}
	for literal, v := range map[string]Value{"null": {}, "true": BoolValue(true), "false": BoolValue(false)} {
		if rest := p.doc[p.at:]; len(rest) >= len(literal) && string(rest[:len(literal)]) == literal {
			p.at += len(literal)
			return v, nil
		}
	}
	if bytes.HasPrefix(p.doc[p.at:], []byte("\xef\xbb\xbf")) {
		return Value{}, errors.New("the text begins with a byte order mark: save it without one")
	}
	return Value{}, errors.New("expected a value")
}

func (p *parser) object(depth int) (Value, error) {
	v := Value{Kind: Object}
	p.at++
	for p.space(); p.peek() != '}'; p.space() {
		if len(v.Members) > 0 {
			if err := p.expect(','); err != nil {
				return Value{}, err
			}
			p.space()
		}
		if p.peek() != '"' {
			return Value{}, errors.New("missing member name")
		}
		key, err := p.string()
		if err != nil {
			return Value{}, err
		}
		p.space()
		if err := p.expect(':'); err != nil {
			return Value{}, err
		}
		member, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		v.Members = append(v.Members, Member{key, member})
	}
	p.at++
	return v, nil
}

func (p *parser) array(depth int) (Value, error) {
	v := Value{Kind: Array}
	p.at++
	for p.space(); p.peek() != ']'; p.space() {
		if len(v.Items) > 0 {
			if err := p.expect(','); err != nil {
				return Value{}, err
			}
		}
		item, err := p.value(depth)
		if err != nil {
			return Value{}, err
		}
		v.Items = append(v.Items, item)
	}
	p.at++
	return v, nil
}

func (p *parser) expect(c byte) error {
	if p.peek() != c {
		return fmt.Errorf("expected %q", string(c))
	}
	p.at++
	return nil
}

// number reads a JSON number.
func (p *parser) number() (Value, error) {
	from := p.at
	if p.peek() == '-' {
		p.at++
	}
	whole := p.at
	digits := func() bool {
		from := p.at
		for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
			p.at++
		}
		return p.at > from
	}
	ok := digits() && (p.doc[whole] != '0' || p.at == whole+1)
	if ok && p.peek() == '.' {
		p.at++
		ok = digits()
	}
	if c := p.peek(); ok && (c == 'e' || c == 'E') {
		p.at++
		if c := p.peek(); c == '+' || c == '-' {
			p.at++
		}
		ok = digits()
	}
	if !ok {
		return Value{}, errors.New("malformed number")
	}
	literal := string(p.doc[from:p.at])
	if _, err := strconv.ParseFloat(literal, 64); err != nil {
		return Value{}, errors.New("number out of range")
	}
	return Value{Kind: Number, Text: literal}, nil
}

// string reads a string. It copies text without escapes in runs.
func (p *parser) string() (string, error) {
	p.at++
	var out []byte
	from := p.at
	for p.at < len(p.doc) {
		switch c := p.doc[p.at]; {
		case c == '"':
			run := p.doc[from:p.at]
			p.at++
			if out == nil {
				return string(run), nil
			}
			return string(append(out, run...)), nil
		case c == '\\':
			out = append(out, p.doc[from:p.at]...)
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
			from = p.at
		case c < ' ':
			return "", errors.New("raw control character in a string")
		case c < utf8.RuneSelf:
			p.at++
		default:
			r, size := utf8.DecodeRune(p.doc[p.at:])
			if r == utf8.RuneError && size <= 1 {
				return "", errors.New("invalid UTF-8")
			}
			p.at += size
		}
	}
	return "", errors.New("unterminated string")
}

// escape reads the rest of an escape after the backslash.
func (p *parser) escape() (rune, error) {
	p.at++
	c := p.peek()
	p.at++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		return p.unicode()
	}
	return 0, errors.New("invalid escape in a string")
}

func (p *parser) unicode() (rune, error) {
	high, err := p.hex4()
	if err != nil || !utf16.IsSurrogate(high) {
		return high, err
	}
	if p.peek() == '\\' && p.at+1 < len(p.doc) && p.doc[p.at+1] == 'u' {
		p.at += 2
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, errors.New("lone surrogate in a string")
}

func (p *parser) hex4() (rune, error) {
	if p.at+4 > len(p.doc) {
		return 0, errors.New("invalid escape in a string")
	}
	var r rune
	for _, c := range p.doc[p.at : p.at+4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, errors.New("invalid escape in a string")
		}
		r = r<<4 | rune(c)
	}
	p.at += 4
	return r, nil
}
