package config

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/bug"
)

//go:embed defaults.jsonc
var defaultsJSONC []byte

//go:embed prompts/*.md
var promptFiles embed.FS

// Inputs are the places a configuration comes from.
type Inputs struct {
	InitOptions json.RawMessage          // initializationOptions; may be nil
	Getenv      func(name string) string // the environment
	ConfigFile  string                   // --config-file; replaces global and workspace files
	ConfigHome  string                   // folder of the global config.json
	Roots       []string                 // workspace folders

	// Fragments are what users added in files of another kind; see Fragment.
	Fragments []Fragment

	// Previous is the configuration that was in effect until now; may be nil. A file
	// that can not be read or does not parse keeps its version from there.
	Previous *Loaded

	// Restrict is the seam for workspace trust: it returns the part of a workspace
	// file's content that may act. Nil lets everything act.
	Restrict func(root string, content map[string]any) map[string]any
}

// Loaded is a configuration with its provenance.
type Loaded struct {
	*Config
	Problems []Problem
	// Files are the files that were read or looked for, those of ${file:...} included.
	// Load comes to another result only when one of them changes.
	Files []string

	origins map[string]Origin
	texts   map[string][]byte // of the configuration files, as far as they are in effect
	global  string            // the file for what no file says yet
}

// Origin says where a value came from.
type Origin struct {
	Source string // defaults, initializationOptions, ECA_CONFIG, environment, or a file's path
	Line   int    // 0 if unknown

	included string // what of the value is not written there, see layer.include
}

// IsDefault says that nobody but eca itself chose the value.
func (o Origin) IsDefault() bool { return o.Source == defaults }

// defaults is the Source of built-in values.
const defaults = "defaults"

func (o Origin) String() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.Source, o.Line)
	}
	return o.Source
}

// environmentSource begins the source of a value that an environment variable alone
// provides.
const environmentSource = "environment variable "

// Variable returns the environment variable that provided the value, because nothing
// else did.
func (o Origin) Variable() (name string, ok bool) {
	return strings.CutPrefix(o.Source, environmentSource)
}

// Problem is something in the configuration that is not used.
type Problem struct {
	Origin
	Cause string
}

func (p Problem) String() string { return p.Origin.String() + ": " + p.Cause }

// Origin returns where the value at a path of keys came from. For an object it is
// the highest layer that says something about it.
func (l *Loaded) Origin(path ...string) (Origin, bool) {
	o, ok := l.origins[join(path)]
	return o, ok
}

func join(path []string) string { return strings.Join(path, "\x00") }

// Home returns the folder of the global configuration: $XDG_CONFIG_HOME/eca or
// ~/.config/eca.
func Home(getenv func(string) string) string {
	if x := getenv("XDG_CONFIG_HOME"); x != "" {
		return filepath.Join(x, "eca")
	}
	if h, err := os.UserHomeDir(); err == nil {
		return filepath.Join(h, ".config", "eca")
	}
	return ""
}

// Load reads and merges all layers.
func Load(in Inputs) *Loaded {
	b := &builder{in: in, merged: map[string]any{}, origins: map[string]Origin{}, texts: map[string][]byte{}}
	b.text(defaults, defaultsJSONC)
	b.prompts()
	b.fragments()
	if len(in.InitOptions) > 0 {
		b.text("initializationOptions", in.InitOptions)
	}
	if pure, _ := b.merged["pureConfig"].(bool); !pure {
		b.userLayers()
	}
	b.providerEnvironment()
	b.googlePreset()
	b.inherit()
	b.checkChoices()
	cfg := b.decode()
	b.checkPrompts(cfg)
	// In an order of their own: two loads of the same can be compared.
	slices.Sort(b.files)
	slices.SortFunc(b.problems, func(x, y Problem) int {
		return cmp.Or(strings.Compare(x.Source, y.Source), x.Line-y.Line, strings.Compare(x.Cause, y.Cause))
	})
	return &Loaded{Config: cfg, Problems: b.problems, Files: b.files, origins: b.origins, texts: b.texts, global: in.globalFile()}
}

// builder merges layers into one map.
type builder struct {
	in       Inputs
	merged   map[string]any
	origins  map[string]Origin
	problems []Problem
	files    []string
	texts    map[string][]byte
}

func (b *builder) problem(o Origin, format string, args ...any) {
	b.problems = append(b.problems, Problem{o, fmt.Sprintf(format, args...)})
}

func (b *builder) userLayers() {
	if env := b.in.Getenv("ECA_CONFIG"); env != "" {
		b.text("ECA_CONFIG", []byte(env))
	}
	if path := b.in.globalFile(); path != "" && !b.file(path, "") && b.in.ConfigFile != "" {
		b.problem(Origin{Source: path}, "the file does not exist")
	}
	if b.in.ConfigFile != "" {
		return
	}
	for _, root := range b.in.Roots {
		b.file(filepath.Join(root, ".eca", "config.json"), root)
	}
}

