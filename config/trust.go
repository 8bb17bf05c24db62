package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/regular"
)

// Unit is a file of a workspace folder, as far as it needs the user's trust: what it would
// run, redirect, loosen or read (docs/trust.md).
type Unit struct {
	Root  string // the workspace folder
	File  string
	Needs []Need // what does nothing until the unit is trusted, in the order of the file; never empty

	// Sum stands for what needs trust, and for the files of the folder that it names, such
	// as a hook's script. What is harmless can change without another Sum.
	Sum   string
	Files []string // of the folder, that Sum stands for too

	// Text shows the user what needs trust, a line for each thing it says, and the files
	// that it names.
	Text string

	// Parts are sums of what Sum stands for, by the names that users know: keys of the
	// configuration, paths of files.
	Parts map[string]string

	Trusted bool

	link bool // it is about where the file leads, not about what it says
}

// Place says where a need stands: the file as seen from a folder, and the line if it is
// known.
func (u Unit) Place(n Need, from string) string {
	name, err := filepath.Rel(from, u.File)
	if err != nil {
		name = u.File
	}
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d", name, n.Line)
	}
	return name
}

// Key names the unit among those of its folder: a path.
func (u Unit) Key() string {
	if u.link {
		return u.File + "#link"
	}
	return u.File
}

// Need is something that a file may not do by itself.
type Need struct {
	What string // a path of keys, or an expression such as ${cmd:...}
	Line int    // 0 if unknown
}

// newUnit makes a unit of what needs trust; wanted is that as data, runs the
// texts in it that may name programs.
func newUnit(root, file string, needs []Need, wanted, runs any) Unit {
	u := Unit{Root: root, File: file, Needs: needs}
	h := sha256.New()
	name, err := filepath.Rel(root, file)
	if err != nil {
		name = file
	}
	raw, _ := encode(wanted) // it was decoded from JSON
	u.Parts = partsOf(needs, wanted)
	fmt.Fprintf(h, "eca trust 1\n%s\n%d %s\n", filepath.ToSlash(name), len(raw), raw)
	for _, path := range namedFiles(root, filepath.Dir(file), runs) {
		u.Files = append(u.Files, path)
		sum, err := fileSum(root, path)
		if err != nil {
			sum = err.Error()
		}
		fmt.Fprintf(h, "%q %s\n", path[len(root):], sum)
		if rel, err := filepath.Rel(root, path); err == nil {
			u.Parts[filepath.ToSlash(rel)] = sum
		}
	}
	u.Sum = hex.EncodeToString(h.Sum(nil))
	u.Text = u.describe(wanted)
	return u
}

// partsOf returns sums of the values that need trust: of a section with names one for each
// name, as needs lists them.
func partsOf(needs []Need, wanted any) map[string]string {
	out := map[string]string{}
	note := func(name string, v any) {
		raw, _ := encode(v) // it was decoded from JSON
		sum := sha256.Sum256(raw)
		out[name] = hex.EncodeToString(sum[:])
	}
	list, isList := wanted.([]any)
	if !isList {
		note("its text", wanted)
	}
	for i, v := range list {
		at, _ := v.([]any)
		path, isPath := []string(nil), false
		if len(at) == 2 {
			path, isPath = at[0].([]string)
		}
		section, isSection := map[string]any(nil), false
		if isPath {
			section, isSection = at[1].(map[string]any)
		}
		switch {
		case isSection && len(path) == 1 && len(section) > 0:
			for _, key := range sortedKeys(section) {
				note(KeyPath(append(slices.Clone(path), key)), section[key])
			}
		case isPath:
			note(KeyPath(path), at[1])
		case len(list) == len(needs):
			note(needs[i].What, v)
		default:
			note("its content", wanted)
		}
	}
	return out
}

// maxShownFile bounds how much of a file that a unit names is shown.
const maxShownFile = 8 << 10

