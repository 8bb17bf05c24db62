package catalog

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/config"
)

// The built-in rules (eca-features.md 6.3).
func TestBuiltInVariants(t *testing.T) {
	rules, _ := NewVariants(nil)
	if n := len(rules.builtIn()); n != 6 {
		t.Errorf("%d patterns", n)
	}
	for _, c := range []struct{ provider, api, model, want string }{
		{"anthropic", "anthropic", "claude-sonnet-4-6", "high low max medium"},
		{"anthropic", "anthropic", "claude-opus-4.5", "high low max medium"},
		{"anthropic", "anthropic", "claude-opus-4-8", "high low max medium xhigh"},
		{"bedrock", "bedrock", "us.anthropic.claude-sonnet-5", "high low max medium xhigh"},
		{"openrouter", "openai-chat", "anthropic/claude-sonnet-5", ""},
		{"anthropic", "anthropic", "claude-haiku-4-5", ""},
		{"openai", "openai-responses", "gpt-5.2", "high low medium none xhigh"},
		{"openai", "openai-responses", "GPT-5_3-codex", "high low medium none xhigh"},
		{"openai", "openai-responses", "gpt-5.6-sol", "high low max medium none xhigh"},
		{"openai", "openai-responses", "gpt-5", ""},
		{"openai", "openai-responses", "gpt-5.25", ""},
		{"github-copilot", "openai-responses", "gpt-5.2", ""},
		{"deepseek", "openai-chat", "deepseek-v4-pro", "high max none"},
		{"deepseek", "anthropic", "deepseek-v4-pro", ""},
		{"z-ai", "anthropic", "GLM-5.2", "high max none"},
	} {
		if got := strings.Join(rules.Of(c.provider, c.api, c.model, nil, true).Names(), " "); got != c.want {
			t.Errorf("%s/%s: %s", c.provider, c.model, got)
		}
	}
	opus := rules.Of("anthropic", "anthropic", "claude-opus-5", nil, true)
	if diff := cmp.Diff(map[string]any{"thinking": map[string]any{"type": "adaptive", "display": "summarized"}}, opus[Default]); diff != "" {
		t.Error(diff)
	}
}

func TestVariants(t *testing.T) {
	type payload = map[string]any
	rules, bad := NewVariants(map[string]config.VariantRule{
		"(":         {},
		"^qwen(?!)": {Variants: Payloads{"never": {"x": 1}}},
		"qwen": {Variants: Payloads{
			"fast": {"thinking": payload{"type": "disabled"}, "top_p": 1}, "deep": {"reasoning_effort": "high"},
			"claude": {"output_config": payload{"effort": "low"}}, "gemini": {"generationConfig": payload{"thinkingConfig": 1, "topK": 2}},
		}},
		"qwen3": {Variants: Payloads{"fast": {"top_p": 0.5}, "gone": {"x": 1}}},
	})
	if len(bad) != 1 || bad["("] == nil {
		t.Errorf("bad patterns: %v", bad)
	}
	own := Payloads{"gone": {}, "mine": {"temperature": nil}}
	got := rules.Of("p", "openai-chat", "my-qwen3", own, true)
	if got["fast"]["top_p"] != 0.5 || strings.Join(got.Names(), " ") != "claude deep fast gemini mine" {
		t.Errorf("%v", got)
	}
	want := Payloads{"fast": {"top_p": 0.5}, "mine": {"temperature": nil}, "gemini": {"generationConfig": payload{"topK": 2}}}
	if diff := cmp.Diff(want, rules.Of("p", "openai-chat", "my-qwen3", own, false)); diff != "" {
		t.Errorf("without reasoning: %s", diff)
	}
	if again := rules.Of("p", "openai-chat", "my-qwen3", own, true); len(again["gemini"]["generationConfig"].(payload)) != 2 {
		t.Error("the rules' payloads were changed")
	}
	rules, _ = NewVariants(map[string]config.VariantRule{"gpt": {Variants: Payloads{"none": {}, "low": {"x": 1}}}})
	if got := rules.Of("openai", "openai-responses", "gpt-5.2", nil, true); got["low"]["x"] != 1 || got["low"]["reasoning"] != nil || got["none"] != nil || got["high"] == nil {
		t.Errorf("over the built-in: %v", got)
	}
}
