package config

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// renamedKeys lists keys of earlier versions with their current names (eca-features.md 3.1); * is any
// key. A name that ends in File contains the path of a text for the current key.
func renamedKeys() [][2]string {
	return [][2]string{
		{"behavior", "agent"},
		{"defaultBehavior", "defaultAgent"},
		{"chat.defaultBehavior", "chat.defaultAgent"},
		{"chat.welcomeMessage", "welcomeMessage"},
		{"compactPrompt", "prompts.compact"},
		{"compactPromptFile", "prompts.compact"},
		{"completion.systemPrompt", "prompts.completion"},
		{"completion.systemPromptFile", "prompts.completion"},
		{"rewrite.systemPrompt", "prompts.rewrite"},
		{"rewrite.systemPromptFile", "prompts.rewrite"},
		{"agent.*.systemPromptFile", "agent.*.systemPrompt"},
		{"agent.agent", "agent.code"},
		{"agent.build", "agent.code"},
		{"providers.*.requiresAuth?", "providers.*.requiresAuth"},
		// initializationOptions of old and current clients use these names for the first agent.
		{"chatBehavior", "defaultAgent"},
		{"chatAgent", "defaultAgent"},
	}
}

// keyAliases lists second names of keys. In the reference server, compactions, completions and rewrites
// each have a key for their model; in eca, the section models also names all of them.
func keyAliases() [][2]string {
	return [][2]string{
		{"models.compact", "compact.model"},
		{"models.completion", "completion.model"},
		{"models.rewrite", "rewrite.model"},
	}
}

// migrate converts a layer to current names: providers' names to kebab-case, and keys of earlier
// versions to their replacements.
func (l *layer) migrate() {
	l.migrateProviders()
	for _, r := range renamedKeys() {
		from, to := strings.Split(r[0], "."), strings.Split(r[1], ".")
		for _, name := range l.matches(from) {
			l.rename(withName(from, name), withName(to, name))
		}
	}
	for _, a := range keyAliases() {
		from, to := strings.Split(a[0], "."), strings.Split(a[1], ".")
		if l.move(from, to) {
			l.spellings[join(to)] = join(from)
		}
	}
	l.migrateApproval()
	for _, name := range l.matches([]string{"hooks", "*"}) {
		if h, ok := l.object([]string{"hooks", name}, false); ok {
			for old, now := range map[string]string{"prePrompt": "preRequest", "postPrompt": "postRequest"} {
				if h["type"] == old {
					h["type"] = now
				}
			}
		}
	}
}

// matches returns the keys that match * in a path, or one empty key if there is no *.
func (l *layer) matches(path []string) []string {
	i := slices.Index(path, "*")
	if i < 0 {
		return []string{""}
	}
	m, _ := l.object(path[:i], false)
	return slices.Sorted(maps.Keys(m))
}

func withName(path []string, name string) []string {
	out := slices.Clone(path)
	if i := slices.Index(out, "*"); i >= 0 {
		out[i] = name
	}
	return out
}

// rename moves a value to its new key.
func (l *layer) rename(from, to []string) {
	if m, ok := l.object(from[:len(from)-1], false); ok && strings.HasSuffix(from[len(from)-1], "File") {
		if path, ok := m[from[len(from)-1]].(string); ok {
			m[from[len(from)-1]] = textOf(path)
		}
	}
	l.move(from, to)
}

// textOf returns the dynamic string for a path in a key of earlier versions. A relative path below
// prompts/ named a built-in text.
func textOf(path string) string {
	if strings.HasPrefix(path, "prompts/") && !filepath.IsAbs(path) {
		return "${classpath:" + path + "}"
	}
	return "${file:" + path + "}"
}

// migrateProviders normalizes providers' names. Of two spellings in one file the last one wins, as
// with duplicate keys.
func (l *layer) migrateProviders() {
	providers, _ := l.content["providers"].(map[string]any)
	names := slices.Sorted(maps.Keys(providers))
	slices.SortStableFunc(names, func(a, b string) int {
		p, q := l.positions[join([]string{"providers", a})], l.positions[join([]string{"providers", b})]
		return cmp.Or(p.line-q.line, p.column-q.column)
	})
	last := map[string]string{}
	l.spellings = map[string]string{}
	for _, name := range names {
		last[Kebab(name)], l.spellings[Kebab(name)] = name, name
	}
	for _, name := range names {
		switch kebab := Kebab(name); {
		case last[kebab] != name:
			delete(providers, name)
		case kebab != name:
			l.move([]string{"providers", name}, []string{"providers", kebab})
		}
	}
	for _, name := range l.matches([]string{"providers", "*"}) {
		p, _ := providers[name].(map[string]any)
		if version, ok := p["httpClient"].(string); ok {
			p["httpClient"] = map[string]any{"version": version}
		}
	}
}

// migrateApproval converts toolCall.manualApproval to toolCall.approval: true becomes byDefault ask,
// false becomes byDefault allow, and a list of tools becomes ask rules.
func (l *layer) migrateApproval() {
	from := []string{"toolCall", "manualApproval"}
	toolCall, _ := l.content["toolCall"].(map[string]any)
	switch manual := toolCall["manualApproval"].(type) {
	case bool:
		toolCall["manualApproval"] = map[bool]string{true: "ask", false: "allow"}[manual]
		l.move(from, []string{"toolCall", "approval", "byDefault"})
	case []any:
		ask, ok := l.object([]string{"toolCall", "approval", "ask"}, true)
		for i, name := range manual {
			if name, isName := name.(string); isName && ok {
				ask[name] = map[string]any{}
				l.positions[join([]string{"toolCall", "approval", "ask", name})] = l.positions[join(append(from, strconv.Itoa(i)))]
			}
		}
		delete(toolCall, "manualApproval")
	}
}

// Kebab converts a provider's name to kebab-case: myCompany -> my-company, LiteLLM -> lite-llm,
// gpt4All -> gpt-4-all.
func Kebab(s string) string {
	var out []rune
	runes := []rune(s)
	for i, r := range runes {
		if r == '_' || r == '-' || unicode.IsSpace(r) {
			if len(out) > 0 && out[len(out)-1] != '-' {
				out = append(out, '-')
			}
			continue
		}
		if i > 0 && len(out) > 0 && out[len(out)-1] != '-' && startsWord(runes, i) {
			out = append(out, '-')
		}
		out = append(out, unicode.ToLower(r))
	}
	return strings.TrimSuffix(string(out), "-")
}

// startsWord reports whether a word begins at a letter or digit that follows another one.
func startsWord(runes []rune, i int) bool {
	before, r := runes[i-1], runes[i]
	switch {
	case unicode.IsUpper(r) && unicode.IsUpper(before):
		return i+1 < len(runes) && unicode.IsLower(runes[i+1])
	case unicode.IsUpper(r):
		return true
	}
	return unicode.IsDigit(r) && !unicode.IsDigit(before)
}
