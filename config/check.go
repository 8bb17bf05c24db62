package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// Severity is the severity of a Finding.
type Severity string

// The severities, the worst first.
const (
	SeverityError   Severity = "error"   // the setting is invalid and does not work
	SeverityWarning Severity = "warning" // the setting has no effect, or probably not the intended one
	SeverityNote    Severity = "note"    // the setting works, but the user should know about it
)

// Finding is a remark about a configuration.
type Finding struct {
	Source   string   `json:"source"`           // a file's path, or a name as in Origin
	Line     int      `json:"line,omitempty"`   // from 1; 0 if unknown
	Column   int      `json:"column,omitempty"` // in bytes from 1; 0 if unknown
	Key      string   `json:"key,omitempty"`    // as KeyPath writes it
	Severity Severity `json:"severity"`
	Message  string   `json:"message"`

	path         string // of the key, joined
	intendedPath string // the path of the key that was probably intended, joined
}

func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Place(), f.Severity, f.Message) }

// Place returns the position in the usual form file:line:column.
func (f Finding) Place() string {
	return Origin{Source: f.Source, Line: f.Line, Column: f.Column}.Place()
}

// Findings returns all remarks about the configuration, ordered by position: unknown keys, values
// of a wrong type, out of range or not in a key's list, duplicate keys, names that refer to
// nothing, and the Problems. Clients, `eca config check` and `eca doctor` all show this list. The
// first call computes it, so callers that add to Problems must do so before. Callers must not change
// the list.
func (l *Loaded) Findings() []Finding {
	if l.findings == nil {
		return nil
	}
	return l.findings()
}

// Mistakes returns the Findings that are worse than notes.
func (l *Loaded) Mistakes() []Finding {
	return slices.DeleteFunc(slices.Clone(l.Findings()), func(f Finding) bool { return f.Severity == SeverityNote })
}

