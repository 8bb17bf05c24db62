package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/llm"
)

// parseModels reads lists of several providers. It ignores values of an unexpected type.
func TestParseModels(t *testing.T) {
	got, err := parseModels([]byte(`{"object": "list", "data": [
		{"id": "plain", "object": "model"},
		{"id": "vllm", "max_model_len": 32768},
		{"id": "router", "context_length": 200000, "top_provider": {"max_completion_tokens": 64000},
			"architecture": {"input_modalities": ["text", "image"]}, "supported_parameters": ["reasoning", "top_p"],
			"pricing": {"prompt": "0.0000003", "completion": "0.0000015", "input_cache_read": "-1"}},
		{"id": "odd", "context_length": "long", "pricing": {"prompt": 1, "completion": "NaN"}, "architecture": [], "top_provider": null},
		{"id": "text-embedding-3"}, {"name": "no id"}, 7]}`))
	if err != nil {
		t.Fatal(err)
	}
	tokens := func(n int64) llm.Fact[int64] { return llm.Fact[int64]{Value: n, Source: llm.FromProvider} }
	cost := func(v float64) llm.Fact[float64] { return llm.Fact[float64]{Value: v, Source: llm.FromProvider} }
	is := func(v bool) llm.Fact[bool] { return llm.Fact[bool]{Value: v, Source: llm.FromProvider} }
	want := map[string]llm.Facts{
		"plain": {}, "odd": {}, "vllm": {Context: tokens(32768)},
		"router": {Context: tokens(200000), Output: tokens(64000), InputCost: cost(0.3), OutputCost: cost(1.5), Reasoning: is(true), Images: is(true), Tools: is(false)},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{``, `[]`, `{"data": {}}`, `"x"`, `<html>`} {
		if got, err := parseModels([]byte(bad)); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

func FuzzParseModels(f *testing.F) {
	f.Add([]byte(`{"data": [{"id": "m", "pricing": {"prompt": "0.1"}, "context_length": -5}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		list, _ := parseModels(body)
		for id, facts := range list {
			if id == "" || facts.Context.Value < 0 || facts.InputCost.Value < 0 || facts.InputCost.Value > 1e6 {
				t.Errorf("%q: %+v", id, facts)
			}
		}
	})
}
