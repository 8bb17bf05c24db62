package config

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Valid values are decoded as encoding/json decodes them.
func TestDecode(t *testing.T) {
	for _, text := range []string{
		string(builtin("defaults.jsonc")),
		`{}`,
		`{"defaultModel": null, "chat": null, "plugins": {"install": ["a"], "mine": {"source": "x", "commit": "c"}}, "toolcall": {"Shellcommand": {"path": "p"}}}`,
		`{"DefaultModel": "upper", "defaultModel": "exact", "mcpServers": {"s": {"command": "c", "args": ["a", null], "env": {"A": "1"}, "disabled": true}, "t": null}}`,
		`{"providers": {"p": {"api": "ollama", "models": {"m": {"extraPayload": {"a": null, "b": [1, {"c": 2.5}], "d": "x"}, "extraHeaders": {"H": "v"}, "limit": {"context": 5}}, "n": {}}, "retryRules": [{"status": 418, "errorPattern": "x"}]}}}`,
		`{"agent": {"a": {"mode": "subagent", "tools": {"approval": {"allow": {"eca__grep": {"argsMatchers": {"path": [".*"]}}}}}}}, "variantsByModel": {"x": {"api": "anthropic"}, "y": {"api": ["a", "b"]}}}`,
		`{"hooks": {"h": {"type": "preRequest", "visible": false, "matcher": "m", "actions": [{"type": "shell", "shell": "true", "timeout": 5}]}}, "unknown": {"x": 1}}`,
	} {
		l, problem := parse("test", []byte(text))
		if problem != nil {
			t.Fatal(problem)
		}
		b := &builder{merged: l.content, keys: newKeys(), Loaded: &Loaded{}}
		got, want := b.decode(), &Config{}
		raw, err := json.Marshal(b.merged)
		if err == nil {
			err = json.Unmarshal(raw, want)
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v %.80s\n%s", err, text, diff)
		}
		if len(b.Problems) > 0 {
			t.Errorf("%.80s: %v", text, b.Problems)
		}
	}
}

// A configuration is a copy: changing it changes no layer.
func TestDecodeCopies(t *testing.T) {
	payload := map[string]any{"a": map[string]any{"b": []any{"c"}}}
	b := &builder{
		merged: map[string]any{"providers": map[string]any{"p": map[string]any{"models": map[string]any{"m": map[string]any{"extraPayload": payload}}}}},
		keys:   newKeys(),
		Loaded: &Loaded{},
	}
	extra := b.decode().Providers["p"].Models["m"].ExtraPayload
	extra["a"].(map[string]any)["b"].([]any)[0] = "changed"
	if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": []any{"c"}}}, payload); diff != "" {
		t.Error(diff)
	}
}
