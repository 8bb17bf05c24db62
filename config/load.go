package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Inputs are the sources of a configuration.
type Inputs struct {
	InitOptions json.RawMessage          // initializationOptions; may be nil
	Getenv      func(name string) string // the environment
	ConfigFile  string                   // --config-file; replaces global and workspace files
	ConfigHome  string                   // folder of the global config.json
	Roots       []string                 // workspace folders

	// Fragments are configuration from other files, such as agents in Markdown; see Fragment.
	Fragments []Fragment

	// Previous is the configuration that was in effect until now; may be nil. If a file cannot be read
	// or parsed, its content in Previous stays in effect.
	Previous *Loaded
	// Removed reports whether a file from Previous that is missing now counts as removed. It should return
	// false at first, because some editors remove a file before they write it again. If Removed is nil,
	// every missing file counts as removed.
	Removed func(path string) bool

	// PluginLayers are the configurations of installed plugins. A later one overrides an earlier one,
	// and the user's settings override all of them.
	PluginLayers []PluginLayer

	// Commands runs ${cmd:...}. If it is nil, each ${cmd:...} is a problem.
	Commands *Commands
	// CommandWait is how long loading waits for commands that are still running.
	CommandWait time.Duration

	// ToolText returns the description of a native tool, for ${classpath:prompts/tools/...}. Nil
	// means that there are no tools.
	ToolText func(tool string) (text string, ok bool)

	// Unasked is toolCall.unasked from the command line. It replaces the value of the user's
	// configuration, including those of agents. Empty means that it is not set.
	Unasked string

	// TurnBudget are the limits of a turn from the command line. Each replaces the configured limits of
	// the same kind (money, tokens or time).
	TurnBudget []string

	// Trusts reports whether the user trusts a workspace's file in its current form. It is called for
	// files whose content needs trust, including files in extraConfigs. Nil trusts all
	// files.
	Trusts func(Unit) bool
}

// PluginLayer is a part of the configuration that comes from a plugin (eca-features.md 21).
type PluginLayer struct {
	File string // the path of the file, for messages and as the base of relative paths
	Root string // the plugin's folder: ${plugin:root}
	Text []byte // the content to use; nil means to read File
	Only string // the only key that is used; empty means all
	// Hooks is the prefix for the names of hooks. If it is not empty, the content is a file of hooks: by
	// name, or below the key hooks.
	Hooks string
}

// Loaded is a configuration with its provenance.
type Loaded struct {
	*Config
	Problems []Problem
	// Files are the files that were read or looked for, including those of ${file:...}. With
	// the same Inputs and environment, the result of Load changes only if one of them changes, or if a
	// pending command ends.
	Files []string
	// Pending means that a ${cmd:...} is still running: Commands.Finished signals its end.
	Pending bool
	// Units are the workspace's files that need trust, whether they are trusted or not.
	Units []Unit

	origins   map[string]Origin
	spellings map[string]string   // how the user spelled names of providers and paths, see layer.spellings
	unset     map[string][]string // variables by joined path, see Unset
	sources   map[string][]string // by joined path, see Sources
	texts     map[string][]byte   // of the configuration files that are in effect
	plugins   map[string][]byte   // the same for the configurations of plugins
	included  map[string]string   // content read by ${file:...}, by path
	global    string              // the file into which edits write values that no file sets yet

	turnBudget Amount           // from the command line
	findings   func() []Finding // computed on first use
	layers     []*layer         // lowest first
	resolve    *resolver        // for dynamic strings in other texts, such as those of agents and skills
	commands   *Commands
}

// Origin is the source of a value.
type Origin struct {
	Source string // defaults, initializationOptions, ECA_CONFIG, environment, or a file's path
	Line   int    // 0 if unknown
	Column int    // in bytes from 1; 0 if unknown

	included string // the parts of the value that dynamic strings included, see recordPieces
}

// IsDefault reports whether the value is built in.
func (o Origin) IsDefault() bool { return o.Source == defaults }

// defaults is the Source of built-in values.
const defaults = "defaults"

func (o Origin) String() string {
	if o.Line > 0 {
		return fmt.Sprintf("%s:%d", o.Source, o.Line)
	}
	return o.Source
}

// Place is String with the column: file:line:column.
func (o Origin) Place() string {
	if o.Line > 0 && o.Column > 0 {
		return fmt.Sprintf("%s:%d", o, o.Column)
	}
	return o.String()
}

// Problem is a part of the configuration that eca does not use, with the cause.
type Problem struct {
	Origin
	Cause string
	// Broken means that the whole source has no effect.
	Broken bool

	key string // the joined path of the key; empty if it is not about a key
}

// WithoutKey returns the problem without its key, so that LostRestrictions ignores it.
func (p Problem) WithoutKey() Problem {
	return Problem{Origin: p.Origin, Cause: p.Cause, Broken: p.Broken}
}

