package config

import "github.com/seed-dec29ce4/eca/internal/template"

// checkPrompts reports prompts that are not valid templates, because eca sends these to the model
// unchanged.
func (b *builder) checkPrompts() {
	check := func(path []string, text string) {
		if _, err := template.Text(text, nil); err != nil && b.keys.lookup(path) != nil {
			b.problem(b.originOf(path), "%s is not a valid template and is used unchanged: %v", path[len(path)-1], err)
		}
	}
	eachText(b.merged["prompts"], []string{"prompts"}, check)
	agents, _ := b.merged["agent"].(map[string]any)
	for name := range agents {
		agent, _ := agents[name].(map[string]any)
		for _, key := range []string{"prompts", "systemPrompt"} {
			eachText(agent[key], []string{"agent", name, key}, check)
		}
	}
}
