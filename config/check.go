package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/tailscale/hujson"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Severity says how bad a Finding is.
type Severity string

// Severities, the worst first.
const (
	SeverityError   Severity = "error"   // it does not do what it says: broken, or a value that can not be
	SeverityWarning Severity = "warning" // it has no effect, or not the likely one
	SeverityNote    Severity = "note"    // it works, and there is something to know
)

// Finding is something to be said about a configuration.
type Finding struct {
	Source   string   `json:"source"`           // a file's path, or as in Origin
	Line     int      `json:"line,omitempty"`   // from 1; 0 if unknown
	Column   int      `json:"column,omitempty"` // in bytes from 1; 0 if unknown
	Key      string   `json:"key,omitempty"`    // as KeyPath writes it
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`
}

func (f Finding) String() string {
	at := f.Source
	for _, n := range []int{f.Line, f.Column} {
		if n > 0 {
			at += ":" + strconv.Itoa(n)
		}
	}
	return fmt.Sprintf("%s: %s: %s", at, f.Severity, f.Message)
}

// Check looks through what the user and plugins wrote, layer by layer: unknown keys, values
// of a wrong type, out of range or not among those a key takes, keys that are there twice,
// and all that was a problem when it was loaded. The findings are ordered by place.
func Check(l *Loaded) ([]Finding, error) {
	s, err := newSchema()
	if err != nil {
		return nil, err
	}
	return check(l, s), nil
}

// check is Check against a schema.
func check(l *Loaded, s *jsonschema.Schema) []Finding {
	c := &checker{schema: s, seen: map[string]bool{}, paths: schemaKeys(s, nil)}
	for _, layer := range l.layers {
		if layer.source != defaults && !layer.fragment {
			c.layer(layer)
		}
	}
	c.references(l)
	c.unset(l)
	for _, u := range l.Units {
		for _, n := range u.Needs {
			if !u.Trusted {
				c.found = append(c.found, Finding{
					Source: u.File, Line: n.Line, Key: n.What, Severity: SeverityNote,
					Message: n.What + " does nothing until the folder is trusted; see eca trust",
				})
			}
		}
	}
	for _, p := range l.Problems {
		if !c.seen[Finding{Source: p.Source, Line: p.Line, Column: p.Column}.place()] || p.Column == 0 {
			c.found = append(c.found, Finding{
				Source: p.Source, Line: p.Line, Column: p.Column, Key: KeyPath(splitKey(p.key)), Severity: SeverityError,
				Message: strings.TrimPrefix(p.Cause, fmt.Sprintf("column %d: ", p.Column)),
			})
		}
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Message, b.Message))
	})
	return slices.Compact(c.found)
}

func splitKey(joined string) []string {
	if joined == "" {
		return nil
	}
	return strings.Split(joined, "\x00")
}

// place identifies where a finding is.
func (f Finding) place() string { return fmt.Sprintf("%s\x00%d:%d", f.Source, f.Line, f.Column) }

// checker compares layers with the schema.
type checker struct {
	schema *jsonschema.Schema
	paths  []string        // all keys
	seen   map[string]bool // places with an error
	found  []Finding

	source string
	lines  lines
}

func (c *checker) layer(l *layer) {
	root, err := hujson.Parse(withNewline([]byte(l.text)))
	if err != nil || root.Value.Kind() != '{' {
		return // it is a problem of the load, or says nothing
	}
	c.source, c.lines = l.source, newLines([]byte(l.text))
	c.value(&root, c.schema, nil, position{})
}

func (c *checker) say(severity Severity, at position, path []string, format string, args ...any) {
	f := Finding{Source: c.source, Line: at.line, Column: at.column, Key: KeyPath(path), Severity: severity, Message: fmt.Sprintf(format, args...)}
	if severity == SeverityError {
		c.seen[f.place()] = true
	}
	c.found = append(c.found, f)
}

// value checks what stands at a path; at is where its key is.
func (c *checker) value(v *hujson.Value, s *jsonschema.Schema, path []string, at position) {
	if isNull(v) {
		return // takes back what a lower layer says
	}
	if s.Deprecated {
		c.say(SeverityNote, at, path, "%s still works; it is the %s", KeyPath(path), lowerFirst(strings.TrimSuffix(s.Description, ".")))
	}
	if wanted := typesOf(s); len(wanted) > 0 && !slices.ContainsFunc(wanted, func(t string) bool { return isType(v, t) }) {
		c.say(SeverityError, at, path, "%s must be %s, not %s; it is ignored", KeyPath(path), typeNames(wanted), kindName(v))
		return
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		c.object(v, s, path)
	case *hujson.Array:
		for i := range v.Elements {
			if s.Items != nil {
				c.value(&v.Elements[i], s.Items, append(slices.Clone(path), strconv.Itoa(i)), c.lines.position(v.Elements[i].StartOffset))
			}
		}
	case hujson.Literal:
		c.literal(v, s, path, at)
	}
}

func (c *checker) object(o *hujson.Object, s *jsonschema.Schema, path []string) {
	before := map[string]position{}
	for i := range o.Members {
		m := &o.Members[i]
		name, ok := m.Name.Value.(hujson.Literal)
		if !ok {
			continue
		}
		key := name.String()
		here, at := append(slices.Clone(path), key), c.lines.position(m.Name.StartOffset)
		same := key
		if len(path) == 1 && path[0] == "providers" {
			same = Kebab(key)
		}
		if first, twice := before[same]; twice {
			c.say(SeverityWarning, at, here, "%s stands in line %d already; only this one counts", KeyPath(here), first.line)
		}
		before[same] = at
		switch sub := s.Properties[key]; {
		case sub != nil:
			c.value(&m.Value, sub, here, at)
		case s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil:
			c.value(&m.Value, s.AdditionalProperties, here, at)
		case s.AdditionalProperties != nil:
			c.say(SeverityWarning, at, here, "%s is not known; it has no effect%s", KeyPath(here), c.suggestion(s, path, key))
		}
	}
}

// suggestion names the key that was probably meant.
func (c *checker) suggestion(s *jsonschema.Schema, path []string, key string) string {
	if best := suggest.Nearest(key, slices.Sorted(maps.Keys(s.Properties))); best != "" {
		return fmt.Sprintf("; did you mean %s?", KeyPath(append(slices.Clone(path), best)))
	}
	var elsewhere []string
	for _, p := range c.paths {
		if strings.HasSuffix(p, "."+key) || p == key {
			elsewhere = append(elsewhere, p)
		}
	}
	if len(elsewhere) == 1 {
		return fmt.Sprintf("; did you mean %s?", strings.NewReplacer("*", "<name>", ".[]", "").Replace(elsewhere[0]))
	}
	return ""
}

func (c *checker) literal(v hujson.Literal, s *jsonschema.Schema, path []string, at position) {
	switch v.Kind() {
	case '"':
		word := v.String()
		if len(s.Enum) == 0 && s.Items != nil {
			s = s.Items // a list that is written as one
		}
		if len(s.Enum) == 0 || word == "" || slices.Contains(s.Enum, any(word)) || strings.Contains(word, "${") {
			return
		}
		var words []string
		for _, e := range s.Enum {
			if w, ok := e.(string); ok {
				words = append(words, w)
			}
		}
		hint := ""
		if best := suggest.Nearest(word, words); best != "" {
			hint = fmt.Sprintf("; did you mean %q?", best)
		}
		c.say(SeverityError, at, path, "%s must be one of %s, not %.40q%s", KeyPath(path), strings.Join(words, ", "), word, hint)
	case '0':
		n := v.Float()
		switch {
		case s.Minimum != nil && s.Maximum != nil && (n < *s.Minimum || n > *s.Maximum):
			c.say(SeverityError, at, path, "%s must be between %v and %v, not %v", KeyPath(path), *s.Minimum, *s.Maximum, n)
		case s.Minimum != nil && n < *s.Minimum:
			c.say(SeverityError, at, path, "%s must be at least %v, not %v", KeyPath(path), *s.Minimum, n)
		}
	}
}

// references checks names that must mean something.
func (c *checker) references(l *Loaded) {
	say := func(path []string, format string, args ...any) {
		o, ok := l.Origin(path...)
		if !ok || o.IsDefault() {
			return
		}
		c.source = o.Source
		c.say(SeverityWarning, position{o.Line, o.Column}, path, format, args...)
	}
	for _, at := range []struct {
		path []string
		name string
	}{{[]string{"defaultAgent"}, l.DefaultAgent}, {[]string{"chat", "defaultAgent"}, l.Chat.DefaultAgent}} {
		// The names of earlier versions mean code.
		if _, known := l.Agents[at.name]; at.name != "" && !known && at.name != "agent" && at.name != "build" {
			say(at.path, "%s: there is no agent %q%s", KeyPath(at.path), at.name, suggest.DidYouMean(at.name, slices.Sorted(maps.Keys(l.Agents))))
		}
	}
	l.eachModel(func(path []string, model *string) {
		name, _, full := strings.Cut(*model, "/")
		if _, known := l.Providers[name]; full && !known && name != "demo" {
			say(path, "%s: there is no provider %q%s", KeyPath(path), name, l.SimilarProvider(name))
		}
	})
}

// unset names environment variables that providers need and that have no value.
func (c *checker) unset(l *Loaded) {
	for path, names := range l.unset {
		keys := splitKey(path)
		o, ok := l.Origin(keys...)
		if !ok || keys[0] != "providers" {
			continue
		}
		c.source = o.Source
		keys = l.SpelledPath(keys...)
		for _, name := range names {
			c.say(SeverityWarning, position{o.Line, o.Column}, keys, "%s: the environment variable %s is not set", KeyPath(keys), name)
		}
	}
}

// typesOf returns the types a schema takes, but for null.
func typesOf(s *jsonschema.Schema) []string {
	out := slices.Clone(s.Types)
	if s.Type != "" {
		out = append(out, s.Type)
	}
	return slices.DeleteFunc(out, func(t string) bool { return t == "null" })
}

func isType(v *hujson.Value, typ string) bool {
	switch typ {
	case "object":
		return v.Value.Kind() == '{'
	case "array":
		return v.Value.Kind() == '['
	case "string":
		return v.Value.Kind() == '"'
	case "boolean":
		return v.Value.Kind() == 't' || v.Value.Kind() == 'f'
	}
	n, ok := v.Value.(hujson.Literal)
	if !ok || n.Kind() != '0' {
		return false
	}
	f := n.Float()
	return typ == "number" || f == math.Trunc(f) && math.Abs(f) < 1<<53
}

// typeNames writes types for users.
func typeNames(types []string) string {
	names := map[string]string{
		"object": "an object", "array": "a list", "string": "a string", "boolean": "true or false", "number": "a number", "integer": "a whole number",
	}
	var out []string
	for _, t := range types {
		out = append(out, names[t])
	}
	return strings.Join(out, " or ")
}

func kindName(v *hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	}
	return "the number " + v.Value.(hujson.Literal).String()
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