func (p Problem) String() string { return p.Place() + ": " + p.Cause }

// Problem returns a problem with the value at a path. Its position is that of the value, or of the
// nearest enclosing one.
func (l *Loaded) Problem(path []string, format string, args ...any) Problem {
	out := Problem{Origin: l.originOf(path), Cause: fmt.Sprintf(format, args...), key: join(path)}
	for _, layer := range l.layers {
		for n := len(path); n > 0 && layer.source == out.Source; n-- {
			if p, ok := layer.positions[join(path[:n])]; ok {
				out.Line, out.Column = p.line, p.column
				break
			}
		}
	}
	return out
}

// Broken returns a message for each source that could not be read. No part of its content is in
// effect, not even rules that deny calls.
func (l *Loaded) Broken() []string {
	var out []string
	for _, p := range l.Problems {
		if p.Broken {
			out = append(out, fmt.Sprintf("cannot read %s", p))
		}
	}
	return out
}

// Configured reports whether the user configured anything. Options that an editor sends
// automatically, and a workspace's files, count only if they set providers or
// defaultModel. A broken file counts.
func (l *Loaded) Configured() bool {
	if slices.ContainsFunc(l.Problems, func(p Problem) bool { return p.Broken }) {
		return true
	}
	for _, layer := range l.layers {
		if layer.source == defaults || layer.fragment || layer.plugin != "" {
			continue
		}
		ownSource := layer.root == "" && layer.source != initializationOptions // the user writes it by hand
		for _, content := range []map[string]any{layer.content, layer.withheld} {
			for key := range content {
				if key == "providers" || key == "defaultModel" || ownSource && key != "$schema" {
					return true
				}
			}
		}
	}
	return false
}

// Unset lists the unset environment variables that the value at a path refers to. They make the
// value empty or incomplete.
func (l *Loaded) Unset(path ...string) []string { return l.unset[join(path)] }

// Sources describes the environment variables, files, netrc entries and commands that the value at a
// path refers to, in words for messages.
func (l *Loaded) Sources(path ...string) []string { return l.sources[join(path)] }

// UnsetBelow lists the paths at or below a path whose values refer to unset environment variables.
func (l *Loaded) UnsetBelow(path ...string) [][]string {
	var out [][]string
	for _, at := range slices.Sorted(maps.Keys(l.unset)) {
		if keys := splitKey(at); len(keys) >= len(path) && slices.Equal(keys[:len(path)], path) {
			out = append(out, keys)
		}
	}
	return out
}

// Origin returns the origin of the value at a path of keys. For an object, it is the last layer that
// sets a part of it.
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
	b := &builder{in: in, merged: map[string]any{}, keys: newKeys(), Loaded: &Loaded{
		origins: map[string]Origin{}, spellings: map[string]string{}, unset: map[string][]string{}, sources: map[string][]string{}, texts: map[string][]byte{},
		plugins: map[string][]byte{}, included: map[string]string{}, global: in.globalFile(), commands: in.Commands,
	}}
	b.addLayer(builtinDefaults(b.keys), "")
	b.addPrompts()
	b.addFragments()
	pure := in.pure()
	if !pure {
		b.addPluginLayers()
	}
	if len(in.InitOptions) > 0 {
		b.addText(initializationOptions, in.InitOptions)
	}
	if !pure {
		b.addUserLayers()
		b.addExtraLayers()
	}
	b.applyUnaskedFlag()
	b.expandStrings()
	b.fillCredentials()
	b.selectGoogleAPI()
	b.inheritAgents()
	b.applyBudgetFlags()
	tightener{b}.tighten()
	b.Config = b.decode()
	b.normalizeProviderNames()
	b.checkPrompts()
	checkServerArguments(b)
	checkAgentNames(b)
	checkServerNames(b)
	b.checkURLs()
	b.checkBudget()
	b.checkFiles()
	// Sorted, so that two loads of the same files can be compared.
	slices.Sort(b.Files)
	slices.SortStableFunc(b.Problems, func(x, y Problem) int {
		return cmp.Or(strings.Compare(x.Source, y.Source), x.Line-y.Line, strings.Compare(x.Cause, y.Cause))
	})
	b.resolve = b.textResolver()
	loaded := b.Loaded
	loaded.findings = sync.OnceValue(func() []Finding { return check(loaded) })
	return loaded
}

// initializationOptions is the Source of the options that the client sends at its start.
const initializationOptions = "initializationOptions"

// environmentConfig is the variable that contains a configuration, and its Source.
const environmentConfig = "ECA_CONFIG"

// pure reports whether only the defaults and the client's options apply.
func (in Inputs) pure() bool {
	l, _ := parse(initializationOptions, in.InitOptions)
	if l == nil {
		return false
	}
	pure, _ := l.content["pureConfig"].(bool)
	return pure
}

// builder merges layers into one map and records the origins of values.
type builder struct {
	*Loaded
	in       Inputs
	merged   map[string]any
	stricter []tightening
	keys     *key
}

