package config

import (
	"maps"
	"slices"
	"strings"
)

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

// nameProviders writes providers' names in models as they are in effect: whoever calls a
// provider myCompany names its models so, too.
func (c *Config) nameProviders() {
	c.eachModel(func(_ []string, model *string) {
		name, rest, full := strings.Cut(*model, "/")
		if _, known := c.Providers[name]; known || !full {
			return
		}
		if _, known := c.Providers[Kebab(name)]; known {
			*model = Kebab(name) + "/" + rest
		}
	})
}
