package config

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/tailscale/hujson"
)

// textEdit is the replacement of text[from:to] by other bytes.
type textEdit struct {
	from, to int
	with     []byte
}

// splice applies edits that do not overlap.
func splice(text []byte, edits ...textEdit) []byte {
	slices.SortStableFunc(edits, func(a, b textEdit) int { return a.from - b.from })
	var out []byte
	at := 0
	for _, c := range edits {
		out = append(append(out, text[at:c.from]...), c.with...)
		at = c.to
	}
	return append(out, text[at:]...)
}

func (p location) replace(old *hujson.Value, raw []byte) []byte {
	was := p.text[old.StartOffset:old.EndOffset]
	// A list or object on one line stays on one line. Other values have no layout to keep.
	oneLine := (was[0] == '[' || was[0] == '{') && !bytes.ContainsRune(was, '\n')
	if !oneLine && startsLine(p.text, p.object.Value.(*hujson.Object).Members[p.index].Name.StartOffset) {
		raw = p.indented(raw, indentAt(p.text, old.StartOffset))
	}
	return splice(p.text, textEdit{old.StartOffset, old.EndOffset, raw})
}

// insert adds the missing member as the last one of its object.
func (p location) insert(raw []byte) []byte {
	object := p.object.Value.(*hujson.Object)
	key := append(hujson.String(p.rest[0]), ": "...)
	outer := indentAt(p.text, p.object.StartOffset)
	indent := outer + p.unit()
	tail := p.object.StartOffset + 1 // start of the comments and space before the brace
	end := p.object.EndOffset - 1
	var edits []textEdit
	var comma []byte
	if n := len(object.Members); n > 0 {
		last := &object.Members[n-1]
		if startsLine(p.text, last.Name.StartOffset) {
			indent = indentAt(p.text, last.Name.StartOffset)
		}
		tail = last.Value.EndOffset + len(last.Value.AfterExtra)
		if last.Value.AfterExtra != nil { // hujson marks a trailing comma this way; the new member gets one, too
			tail++
			comma = []byte(",")
		} else {
			edits = append(edits, textEdit{tail, tail, []byte(",")})
		}
	}
	newline := p.newline()
	space := trailingSpace(p.text[tail:end])
	switch i := bytes.IndexByte(p.text[end-space:end], '\n'); {
	case i >= 0: // the brace is on its own line
		at := end - space + i
		if at > tail && p.text[at-1] == '\r' {
			at--
		}
		member := slices.Concat([]byte(newline+indent), key, p.indented(raw, indent), comma)
		edits = append(edits, textEdit{at, at, member})
	case len(object.Members) == 0:
		member := slices.Concat([]byte(newline+indent), key, p.indented(raw, indent), []byte(newline+outer))
		edits = append(edits, textEdit{end - space, end, member})
	default:
		edits = append(edits, textEdit{end - space, end - space, slices.Concat([]byte(" "), key, raw, comma)})
	}
	return splice(p.text, edits...)
}

// remove removes the member and the comma that becomes superfluous. If nothing else is on the
// member's line, it removes the whole line.
func (p location) remove() []byte {
	object := p.object.Value.(*hujson.Object)
	m := &object.Members[p.index]
	from, to := m.Name.StartOffset, m.Value.EndOffset
	var edits []textEdit
	last := p.index == len(object.Members)-1
	comma := to + len(m.Value.AfterExtra)
	switch {
	case last && m.Value.AfterExtra == nil && p.index > 0:
		before := &object.Members[p.index-1].Value
		at := before.EndOffset + len(before.AfterExtra)
		edits = append(edits, textEdit{at, at + 1, nil})
	case last && m.Value.AfterExtra == nil:
	case len(bytes.TrimSpace(m.Value.AfterExtra)) == 0:
		to = comma + 1
	default:
		edits = append(edits, textEdit{comma, comma + 1, nil})
	}
	after := to + blanks(p.text[to:])
	switch newline := bytes.HasPrefix(p.text[after:], []byte("\n")) || bytes.HasPrefix(p.text[after:], []byte("\r\n")); {
	case newline && startsLine(p.text, from):
		from = lineStart(p.text, from)
		to = after + bytes.IndexByte(p.text[after:], '\n') + 1
	case last:
		for isBlank(p.text[from-1]) {
			from--
		}
	default:
		to = after
	}
	return splice(p.text, append(edits, textEdit{from, to, nil})...)
}

// indented formats a value for a line with the given indentation.
func (p location) indented(raw []byte, indent string) []byte {
	var b bytes.Buffer
	if json.Indent(&b, raw, indent, p.unit()) != nil {
		return raw
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(p.newline()))
}

// unit returns the file's indentation of one level.
func (p location) unit() string {
	if root, ok := p.root.Value.(*hujson.Object); ok && len(root.Members) > 0 {
		at := root.Members[0].Name.StartOffset
		if s := indentAt(p.text, at); s != "" && startsLine(p.text, at) {
			return s
		}
	}
	return "  "
}

func (p location) newline() string {
	if bytes.Contains(p.text, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// blanks counts the spaces and tabs at the beginning of a text.
func blanks(text []byte) int {
	n := 0
	for n < len(text) && isBlank(text[n]) {
		n++
	}
	return n
}

// trailingSpace counts the white space characters at the end of a text.
func trailingSpace(text []byte) int { return len(text) - len(bytes.TrimRight(text, " \t\r\n")) }

func lineStart(text []byte, at int) int { return bytes.LastIndexByte(text[:at], '\n') + 1 }

// indentAt returns the indentation of the line that contains an offset.
func indentAt(text []byte, at int) string {
	start := lineStart(text, at)
	return string(text[start : start+blanks(text[start:])])
}

// startsLine reports whether only spaces and tabs precede an offset on its line.
func startsLine(text []byte, at int) bool {
	start := lineStart(text, at)
	return start+blanks(text[start:]) >= at
}
