package config

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// expand resolves the dynamic strings of what is in effect: what a higher layer replaced is
// neither read nor run.
func (b *builder) expand() {
	var waiting []func(last bool) bool
	b.walk(b.merged, nil, func(path []string, written string, set func(string)) {
		again := func(last bool) bool { return b.one(path, written, set, last) }
		if strings.Contains(written, "${") && !again(false) {
			waiting = append(waiting, again)
		}
	})
	if len(waiting) == 0 {
		return
	}
	b.in.Commands.settle(b.in.Patience)
	for _, again := range waiting {
		again(true)
	}
}

// one resolves a string. It reports false, having done nothing, if a command still runs
// and it is not the last time.
func (b *builder) one(path []string, written string, set func(string), last bool) bool {
	x := b.resolver(b.layerOf(path), last).expand(written)
	if x.pending && !last {
		return false
	}
	for _, err := range x.errs {
		b.problemAt(path, "%s: %v", KeyPath(spelledPath(b.spellings, path)), err)
	}
	if unknown := unknownExpression(path, written); unknown != "" {
		b.problemAt(path, "%s: %s is not known; there are ${kind:...} with env, file, netrc, cmd, classpath and plugin", KeyPath(spelledPath(b.spellings, path)), unknown)
	}
	if len(x.unset) > 0 {
		b.unset[join(path)] = x.unset
	}
	if x.pending {
		b.pending = true
		b.problemAt(path, "%s: the command still runs; until it is done the value is what it was before, or empty", KeyPath(spelledPath(b.spellings, path)))
	}
	set(x.text)
	b.note(path, x.pieces)
	return true
}

// expressionLike matches what looks like an expression.
var expressionLike = regexp.MustCompile(`\$\{([A-Za-z]\w*):[^}\s]*\}`)

// unknownExpression returns the first part of a value that looks like an expression of a
// kind that does not exist. Programs of a shell and prompts may mean something else by it.
func unknownExpression(path []string, written string) string {
	if slices.Contains([]string{"hooks", "customTools", "prompts"}, path[0]) || strings.Contains(written, "\n") {
		return ""
	}
	for _, m := range expressionLike.FindAllStringSubmatch(written, -1) {
		if !slices.Contains(kinds(), m[1]) {
			return m[0]
		}
	}
	return ""
}

// walk calls fn with every string that may be dynamic. In MCP servers that is ${plugin:root}
// alone, whose meaning only their file knows: see MCPServer.
func (b *builder) walk(v any, path []string, fn func(path []string, written string, set func(string))) {
	visit := func(key string, sub any, set func(any)) {
		at := append(slices.Clone(path), key)
		text, ok := sub.(string)
		switch {
		case !ok:
			b.walk(sub, at, fn)
		case at[0] != "mcpServers":
			fn(at, text, func(s string) { set(s) })
		case strings.Contains(text, "${plugin:root}"):
			if l := b.layerOf(at); l != nil && l.plugin != "" {
				set(strings.ReplaceAll(text, "${plugin:root}", l.plugin))
			}
		}
	}
	switch v := v.(type) {
	case map[string]any:
		for key, sub := range v {
			visit(key, sub, func(to any) { v[key] = to })
		}
	case []any:
		for i, sub := range v {
			visit(strconv.Itoa(i), sub, func(to any) { v[i] = to })
		}
	}
}

// layerOf returns the layer that a value comes from.
func (b *builder) layerOf(path []string) *layer {
	o := b.originOf(path)
	for _, l := range slices.Backward(b.layers) {
		if l.source == o.Source {
			return l
		}
	}
	return nil
}

// resolver returns what resolves the strings of a layer; last says that there will be no
// other attempt while commands run.
func (b *builder) resolver(l *layer, last bool) *resolver {
	r := &resolver{
		getenv: b.in.Getenv, looked: b.looked, recall: b.recall,
		read:     func(path, text string) { b.included[path] = text },
		netrc:    b.netrcFiles,
		resource: func(name string) (string, error) { return resource(name, b.in.ToolText) },
	}
	if l == nil {
		return r
	}
	r.dir, r.plugin, r.within = l.dir, l.plugin, l.within
	if b.in.Commands != nil {
		r.command = func(command string) (string, bool, error) { return b.in.Commands.get(l.source, command, last) }
	}
	return r
}

// recall returns what a file that is missing for a moment said.
func (b *builder) recall(path string) (text string, ok bool) {
	if b.in.Previous == nil {
		return "", false
	}
	text, ok = b.in.Previous.included[path]
	return text, ok && !b.in.gone(path)
}

// secretMark begins a piece of Origin.included that is secret for certain.
const secretMark = "\x01"

// note keeps which parts of a value were not written where it stands.
func (b *builder) note(path []string, pieces []piece) {
	for len(path) > 1 {
		if _, ok := b.origins[join(path)]; ok {
			break
		}
		path = path[:len(path)-1] // elements of a list have the list's origin
	}
	o := b.origins[join(path)]
	for _, p := range pieces {
		if o.included != "" {
			o.included += "\x00"
		}
		if p.secret {
			o.included += secretMark
		}
		o.included += p.text
	}
	if len(pieces) > 0 {
		b.origins[join(path)] = o
	}
}

// afterwards returns what resolves the strings of other texts once all is loaded.
func (b *builder) afterwards() *resolver {
	files := b.netrcFiles()
	r := b.resolver(nil, true)
	r.netrc = func() []string { return files }
	r.looked, r.recall, r.read = func(string) {}, nil, nil
	return r
}

// Place is where a text with dynamic strings stands.
type Place struct {
	Dir    string // for relative files
	Plugin string // the folder of the plugin it belongs to: ${plugin:root}
}

// Expand resolves the dynamic strings in the text of a file that is no configuration: an
// agent's, a skill's. It waits for commands, each of which runs once for a text. What can
// not be resolved becomes empty, and the error tells of it. It returns the files that were
// looked for.
func (l *Loaded) Expand(ctx context.Context, text string, at Place) (out string, files []string, err error) {
	if !strings.Contains(text, "${") {
		return text, nil, nil
	}
	r := *l.resolve
	r.dir, r.plugin = at.Dir, at.Plugin
	r.looked = func(path string) { files = append(files, path) }
	if source := at.Dir + "\x00" + text; l.commands != nil {
		l.commands.begin(source, text)
		r.command = func(command string) (string, bool, error) { return l.commands.get(source, command, false) }
	}
	x := r.expand(text)
	if x.pending {
		l.commands.Wait(ctx)
		files = nil
		x = r.expand(text)
	}
	if x.pending {
		x.errs = append(x.errs, context.Cause(ctx))
	}
	return x.text, files, errors.Join(x.errs...)
}
