package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// layer is one parsed source.
type layer struct {
	source    string
	text      string
	content   map[string]any
	positions map[string]position // by joined path; list elements by their index

	spellings map[string]string // as this layer spells them: providers' names by their normalized names, and joined paths by those in effect

	dir      string         // the base of relative paths; empty means the working directory
	plugin   string         // the folder of the plugin that it belongs to
	root     string         // the workspace folder that it belongs to
	withheld map[string]any // the complete content of a layer that is not trusted
	within   string         // for a layer that is not trusted, the only folder from which it may read files

	pathPrefix  []string // under which its text belongs: "hooks" for a plugin's hooks.json that lacks this key, otherwise empty
	fragment    bool     // it comes from a file that is not JSON, see Fragment
	emptyReason string   // why it has no content although it is not {}
}

// position is a position in a text. Both numbers are counted from 1, columns in bytes; 0 means
// unknown.
type position struct{ line, column int }

// origin returns the source and the position of a path in this layer.
func (l *layer) origin(path []string) Origin {
	p := l.positions[join(path)]
	return Origin{Source: l.source, Line: p.line, Column: p.column}
}

// move moves a value to another path, together with its positions. If there is a value at that path
// already, this value stays, and the moved one is dropped.
func (l *layer) move(from, to []string) (moved bool) {
	src, ok := l.object(from[:len(from)-1], false)
	last := from[len(from)-1]
	v, found := src[last]
	if !ok || !found {
		return false
	}
	delete(src, last)
	dst, ok := l.object(to[:len(to)-1], true)
	if !ok {
		return false
	}
	if _, taken := dst[to[len(to)-1]]; taken {
		return false
	}
	dst[to[len(to)-1]] = v
	for key, p := range maps.Clone(l.positions) {
		if rest, ok := strings.CutPrefix(key+"\x00", join(from)+"\x00"); ok {
			delete(l.positions, key)
			l.positions[strings.TrimSuffix(join(to)+"\x00"+rest, "\x00")] = p
		}
	}
	return true
}

// object returns the object at a path; create adds missing objects.
func (l *layer) object(path []string, create bool) (map[string]any, bool) {
	m := l.content
	for _, key := range path {
		sub, ok := m[key].(map[string]any)
		if _, exists := m[key]; !ok && (exists || !create) {
			return nil, false
		}
		if !ok {
			sub = map[string]any{}
			m[key] = sub
		}
		m = sub
	}
	return m, true
}

// parse reads JSON with comments.
func parse(source string, data []byte) (*layer, *Problem) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	l := &layer{source: source, text: string(data), content: map[string]any{}, positions: map[string]position{}}
	if blank(data) {
		l.emptyReason = "the file is empty"
		return l, nil
	}
	if safeio.IsUTF16(data) {
		return nil, &Problem{Origin: Origin{Source: source, Line: 1}, Cause: "the text is UTF-16; save it as UTF-8", Broken: true}
	}
	root, err := hujson.Parse(slices.Clone(withNewline(data))) // Standardize modifies it
	if source == environmentConfig && !beginsObject(data) && (err != nil || !isNull(&root)) {
		return nil, &Problem{Origin: Origin{Source: source}, Cause: "it must be the configuration itself, as JSON text: { ... }; to name a file, use --config-file FILE", Broken: true}
	}
	if err != nil {
		line, column, cause := syntaxError(data, err)
		return nil, &Problem{Origin: Origin{Source: source, Line: line, Column: column}, Cause: cause, Broken: true}
	}
	if isNull(&root) {
		l.emptyReason = "the file contains only null"
		return l, nil
	}
	if _, ok := root.Value.(*hujson.Object); !ok {
		return nil, &Problem{Origin: Origin{Source: source, Line: 1}, Cause: "the configuration must be a JSON object: { ... }", Broken: true}
	}
	if source != defaults { // the defaults are not a file that the user can open
		l.index(newLines(data), &root, nil)
	}
	root.Standardize()
	if err := json.Unmarshal(root.Pack(), &l.content); err != nil {
		return nil, &Problem{Origin: Origin{Source: source}, Cause: err.Error(), Broken: true}
	}
	return l, nil
}

// beginsObject reports whether a text begins like a JSON object with comments.
func beginsObject(text []byte) bool {
	text = bytes.TrimSpace(text)
	for _, start := range []string{"{", "//", "/*"} {
		if bytes.HasPrefix(text, []byte(start)) {
			return true
		}
	}
	return false
}

// withNewline completes the last line of a text, which the parser requires for comments.
func withNewline(text []byte) []byte {
	if bytes.HasSuffix(text, []byte("\n")) {
		return text
	}
	return append(slices.Clone(text), '\n')
}

// index records the position of every key and list element.
func (l *layer) index(lines lines, v *hujson.Value, path []string) {
	switch v := v.Value.(type) {
	case *hujson.Object:
		for i := range v.Members {
			m := &v.Members[i]
			if name, ok := m.Name.Value.(hujson.Literal); ok {
				at := append(slices.Clone(path), name.String())
				l.positions[join(at)] = lines.position(m.Name.StartOffset)
				l.index(lines, &m.Value, at)
			}
		}
	case *hujson.Array:
		for i := range v.Elements {
			at := append(slices.Clone(path), strconv.Itoa(i))
			l.positions[join(at)] = lines.position(v.Elements[i].StartOffset)
			l.index(lines, &v.Elements[i], at)
		}
	}
}

// lines are the offsets of the beginnings of a text's lines.
type lines []int

func newLines(text []byte) lines {
	out := lines{0}
	for i, c := range text {
		if c == '\n' {
			out = append(out, i+1)
		}
	}
	return out
}

func (l lines) position(offset int) position {
	i, found := slices.BinarySearch(l, offset)
	if !found {
		i--
	}
	return position{i + 1, offset - l[i] + 1}
}
