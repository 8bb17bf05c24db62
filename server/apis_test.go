package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// wireAPIs are all wire formats, each with a model that reasons, sees and calls tools.
func wireAPIs() map[string]string {
	return map[string]string{
		"openai-responses": "gpt-5.2",
		"openai-chat":      "some-model",
		"anthropic":        "claude-sonnet-4-6",
		"google":           "gemini-3-pro",
		"ollama":           "qwen3-vl",
		"bedrock":          "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
	}
}

// A wire format that the configuration accepts is covered by the tests of all formats.
func TestEveryAPIHasAModel(t *testing.T) {
	t.Parallel()
	models := wireAPIs()
	for _, api := range apis {
		if models[api] == "" {
			t.Errorf("wireAPIs has no model of %s", api)
		}
	}
}

// allAPIs makes a provider for each wire format, with the format's name, on one server.
func allAPIs(more map[string]any) func(url string) map[string]any {
	return func(url string) map[string]any {
		out := map[string]any{}
		for api, model := range wireAPIs() {
			m := map[string]any{"modelName": model, "imageInput": true, "reason": true, "limit": map[string]any{"context": 200_000, "output": 8000}}
			merge(m, more)
			out[api] = map[string]any{
				"api": api, "url": url, "key": "sk-mock", "fetchModels": false, "retry": map[string]any{"maxRetries": 0},
				"models": map[string]any{"m": m, "blind": map[string]any{"modelName": model, "imageInput": false, "reason": true}},
			}
		}
		return out
	}
}

// A conversation with everything that a history can hold: text, reasoning, concurrent calls, call
// ids that not every API accepts, a call of an unknown tool, and an image.
const fullConversation = `
cassette: 1
turns:
  - steps:
      - reasoning: Two at once.
        text: "Looking at both. "
        calls:
          - {id: "functions.read:0/ä", tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}
          - {id: "call_which_is_longer_than_any_id_that_any_of_the_providers_would_ever_take_from_us_001", tool: eca__read_file, arguments: {path: "${workspace}/pic.png"}}
          - {id: call_3, tool: functions.none, arguments: {x: 1}}
      - {reasoning: "That is all.", text: "A text and a picture."}
  - steps: [{text: "Still the same."}]
  - steps: [{text: "And again."}]
`

// fullWorkspace makes the files that the conversation reads.
func fullWorkspace(t *testing.T) string {
	t.Helper()
	root := tempDir(t)
	for name, text := range map[string]string{"a.txt": "hello there\n", "pic.png": "\x89PNG\r\n\x1a\n of a cat"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// turn sends a prompt and waits for the end of its turn.
func (r *rig) turn(t *testing.T, params map[string]any) {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", params)
	id, _ := json.Marshal(params["chatId"])
	r.Await(mark, "the end of a turn", fake.Content("progress", `"finished"`, string(id)))
}

// bodies returns the requests to models so far.
func (r *rig) bodies() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, q := range r.requests {
		out = append(out, string(q.body))
	}
	return out
}

// wireMessages returns the messages of a request without the system prompt, and without cache
// marks, which move.
func wireMessages(t *testing.T, body string) []json.RawMessage {
	t.Helper()
	for _, mark := range []string{`,"cache_control":{"type":"ephemeral"}`, `,{"cachePoint":{"type":"default"}}`} {
		body = strings.ReplaceAll(body, mark, "")
	}
	var in struct{ Messages, Input, Contents []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(in.Messages, in.Input, in.Contents)
	return slices.DeleteFunc(all, func(m json.RawMessage) bool { return strings.HasPrefix(string(m), `{"role":"system"`) })
}
