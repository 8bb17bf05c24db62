package config

import (
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// People spell a provider's name in their own way: my_server2 in the file is my-server-2 in
// effect. What a user writes goes through ProviderNamed or ModelNamed; what a user reads
// goes through Spelled or SpelledModel.

// ProviderNamed returns the provider that a user means by a name: the name in effect, in the
// spelling of the file, or in another one that fits only one provider.
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

// lettersOf returns what spellings of a name have in common.
func lettersOf(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
}

// ModelNamed returns a model's id with its provider as it is in effect. A name without a
// known provider stays as it is.
func (c *Config) ModelNamed(id string) string {
	name, model, full := strings.Cut(id, "/")
	if provider, known := c.ProviderNamed(name); full && known {
		return provider + "/" + model
	}
	return id
}

// Spelled returns a provider's name as the user's files write it.
func (l *Loaded) Spelled(provider string) string {
	if spelling, ok := l.spellings[provider]; ok {
		return spelling
	}
	return provider
}

// SimilarProvider suggests a provider for a name that no provider has.
func (l *Loaded) SimilarProvider(name string) string {
	var names []string
	for provider := range l.Providers {
		names = append(names, l.Spelled(provider))
	}
	slices.Sort(names)
	return suggest.DidYouMean(name, names)
}

// PresetLike returns the provider that eca knows by itself and whose name differs from
// another's in its spelling only; empty if there is none.
func (l *Loaded) PresetLike(provider string) string {
	for _, name := range slices.Sorted(maps.Keys(l.Providers)) {
		if l.Providers[name].API != "" && name != provider && lettersOf(name) == lettersOf(provider) {
			return l.Spelled(name)
		}
	}
	return ""
}

// SpelledModel returns a model's id with its provider as the user's files write it.
func (l *Loaded) SpelledModel(id string) string {
	provider, model, full := strings.Cut(id, "/")
	if !full {
		return id
	}
	return l.Spelled(provider) + "/" + model
}

// SpelledPath returns a path of keys as the user's files write it.
func (l *Loaded) SpelledPath(path ...string) []string { return spelledPath(l.spellings, path) }

func spelledPath(spellings map[string]string, path []string) []string {
	if len(path) < 2 || path[0] != "providers" || spellings[path[1]] == "" {
		return path
	}
	path = slices.Clone(path)
	path[1] = spellings[path[1]]
	return path
}

// Variables names the environment variables that give a provider its key or url: those of
// the spelling in the user's files first, then those of the name in effect.
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

// eachModel calls fn with every place that names a model.
func (c *Config) eachModel(fn func(path []string, model *string)) {
	fn([]string{"defaultModel"}, &c.DefaultModel)
	fn([]string{"compact", "model"}, &c.Compact.Model)
	fn([]string{"completion", "model"}, &c.Completion.Model)
	fn([]string{"rewrite", "model"}, &c.Rewrite.Model)
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		a := c.Agents[name]
		fn([]string{"agent", name, "defaultModel"}, &a.DefaultModel)
		c.Agents[name] = a
	}
}

// nameProviders writes providers' names in models as they are in effect.
func (c *Config) nameProviders() {
	c.eachModel(func(_ []string, model *string) { *model = c.ModelNamed(*model) })
}
