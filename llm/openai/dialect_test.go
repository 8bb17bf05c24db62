package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/llm"
)

func TestChatBody(t *testing.T) {
	result := llm.Message{Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "call_1", Text: "r", Images: []llm.Image{{MediaType: "image/png", Data: []byte("x")}}}}}
	history := []llm.Message{
		{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "one"}}},
		{Role: llm.Assistant, Parts: []llm.Part{
			llm.Reasoning{API: "p/openai-chat", Text: "content"},
			llm.Reasoning{API: "p/openai-chat", Text: "plain", Opaque: memberOpaque(inReasoningOnly)},
			llm.Reasoning{API: "p/openai-chat", Text: "text", Opaque: memberOpaque(inReasoningText)},
			llm.Reasoning{API: "p/openai-chat", Text: "blocks", Opaque: memberOpaque(inContent)},
			llm.Reasoning{API: "other/openai-chat", Text: "foreign"},
			llm.Text{Text: "two"},
			llm.ToolCall{ID: "call_1", Name: "f", Arguments: json.RawMessage(`{}`)},
		}},
		result,
	}
	short := []llm.Message{history[0], {Role: llm.Assistant, Parts: []llm.Part{llm.Text{Text: "two"}}}, {Role: llm.User, Parts: []llm.Part{llm.Text{Text: "three"}, llm.Image{MediaType: "image/png", Data: []byte("x")}}}}
	for name, c := range map[string]struct {
		url, model, retention string
		messages              []llm.Message
		want                  string
	}{
		"reasoning goes back where it came from": {
			"https://x.example", "m", "", history,
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"},
			{"role":"assistant","content":"two","reasoning_content":"content","reasoning":"plain","reasoning_text":"text","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"role":"tool","tool_call_id":"call_1","content":"r"},{"role":"user","content":[{"type":"text","text":"Images of the result of call_1:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}]}`,
		},
		"Mistral": {
			"https://api.mistral.ai/v1/chat/completions", "m", "",
			[]llm.Message{history[0], {Role: llm.Assistant, Parts: history[1].Parts[6:]}, {Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "call_1", Text: "r"}}}},
			`{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"74196fe72","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"74196fe72","content":"r"}]}`,
		},
		"Mistral, images of results": {
			"https://api.mistral.ai/v1/chat/completions", "m", "",
			[]llm.Message{history[0], {Role: llm.Assistant, Parts: history[1].Parts[6:]}, result},
			`{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"74196fe72","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"74196fe72","content":"r"},
			{"role":"assistant","content":"I have the results."},{"role":"user","content":[{"type":"text","text":"Images of the result of 74196fe72:"},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}]}`,
		},
		"DeepSeek": {
			"https://api.deepseek.com/chat/completions", "m", "short", history[:1],
			`{"model":"m","stream":true,"stream_options":{"include_usage":true},"max_tokens":9,"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"}]}`,
		},
		"OpenAI itself": {
			"https://api.openai.com/v1/chat/completions", "gpt-5.1", "long", history[:1],
			`{"model":"gpt-5.1","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"prompt_cache_key":"chat","prompt_cache_retention":"24h",
			"messages":[{"role":"system","content":"s"},{"role":"user","content":"one"}]}`,
		},
		"Azure, a small model": {
			"https://x.openai.azure.com/openai/v1/chat/completions", "gpt-5-mini", "long", history[:1],
			`{"model":"gpt-5-mini","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"prompt_cache_key":"chat","messages":[{"role":"system","content":"s"},{"role":"user","content":"one"}]}`,
		},
		"Claude behind a proxy": {
			"https://openrouter.ai/api/v1", "anthropic/Claude-x", "short", short,
			`{"model":"anthropic/Claude-x","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"messages":[
			{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"one"},
			{"role":"assistant","content":[{"type":"text","text":"two","cache_control":{"type":"ephemeral"}}]},
			{"role":"user","content":[{"type":"text","text":"three","cache_control":{"type":"ephemeral"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,eA=="}}]}]}`,
		},
		"for an hour, in a loop of tools": {
			"https://openrouter.ai/api/v1", "anthropic/claude-x", "long",
			[]llm.Message{history[0], {Role: llm.Assistant, Parts: history[1].Parts[6:]}, {Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "call_1", Text: "r"}}}},
			`{"model":"anthropic/claude-x","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":9,"messages":[
			{"role":"system","content":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h"}}]},{"role":"user","content":[{"type":"text","text":"one","cache_control":{"type":"ephemeral","ttl":"1h"}}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"r"}]}`,
		},
	} {
		body, err := chatBody(llm.Request{Model: c.model, System: "s", MaxOutput: 9, Messages: c.messages, CacheKey: "chat", Retention: llm.Retention(c.retention)}, chatEncoder{origin: "p/openai-chat", dialect: dialectOf(c.url)})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got, want any
		if err := json.Unmarshal([]byte(c.want), &want); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestShortIDs(t *testing.T) {
	d := dialect{strict: true}
	seen := map[string]bool{}
	for _, id := range []string{"abcDEF123", "abcDEF12-", "", "call_1", "call_2", "äöüß_"} {
		got := d.id(id)
		if len(got) != 9 || strings.ContainsFunc(got, isNotAlphanumeric) || seen[got] || (got == id) != (id == "abcDEF123") {
			t.Errorf("%q: %q", id, got)
		}
		seen[got] = true
	}
}

// Parts that may change from request to request are after the mark.
func TestSystemTail(t *testing.T) {
	req := llm.Request{
		Model: "claude-sonnet", Purpose: llm.PurposeTurn, Retention: llm.RetainShort, System: "fixed", SystemTail: "moving",
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "hi"}}}},
	}
	body, err := chatBody(req, chatEncoder{})
	if want := `{"role":"system","content":[{"type":"text","text":"fixed","cache_control":{"type":"ephemeral"}},{"type":"text","text":"moving"}]}`; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("%s, %v", body, err)
	}
	req.Model = "gpt"
	body, err = chatBody(req, chatEncoder{})
	if want := `{"role":"system","content":"fixed\n\nmoving"}`; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("%s, %v", body, err)
	}
}
