package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/regular"
)

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
	// Gone says whether a file that Previous has, and that is missing now, is to count no more:
	// some editors remove a file before they write it again. Nil says that it is.
	Gone func(path string) bool

	// PluginLayers are what installed plugins configure, lowest first. They are below all
	// that the user says.
	PluginLayers []PluginLayer

	// Commands runs ${cmd:...}; nil runs none, which is a problem where one stands.
	Commands *Commands
	// Patience is how long loading waits for commands.
	Patience time.Duration

	// ToolText returns the description of a native tool, for ${classpath:prompts/tools/...};
	// nil knows none.
	ToolText func(tool string) (text string, ok bool)

	// Unasked is what the command line says of toolCall.unasked: it replaces what the user's
	// configuration says of it, also for agents. Empty: nothing.
	Unasked string

	// Trusts says whether the user trusts a workspace's file as it is. It is asked about
	// files that want more than what is harmless, those named in extraConfigs included. Nil
	// trusts all.
	Trusts func(Unit) bool
}

// PluginLayer is a part of the configuration that a plugin brings (eca-features 21).
type PluginLayer struct {
	File string // where it is, for relative files and messages
	Root string // the plugin's folder: ${plugin:root}
	Text []byte // its content; nil: that of the file
	Only string // the one key of it that counts; empty: all
	// Hooks says that the content is hooks by name, or has them under hooks, and what their
	// names get in front.
	Hooks string
}

// Loaded is a configuration with its provenance.
type Loaded struct {
	*Config
	Problems []Problem
	// Files are the files that were read or looked for, those of ${file:...} included.
	// Load comes to another result only when one of them changes, or when a command is
	// done that Pending tells of.
	Files []string
	// Pending says that a ${cmd:...} still runs: Commands.Finished tells of its end.
	Pending bool
	// Units are the workspace's files that need trust, trusted or not.
	Units []Unit

	origins   map[string]Origin
	spellings map[string]string   // of providers' names, by the name in effect
	unset     map[string][]string // variables by joined path, see Unset
	texts     map[string][]byte   // of the configuration files, as far as they are in effect
	plugins   map[string][]byte   // the same of what plugins configure
	included  map[string]string   // what ${file:...} read, by path
	global    string              // the file for what no file says yet

	layers   []*layer  // lowest first
	resolve  *resolver // for texts that are no configuration
	commands *Commands
}

