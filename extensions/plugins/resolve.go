package plugins

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// foundPlugin is a plugin with its source.
type foundPlugin struct {
	market *market
	entry  entry
}

func (f foundPlugin) id() string { return f.entry.Name + "@" + f.market.source.Name }

// node is a plugin in the dependency graph.
type node struct {
	foundPlugin
	dir      string
	neededBy string
	direct   bool
	needs    []*node
	done     bool
}

// resolve finds all installed plugins and their dependencies.
func (r *reader) resolve() *Set {
	nodes := map[string]*node{}
	var direct, queue []*node
	add := func(f foundPlugin, neededBy string) *node {
		if n := nodes[f.id()]; n != nil {
			return n
		}
		if len(nodes) == maxPlugins {
			r.problem("plugins.install", 0, "there are more than %d plugins, dependencies included; the rest are ignored", maxPlugins)
			return nil
		}
		n := &node{foundPlugin: f, neededBy: neededBy}
		nodes[f.id()] = n
		var err error
		if n.dir, err = resolveBelow(f.market.dir, f.entry.Path); err != nil {
			r.problem(filepath.Join(f.market.dir, filepath.FromSlash(marketFile)), 0, "the plugin %s is not used: %v", f.entry.Name, err)
			return n
		}
		queue = append(queue, n)
		return n
	}
	for _, ref := range r.in.Install {
		for _, f := range r.find(ref, "") {
			if n := add(f, ""); n != nil && !n.direct {
				n.direct = true
				direct = append(direct, n)
			}
		}
	}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for _, ref := range r.dependencies(n) {
			for _, f := range r.find(ref, n.market.source.Name) {
				if needed := add(f, n.id()); needed != nil {
					n.needs = append(n.needs, needed)
				}
			}
		}
	}
	for _, src := range r.in.Sources { // report missing folders even if nothing is installed from them
		if !IsGit(src.Location) && !isDir(src.Location) {
			r.market(src.Name)
		}
	}
	set := &Set{}
	for _, n := range order(direct) {
		if n.dir == "" {
			continue
		}
		set.Plugins = append(set.Plugins, Plugin{
			Name: n.entry.Name, Source: n.market.source.Name, Description: n.entry.Description, Dir: n.dir, NeededBy: n.neededBy,
		})
		set.Layers = append(set.Layers, r.layers(n)...)
	}
	set.Problems, set.Missing = r.problems, r.missing
	for _, s := range r.stamps {
		set.Files = append(set.Files, s.path)
	}
	slices.Sort(set.Files)
	set.Files = slices.Compact(set.Files)
	return set
}

// order sorts dependencies before the plugins that need them, and keeps the user's order of
// installed plugins. Cycles are harmless: each plugin occurs once.
func order(direct []*node) []*node {
	var out []*node
	var visit func(n *node)
	visit = func(n *node) {
		if n.done {
			return
		}
		n.done = true
		for _, needed := range n.needs {
			visit(needed)
		}
		if !n.direct {
			out = append(out, n)
		}
	}
	for _, n := range direct {
		visit(n)
	}
	return append(out, direct...)
}

// find returns the plugins that a name stands for. from is the source of the plugin that needs it;
// the plugins of this source take precedence.
func (r *reader) find(ref, from string) []foundPlugin {
	at := "plugins.install"
	if from != "" {
		at = "plugins." + from
	}
	name, source, err := parseRef(ref)
	if err != nil {
		r.problem(at, 0, "%v", err)
		return nil
	}
	if source != "" {
		m := r.market(source)
		switch f, ok := m.plugin(name); {
		case m == nil:
			r.problem(at, 0, "%s: there is no source %s in plugins%s", ref, source, r.alternatives(source, ""))
		case ok:
			return []foundPlugin{f}
		case !m.missing && m.unusableReason == "":
			r.problem(at, 0, "%s: the source %s has no plugin %s%s", ref, source, name, r.alternatives(name, source))
		}
		return nil
	}
	if f, ok := r.market(from).plugin(name); ok {
		return []foundPlugin{f}
	}
	var out []foundPlugin
	var unusable []string // the user's sources that may have the plugin
	for _, src := range r.in.Sources {
		if src.Builtin {
			continue
		}
		m := r.market(src.Name)
		if f, ok := m.plugin(name); ok {
			out = append(out, f)
		}
		if m.missing || m.unusableReason != "" {
			unusable = append(unusable, src.Name)
		}
	}
	if len(out) > 0 || len(r.missing) > 0 {
		return out
	}
	if len(unusable) > 0 {
		// One of these sources may have the plugin, so the user does not mean a plugin of the same
		// name in another source.
		r.problem(at, 0, "no usable source has a plugin %s; %s cannot be used", name, strings.Join(unusable, ", "))
		return nil
	}
	for _, src := range r.in.Sources {
		if !src.Builtin {
			continue
		}
		if f, ok := r.market(src.Name).plugin(name); ok {
			out = append(out, f)
		}
	}
	if len(out) == 0 && len(r.missing) == 0 {
		r.problem(at, 0, "no source has a plugin %s%s", name, r.alternatives(name, anySource))
	}
	return out
}

// anySource stands for all sources in alternatives.
const anySource = "*"

// alternatives completes a message about an unknown name of a plugin or, if from is empty, of a
// source: it names a similar one, or else those of the source or all sources.
func (r *reader) alternatives(word, from string) string {
	var names []string
	for _, src := range r.in.Sources {
		if from == "" {
			names = append(names, src.Name)
		} else if m := r.markets[src.Name]; m != nil && (from == anySource || from == src.Name) {
			for _, e := range m.entries {
				names = append(names, e.Name)
			}
		}
	}
	similar := suggest.DidYouMean(word, names)
	if similar != "" || len(names) == 0 || from == anySource {
		return similar
	}
	const enough = 200
	return "; there are: " + shorten.Text(strings.Join(names, ", "), enough)
}

// plugin returns a plugin of a source; a nil market has no plugins.
func (m *market) plugin(name string) (foundPlugin, bool) {
	if m == nil {
		return foundPlugin{}, false
	}
	i := slices.IndexFunc(m.entries, func(e entry) bool { return e.Name == name })
	if i < 0 {
		return foundPlugin{}, false
	}
	return foundPlugin{m, m.entries[i]}, true
}

func (r *reader) dependencies(n *node) []string {
	needs := slices.Clone(n.entry.Dependencies)
	var manifest struct {
		Dependencies []string `json:"dependencies"`
	}
	line, err := r.decodeFile(n.dir, manifestFile, &manifest)
	if errors.Is(err, fs.ErrNotExist) {
		return needs
	}
	if err != nil {
		r.problem(filepath.Join(n.dir, filepath.FromSlash(manifestFile)), line, "%v", err)
		return needs
	}
	return append(needs, manifest.Dependencies...)
}

// layers returns the configuration of a plugin.
func (r *reader) layers(n *node) []config.PluginLayer {
	var out []config.PluginLayer
	for _, part := range []struct {
		file  string
		layer config.PluginLayer
	}{
		{"hooks/hooks.json", config.PluginLayer{Hooks: n.entry.Name + "::"}},
		{".mcp.json", config.PluginLayer{Only: "mcpServers"}},
		{"eca.json", config.PluginLayer{}},
	} {
		path := filepath.Join(n.dir, filepath.FromSlash(part.file))
		data, err := r.file(n.dir, part.file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			r.problem(path, 0, "%v", err)
		default:
			part.layer.File, part.layer.Root, part.layer.Text = path, n.dir, data
			out = append(out, part.layer)
		}
	}
	return out
}
