package config

import (
	"slices"
	"strings"
)

// choice is a key that takes certain words only. A misspelt one would have no effect,
// which shows on the bill at the earliest.
type choice struct {
	path   []string // a "*" stands for any key
	values []string
}

func choices() []choice {
	return []choice{
		{[]string{"toolCall", "sandboxCaches"}, []string{"private", "shared"}},
		{[]string{"toolCall", "unasked"}, unaskedValues()},
		{[]string{"agent", "*", "toolCall", "unasked"}, unaskedValues()},
		{[]string{"toolCall", "sandbox"}, []string{"off", "auto", "on", "required"}},
		{[]string{"providers", "*", "cacheRetention"}, []string{"short", "long"}},
		{[]string{"providers", "*", "httpClient", "version"}, []string{"http-1.1", "http-2"}},
		{[]string{"providers", "*", "models", "*", "reasoningHistory"}, []string{"all", "turn", "off"}},
	}
}

// checkChoices drops words that a key does not take.
func (b *builder) checkChoices() {
	for _, c := range choices() {
		b.choose(b.merged, c.path, c.values, nil)
	}
}

func (b *builder) choose(in map[string]any, path, values, at []string) {
	for key, v := range in {
		if path[0] != "*" && path[0] != key {
			continue
		}
		here := append(slices.Clone(at), key)
		if sub, ok := v.(map[string]any); ok && len(path) > 1 {
			b.choose(sub, path[1:], values, here)
		}
		word, isWord := v.(string)
		if len(path) > 1 || !isWord || word == "" || slices.Contains(values, word) {
			continue
		}
		delete(in, key)
		b.problemAt(here, "%s must be one of %s, not %.40q; it is ignored", strings.Join(spelledPath(b.spellings, here), "."), strings.Join(values, ", "), word)
	}
}