// describe writes what needs trust for the user to read.
func (u Unit) describe(wanted any) string {
	var b strings.Builder
	switch wanted := wanted.(type) {
	case string: // a text with expressions in it
		for _, n := range u.Needs {
			fmt.Fprintln(&b, n.What)
		}
	case []any:
		for _, v := range wanted {
			if at, ok := v.([]any); ok && len(at) == 2 {
				if path, ok := at[0].([]string); ok {
					fmt.Fprintf(&b, "%s: %s\n", KeyPath(path), indented(at[1]))
					continue
				}
			}
			fmt.Fprintln(&b, indented(v))
		}
	}
	for _, path := range u.Files {
		name, err := filepath.Rel(u.Root, path)
		if err != nil {
			name = path
		}
		data, err := regular.Read(path, maxShownFile)
		if err != nil {
			fmt.Fprintf(&b, "file %s (not shown: %v)\n", name, regular.WithoutPath(err))
			continue
		}
		fmt.Fprintf(&b, "file %s:\n", name)
		for line := range strings.Lines(string(data)) {
			b.WriteString("    " + strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return b.String()
}

// indented writes a value as JSON for people.
func indented(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(b.String())
}

// ForeignUnit returns the unit of a workspace's file in a format of others: needs says what
// it would do, and value is that as encoding/json decodes it.
func ForeignUnit(root, file string, needs []Need, value any) Unit {
	return newUnit(root, file, needs, value, value)
}

// TextUnit returns the unit of a workspace's text that is no configuration: a skill's, a
// rule's. needed is false if nothing in it needs trust. outside says that the file is a
// link that leads out of the folder.
func TextUnit(root, file, text string, outside bool) (u Unit, needed bool) {
	needs := TextNeeds(text, filepath.Dir(file), root)
	if outside {
		needs = append([]Need{{What: "a link that leads out of the folder"}}, needs...)
	}
	if len(needs) == 0 {
		return Unit{}, false
	}
	// All of it, since commands and texts belong together: what a command's output is
	// used for is in the text.
	var runs []any
	for _, n := range needs {
		runs = append(runs, n.What)
	}
	u = newUnit(root, file, needs, text, runs)
	u.link = outside
	return u, true
}

// allTexts lists the strings in a value, in an order of its own.
func allTexts(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		var out []string
		for _, e := range v {
			out = append(out, allTexts(e)...)
		}
		return out
	case map[string]any:
		var out []string
		for _, key := range sortedKeys(v) {
			out = append(out, allTexts(v[key])...)
		}
		return out
	}
	return nil
}

// gate leaves of a workspace's layer what may act: all if the user trusts it, else what is
// harmless. What only makes things stricter is kept apart: it must not take the place of
// what the user said.
func (b *builder) gate(l *layer) {
	if l.root == "" {
		return
	}
	b.withholdUnasked(l)
	if b.in.Trusts == nil {
		return
	}
	s := splitter{l: l}
	harmless := s.object(l.content, nil)
	if len(s.needs) > 0 {
		slices.SortStableFunc(s.needs, func(x, y Need) int { return x.Line - y.Line })
		u := newUnit(l.root, l.source, s.needs, s.wanted, s.values)
		u.Trusted = b.in.Trusts(u)
		b.units = append(b.units, u)
		for _, f := range u.Files {
			b.looked(f)
		}
		if u.Trusted {
			return
		}
	}
	l.content, l.within, l.withheld = harmless, l.root, l.content
	b.stricter = append(b.stricter, s.stricter...)
}

// splitter tells what is harmless in a layer from what needs trust.
type splitter struct {
	l        *layer
	needs    []Need
	wanted   []any // what needs trust: paths and values
	values   []any
	stricter []tightening
}

// way is how a value of an untrusted file counts.
type way int

const (
	needsTrust way = iota
	inside         // an object whose parts are looked at
	atOnce         // as it is
	paths          // a list of paths in the folder
	stricter       // together with what the user says, see tighten
	ignored        // it means nothing
)

// wayOf says how the value at a path of keys counts in a file that is not trusted.
func wayOf(path []string) way {
	for _, w := range []struct {
		way  way
		keys string
	}{
		{atOnce, `$schema defaultModel defaultAgent welcomeMessage autoCompactPercentage index rewrite variantsByModel
			chat.title chat.autoSyncSystemPrompt chat.defaultAgent toolCall.readFile toolCall.outputTruncation completion.model
			agent.*.mode agent.*.description agent.*.systemPrompt agent.*.prompts agent.*.defaultModel agent.*.variant agent.*.autoCompactPercentage`},
		{paths, `rules skills commands`},
		{stricter, `disabledTools toolCall.approval.ask toolCall.approval.deny toolCall.unasked agent.*.toolCall.unasked
			agent.*.disabledTools agent.*.toolCall.approval.ask agent.*.toolCall.approval.deny agent.*.readOnly agent.*.maxSteps agent.*.spawnableBy agent.*.inherit`},
		{inside, `chat toolCall toolCall.approval completion agent agent.* agent.*.toolCall agent.*.toolCall.approval`},
	} {
		for key := range strings.FieldsSeq(w.keys) {
			if samePath(strings.Split(key, "."), path) {
				return w.way
			}
		}
	}
	if !knownPath(path) {
		return ignored
	}
	return needsTrust
}

func samePath(pattern, path []string) bool {
	return slices.EqualFunc(pattern, path, func(p, key string) bool { return p == "*" || p == key })
}

// object returns the harmless part of an object.
func (s *splitter) object(m map[string]any, path []string) map[string]any {
	out := map[string]any{}
	for _, key := range sortedKeys(m) {
		at, v := append(slices.Clone(path), key), m[key]
		switch w := wayOf(at); {
		case w == ignored:
		case w == inside && isObject(v):
			// An empty approval of an agent's would replace the general one.
			if sub := s.object(v.(map[string]any), at); len(sub) > 0 || key != "approval" && key != "toolCall" {
				out[key] = sub
			}
		case w == atOnce && v != nil && s.harmlessTexts(v):
			out[key] = v
		case w == paths && localPaths(v) && s.harmlessTexts(v):
			out[key] = v
		case w == stricter && tightens(at, v) && s.harmlessTexts(v):
			s.stricter = append(s.stricter, tightening{s.l, at, v})
		default:
			s.need(at, v)
		}
	}
	return out
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// need notes a value that needs trust; of a section with names each name.
func (s *splitter) need(at []string, v any) {
	s.wanted, s.values = append(s.wanted, []any{at, v}), append(s.values, v)
	if m, ok := v.(map[string]any); ok && len(at) == 1 && len(m) > 0 {
		for _, key := range sortedKeys(m) {
			sub := append(slices.Clone(at), key)
			s.needs = append(s.needs, Need{KeyPath(sub), s.l.at[join(sub)].line})
		}
		return
	}
	s.needs = append(s.needs, Need{KeyPath(at), s.l.at[join(at)].line})
}

// harmlessTexts says whether the texts of a value read nothing but files of the folder.
func (s *splitter) harmlessTexts(v any) bool {
	for _, text := range allTexts(v) {
		if len(TextNeeds(text, filepath.Dir(s.l.source), s.l.root)) > 0 {
			return false
		}
	}
	return true
}

// TextNeeds lists what in a text with dynamic strings needs trust: commands, variables,
// passwords, and files outside root. dir is where relative files are.
func TextNeeds(text, dir, root string) []Need {
	if !strings.Contains(text, "${") {
		return nil
	}
	parts, _ := parseDynamic(text)
	var out []Need
	line := 1
	for _, n := range parts {
		switch {
		case !n.expr:
			line += strings.Count(n.text, "\n")
		case n.text == "classpath", n.text == "plugin":
		case n.text == "file" && len(n.parts) == 1 && !n.parts[0].expr && insideFolder(n.parts[0].text, dir, root):
		default:
			out = append(out, Need{expression(n), line})
		}
	}
	return out
}

// expression returns an expression as it was written, but for its length.
func expression(n node) string {
	var text strings.Builder
	text.WriteString("${" + n.text + ":")
	for _, p := range n.parts {
		if p.expr {
			text.WriteString(expression(p))
		} else {
			text.WriteString(p.text)
		}
	}
	const shown = 120
	out := strings.ReplaceAll(text.String(), "\n", " ") + "}"
	if len(out) > shown {
		out = strings.ToValidUTF8(out[:shown], "") + "..."
	}
	return out
}

// insideFolder says whether a path leads to a place in a folder, links followed.
func insideFolder(path, dir, root string) bool {
	if strings.HasPrefix(path, "~") {
		return false
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) {
		return false
	}
	f, err := regular.OpenIn(root, rel)
	if err == nil {
		_ = f.Close()
		return true
	}
	_, statErr := os.Stat(path)
	return os.IsNotExist(statErr) // what is not there has nothing to give; reading it is bound to the folder too
}

// localPaths says whether a list of rules, skills or commands names places in the folder
// only. Where links in it lead is looked at when they are read.
func localPaths(v any) bool {
	list, ok := v.([]any)
	for _, e := range list {
		m, isMap := e.(map[string]any)
		path, isText := m["path"].(string)
		if !isMap || !isText || strings.HasPrefix(path, "~") || !filepath.IsLocal(filepath.FromSlash(path)) {
			return false
		}
	}
	return ok
}

// knownKey says whether eca knows a key of the configuration, in whatever case: decoding
// does not mind the case.
func knownPath(path []string) bool {
	typ := configType()
	for _, key := range path {
		for typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if kind := typ.Kind(); kind != reflect.Struct && kind != reflect.Map {
			return true // what may be in it is not told by its type
		}
		fields := fieldsOf(typ)
		field, known := fields.named[strings.ToLower(key)]
		switch {
		case known:
			typ = field.Type
		case fields.rest != nil:
			typ = fields.rest
		default:
			return false
		}
	}
	return true
}

// equalJSON says whether two decoded values are the same.
func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