// Origin says where a value came from.
type Origin struct {
	Source string // defaults, initializationOptions, ECA_CONFIG, environment, or a file's path
	Line   int    // 0 if unknown
	Column int    // in bytes from 1; 0 if unknown

	included string // what of the value is not written there, see note
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

// Problem is something in the configuration that is not used.
type Problem struct {
	Origin
	Cause string
	// Broken says that nothing of the source is in effect.
	Broken bool

	key string // the path it is about, joined; empty if it is about no key
}

func (p Problem) String() string { return p.Origin.String() + ": " + p.Cause }

// Problem is something about the value at a path, at its place or that of what it stands in.
func (l *Loaded) Problem(path []string, format string, args ...any) Problem {
	out := Problem{Origin: Origin{Source: "configuration"}, Cause: fmt.Sprintf(format, args...), key: join(path)}
	for n := len(path); n > 0; n-- {
		if o, ok := l.Origin(path[:n]...); ok {
			out.Origin = o
			break
		}
	}
	for _, layer := range l.layers {
		for n := len(path); n > 0 && layer.source == out.Source; n-- {
			if p, ok := layer.at[join(path[:n])]; ok {
				out.Line, out.Column = p.line, p.column
				break
			}
		}
	}
	return out
}

// Broken lists why sources could not be read at all: what they say is not in effect, also
// what they deny.
func (l *Loaded) Broken() []string {
	var out []string
	for _, p := range l.Problems {
		if !p.Broken {
			continue
		}
		at := p.Source
		if p.Line > 0 {
			at += fmt.Sprintf(": line %d", p.Line)
		}
		cause, column := strings.CutPrefix(p.Cause, fmt.Sprintf("column %d: ", p.Column))
		if column {
			at += fmt.Sprintf(", column %d", p.Column)
		}
		out = append(out, fmt.Sprintf("cannot read %s: %s", at, cause))
	}
	return out
}

// Configured says whether the user configured anything at all. Of what an editor sends on
// its own, and of what a workspace brings along, only providers and models count.
func (l *Loaded) Configured() bool {
	if slices.ContainsFunc(l.Problems, func(p Problem) bool { return p.Broken }) {
		return true
	}
	for _, layer := range l.layers {
		if layer.source == defaults || layer.fragment || layer.plugin != "" {
			continue
		}
		users := layer.root == "" && layer.source != initializationOptions
		for _, content := range []map[string]any{layer.content, layer.withheld} {
			for key := range content {
				if key == "providers" || key == "defaultModel" || users && key != "$schema" {
					return true
				}
			}
		}
	}
	return false
}

// Unset names the environment variables that the value at a path is made of and that are
// not set, so that it is empty, or not what it should be.
func (l *Loaded) Unset(path ...string) []string { return l.unset[join(path)] }

// UnsetBelow lists the paths at or below a path whose values are made of environment
// variables that are not set.
func (l *Loaded) UnsetBelow(path ...string) [][]string {
	var out [][]string
	for _, at := range slices.Sorted(maps.Keys(l.unset)) {
		if keys := splitKey(at); len(keys) >= len(path) && slices.Equal(keys[:len(path)], path) {
			out = append(out, keys)
		}
	}
	return out
}

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
	b := &builder{in: in, merged: map[string]any{}, origins: map[string]Origin{}, spellings: map[string]string{}, unset: map[string][]string{}, texts: map[string][]byte{}, plugins: map[string][]byte{}, included: map[string]string{}, fields: map[reflect.Type]jsonFields{}}
	b.text(defaults, builtinDefaults())
	b.prompts()
	b.fragments()
	pure := in.pure()
	if !pure {
		b.pluginLayers()
	}
	if len(in.InitOptions) > 0 {
		b.text(initializationOptions, in.InitOptions)
	}
	if !pure {
		b.userLayers()
		b.extraLayers()
	}
	b.unasked()
	b.expand()
	b.credentials()
	b.googlePreset()
	b.inherit()
	b.tighten()
	b.checkChoices()
	cfg := b.decode()
	cfg.nameProviders()
	b.checkPrompts(cfg)
	b.checkURLs(cfg)
	// In an order of their own: two loads of the same can be compared.
	slices.Sort(b.files)
	slices.SortFunc(b.problems, func(x, y Problem) int {
		return cmp.Or(strings.Compare(x.Source, y.Source), x.Line-y.Line, strings.Compare(x.Cause, y.Cause))
	})
	return &Loaded{
		Config: cfg, Problems: b.problems, Files: b.files, Pending: b.pending, Units: b.units,
		origins: b.origins, spellings: b.spellings, unset: b.unset, texts: b.texts, plugins: b.plugins, included: b.included, global: in.globalFile(), layers: b.layers,
		resolve: b.afterwards(), commands: in.Commands,
	}
}

// initializationOptions is the Source of what the client says when it starts.
const initializationOptions = "initializationOptions"

// pure says whether only the defaults and the client count.
func (in Inputs) pure() bool {
	l, _ := parse(initializationOptions, in.InitOptions)
	if l == nil {
		return false
	}
	pure, _ := l.content["pureConfig"].(bool)
	return pure
}

// builder merges layers into one map.
type builder struct {
	in        Inputs
	merged    map[string]any
	origins   map[string]Origin
	spellings map[string]string   // of providers' names, by the name in effect
	unset     map[string][]string // variables by joined path
	problems  []Problem
	files     []string
	texts     map[string][]byte
	plugins   map[string][]byte
	included  map[string]string // what ${file:...} read, by path
	layers    []*layer
	pending   bool
	units     []Unit
	stricter  []tightening
	fields    map[reflect.Type]jsonFields
}

func (b *builder) problem(o Origin, format string, args ...any) {
	b.problems = append(b.problems, Problem{Origin: o, Cause: fmt.Sprintf(format, args...)})
}

// problemAt reports something about the value at a path.
func (b *builder) problemAt(path []string, format string, args ...any) {
	b.problem(b.position(path), format, args...)
	b.problems[len(b.problems)-1].key = join(path)
}

