package llm

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// ArgumentsObject returns the arguments of a call, or an empty object if they are not an object:
// some APIs accept nothing else.
func ArgumentsObject(args json.RawMessage) json.RawMessage {
	if args = bytes.TrimSpace(args); len(args) == 0 || args[0] != '{' || !json.Valid(args) {
		return json.RawMessage("{}")
	}
	return args
}

// Object appends a JSON object to a buffer, with exactly the bytes that encoding/json produces for
// a struct. It is for large objects that are encoded often: the messages of a conversation.
type Object struct {
	out   []byte
	empty bool
}

// NewObject begins an object after the content of out. The caller must not use out until End
// returns it.
func NewObject(out []byte) *Object { return &Object{append(out, '{'), true} }

// Key begins a member and returns the buffer. The caller appends the value and passes the result to
// Value. The key must not need escaping.
func (o *Object) Key(key string) []byte {
	if !o.empty {
		o.out = append(o.out, ',')
	}
	o.empty = false
	o.out = append(o.out, '"')
	o.out = append(o.out, key...)
	return append(o.out, '"', ':')
}

// Value completes a member; out is the buffer of Key with the value appended.
func (o *Object) Value(out []byte) { o.out = out }

// Text adds a string member.
func (o *Object) Text(key, value string) { o.out = AppendText(o.Key(key), value) }

// Optional adds a string member unless the value is empty.
func (o *Object) Optional(key, value string) {
	if value != "" {
		o.Text(key, value)
	}
}

// Pointer adds a string member unless the value is nil.
func (o *Object) Pointer(key string, value *string) {
	if value != nil {
		o.Text(key, *value)
	}
}

// End completes the object and returns the buffer.
func (o *Object) End() []byte { return append(o.out, '}') }

// AppendText appends a JSON string exactly as encoding/json writes it, but without a copy of s.
func AppendText(out []byte, s string) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
				i++
				continue
			}
			out = append(out, s[from:i]...)
			switch c {
			case '"', '\\':
				out = append(out, '\\', c)
			case '\b':
				out = append(out, `\b`...)
			case '\f':
				out = append(out, `\f`...)
			case '\n':
				out = append(out, `\n`...)
			case '\r':
				out = append(out, `\r`...)
			case '\t':
				out = append(out, `\t`...)
			default: // characters with a meaning in HTML are escaped too
				out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
			i++
			from = i
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		invalid := r == utf8.RuneError && size == 1
		if invalid || r == '\u2028' || r == '\u2029' { // the last two end lines in JavaScript
			out = append(out, s[from:i]...)
			if invalid {
				out = append(out, `\ufffd`...)
			} else {
				out = append(out, '\\', 'u', '2', '0', '2', digits[r&15])
			}
			from = i + size
		}
		i += size
	}
	return append(append(out, s[from:]...), '"')
}