func (b *builder) problem(o Origin, format string, args ...any) {
	b.Problems = append(b.Problems, Problem{Origin: o, Cause: fmt.Sprintf(format, args...)})
}

// problemAt reports a problem with the value at a path.
func (b *builder) problemAt(path []string, format string, args ...any) {
	b.Problems = append(b.Problems, b.Problem(path, format, args...))
}

func (b *builder) addUserLayers() {
	if env := b.in.Getenv(environmentConfig); env != "" {
		b.addText(environmentConfig, []byte(env))
	}
	if path := b.in.globalFile(); path != "" && !b.addFile(path, "") && b.in.ConfigFile != "" {
		b.Problems = append(b.Problems, Problem{Origin: Origin{Source: path}, Cause: "the file does not exist; correct --config-file, or leave it out", Broken: true})
	}
	if b.in.ConfigFile != "" {
		return
	}
	for _, root := range b.in.Roots {
		b.addFile(filepath.Join(root, ".eca", "config.json"), root)
	}
}

// addText adds a layer that is not from a file.
func (b *builder) addText(source string, data []byte) {
	l, err := parse(source, data)
	if err != nil {
		b.Problems = append(b.Problems, *err)
		return
	}
	if l.emptyReason != "" && source == environmentConfig {
		b.Problems = append(b.Problems, Problem{Origin: Origin{Source: source}, Cause: strings.Replace(l.emptyReason, "the file", "it", 1) + "; give it a JSON object, or unset it", Broken: true})
	}
	b.addLayer(l, "")
}

// addLayer adds a layer; root is set for workspace files.
func (b *builder) addLayer(l *layer, root string) {
	l.root = root
	if filepath.IsAbs(l.source) {
		l.dir = filepath.Dir(l.source)
	}
	l.migrate()
	if l.source == initializationOptions {
		l.camelCaseServers()
	}
	b.dropForeignKeys(l)
	protectAgents(b, l)
	b.withholdUntrusted(l)
	if b.in.Commands != nil {
		b.in.Commands.begin(l.source, l.text)
	}
	b.layers = append(b.layers, l)
	maps.Copy(b.spellings, l.spellings)
	if l.source != defaults { // their values are checked by decode
		b.pruneLayer(l)
	}
	b.merge(b.merged, l.content, l, nil)
}

// addPluginLayers adds the configurations of plugins.
func (b *builder) addPluginLayers() {
	for _, p := range b.in.PluginLayers {
		data, err := p.Text, error(nil)
		if data == nil {
			b.recordFile(p.File)
			data, err = safeio.Read(p.File, maxFile)
		}
		var last []byte
		if b.in.Previous != nil {
			last = b.in.Previous.plugins[p.File]
		}
		l, data := b.layerOrLast(p.File, data, err, last)
		if l == nil {
			continue
		}
		b.plugins[p.File] = data
		l.plugin = p.Root
		p.narrow(l)
		b.addLayer(l, "")
	}
}

// narrow reduces a layer to the keys that this file of the plugin may set, and prefixes the names of
// hooks.
func (p PluginLayer) narrow(l *layer) {
	if p.Hooks != "" {
		if _, nested := l.content["hooks"].(map[string]any); !nested {
			l.pathPrefix = []string{"hooks"}
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

// addExtraLayers adds the files that extraConfigs names, in that order, above all others. Their own
// extraConfigs are ignored.
func (b *builder) addExtraLayers() {
	at := []string{"extraConfigs"}
	root := ""
	if l := b.layerOf(at); l != nil {
		root = l.root // a file in extraConfigs has the same rights as the file that names it
	}
	for _, name := range texts(b.merged["extraConfigs"]) {
		x := b.resolver(b.layerOf(at), false).expand(name)
		path := atHome(x.text)
		if !filepath.IsAbs(path) && len(b.in.Roots) > 0 {
			path = filepath.Join(b.in.Roots[0], path)
		}
		path, err := filepath.Abs(path)
		if err != nil || x.text == "" || len(x.errs) > 0 {
			b.problemAt(at, "extraConfigs: cannot resolve %q: %v", name, errors.Join(append(x.errs, err)...))
			continue
		}
		before, origin := b.merged["extraConfigs"], b.origins[join(at)] // the extraConfigs of the file itself is ignored
		owner := root
		for _, folder := range b.in.Roots {
			if safeio.Within(folder, path) {
				owner = folder // a file in a workspace folder counts as the folder's, whichever file names it
			}
		}
		if !b.addFile(path, owner) {
			b.problemAt(at, "extraConfigs: there is no file %s", path)
		}
		b.merged["extraConfigs"], b.origins[join(at)] = before, origin
	}
}

// merge overlays base with the members of over, and records the origins of the new values.
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

// inPayload reports whether a path leads into data that is merged into a request's body, where null
// has its own meaning.
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
