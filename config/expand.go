package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// expandStrings resolves the dynamic strings in effect. If a later layer replaced a string, its files
// are not read and its commands are not run.
func (b *builder) expandStrings() {
	var waiting []func(last bool) bool
	b.walk(b.merged, nil, func(path []string, written string, set func(string)) {
		resolve := func(last bool) bool { return b.resolveString(path, written, set, last) }
		if strings.ContainsAny(written, "${%") && !resolve(false) {
			waiting = append(waiting, resolve)
		}
	})
	if len(waiting) == 0 {
		return
	}
	b.in.Commands.waitAtMost(b.in.CommandWait)
	for _, resolve := range waiting {
		resolve(true)
	}
}

// resolveString resolves the string at a path and stores the result with set. If one of its commands
// is still running and this is not the last attempt, it does nothing and returns false.
func (b *builder) resolveString(path []string, written string, set func(string), last bool) bool {
	x := b.resolver(b.layerOf(path), last).expand(written)
	if x.pending && !last {
		return false
	}
	if err := CheckExpressions(path, written); err != nil {
		x.errs = slices.DeleteFunc(x.errs, func(known error) bool { return known == err }) //nolint:errorlint // the same one
		if isSent(path) {
			x.text, err = "", fmt.Errorf("%w (the value is not used)", err)
		}
		x.errs = append(x.errs, err)
	}
	for _, err := range x.errs {
		b.problemAt(path, "%s: %v", KeyPath(spelledPath(b.spellings, path)), err)
	}
	if len(x.unset) > 0 {
		b.unset[join(path)] = x.unset
	}
	if len(x.sources) > 0 {
		b.sources[join(path)] = x.sources
	}
	if x.pending {
		b.Pending = true
		b.problemAt(path, "%s: the command is still running (for at most %s); until it ends, the value is the previous one, or empty", KeyPath(spelledPath(b.spellings, path)), b.in.Commands.limit)
	}
	set(x.text)
	if x.variable != "" && b.originOf(path).IsDefault() { // a default only mentions the variable
		b.origins[join(path)] = Origin{Source: environmentSource + x.variable}
	}
	b.recordPieces(path, x.pieces)
	return true
}

// expressionLike matches text that looks like an expression.
var expressionLike = pattern.Lazy(`\$\{([A-Za-z]\w*):[^}\s]*\}`)

// foreignVariable matches text that looks like a variable or an expression in the form of other
// programs.
var foreignVariable = pattern.Lazy(`\$\{[^}]*\}|\{\{[^}]*\}\}|(?:^|\s)(?:\$(?:env:)?[A-Za-z_]\w*|\$?\{\w+:[^}]*\}|%[A-Za-z_]\w*%)$`)

// foreignVariableName matches the name of the variable in a foreignVariable.
var foreignVariableName = pattern.Lazy(`(?:env:|[${%])\s*([A-Za-z_]\w*)\s*(?:$|[}%])`)

// checkForeignVariable returns an error for a variable in the form of another program, in a value that only
// eca reads: it would be used literally.
func checkForeignVariable(path []string, written string) error {
	server := path[0] == "mcpServers" && len(path) > 2 && path[2] == "env" // elsewhere, $NAME is a variable
	address := len(path) > 2 && path[0] == "providers" && path[2] == "url"
	if !server && !address && !isSent(path) {
		return nil
	}
	for _, m := range foreignVariable().FindAllString(written, -1) {
		if m = strings.TrimSpace(m); opening(m) != "" {
			continue
		}
		hint := "to use an environment variable, write ${env:NAME}"
		if name := foreignVariableName().FindStringSubmatch(m); name != nil {
			variable := name[1]
			if slices.Contains(kinds(), variable) {
				variable = "NAME"
			}
			hint = "did you mean ${env:" + variable + "}?"
		}
		return fmt.Errorf("unknown expression %s; %s", m, hint)
	}
	return nil
}

// literalVariable matches an argument that is a variable of a shell, or ends with one.
var literalVariable = pattern.Lazy(`^(?:--?[\w-]+=)?(\$\{?[A-Za-z_]\w*\}?)$|\s(\$[A-Za-z_]\w*)$`)

// checkServerArguments reports variables in arguments of MCP servers that no shell replaces.
func checkServerArguments(b *builder) {
	for _, name := range slices.Sorted(maps.Keys(b.MCPServers)) {
		s := b.MCPServers[name]
		l, known := launcherNamed(s.Command)
		if known && l.lines && !l.runs || slices.ContainsFunc(s.Args, groupedC().MatchString) {
			continue // a shell
		}
		for i, arg := range s.Args {
			if m := literalVariable().FindStringSubmatch(arg); m != nil {
				at, variable := []string{"mcpServers", name, "args", strconv.Itoa(i)}, cmp.Or(m[1], m[2])
				b.problemAt(at, "%s: the server gets %s as it is, because no shell replaces it; did you mean ${env:%s}?", KeyPath(at), variable, strings.Trim(variable, "${}"))
			}
		}
	}
}

// misspelledKind returns the expression in a text whose kind is probably a misspelled one, with the
// kind that was meant. A shell has the same form for parts of variables (${end:0:3}), so in programs
// the expression must continue like a name or a path.
func misspelledKind(text string, program bool) (expression, meant string) {
	for _, m := range expressionLike().FindAllStringSubmatch(text, -1) {
		first := m[0][len("${:")+len(m[1])]
		if program && !strings.ContainsRune("/~.", rune(first)) && (first < 'A' || first > 'Z') {
			continue
		}
		if meant := suggest.Nearest(m[1], kinds()); meant != "" && !slices.Contains(kinds(), m[1]) {
			return m[0], meant
		}
	}
	return "", ""
}

