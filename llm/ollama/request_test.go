package ollama

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"slices"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/llm"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

func TestRequests(t *testing.T) {
	user := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.User, Parts: parts} }
	model := func(parts ...llm.Part) llm.Message { return llm.Message{Role: llm.Assistant, Parts: parts} }
	text := func(s string) llm.Part { return llm.Text{Text: s} }
	call := func(id, name, args string) llm.Part {
		return llm.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(args)}
	}
	png := llm.Image{MediaType: "image/png", Data: []byte("png")}
	all := traits{context: 8192, capabilities: []string{chatting, tools, vision, thinking}}
	seeing := []llm.Message{user(text("Look"), png), model(call("1", "f", `{}`)), user(llm.ToolResult{ID: "1", Text: "shot", Images: []llm.Image{png}})}
	withTools := llm.Request{
		Messages: []llm.Message{user(text("Go"))}, Reasoning: true, Context: 16384,
		Tools: []llm.ToolSpec{{Name: "f", Description: "Does.", Schema: json.RawMessage(`{"type":"object","properties":{"p":{"type":"string"}}}`)}},
	}
	type one struct {
		traits
		req llm.Request
	}
	requests := map[string]one{
		"text":                        {all, llm.Request{System: "Be brief.", Messages: []llm.Message{user(text("Hi"), text("<context>")), model(text("Hello")), user(text("And?"))}, MaxOutput: 100}},
		"tools":                       {all, withTools},
		"a model that can do nothing": {traits{capabilities: []string{chatting}}, withTools},
		"a server that does not say":  {traits{}, withTools},
		"parallel results": {all, llm.Request{Messages: []llm.Message{
			user(text("Go")), model(text("Well"), call("1", "f", `{"p":1}`), call("2", "g", `{"broken`), call("3", "f", `[]`)),
			user(llm.ToolResult{ID: "1", Text: "one"}, llm.ToolResult{ID: "2", Text: "two", Failed: true}, llm.ToolResult{ID: "3"}), user(text("Steered")),
		}}},
		"images":          {all, llm.Request{Messages: seeing}},
		"images, unseen":  {traits{capabilities: []string{chatting, tools}}, llm.Request{Messages: seeing}},
		"thinking":        {all, llm.Request{Messages: []llm.Message{user(text("Go")), model(llm.Reasoning{Text: "mine", API: "p/ollama"}, llm.Reasoning{Text: "theirs", API: "q/google"}, text("So"), call("1", "f", `{}`)), user(llm.ToolResult{ID: "1", Text: "one"})}}},
		"only of another": {all, llm.Request{Messages: []llm.Message{user(text("Go")), model(llm.Reasoning{Text: "theirs", API: "q/google"}), user(text("Go on"))}}},
		"extra":           {all, llm.Request{Messages: []llm.Message{user(text("Go"))}, Reasoning: true, Extra: map[string]any{"think": "high", "truncate": nil, "keep_alive": "1h", "options": map[string]any{"num_ctx": 65536, "temperature": 0.2}}}},
	}
	testkit.RunCases(t, "testdata/requests.txtar", *update, func(t *testing.T, c *testkit.Case) {
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			body, err := encode(requests[name].req, requests[name].traits, "p/ollama")
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			var b bytes.Buffer
			if err := json.Indent(&b, body, "", " "); err != nil {
				t.Fatal(err)
			}
			c.Golden(name, b.String()+"\n", true)
		}
	})
}