// text adds a layer that is not a file.
func (b *builder) text(source string, data []byte) {
	l, err := parse(source, data)
	if err != nil {
		b.problems = append(b.problems, *err)
		return
	}
	b.layer(l, "")
}

// layer adds a layer; root is set for workspace files.
func (b *builder) layer(l *layer, root string) {
	content := migrate(l.content)
	if root != "" && b.in.Restrict != nil {
		content = b.in.Restrict(root, content)
	}
	dir := ""
	if filepath.IsAbs(l.source) {
		dir = filepath.Dir(l.source)
	}
	content, _ = b.interpolate(content, l, dir, nil).(map[string]any)
	b.merge(b.merged, content, l, nil)
}

// merge puts over into base, recording origins.
func (b *builder) merge(base, over map[string]any, l *layer, path []string) {
	for _, key := range slices.Sorted(maps.Keys(over)) {
		v := over[key]
		at := append(slices.Clone(path), key)
		b.origins[join(at)] = l.origin(at)
		sub, isMap := v.(map[string]any)
		if !isMap {
			if v == nil && !inPayload(at) {
				delete(base, key)
			} else {
				base[key] = v
			}
			continue
		}
		target, ok := base[key].(map[string]any)
		if !ok {
			target = map[string]any{}
			base[key] = target
		}
		b.merge(target, sub, l, at)
	}
}

// inPayload says whether a path leads into what is merged into a request's body: there
// null has a meaning of its own.
func inPayload(path []string) bool {
	at := func(i int, key string) bool { return len(path) > i && path[i] == key }
	switch {
	case at(0, "providers") && at(2, "models") && at(4, "extraPayload"):
		return len(path) > 5
	case at(0, "providers") && at(2, "models") && at(4, "variants"):
		return len(path) > 6
	case at(0, "variantsByModel") && at(2, "variants"):
		return len(path) > 4
	}
	return false
}

// prompts adds the built-in prompt texts to the defaults.
func (b *builder) prompts() {
	text := func(name string) string {
		data, err := promptFiles.ReadFile("prompts/" + name + ".md")
		if err != nil {
			panic(err) // embedded: cannot be missing in a program that compiles
		}
		return strings.TrimSpace(string(data))
	}
	chat := func(name string) map[string]any {
		return map[string]any{"prompts": map[string]any{"chat": text(name)}}
	}
	l := &layer{source: defaults}
	b.merge(b.merged, map[string]any{
		"prompts": map[string]any{
			"chat": text("code"), "chatTitle": text("title"), "compact": text("compact"), "init": text("init"), "skillCreate": text("skill-create"),
			"completion": text("completion"), "rewrite": text("rewrite"), "environment": text("environment"),
		},
		"agent": map[string]any{"plan": chat("plan"), "explorer": chat("explorer"), "general": chat("general")},
	}, l, nil)
}

// providerEnvironment fills providers' missing keys and URLs from
// <PROVIDER>_API_KEY and <PROVIDER>_API_URL.
func (b *builder) providerEnvironment() {
	providers, _ := b.merged["providers"].(map[string]any)
	for name, v := range providers {
		p, ok := v.(map[string]any)
		if !ok {
			continue
		}
		for field, suffix := range map[string]string{"key": "_API_KEY", "url": "_API_URL"} {
			if s, _ := p[field].(string); s != "" {
				continue
			}
			env := strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + suffix
			if val := b.in.Getenv(env); val != "" {
				p[field] = val
				b.origins[join([]string{"providers", name, field})] = Origin{Source: environmentSource + env}
			}
		}
	}
}

// googlePreset keeps configurations of the reference working, which knows only Google's
// OpenAI-compatible API: somebody's own url without an api is such a one.
func (b *builder) googlePreset() {
	url, api := []string{"providers", "google", "url"}, join([]string{"providers", "google", "api"})
	own := !b.originOf(url).IsDefault() || b.in.Getenv("GOOGLE_API_URL") != ""
	providers, _ := b.merged["providers"].(map[string]any)
	if p, ok := providers["google"].(map[string]any); ok && own && b.origins[api].IsDefault() {
		p["api"] = "openai-chat"
		b.origins[api] = b.originOf(url)
	}
}

// decode turns the merged map into a Config, dropping values of a wrong type.
func (b *builder) decode() *Config {
	b.prune(b.merged, reflect.TypeFor[Config](), nil)
	cfg := &Config{}
	raw, err := json.Marshal(b.merged)
	if err == nil {
		err = json.Unmarshal(raw, cfg)
	}
	if err != nil {
		bug.Reportf("configuration does not decode after pruning: %v", err)
	}
	return cfg
}