// CheckExpressions returns an error for a part of the value at a path that looks like an expression
// but has an unknown kind or no end. Shell programs and prompts may contain unknown kinds, where they
// may mean something else, unless they are similar to one of eca's.
func CheckExpressions(path []string, written string) error {
	if _, open := parseDynamic(written); open != "" {
		return openError(open)
	}
	program := path[0] == "hooks" || path[0] == "customTools" || path[0] == "mcpServers" && len(path) > 2 && (path[2] == "command" || path[2] == "args")
	if program || path[0] == "prompts" || strings.Contains(written, "\n") {
		if found, meant := misspelledKind(written, program); found != "" {
			return fmt.Errorf("unknown expression %s; did you mean ${%s:...}?", found, meant)
		}
		return nil
	}
	for _, m := range expressionLike().FindAllStringSubmatch(written, -1) {
		if !slices.Contains(kinds(), m[1]) {
			return fmt.Errorf("unknown expression %s; there are ${kind:...} with %s", m[0], joinAnd(kinds()))
		}
	}
	return checkForeignVariable(path, written)
}

// isSent reports whether a value is part of each request to a provider. A broken expression in it
// must not be sent instead of its value.
func isSent(path []string) bool {
	return len(path) > 2 && path[0] == "providers" && slices.Contains([]string{"key", "extraHeaders"}, path[2])
}

// joinAnd joins words with commas and "and".
func joinAnd(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// walk calls fn with every string that may be dynamic, except those of MCP servers: these are resolved
// when the server starts, see MCPServer. There, walk replaces only ${plugin:root}, because its meaning
// depends on the file.
func (b *builder) walk(v any, path []string, fn func(path []string, written string, set func(string))) {
	visit := func(key string, sub any, set func(any)) {
		at := append(slices.Clone(path), key)
		text, ok := sub.(string)
		switch {
		case !ok:
			b.walk(sub, at, fn)
			return
		case at[0] != "mcpServers":
			fn(at, text, func(s string) { set(s) })
			return
		}
		if unset := unsetVariables(text, b.in.Getenv); len(unset) > 0 {
			b.unset[join(at)] = unset
		}
		switch {
		case CheckExpressions(at, text) != nil:
			b.problemAt(at, "%s: %v", KeyPath(at), CheckExpressions(at, text))
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

// unsetVariables lists the environment variables that a text of an MCP server refers to and that are
// not set.
func unsetVariables(text string, getenv func(string) string) (out []string) {
	if !strings.Contains(text, "${env:") {
		return nil
	}
	for _, found := range regexp.MustCompile(`\$\{env:(\w+)\}`).FindAllStringSubmatch(text, -1) {
		if getenv(found[1]) == "" {
			out = append(out, found[1])
		}
	}
	return out
}

// layerOf returns the layer that provides a value.
func (l *Loaded) layerOf(path []string) *layer {
	o := l.originOf(path)
	for _, layer := range slices.Backward(l.layers) {
		if layer.source == o.Source {
			return layer
		}
	}
	return nil
}

// resolver returns the resolver for the strings of a layer. last means that this is the last
// attempt, even if commands are still running.
func (b *builder) resolver(l *layer, last bool) *resolver {
	toolText := b.in.ToolText // a copy: the result of a load must not keep b, which refers to the previous configuration
	r := &resolver{
		getenv: b.in.Getenv, recordFile: b.recordFile, lastContent: b.in.lastContent,
		recordContent: func(path, text string) { b.included[path] = text },
		netrc:         b.netrcFiles,
		resource:      func(name string) (string, error) { return resource(name, toolText) },
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

// lastContent returns the last content of a file that is missing temporarily.
func (in Inputs) lastContent(path string) (text string, ok bool) {
	if in.Previous == nil {
		return "", false
	}
	text, ok = in.Previous.included[path]
	return text, ok && !in.removed(path)
}

// secretMark is the first byte of a piece of Origin.included that counts as a secret.
const secretMark = "\x01"

// recordPieces records which parts of a value do not come from the value's own text.
func (l *Loaded) recordPieces(path []string, pieces []piece) {
	for len(path) > 1 {
		if _, ok := l.origins[join(path)]; ok {
			break
		}
		path = path[:len(path)-1] // elements of a list have the list's origin
	}
	o := l.origins[join(path)]
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
		l.origins[join(path)] = o
	}
}

// textResolver returns the resolver for texts that are not configuration, to be used after the
// load.
func (b *builder) textResolver() *resolver {
	files := b.netrcFiles()
	r := b.resolver(nil, true)
	r.netrc = func() []string { return files }
	r.recordFile, r.lastContent, r.recordContent = func(string) {}, nil, nil
	return r
}

// Place is the location of a text with dynamic strings.
type Place struct {
	Dir    string // for relative files
	Plugin string // the folder of the plugin that it belongs to: ${plugin:root}
}

// Expand resolves the dynamic strings in a text that is not configuration, such as an agent's or a
// skill's. It waits for commands, each of which runs once per text. Expressions that cannot be
// resolved become empty, and the error reports them. files are the files that were looked up.
func (l *Loaded) Expand(ctx context.Context, text string, at Place) (out string, files []string, err error) {
	if !strings.Contains(text, "${") {
		return text, nil, nil
	}
	r := *l.resolve
	r.dir, r.plugin = at.Dir, at.Plugin
	r.recordFile = func(path string) { files = append(files, path) }
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
