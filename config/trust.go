package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Unit is the part of a workspace folder's file that needs the user's trust: everything that the
// file would run, redirect, loosen or read (docs/trust.md).
type Unit struct {
	Root  string // the workspace folder
	File  string
	Needs []Need // the parts without effect until the unit is trusted, in the order of the file; never empty

	// Sum is a hash of everything that needs trust, including the folder's files that it refers to,
	// such as a hook's script. Harmless parts can change without a new Sum.
	Sum   string
	Files []string // the other files of the folder that Sum covers

	// Text shows the user everything that needs trust, one line each, and the files that it refers to.
	Text string

	// Parts are the hashes of the parts, by names that users know: keys of the configuration and
	// paths of files.
	Parts map[string]string

	Trusted bool

	link bool // the file is a link out of the folder, and trust is about the target of this link
}

// Place returns the position of a need for messages: the file relative to the folder from, and the
// line if it is known.
func (u Unit) Place(n Need, from string) string {
	name := relative(from, u.File)
	if n.Line > 0 {
		return fmt.Sprintf("%s:%d", name, n.Line)
	}
	return name
}

// Key identifies the unit within its folder: a path.
func (u Unit) Key() string {
	if u.link {
		return u.File + "#link"
	}
	return u.File
}

// Need is something that a file may do only if it is trusted.
type Need struct {
	What string // a path of keys, or an expression such as ${cmd:...}
	Line int    // 0 if unknown
}

// Withheld returns notes about the parts of the unit that have no effect because it is not trusted.
func (u Unit) Withheld() (out []Finding) {
	if u.Trusted {
		return nil
	}
	for _, n := range u.Needs {
		out = append(out, Finding{
			Source: u.File, Line: n.Line, Key: n.What, Severity: SeverityNote,
			Message: n.What + " does nothing until the folder is trusted; see eca trust",
		})
	}
	return out
}

// trustContent is the content of a file that needs trust.
type trustContent struct {
	data  any            // the whole content, for the hash
	parts map[string]any // by names that users know
	text  string         // shown to the user
	runs  any            // the values that may name programs
}

// newUnit returns a unit for content that needs trust.
func newUnit(root, file string, needs []Need, w trustContent) Unit {
	u := Unit{Root: root, File: file, Needs: needs, Parts: map[string]string{}}
	h := sha256.New()
	raw, _ := encode(w.data) // it was decoded from JSON
	fmt.Fprintf(h, "eca trust 1\n%s\n%d %s\n", filepath.ToSlash(relative(root, file)), len(raw), raw)
	for name, value := range w.parts {
		raw, _ := encode(value)
		sum := sha256.Sum256(raw)
		u.Parts[name] = hex.EncodeToString(sum[:])
	}
	for _, path := range namedFiles(root, filepath.Dir(file), w.runs) {
		u.Files = append(u.Files, path)
		sum, err := fileSum(root, path)
		if err != nil {
			sum = err.Error()
		}
		fmt.Fprintf(h, "%q %s\n", path[len(root):], sum)
		u.Parts[filepath.ToSlash(relative(root, path))] = sum
	}
	u.Sum = hex.EncodeToString(h.Sum(nil))
	u.Text = w.text + u.shownFiles()
	return u
}

// relative returns a path relative to a folder.
func relative(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil {
		return rel
	}
	return path
}

// maxShownFile is how many bytes of a referenced file are shown.
const maxShownFile = 8 << 10

// shownFiles formats the files that the unit refers to for the user.
func (u Unit) shownFiles() string {
	var b strings.Builder
	for _, path := range u.Files {
		name := relative(u.Root, path)
		data, err := safeio.ReadWithin(u.Root, path, maxShownFile) // the target of a link out of the folder may be secret
		if target, linkErr := os.Readlink(path); err != nil && linkErr == nil {
			fmt.Fprintf(&b, "file %s (not shown: it is a link to %s)\n", name, target)
			continue
		}
		if err != nil {
			fmt.Fprintf(&b, "file %s (not shown: %v)\n", name, safeio.Cause(err))
			continue
		}
		fmt.Fprintf(&b, "file %s:\n", name)
		for line := range strings.Lines(string(data)) {
			b.WriteString("    " + strings.TrimRight(line, "\r\n") + "\n")
		}
	}
	return b.String()
}

