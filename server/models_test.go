package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

const answers = "cassette: 1\ndefault:\n  steps:\n    - {text: hello}\nturns: []\n"

// Facts about models reach the client and the requests: limits, prices, capabilities and variants
// come from the catalogue in the cache folder and from the built-in rules; the user's configuration
// takes precedence over both.
func TestCatalog(t *testing.T) {
	t.Parallel()
	state := tempDir(t)
	if err := os.MkdirAll(filepath.Join(state, "cache"), 0o700); err != nil {
		t.Fatal(err)
	}
	catalogue := `{"mock": {"models": {
		"gpt-5.2": {"reasoning": true, "tool_call": true, "attachment": true, "limit": {"context": 4000, "output": 40}, "cost": {"input": 1000, "output": 2000}},
		"blind": {"reasoning": false, "tool_call": false, "attachment": false, "limit": {"context": 3000, "output": 3000}},
		"gone": {"status": "deprecated", "tool_call": true}}}}`
	if err := os.WriteFile(filepath.Join(state, "cache", "models-dev.json"), []byte(catalogue), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{
		model: answers, state: state,
		config: map[string]any{"defaultModel": "mock/gpt-5.2", "providers": map[string]any{"mock": map[string]any{"models": map[string]any{
			"blind": map[string]any{"extraPayload": map[string]any{"reasoning": map[string]any{"effort": "high"}, "top_p": 1}},
			"gpt-5.2": map[string]any{
				"extraPayload": map[string]any{"parallel_tool_calls": nil, "text": map[string]any{"verbosity": "low", "x": 1}},
				"variants": map[string]any{
					"none": map[string]any{}, "default": map[string]any{"text": map[string]any{"x": nil}},
					"mine": map[string]any{"reasoning": nil, "include": nil, "text": map[string]any{"verbosity": "high"}},
				},
			},
		}}}},
		init: map[string]any{"initializationOptions": map[string]any{"env": "test"}},
	})
	r.Await(0, "the models", fake.Contains("config/updated", `"models":["mock/blind","mock/gpt-5.2","mock/m"]`, `"variants":["high","low","medium","mine","xhigh"]`))
	r.Await(0, "the start", fake.Ready())
	list := string(r.Call("providers/list", map[string]any{}))
	for _, want := range []string{
		`{"id":"gpt-5.2","capabilities":{"reason":true,"vision":true,"tools":true,"webSearch":false},"cost":{"input":0.001,"output":0.002}}`,
		`{"id":"blind","capabilities":{"reason":false,"vision":false,"tools":false,"webSearch":false}}`,
	} {
		if !strings.Contains(list, want) {
			t.Errorf("providers/list has no %s: %s", want, list)
		}
	}
	image := []map[string]any{{"type": "image", "mediaType": "image/png", "base64": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}}
	type body struct {
		Reasoning, Text map[string]any
		Parallel        any   `json:"parallel_tool_calls"`
		MaxOutput       int64 `json:"max_output_tokens"`
		TopP            any   `json:"top_p"`
		tools           bool
		image           bool
	}
	for _, c := range []struct {
		model, variant string
		want           body
	}{
		{"mock/gpt-5.2", "", body{Reasoning: map[string]any{"effort": "medium", "summary": "auto"}, Text: map[string]any{"verbosity": "low"}, MaxOutput: 40, tools: true, image: true}},
		{"mock/gpt-5.2", "high", body{Reasoning: map[string]any{"effort": "high", "summary": "auto"}, Text: map[string]any{"verbosity": "low", "x": 1.0}, MaxOutput: 40, tools: true, image: true}},
		{"mock/gpt-5.2", "mine", body{Text: map[string]any{"verbosity": "high", "x": 1.0}, MaxOutput: 40, tools: true, image: true}},
		{"mock/blind", "high", body{TopP: 1.0}},
	} {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"message": "look", "model": c.model, "variant": c.variant, "contexts": image})
		r.Await(mark, "the end", fake.Finished())
		r.mu.Lock()
		raw := r.requests[len(r.requests)-1].body
		r.mu.Unlock()
		var got body
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		got.tools, got.image = strings.Contains(string(raw), `"tools":[`), strings.Contains(string(raw), "data:image/png")
		if got.image == strings.Contains(string(raw), "not known to take images") {
			t.Errorf("%s: %s", c.model, raw)
		}
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(body{})); diff != "" {
			t.Errorf("%s %s: -want +got\n%s", c.model, c.variant, diff)
		}
	}
	r.Await(0, "limits and prices", fake.Content("usage", `"limit":{"context":4000,"output":40}`, `"lastMessageCost":"0.02"`))
}

// A model in the configuration that its provider does not list is reported once the list is there.
func TestUnlistedDefaultModelIsReported(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"real"}]}`)
	}))
	defer provider.Close()
	r := newRig(t, options{config: map[string]any{
		"defaultModel": "listing/none",
		"providers":    map[string]any{"listing": map[string]any{"api": "openai-chat", "url": provider.URL + "/v1", "key": "k"}},
	}})
	r.Await(0, "the mistake", fake.Contains("$/showMessage", "Configuration: ECA_CONFIG:1:", "defaultModel: provider listing has no none; it has real"))
}
