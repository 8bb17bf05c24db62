package config

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// A provider has two names: the user's spelling in the file (my_server2), and the name in effect, in
// kebab-case (my-server-2). ProviderNamed and ModelNamed convert names that a user writes to names in
// effect. Spelled and SpelledModel convert names in effect to the user's spelling, for messages.

// ProviderNamed returns the provider that a user refers to: by the name in effect, by the spelling
// of the file, or by another spelling that matches only one provider.
func (c *Config) ProviderNamed(name string) (provider string, known bool) {
	for _, spelling := range []string{name, Kebab(name)} {
		if _, known := c.Providers[spelling]; known {
			return spelling, true
		}
	}
	var same []string
	for provider := range c.Providers {
		if lettersOf(provider) == lettersOf(name) {
			same = append(same, provider)
		}
	}
	if len(same) != 1 {
		return name, false
	}
	return same[0], true
}

// lettersOf returns the part of a name that all its spellings have in common: no separators, and
// lower case.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// ModelNamed returns a model's id with the name in effect of its provider. It returns an id without a
// known provider unchanged.
func (c *Config) ModelNamed(id string) string {
	name, model, full := strings.Cut(id, "/")
	if provider, known := c.ProviderNamed(name); full && known {
		return provider + "/" + model
	}
	return id
}

// Spelled returns a provider's name in the spelling of the user's files.
func (l *Loaded) Spelled(provider string) string {
	if spelling, ok := l.spellings[provider]; ok {
		return spelling
	}
	return provider
}

// SimilarProvider suggests a provider for a name that no provider has.
func (l *Loaded) SimilarProvider(name string) string {
	for _, layer := range l.layers {
		providers, _ := layer.withheld["providers"].(map[string]any)
		for configured := range providers {
			if lettersOf(configured) == lettersOf(name) {
				return "; " + layer.source + " configures it, but has no effect until you trust it (`eca trust`)"
			}
		}
	}
	var names []string
	for provider := range l.Providers {
		names = append(names, l.Spelled(provider))
	}
	slices.Sort(names)
	return suggest.DidYouMean(name, names)
}

// PresetLike returns the built-in provider whose name differs from provider only in spelling; empty
// without one.
func (l *Loaded) PresetLike(provider string) string {
	for _, name := range slices.Sorted(maps.Keys(l.Providers)) {
		if l.Providers[name].API != "" && name != provider && lettersOf(name) == lettersOf(provider) {
			return l.Spelled(name)
		}
	}
	return ""
}

// SpelledModel returns a model's id with the provider's name in the spelling of the user's files.
func (l *Loaded) SpelledModel(id string) string {
	provider, model, full := strings.Cut(id, "/")
	if !full {
		return id
	}
	return l.Spelled(provider) + "/" + model
}

// SpelledPath returns a path of keys in the spelling of the user's files.
func (l *Loaded) SpelledPath(path ...string) []string { return spelledPath(l.spellings, path) }

func spelledPath(spellings map[string]string, path []string) []string {
	if len(path) < 2 {
		return path
	}
	if spelled := spellings[join(path)]; spelled != "" {
		return strings.Split(spelled, "\x00")
	}
	if path[0] != "providers" || spellings[path[1]] == "" {
		return path
	}
	path = slices.Clone(path)
	path[1] = spellings[path[1]]
	return path
}

// Variables lists the environment variables for a provider's key and url: first those of the
// spelling in the user's files, then those of the name in effect.
func (l *Loaded) Variables(provider string) (keys, urls []string) {
	return providerVariables(provider, l.Spelled(provider))
}

func providerVariables(provider, spelling string) (keys, urls []string) {
	for _, name := range []string{spelling, provider} {
		name = strings.ToUpper(strings.Map(func(r rune) rune {
			if r == '-' || unicode.IsSpace(r) {
				return '_'
			}
			return r
		}, name))
		if key := name + "_API_KEY"; !slices.Contains(keys, key) {
			keys, urls = append(keys, key), append(urls, name+"_API_URL")
		}
	}
	return keys, urls
}

// EachModel calls fn with the model of each key that names one.
func (c *Config) EachModel(fn func(path []string, model string)) {
	fn([]string{"defaultModel"}, c.DefaultModel)
	fn([]string{"compact", "model"}, c.Compact.Model)
	fn([]string{"completion", "model"}, c.Completion.Model)
	fn([]string{"rewrite", "model"}, c.Rewrite.Model)
	fn([]string{"models", "title"}, c.Models.Title)
	fn([]string{"models", "subagent"}, c.Models.Subagent)
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		fn([]string{"agent", name, "defaultModel"}, c.Agents[name].DefaultModel)
	}
}

// normalizeProviderNames replaces providers' names in models with the names in effect.
func (c *Config) normalizeProviderNames() {
	for _, model := range []*string{&c.DefaultModel, &c.Compact.Model, &c.Completion.Model, &c.Rewrite.Model, &c.Models.Title, &c.Models.Subagent} {
		*model = c.ModelNamed(*model)
	}
	c.EachFallbackList(func(_ []string, _ string, list []string) {
		for i, model := range list {
			list[i] = c.ModelNamed(strings.TrimSpace(model))
		}
	})
	for name, a := range c.Agents {
		a.DefaultModel = c.ModelNamed(a.DefaultModel)
		c.Agents[name] = a
	}
}

// checkAgentNames reports agents whose names differ from that of another one only in case.
func checkAgentNames(b *builder) {
	for _, name := range slices.Sorted(maps.Keys(b.Agents)) {
		other := strings.ToLower(name)
		if _, exists := b.Agents[other]; exists && other != name {
			at := []string{"agent", name}
			b.problemAt(at, "%s: this agent is not %s, because case matters in its name; did you mean agent.%s?", KeyPath(at), other, other)
		}
	}
}
