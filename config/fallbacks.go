package config

import (
	"maps"
	"slices"
	"strings"
)

// Roles is the models section: the models for requests other than the turns that users start.
type Roles struct {
	Title    string `json:"title" doc:"The model that writes the titles of chats, as provider/model. Without it: the chat's own."`
	Subagent string `json:"subagent" doc:"The model of subagents whose agent sets no defaultModel, as provider/model. Without it: that of the chat that starts them."`
}

// Fallbacks returns the models that replace a failing model: those of the model, else those of the
// agent, else the general ones.
func (c *Config) Fallbacks(agent, model string) []string {
	provider, name, _ := strings.Cut(model, "/")
	if list := c.Providers[provider].Models[name].FallbackModels; list != nil {
		return list
	}
	if list := c.Agents[agent].FallbackModels; list != nil {
		return list
	}
	return c.FallbackModels
}

// EachFallbackList calls fn with each list of fallback models and its path of keys. model is the
// model whose failure the list is for; it is empty for the lists of agents and the general list.
func (c *Config) EachFallbackList(fn func(path []string, model string, list []string)) {
	fn([]string{"fallbackModels"}, "", c.FallbackModels)
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		fn([]string{"agent", name, "fallbackModels"}, "", c.Agents[name].FallbackModels)
	}
	for _, provider := range slices.Sorted(maps.Keys(c.Providers)) {
		models := c.Providers[provider].Models
		for _, name := range slices.Sorted(maps.Keys(models)) {
			fn([]string{"providers", provider, "models", name, "fallbackModels"}, provider+"/"+name, models[name].FallbackModels)
		}
	}
}