// check examines all layers that the user and plugins wrote.
func check(l *Loaded) []Finding {
	c := newChecker()
	for _, layer := range l.layers {
		if layer.source != defaults && !layer.fragment {
			c.layer(layer)
		}
	}
	c.checkReferences(l)
	c.checkUnset(l)
	c.checkExposedFiles(l)
	for _, u := range l.Units {
		c.found = append(c.found, u.Withheld()...)
	}
	found := c.found
	c.found = nil
	problems := map[string]bool{} // the positions of problems that have a column
	for _, p := range l.Problems {
		f := Finding{
			Source: p.Source, Line: p.Line, Column: p.Column, Key: KeyPath(splitKey(p.key)), Severity: SeverityError,
			Message: p.Cause, path: p.key,
		}
		problems[f.positionKey()] = p.Column > 0
		c.found = append(c.found, f)
	}
	for _, f := range found { // at the same position, keep only the problem from loading, because it names the value that replaces the wrong one
		if f.Severity != SeverityError || !problems[f.positionKey()] {
			c.found = append(c.found, f)
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

// positionKey returns a map key for the position of a finding.
func (f Finding) positionKey() string { return fmt.Sprintf("%s\x00%d:%d", f.Source, f.Line, f.Column) }

// checker compares layers with the keys.
type checker struct {
	keys  *key
	paths []string // all keys
	found []Finding

	source string
	lines  lines
}

func newChecker() *checker {
	c := &checker{keys: withLegacyKeys(newKeys())}
	c.keys.each(nil, func(path []string, k *key) {
		if !k.deprecated {
			c.paths = append(c.paths, strings.Join(path, "."))
		}
	})
	return c
}

func (c *checker) layer(l *layer) {
	root, err := hujson.Parse(withNewline([]byte(l.text)))
	if err != nil || root.Value.Kind() != '{' {
		return // it is empty, or loading has reported it as a problem
	}
	c.source, c.lines = l.source, newLines([]byte(l.text))
	c.value(&root, c.keys.lookup(l.pathPrefix), l.pathPrefix, position{})
}

func (c *checker) report(severity Severity, at position, path []string, format string, args ...any) {
	c.found = append(c.found, Finding{
		Source: c.source, Line: at.line, Column: at.column, Key: KeyPath(path), Severity: severity, Message: fmt.Sprintf(format, args...), path: join(path),
	})
}

// value checks the value at a path; at is the position of its key.
func (c *checker) value(v *hujson.Value, k *key, path []string, at position) {
	if isNull(v) {
		return // null is valid for every key: it removes the value of earlier layers
	}
	if k.deprecated {
		c.report(SeverityNote, at, path, "%s still works; it is the %s", KeyPath(path), lowerFirst(strings.TrimSuffix(k.doc(), ".")))
	}
	if plain := plainValue(v); !k.acceptsType(plain) {
		c.report(SeverityError, at, path, "%s must be %s, not %s; it is ignored", KeyPath(path), typeNames(k.types), kindName(plain))
		return
	}
	switch v := v.Value.(type) {
	case *hujson.Object:
		c.object(v, k, path)
	case *hujson.Array:
		for i := range v.Elements {
			if k.elem() != nil {
				c.value(&v.Elements[i], k.elem(), append(slices.Clone(path), strconv.Itoa(i)), c.lines.position(v.Elements[i].StartOffset))
			}
		}
	case hujson.Literal:
		c.literal(v, k, path, at)
	}
}

func (c *checker) object(o *hujson.Object, k *key, path []string) {
	positions := map[string]position{} // by name; all spellings of a provider count as one name
	for i := range o.Members {
		m := &o.Members[i]
		name, ok := m.Name.Value.(hujson.Literal)
		if !ok {
			continue
		}
		key := name.String()
		here, at := append(slices.Clone(path), key), c.lines.position(m.Name.StartOffset)
		normalized := key
		if len(path) == 1 && path[0] == "providers" {
			normalized = Kebab(key)
		}
		if first, twice := positions[normalized]; twice {
			where := fmt.Sprintf("in line %d", first.line)
			if first.line == at.line {
				where = "before in this line"
			}
			c.report(SeverityWarning, at, here, "%s is also %s; only this one counts", KeyPath(here), where)
		}
		positions[normalized] = at
		switch sub := k.lookup([]string{key}); {
		case sub != nil:
			c.value(&m.Value, sub, here, at)
		case !k.acceptsAnything():
			severity := SeverityWarning
			if c.source == initializationOptions {
				severity = SeverityNote // the user did not write it: an editor sends the keys of its version
			}
			meant, hint := c.intendedKey(k, path, key, m.Value.Value), ""
			if meant != nil {
				hint = fmt.Sprintf("; did you mean %s?", KeyPath(meant))
			}
			c.report(severity, at, here, "unknown key %s; it has no effect%s%s", KeyPath(here), consequenceInRule(path, o), hint)
			c.found[len(c.found)-1].intendedPath = join(meant)
		}
	}
}

// consequenceInRule says what an unknown key means for the approval rule that contains it; empty for
// other objects.
func consequenceInRule(path []string, o *hujson.Object) string {
	n := len(path)
	switch {
	case allowRule(path):
		return allowsNothing
	case n > 3 && path[n-3] == "approval" && (path[n-2] == "ask" || path[n-2] == "deny") && !slices.Contains(memberNames(o), "argsMatchers"):
		return ", so this rule now applies to every call of the tool"
	}
	return ""
}

// intendedKey returns the path of the key that was probably intended, or nil if no key is similar.
func (c *checker) intendedKey(k *key, path []string, key string, value hujson.ValueTrimmed) []string {
	fields := slices.Sorted(maps.Keys(k.fields()))
	if ours := keyOfOtherAssistant(path, key); ours != nil {
		return ours
	}
	if best := suggest.Nearest(key, fields); best != "" {
		return append(slices.Clone(path), best)
	}
	if o, ok := value.(*hujson.Object); ok && slices.Contains(fields, "approval") && looksLikeApproval(memberNames(o)) {
		return append(slices.Clone(path), "approval")
	}
	var elsewhere []string
	for _, p := range c.paths {
		if strings.HasSuffix(p, "."+key) || p == key {
			elsewhere = append(elsewhere, p)
		}
	}
	if len(elsewhere) == 1 {
		return strings.Split(strings.NewReplacer("*", "<name>", ".[]", "").Replace(elsewhere[0]), ".")
	}
	return nil
}

// keyOfOtherAssistant returns the path of our key that means what key means in another assistant's
// configuration, or in another object of ours. It returns nil if there is no such key.
func keyOfOtherAssistant(path []string, key string) []string {
	agent := len(path) == 2 && path[0] == "agent"
	switch ours := restrictionLike(key); {
	case len(path) == 0 && key == "readOnly":
		return []string{"agent", "<name>", "readOnly"}
	case agent && ours != nil && !slices.Contains(ours, "sandbox"):
		return append(slices.Clone(path), ours...)
	case ours != nil && (len(path) == 0 || agent || len(path) == 1 && path[0] == "toolCall"):
		return ours
	case len(path) == 0:
		return map[string][]string{
			"mcp":         {"mcpServers"},
			"mcp_servers": {"mcpServers"},
			"model":       {"defaultModel"},
		}[key]
	case len(path) == 2 && path[0] == "providers":
		if ours := (map[string]string{"apiKey": "key", "api_key": "key", "baseURL": "url", "baseUrl": "url", "base_url": "url"})[key]; ours != "" {
			return append(slices.Clone(path), ours)
		}
	}
	return nil
}

func memberNames(o *hujson.Object) []string {
	var out []string
	for i := range o.Members {
		if name, ok := o.Members[i].Name.Value.(hujson.Literal); ok {
			out = append(out, name.String())
		}
	}
	return out
}

func (c *checker) literal(v hujson.Literal, k *key, path []string, at position) {
	switch v.Kind() {
	case '"':
		text := v.String()
		if k.elem() != nil {
			k = k.elem() // a list that is written as a single value
		}
		allowed := k.enum()
		if len(allowed) == 0 || text == "" || slices.Contains(allowed, text) || strings.Contains(text, "${") {
			return
		}
		hint := ""
		if best := suggest.Nearest(text, allowed); best != "" {
			hint = fmt.Sprintf("; did you mean %q?", best)
		}
		c.report(SeverityError, at, path, "%s must be one of %s, not %.40q%s", KeyPath(path), strings.Join(allowed, ", "), text, hint)
	case '0':
		if why := k.violatedRange(v.Float()); why != "" {
			c.report(SeverityError, at, path, "%s must be %s, not %v; it is ignored", KeyPath(path), why, v.Float())
		}
	}
}

// checkReferences checks names that must refer to something.
func (c *checker) checkReferences(l *Loaded) {
	report := func(path []string, format string, args ...any) {
		o, ok := l.Origin(path...)
		if !ok || o.IsDefault() {
			return
		}
		c.source = o.Source
		c.report(SeverityError, position{o.Line, o.Column}, path, format, args...)
	}
	names := slices.Sorted(maps.Keys(l.Agents))
	for _, at := range []struct {
		path []string
		name string
	}{{[]string{"defaultAgent"}, l.DefaultAgent}, {[]string{"chat", "defaultAgent"}, l.Chat.DefaultAgent}} {
		if _, usable := l.FindAgent(at.name); usable {
			continue
		}
		if _, subagent := l.Agents[at.name]; subagent {
			report(at.path, "%s: %q is a subagent, which only other agents start; %s is used", KeyPath(at.path), at.name, l.AgentOrDefault(""))
			continue
		}
		report(at.path, "%s: there is no agent %q, so %s is used%s", KeyPath(at.path), at.name, l.AgentOrDefault(""), suggest.DidYouMean(at.name, names))
	}
	if last := l.AgentOrDefault(""); !l.Agents[last].Primary() {
		path := []string{"agent", last, "mode"}
		report(path, "%s: chats would have no agent, so %s stays one that they can use; set defaultAgent to another one", KeyPath(path), last)
	}
	for _, agent := range names {
		for _, by := range l.Agents[agent].SpawnableBy {
			if _, known := l.Agents[by]; !known {
				path := []string{"agent", agent, "spawnableBy"}
				report(path, "%s: there is no agent %q%s", KeyPath(path), by, suggest.DidYouMean(by, names))
			}
		}
	}
	checkProviderTools(l, report)
	l.EachModel(func(path []string, model string) {
		name, rest, full := strings.Cut(model, "/")
		if _, known := l.Providers[name]; full && (name == "" || rest == "") {
			report(path, "%s: %q is not the name of a model: it must be provider/model", KeyPath(l.SpelledPath(path...)), model)
		} else if full && !known && name != "demo" {
			report(path, "%s: there is no provider %q%s", KeyPath(l.SpelledPath(path...)), name, l.SimilarProvider(name))
		}
	})
}

// checkProviderTools reports tools of providers whose wire format has none.
func checkProviderTools(l *Loaded, report func(path []string, format string, args ...any)) {
	searchAPIs := []string{"anthropic", "openai-responses", "openai", "google"}
	imageAPIs := []string{"openai-responses", "openai", "google"}
	for _, name := range slices.Sorted(maps.Keys(l.Providers)) {
		p := l.Providers[name]
		for _, model := range slices.Sorted(maps.Keys(p.Models)) {
			for _, tool := range []struct {
				key  string
				on   bool
				apis []string
			}{{"webSearch", p.Models[model].WebSearch, searchAPIs}, {"imageGeneration", p.Models[model].ImageGen, imageAPIs}} {
				if path := []string{"providers", name, "models", model, tool.key}; tool.on && p.API != "" && !slices.Contains(tool.apis, p.API) {
					report(path, "%s: the wire format %s has no such tool, so this has no effect", KeyPath(path), p.API)
				}
			}
		}
	}
}

// checkUnset reports environment variables that providers and MCP servers need and that are not set.
func (c *checker) checkUnset(l *Loaded) {
	for path, names := range l.unset {
		keys := splitKey(path)
		o, ok := l.Origin(keys...)
		for at := keys; !ok && len(at) > 1; at = at[:len(at)-1] { // elements of a list have the list's origin
			o, ok = l.Origin(at[:len(at)-1]...)
		}
		if !ok || keys[0] != "providers" && keys[0] != "mcpServers" {
			continue
		}
		c.source = o.Source
		keys = l.SpelledPath(keys...)
		for _, name := range names {
			c.report(SeverityWarning, position{o.Line, o.Column}, keys, "%s: the environment variable %s is not set", KeyPath(keys), name)
		}
	}
}

// checkExposedFiles reports the user's files that other users can change, or that contain a secret and
// that other users can read.
func (c *checker) checkExposedFiles(l *Loaded) {
	for _, layer := range l.layers {
		if _, file := l.texts[layer.source]; !file || layer.root != "" {
			continue
		}
		c.source = layer.source
		if err := safeio.CheckOthers(layer.source); err != nil {
			c.report(SeverityWarning, position{}, nil, "%v. Someone who can change this file can make eca run programs as you", err)
		}
		found := false
		eachText(layer.content, nil, func(path []string, text string) {
			name := path[len(path)-1]
			harmless := text == "" || strings.Contains(text, "${") || checkForeignVariable(path, text) != nil || filepath.IsAbs(text) || strings.HasPrefix(text, "~") || IsWebURL(text)
			if found || harmless || !redact.SecretName(name) || !safeio.OthersRead(layer.source) {
				return
			}
			found = true
			o := layer.origin(path)
			c.report(SeverityWarning, position{o.Line, o.Column}, path, "%s is a secret, and other users can read this file: run `chmod 600 %s`", KeyPath(path), layer.source)
		})
	}
}

// plainValue returns a value as encoding/json decodes it; lists and objects are returned empty.
func plainValue(v *hujson.Value) any {
	switch v.Value.Kind() {
	case '{':
		return map[string]any{}
	case '[':
		return []any{}
	case '"':
		return v.Value.(hujson.Literal).String()
	case 't', 'f':
		return v.Value.Kind() == 't'
	}
	return v.Value.(hujson.Literal).Float()
}

// isType reports whether a value has a JSON type.
func isType(v any, typ string) bool {
	switch v := v.(type) {
	case map[string]any:
		return typ == "object"
	case []any:
		return typ == "array"
	case string:
		return typ == "string"
	case bool:
		return typ == "boolean"
	case float64:
		return typ == "number" || typ == "integer" && v == math.Trunc(v) && math.Abs(v) < 1<<53
	}
	return false
}

// typeNames describes types for users.
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

func kindName(v any) string {
	switch v := v.(type) {
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return "a string"
	case bool:
		return "true or false"
	default:
		return fmt.Sprintf("the number %v", v)
	}
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}
