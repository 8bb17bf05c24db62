package esrp

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ErrFloat is the error for a number without a canonical form: ESRP hashes only integers and
// requires other numbers as strings (esrp.md 4, rule 6).
var ErrFloat = errors.New("floating-point numbers are not allowed")

// Canonical returns the canonical form of a document without adding defaults (esrp.md 4, "raw").
// Of repeated members it keeps the last one. The error is a *SyntaxError, or wraps ErrFloat.
func Canonical(doc []byte) ([]byte, error) {
	v, err := Parse(doc)
	if err != nil {
		return nil, err
	}
	return v.Canonical()
}

// Canonical returns the canonical form of a value. It is not RFC 8785: members are sorted by their
// UTF-8 bytes, and the set of escaped characters differs (esrp.md 4).
func (v Value) Canonical() ([]byte, error) {
	return v.append(make([]byte, 0, v.size()))
}

// Canonicalized returns a value that contains only the canonical form, so that a value in many
// documents is converted only once. Members and items of the result cannot be accessed.
func (v Value) Canonicalized() (Value, error) {
	c, err := v.Canonical()
	return Value{Kind: canonical, Text: string(c)}, err
}

// size returns the length of the canonical form if nothing has to be escaped.
func (v Value) size() int {
	const marks, literal = 3, 5 // quotes with a comma or colon; the longest of the others
	n := max(len(v.Text)+marks, literal)
	for _, item := range v.Items {
		n += item.size()
	}
	for _, m := range v.Members {
		n += len(m.Key) + marks + m.Value.size()
	}
	return n
}

// Hash returns the SHA-256 of the canonical form, in 64 lower-case hexadecimal digits.
func (v Value) Hash() (string, error) {
	c, err := v.Canonical()
	if err != nil {
		return "", err
	}
	return HashBytes(c), nil
}

// HashBytes returns the SHA-256 of b in 64 lower-case hexadecimal digits.
func HashBytes(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func (v Value) append(out []byte) ([]byte, error) {
	var err error
	switch v.Kind {
	case Null:
		return append(out, "null"...), nil
	case Bool:
		return strconv.AppendBool(out, v.Bool), nil
	case Number:
		if !isInteger(v.Text) {
			return nil, fmt.Errorf("%s: %w", v.Text, ErrFloat)
		}
		return append(out, v.Text...), nil
	case String:
		return appendString(out, v.Text), nil
	case canonical:
		return append(out, v.Text...), nil
	case Array:
		out = append(out, '[')
		for i, item := range v.Items {
			if i > 0 {
				out = append(out, ',')
			}
			if out, err = item.append(out); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
	out = append(out, '{')
	for i, m := range canonicalMembers(v.Members) {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, m.Key), ':')
		if out, err = m.Value.append(out); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

// canonicalMembers returns the members sorted by key, each key once with its last value.
func canonicalMembers(members []Member) []Member {
	byKey := func(a, b Member) int { return strings.Compare(a.Key, b.Key) }
	if slices.IsSortedFunc(members, byKey) && !hasDuplicates(members) {
		return members
	}
	sorted := slices.Clone(members)
	slices.SortStableFunc(sorted, byKey)
	out := sorted[:0]
	for i, m := range sorted {
		if i+1 == len(sorted) || sorted[i+1].Key != m.Key {
			out = append(out, m)
		}
	}
	return out
}

// hasDuplicates reports whether sorted members contain a duplicate key.
func hasDuplicates(sorted []Member) bool {
	for i := 1; i < len(sorted); i++ {
		if sorted[i].Key == sorted[i-1].Key {
			return true
		}
	}
	return false
}

// isInteger reports whether a JSON number is a 64-bit integer other than -0.
func isInteger(literal string) bool {
	if literal == "-0" {
		return false
	}
	if _, err := strconv.ParseInt(literal, 10, 64); err == nil {
		return true
	}
	_, err := strconv.ParseUint(literal, 10, 64)
	return err == nil
}

// appendString appends a JSON string. It escapes quotes, backslashes and control characters,
// including those beyond ASCII, and nothing else (esrp.md 4, rule 4).
func appendString(out []byte, s string) []byte {
	const digits = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); i++ {
		c := s[i]
		size := 1
		switch {
		case c == 0xc2 && i+1 < len(s) && s[i+1] < 0xa0: // U+0080 to U+009F
			c, size = s[i+1], 2
		case c >= ' ' && c != '"' && c != '\\' && c != 0x7f:
			continue
		}
		out = append(out, s[from:i]...)
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			out = append(out, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
		i += size - 1
		from = i + 1
	}
	return append(append(out, s[from:]...), '"')
}