// indented formats a value as JSON for people.
func indented(v any) string {
	raw, err := encodeIndented(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// ForeignUnit returns the unit of a workspace's file in the format of another program, such as Claude
// Code. needs lists the parts that need trust, and values has the decoded JSON value of each.
func ForeignUnit(root, file string, needs []Need, values []any) Unit {
	w := trustContent{data: values, runs: values, parts: map[string]any{}}
	for i, v := range values {
		w.parts[needs[i].What] = v
		w.text += indented(v) + "\n"
	}
	return newUnit(root, file, needs, w)
}

// TextUnit returns the unit of a workspace's text that is not configuration, such as a skill's or a
// rule's. needed is false if nothing in it needs trust. outside means that the file is a link that
// leads out of the folder.
func TextUnit(root, file, text string, outside bool) (u Unit, needed bool) {
	needs := TextNeeds(text, filepath.Dir(file), root)
	if outside {
		needs = append([]Need{{What: "a link that leads out of the folder"}}, needs...)
	}
	if len(needs) == 0 {
		return Unit{}, false
	}
	// The hash covers the whole text, because the text around an expression determines what its value
	// does.
	w := trustContent{data: text, parts: map[string]any{"its text": text}}
	var runs []any
	for _, n := range needs {
		runs = append(runs, n.What)
		w.text += n.What + "\n"
	}
	w.runs = runs
	u = newUnit(root, file, needs, w)
	u.link = outside
	return u, true
}

// withholdUntrusted reduces a workspace's layer to the part that takes effect: everything if the user
// trusts it, otherwise only the harmless part. Values that can only make the configuration stricter
// are moved to b.stricter, because they must not replace the user's values.
func (b *builder) withholdUntrusted(l *layer) {
	if l.root == "" {
		return
	}
	b.withholdUnasked(l)
	b.withholdBudget(l)
	if b.in.Trusts == nil {
		return
	}
	s := splitter{l: l, keys: b.keys, parts: map[string]any{}}
	harmless := s.object(l.content, nil)
	if len(s.needs) > 0 {
		slices.SortStableFunc(s.needs, func(x, y Need) int { return x.Line - y.Line })
		u := newUnit(l.root, l.source, s.needs, trustContent{data: s.trustData, parts: s.parts, text: s.text, runs: s.values})
		if u.Trusted = b.in.Trusts(u); !u.Trusted {
			u.Needs = append(u.Needs, withholdModels(l, harmless, b.merged)...)
		}
		b.Units = append(b.Units, u)
		for _, f := range u.Files {
			b.recordFile(f)
		}
		if u.Trusted {
			return
		}
	}
	l.content, l.within, l.withheld = harmless, l.root, l.content
	b.stricter = append(b.stricter, s.stricter...)
}

// withholdModels removes models from the harmless part of an untrusted layer if only the layer itself
// configures their provider, because they could not be used. It returns the keys that it removed. The
// hash of the unit does not cover them: a trusted file may change them. merged has the layers below. If
// they set no defaultModel, nothing is removed: a prompt then fails with an error that names the file.
func withholdModels(l *layer, harmless, merged map[string]any) (removed []Need) {
	own, _ := l.content["providers"].(map[string]any)
	known, _ := merged["providers"].(map[string]any)
	if merged["defaultModel"] == nil {
		return nil
	}
	remove := func(m map[string]any, path ...string) {
		key := path[len(path)-1]
		id, _ := m[key].(string)
		provider, _, full := strings.Cut(id, "/")
		if full && similarKey(own, provider) && !similarKey(known, provider) {
			delete(m, key)
			removed = append(removed, Need{KeyPath(path), l.positions[join(path)].line})
		}
	}
	remove(harmless, "defaultModel")
	for _, section := range []string{"completion", "rewrite"} {
		m, _ := harmless[section].(map[string]any)
		remove(m, section, "model")
	}
	agents, _ := harmless["agent"].(map[string]any)
	for _, name := range sortedKeys(agents) {
		m, _ := agents[name].(map[string]any)
		remove(m, "agent", name, "defaultModel")
	}
	return removed
}

// similarKey reports whether an object has a key with this provider's name, in any spelling.
func similarKey(m map[string]any, provider string) bool {
	for key := range m {
		if lettersOf(key) == lettersOf(provider) {
			return true
		}
	}
	return false
}

// splitter separates the harmless part of a layer from the part that needs trust.
type splitter struct {
	l         *layer
	keys      *key
	needs     []Need
	trustData []any // paths and values that need trust
	parts     map[string]any
	text      string
	values    []any
	stricter  []tightening
}

// trustEffect is the effect of a value of an untrusted file; see key.
type trustEffect int

const (
	needsTrust trustEffect = iota
	recurse                // an object whose parts are examined
	safe                   // takes effect unchanged
	paths                  // a list of paths in the folder
	stricter               // combined with the user's values, see tightening
	ignored                // no effect
)

// ownTrustEffect returns the effect that the tag trust declares. If a part of an object needs no
// trust, the object's parts are examined one by one.
func (k *key) ownTrustEffect() trustEffect {
	switch k.tag.Get("trust") {
	case "safe":
		return safe
	case "paths":
		return paths
	case "stricter":
		return stricter
	}
	needsNone := func(sub *key) bool { return sub != nil && sub.ownTrustEffect() != needsTrust }
	if needsNone(k.elem()) || slices.ContainsFunc(slices.Collect(maps.Values(k.fields())), needsNone) {
		return recurse
	}
	return needsTrust
}

// trustEffect returns the effect of the value at a path of keys in an untrusted file.
func (k *key) trustEffect(path []string) trustEffect {
	for _, name := range path {
		if k.acceptsAnything() {
			return needsTrust // its type does not restrict its content
		}
		if k = k.member(name); k == nil {
			return ignored
		}
	}
	return k.ownTrustEffect()
}

// object returns the harmless part of an object.
func (s *splitter) object(m map[string]any, path []string) map[string]any {
	out := map[string]any{}
	for _, key := range sortedKeys(m) {
		at, v := append(slices.Clone(path), key), m[key]
		switch effect := s.keys.trustEffect(at); {
		case effect == ignored:
		case len(at) == 1 && isEmpty(v): // an empty section
		case effect == recurse && isObject(v):
			// An agent's empty approval would replace the general one.
			if sub := s.object(v.(map[string]any), at); len(sub) > 0 || key != "approval" && key != "toolCall" {
				out[key] = sub
			}
		case effect == safe && v != nil && s.harmlessTexts(v):
			out[key] = v
		case effect == paths && localPaths(v) && s.harmlessTexts(v):
			out[key] = v
		case effect == stricter && tightens(at, v) && s.harmlessTexts(v):
			s.stricter = append(s.stricter, tightening{s.l, at, v})
		default:
			s.need(at, v)
		}
	}
	return out
}

func isEmpty(v any) bool {
	m, ok := v.(map[string]any)
	return ok && len(m) == 0
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// need records a value that needs trust. For a section such as mcpServers, it records each member
// separately.
func (s *splitter) need(at []string, v any) {
	s.trustData, s.values = append(s.trustData, []any{at, v}), append(s.values, v)
	s.text += KeyPath(at) + ": " + indented(v) + "\n"
	if m, ok := v.(map[string]any); ok && len(at) == 1 && len(m) > 0 {
		for _, key := range sortedKeys(m) {
			sub := append(slices.Clone(at), key)
			s.needs = append(s.needs, Need{KeyPath(sub), s.l.positions[join(sub)].line})
			s.parts[KeyPath(sub)] = m[key]
		}
		return
	}
	s.needs = append(s.needs, Need{KeyPath(at), s.l.positions[join(at)].line})
	s.parts[KeyPath(at)] = v
}

// harmlessTexts reports whether the texts of a value read only files of the folder.
func (s *splitter) harmlessTexts(v any) bool {
	for _, text := range texts(v) {
		if len(TextNeeds(text, filepath.Dir(s.l.source), s.l.root)) > 0 {
			return false
		}
	}
	return true
}

// TextNeeds lists the parts of a text with dynamic strings that need trust: commands, variables,
// passwords, and files outside root. dir is the base of relative paths.
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

// expression returns an expression as written, but shortened.
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

// insideFolder reports whether a path, with links followed, is in a folder.
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
	f, err := safeio.Open(root, path)
	if err == nil {
		_ = f.Close()
	}
	if err == nil || errors.Is(err, safeio.ErrNotRegular) {
		return true
	}
	_, statErr := os.Stat(path)
	return os.IsNotExist(statErr) // a missing file reveals nothing, and reading is also confined to the folder
}

// localPaths reports whether a list of rules, skills or commands contains only paths in the folder.
// The targets of links are checked when the files are read.
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

// equalJSON reports whether two decoded values are equal.
func equalJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
