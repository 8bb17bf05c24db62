package config

import (
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/internal/template"
)

// checkPrompts reports prompts that are no valid templates: they are sent as they were
// written.
func (b *builder) checkPrompts(cfg *Config) {
	check := func(text string, path ...string) {
		if _, err := template.Text(text, nil); err != nil {
			b.problem(b.originOf(path), "%s is no valid template and is used as it is: %v", path[len(path)-1], err)
		}
	}
	all := func(p Prompts, path ...string) {
		for name, text := range map[string]string{
			"chat": p.Chat, "compact": p.Compact, "chatTitle": p.ChatTitle, "init": p.Init, "completion": p.Completion,
			"rewrite": p.Rewrite, "environment": p.Environment, "skillCreate": p.SkillCreate,
		} {
			check(text, append(slices.Clone(path), "prompts", name)...)
		}
		for name, text := range p.Tools {
			check(text, append(slices.Clone(path), "prompts", "tools", name)...)
		}
	}
	all(cfg.Prompts)
	for _, name := range slices.Sorted(maps.Keys(cfg.Agents)) {
		all(cfg.Agents[name].Prompts, "agent", name)
		check(cfg.Agents[name].SystemPrompt, "agent", name, "systemPrompt")
	}
}