// prune removes from a value what does not fit a type. It reports whether the value
// itself fits.
func (b *builder) prune(v any, typ reflect.Type, path []string) bool {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if v == nil {
		return true
	}
	if _, isString := v.(string); isString && typ == reflect.TypeFor[Strings]() {
		return true
	}
	switch typ.Kind() {
	case reflect.Interface:
		return true
	case reflect.String:
		_, ok := v.(string)
		return ok
	case reflect.Bool:
		_, ok := v.(bool)
		return ok
	case reflect.Int, reflect.Int64:
		f, ok := v.(float64)
		return ok && f == math.Trunc(f) && math.Abs(f) < 1<<53
	case reflect.Float64:
		_, ok := v.(float64)
		return ok
	case reflect.Slice:
		list, ok := v.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { return !b.prune(e, typ.Elem(), path) })
	case reflect.Map, reflect.Struct:
		m, ok := v.(map[string]any)
		if !ok {
			return false
		}
		fields, rest := jsonFields(typ)
		for key, sub := range m {
			elem, known := fields[strings.ToLower(key)]
			if !known && rest != nil {
				elem, known = rest, true
			}
			at := append(slices.Clone(path), key)
			if known && !b.prune(sub, elem, at) {
				delete(m, key)
				b.problem(b.originOf(at), "%s must be %s, not %s; it is ignored", strings.Join(at, "."), typeName(elem), valueName(sub))
			}
		}
		return true
	}
	bug.Reportf("configuration has a field of kind %s", typ.Kind())
	return false
}

// originOf returns the origin of a value, or of the object it is in.
func (b *builder) originOf(path []string) Origin {
	for ; len(path) > 0; path = path[:len(path)-1] {
		if o, ok := b.origins[join(path)]; ok {
			return o
		}
	}
	return Origin{Source: "configuration"}
}

// jsonFields returns the types of a struct's fields by lower-cased JSON name, and the type
// of the values whose keys users choose, if there are such.
func jsonFields(typ reflect.Type) (fields map[string]reflect.Type, rest reflect.Type) {
	fields = map[string]reflect.Type{}
	if typ.Kind() == reflect.Map {
		return fields, typ.Elem()
	}
	for _, f := range reflect.VisibleFields(typ) {
		if f.Tag.Get("rest") != "" {
			rest = f.Type.Elem()
		} else if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[strings.ToLower(name)] = f.Type
		}
	}
	return fields, rest
}

func typeName(typ reflect.Type) string {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ == reflect.TypeFor[Strings]() {
		return "a string or a list of strings"
	}
	switch typ.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of the right things"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	}
	return "a number"
}

func valueName(v any) string {
	switch v.(type) {
	case string:
		return "a string"
	case bool:
		return "true or false"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// migrate gives keys the names used here: provider names are kebab-case, and old
// names of agents' keys keep working.
func migrate(m map[string]any) map[string]any {
	if providers, ok := m["providers"].(map[string]any); ok {
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(providers)) {
			out[Kebab(name)] = providers[name]
		}
		m["providers"] = out
	}
	renameKey(m, "behavior", "agent")
	renameKey(m, "defaultBehavior", "defaultAgent")
	if chat, ok := m["chat"].(map[string]any); ok {
		renameKey(chat, "defaultBehavior", "defaultAgent")
		if w, ok := chat["welcomeMessage"]; ok {
			m["welcomeMessage"] = w
		}
	}
	// initializationOptions of old and current clients name the first agent so.
	for _, key := range []string{"chatBehavior", "chatAgent"} {
		if name, ok := m[key].(string); ok && name != "" {
			m["defaultAgent"] = name
		}
	}
	if agents, ok := m["agent"].(map[string]any); ok {
		for _, old := range []string{"agent", "build"} {
			renameKey(agents, old, "code")
		}
	}
	return m
}

func renameKey(m map[string]any, from, to string) {
	if v, ok := m[from]; ok {
		if _, taken := m[to]; !taken {
			m[to] = v
		}
		delete(m, from)
	}
}

// Kebab turns a provider's name into kebab-case: myCompany -> my-company,
// LiteLLM -> lite-llm.
func Kebab(s string) string {
	var out []rune
	runes := []rune(s)
	for i, r := range runes {
		if r == '_' || r == ' ' {
			r = '-'
		}
		if unicode.IsUpper(r) && i > 0 && runes[i-1] != '-' && runes[i-1] != '_' {
			lowerBefore := !unicode.IsUpper(runes[i-1])
			lowerAfter := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if lowerBefore || lowerAfter {
				out = append(out, '-')
			}
		}
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}