// position returns where exactly a value, or an element of a list, stands.
func (b *builder) position(path []string) Origin {
	o := b.originOf(path)
	for _, l := range b.layers {
		if p, ok := l.at[join(path)]; ok && l.source == o.Source {
			o.Line, o.Column = p.line, p.column
		}
	}
	return o
}

func (b *builder) userLayers() {
	if env := b.in.Getenv("ECA_CONFIG"); env != "" {
		b.text("ECA_CONFIG", []byte(env))
	}
	if path := b.in.globalFile(); path != "" && !b.file(path, "") && b.in.ConfigFile != "" {
		b.problems = append(b.problems, Problem{Origin: Origin{Source: path}, Cause: "the file does not exist; correct --config-file, or leave it out", Broken: true})
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
	l.root = root
	if filepath.IsAbs(l.source) {
		l.dir = filepath.Dir(l.source)
	}
	l.migrate()
	if l.source == initializationOptions {
		l.camelServers()
	}
	b.userOnly(l)
	b.gate(l)
	if b.in.Commands != nil {
		b.in.Commands.begin(l.source, l.text)
	}
	b.layers = append(b.layers, l)
	maps.Copy(b.spellings, l.spellings)
	b.merge(b.merged, l.content, l, nil)
}

// pluginLayers adds what plugins configure. What decides about plugins and sources is not
// theirs to say.
func (b *builder) pluginLayers() {
	for _, p := range b.in.PluginLayers {
		data, err := p.Text, error(nil)
		if data == nil {
			b.looked(p.File)
			data, err = regular.Read(p.File, maxFile)
		}
		var last []byte
		if b.in.Previous != nil {
			last = b.in.Previous.plugins[p.File]
		}
		l, data := b.whole(p.File, data, err, last)
		if l == nil {
			continue
		}
		b.plugins[p.File] = data
		l.plugin = p.Root
		p.narrow(l)
		for _, key := range []string{"plugins", "extraConfigs", "pureConfig", "netrcFile", "env"} {
			if _, ok := l.content[key]; ok {
				delete(l.content, key)
				b.problems = append(b.problems, Problem{Origin: l.origin([]string{key}), Cause: "a plugin can not set " + key + "; it is ignored", key: key})
			}
		}
		b.layer(l, "")
	}
}

// narrow leaves of a layer what the plugin's file is for.
func (p PluginLayer) narrow(l *layer) {
	if p.Hooks != "" {
		if _, nested := l.content["hooks"].(map[string]any); !nested {
			for _, name := range slices.Collect(maps.Keys(l.content)) {
				l.move([]string{name}, []string{"hooks", name})
			}
		}
		named, _ := l.content["hooks"].(map[string]any)
		for _, name := range slices.Collect(maps.Keys(named)) {
			l.move([]string{"hooks", name}, []string{"hooks", p.Hooks + name})
		}
		p.Only = "hooks"
	}
	if p.Only != "" {
		maps.DeleteFunc(l.content, func(key string, _ any) bool { return key != p.Only })
	}
}

// extraLayers adds the files that extraConfigs names, in that order, above all others. What
// they say in extraConfigs themselves does not count.
func (b *builder) extraLayers() {
	at := []string{"extraConfigs"}
	names := texts(b.merged["extraConfigs"])
	root := ""
	if l := b.layerOf(at); l != nil {
		root = l.root // such a file may do what the one that names it may
	}
	for _, name := range names {
		r := b.resolver(b.layerOf(at), false)
		x := r.expand(name)
		path := atHome(x.text)
		if !filepath.IsAbs(path) && len(b.in.Roots) > 0 {
			path = filepath.Join(b.in.Roots[0], path)
		}
		path, err := filepath.Abs(path)
		if err != nil || x.text == "" || len(x.errs) > 0 {
			b.problemAt(at, "extraConfigs: %q names no file: %v", name, errors.Join(append(x.errs, err)...))
			continue
		}
		before, origin := b.merged["extraConfigs"], b.origins[join(at)]
		owner := root
		for _, folder := range b.in.Roots {
			if rel, err := filepath.Rel(folder, path); err == nil && filepath.IsLocal(rel) {
				owner = folder // whoever named it, the folder's owner wrote it
			}
		}
		if !b.file(path, owner) {
			b.problemAt(at, "extraConfigs: there is no file %s", path)
		}
		b.merged["extraConfigs"], b.origins[join(at)] = before, origin
	}
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
