package config_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
)

func loadText(t *testing.T, text string) *config.Loaded {
	t.Helper()
	return config.Load(config.Inputs{Getenv: func(key string) string { return map[string]string{"ECA_CONFIG": text}[key] }, ConfigHome: t.TempDir()})
}

// The most specific list counts, and an empty one means none.
func TestFallbacks(t *testing.T) {
	l := loadText(t, `{"fallbackModels": ["x/g"], "agent": {"plan": {"fallbackModels": ["my_own/a"]}},
		"providers": {"my_own": {"models": {"m": {"fallbackModels": ["x/m"]}, "n": {"fallbackModels": []}, "o": {}}}}}`)
	for _, c := range []struct{ agent, model, want string }{
		{"code", "x/y", "x/g"}, {"code", "my-own/o", "x/g"}, {"plan", "my-own/o", "my-own/a"}, {"plan", "my-own/m", "x/m"}, {"plan", "my-own/n", ""},
	} {
		if got := strings.Join(l.Fallbacks(c.agent, c.model), " "); got != c.want {
			t.Errorf("%s, %s: %q, want %q", c.agent, c.model, got, c.want)
		}
	}
}

// models names all roles; keys that the reference has win over their second names.
func TestRoleAliases(t *testing.T) {
	l := loadText(t, `{"models": {"compact": "a/1", "rewrite": "a/2", "completion": "a/3", "title": "a/4", "subagent": "a/5"}, "rewrite": {"model": "b/2"}}`)
	got := []string{l.Compact.Model, l.Rewrite.Model, l.Completion.Model, l.Models.Title, l.Models.Subagent}
	if want := []string{"a/1", "b/2", "a/3", "a/4", "a/5"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
