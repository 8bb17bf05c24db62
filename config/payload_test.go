package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// In payloads null is a value that removes a key from a request; elsewhere it removes the value of
// a lower layer.
func TestPayloadNull(t *testing.T) {
	files := `{"providers": {"p": {"url": null, "models": {"m": {"extraPayload": {"a": null, "o": {"b": null}}, "variants": {"v": {"c": null}, "w": null}, "limit": null}, "n": {"extraPayload": null}}}},
		"variantsByModel": {"x": {"api": "anthropic", "variants": {"v": {"d": null}, "w": null}}, "y": {"api": ["a", "b"]}, "z": {"api": 5}}}`
	lower := `{"providers": {"p": {"url": "u", "models": {"m": {"extraPayload": {"a": 1}, "variants": {"w": {"e": 1}}, "limit": {"context": 5}}, "n": {"extraPayload": {"a": 1}}}}},
		"variantsByModel": {"x": {"variants": {"w": {"e": 1}}}}}`
	l := Load(Inputs{InitOptions: json.RawMessage(lower), Getenv: func(k string) string { return map[string]string{"ECA_CONFIG": files}[k] }})
	p := l.Providers["p"]
	type payload = map[string]any
	if diff := cmp.Diff(Model{ExtraPayload: payload{"a": nil, "o": payload{"b": nil}}, Variants: map[string]map[string]any{"v": {"c": nil}}}, p.Models["m"]); diff != "" || p.URL != "" || p.Models["n"].ExtraPayload != nil {
		t.Errorf("%s%+v", diff, p)
	}
	if diff := cmp.Diff(VariantRule{API: []string{"anthropic"}, Variants: map[string]map[string]any{"v": {"d": nil}}}, l.VariantsByModel["x"]); diff != "" || len(l.VariantsByModel["y"].API) != 2 {
		t.Error(diff)
	}
	if len(l.Problems) != 1 {
		t.Errorf("%v", l.Problems)
	}
}
