package bedrock

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/llm"
)

const (
	claudeID = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	llamaID  = "meta.llama3-3-70b-instruct-v1:0"
	novaID   = "eu.amazon.nova-pro-v1:0"
)

func messageOf(role llm.Role, parts ...llm.Part) llm.Message {
	return llm.Message{Role: role, Parts: parts}
}

func text(s string) llm.Part { return llm.Text{Text: s} }

func calls(ids ...string) llm.Message {
	m := messageOf(llm.Assistant)
	for _, id := range ids {
		m.Parts = append(m.Parts, llm.ToolCall{ID: id, Name: "f", Arguments: json.RawMessage(`{"x":1}`)})
	}
	return m
}

func TestBody(t *testing.T) {
	png := llm.Image{MediaType: "image/png", Data: []byte("png")}
	tools := []llm.ToolSpec{{Name: "f", Description: "does it", Schema: json.RawMessage(`{"type":"object"}`)}}
	hi := []llm.Message{messageOf(llm.User, text("hi"))}
	signed := llm.Reasoning{API: "p/bedrock/anthropic", Text: "hm", Opaque: json.RawMessage(`{"reasoningText":{"text":"hm","signature":"s"}}`)}
	for name, c := range map[string]struct {
		req  llm.Request
		want string
	}{
		"text": {
			llm.Request{Model: llamaID, System: "be kind", MaxOutput: 100, Messages: hi},
			`{"system":[{"text":"be kind"}],"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"maxTokens":100}}`,
		},
		"cache points and tools": {
			llm.Request{Model: claudeID, System: "be kind", Tools: tools, Messages: []llm.Message{
				messageOf(llm.User, text("one")), calls("a"), messageOf(llm.User, llm.ToolResult{ID: "a", Text: "r"}), messageOf(llm.Assistant, text("two")), messageOf(llm.User, text("three")),
			}},
			`{"system":[{"text":"be kind"},{"cachePoint":{"type":"default"}}],
			"messages":[{"role":"user","content":[{"text":"one"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"r"}]}},{"cachePoint":{"type":"default"}}]},
			{"role":"assistant","content":[{"text":"two"}]},
			{"role":"user","content":[{"text":"three"},{"cachePoint":{"type":"default"}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does it","inputSchema":{"json":{"type":"object"}}}},{"cachePoint":{"type":"default"}}]}}`,
		},
		"Nova takes none after results or tools": {
			llm.Request{Model: novaID, System: "s", Tools: tools, Messages: []llm.Message{messageOf(llm.User, text("one")), calls("a"), messageOf(llm.User, llm.ToolResult{ID: "a", Text: "r"})}},
			`{"system":[{"text":"s"},{"cachePoint":{"type":"default"}}],
			"messages":[{"role":"user","content":[{"text":"one"},{"cachePoint":{"type":"default"}}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"r"}]}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does it","inputSchema":{"json":{"type":"object"}}}}]}}`,
		},
		"parallel results, failed and empty, then a steer": {
			llm.Request{Model: "anthropic.claude-3-haiku-20240307-v1:0", Tools: tools, Messages: []llm.Message{
				messageOf(llm.User, text("go")), calls("a", "b"),
				messageOf(llm.User, llm.ToolResult{ID: "a", Text: "broken", Failed: true}, llm.ToolResult{ID: "b", Text: " "}), messageOf(llm.User, text("hurry")),
			}},
			`{"messages":[{"role":"user","content":[{"text":"go"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1}}},{"toolUse":{"toolUseId":"b","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"broken"}],"status":"error"}},{"toolResult":{"toolUseId":"b","content":[{"text":"(no output)"}]}},{"text":"hurry"}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does it","inputSchema":{"json":{"type":"object"}}}}]}}`,
		},
		"no status for others, tools of the history": {
			llm.Request{Model: llamaID, Messages: []llm.Message{messageOf(llm.User, text("go")), calls("a", "b"), messageOf(llm.User, llm.ToolResult{ID: "a", Text: "broken", Failed: true}, llm.ToolResult{ID: "b", Text: "r"})}},
			`{"messages":[{"role":"user","content":[{"text":"go"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1}}},{"toolUse":{"toolUseId":"b","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"broken"}]}},{"toolResult":{"toolUseId":"b","content":[{"text":"r"}]}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"Called earlier in this conversation. Do not call it now.","inputSchema":{"json":{"type":"object"}}}}]}}`,
		},
		"images": {
			llm.Request{Model: llamaID, Tools: tools, Messages: []llm.Message{
				messageOf(llm.User, text("see"), png, llm.Image{MediaType: "image/bmp", Data: []byte("x")}), calls("a"), messageOf(llm.User, llm.ToolResult{ID: "a", Images: []llm.Image{png}}),
			}},
			`{"messages":[{"role":"user","content":[{"text":"see"},{"image":{"format":"png","source":{"bytes":"cG5n"}}},{"text":"(an image of the type \"image/bmp\", which cannot be shown to this model, was left out)"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"(no output)"}]}},{"text":"Images of the result of a:"},{"image":{"format":"png","source":{"bytes":"cG5n"}}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does it","inputSchema":{"json":{"type":"object"}}}}]}}`,
		},
		"images inside of results": {
			llm.Request{Model: "anthropic.claude-3-5-sonnet-20240620-v1:0", Tools: tools, Messages: []llm.Message{messageOf(llm.User, text("see")), calls("a"), messageOf(llm.User, llm.ToolResult{ID: "a", Images: []llm.Image{png}})}},
			`{"messages":[{"role":"user","content":[{"text":"see"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"image":{"format":"png","source":{"bytes":"cG5n"}}}]}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does it","inputSchema":{"json":{"type":"object"}}}}]}}`,
		},
		"reasoning goes back to who made it": {
			llm.Request{Model: claudeID, Reasoning: true, MaxOutput: 4000, Messages: []llm.Message{
				messageOf(llm.User, text("one")),
				messageOf(llm.Assistant, signed, llm.Reasoning{API: "openai/openai-responses", Opaque: json.RawMessage(`{}`)}, llm.Reasoning{API: "p/bedrock/anthropic", Text: "unsigned"}, text("two")),
				messageOf(llm.User, text("three"), text(" \n")),
			}},
			`{"messages":[{"role":"user","content":[{"text":"one"},{"cachePoint":{"type":"default"}}]},
			{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},{"text":"two"}]},
			{"role":"user","content":[{"text":"three"},{"cachePoint":{"type":"default"}}]}],
			"inferenceConfig":{"maxTokens":4000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}}}`,
		},
		"a message that has nothing left": {
			llm.Request{Model: llamaID, Messages: []llm.Message{messageOf(llm.User, text("one")), messageOf(llm.Assistant, text("")), messageOf(llm.User, text("two"))}},
			`{"messages":[{"role":"user","content":[{"text":"one"},{"text":"two"}]}]}`,
		},
		"ids of other APIs": {
			llm.Request{Model: llamaID, Tools: tools, Messages: []llm.Message{
				messageOf(llm.User, text("go")), calls("a.b", "a|b", "", strings.Repeat("x", 70), strings.Repeat("x", 71)),
				messageOf(llm.User, llm.ToolResult{ID: "a|b", Text: "2"}, llm.ToolResult{ID: "a.b", Text: "1"}, llm.ToolResult{ID: "", Text: "3"}, llm.ToolResult{ID: strings.Repeat("x", 70), Text: "4"}, llm.ToolResult{ID: strings.Repeat("x", 71), Text: "5"}),
			}},
			strings.NewReplacer("X64", strings.Repeat("x", 64), "X62", strings.Repeat("x", 62)).Replace(`{"messages":[{"role":"user","content":[{"text":"go"}]},
			{"role":"assistant","content":[{"toolUse":{"toolUseId":"a_b","name":"f","input":{"x":1}}},{"toolUse":{"toolUseId":"a_b-2","name":"f","input":{"x":1}}},{"toolUse":{"toolUseId":"call","name":"f","input":{"x":1}}},
			{"toolUse":{"toolUseId":"X64","name":"f","input":{"x":1}}},{"toolUse":{"toolUseId":"X62-2","name":"f","input":{"x":1}}}]},
			{"role":"user","content":[{"toolResult":{"toolUseId":"a_b-2","content":[{"text":"2"}]}},{"toolResult":{"toolUseId":"a_b","content":[{"text":"1"}]}},{"toolResult":{"toolUseId":"call","content":[{"text":"3"}]}},
			{"toolResult":{"toolUseId":"X64","content":[{"text":"4"}]}},{"toolResult":{"toolUseId":"X62-2","content":[{"text":"5"}]}}]}],
			"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"does it","inputSchema":{"json":{"type":"object"}}}}]}}`),
		},
		"extra payload": {
			llm.Request{Model: llamaID, System: "s", MaxOutput: 100, Messages: hi, Extra: map[string]any{
				"max_tokens": nil, "temperature": 0.5, "topP": 0.9, "stop": []any{"END"}, "stream": false, "model": "x", "system": nil,
				"top_k": 40, "additionalModelRequestFields": map[string]any{"own": 1}, "serviceTier": map[string]any{"type": "flex"}, "inferenceConfig": map[string]any{"topP": 0.1},
			}},
			`{"messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"temperature":0.5,"topP":0.9,"stopSequences":["END"]},
			"additionalModelRequestFields":{"own":1,"top_k":40},"serviceTier":{"type":"flex"}}`,
		},
		"a variant decides about reasoning": {
			llm.Request{Model: llamaID + "claude-sonnet-4-5", Reasoning: true, MaxOutput: 9000, Messages: hi, Extra: map[string]any{"thinking": map[string]any{"type": "adaptive"}, "output_config": map[string]any{"effort": "low"}}},
			`{"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}],"inferenceConfig":{"maxTokens":9000},
			"additionalModelRequestFields":{"thinking":{"type":"adaptive"},"output_config":{"effort":"low"}}}`,
		},
		"null turns reasoning off": {
			llm.Request{Model: claudeID, Reasoning: true, Messages: hi, Extra: map[string]any{"thinking": nil}},
			`{"messages":[{"role":"user","content":[{"text":"hi"},{"cachePoint":{"type":"default"}}]}],"additionalModelRequestFields":{}}`,
		},
	} {
		body, err := encode(c.req, "p/bedrock/anthropic")
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

// Encoding a request again returns the same bytes, and does not change the configuration.
func TestStablePrefix(t *testing.T) {
	extra := map[string]any{"top_k": 1, "temperature": 1, "topP": 1, "a": 1, "b": 1}
	req := llm.Request{Model: claudeID, System: "s", Extra: extra, Messages: []llm.Message{messageOf(llm.User, text("one"))}}
	first, err := encode(req, "")
	for range 20 {
		if again, _ := encode(req, ""); err != nil || string(again) != string(first) {
			t.Fatalf("%s\n%s, %v", first, again, err)
		}
	}
	if len(extra) != 5 {
		t.Error("the configuration was changed")
	}
}

func TestModels(t *testing.T) {
	for id, want := range map[string]string{
		"anthropic.claude-v2:1":                          "anthropic 0 false <nil>",
		"anthropic.claude-3-haiku-20240307-v1:0":         "anthropic 300 false <nil>",
		"us.anthropic.claude-3-5-haiku-20241022-v1:0":    "anthropic 305 true <nil>",
		"anthropic.claude-3-5-sonnet-20240620-v1:0":      "anthropic 305 false <nil>",
		"eu.anthropic.claude-3-7-sonnet-20250219-v1:0":   `anthropic 307 true {"thinking":{"budget_tokens":2048,"type":"enabled"}}`,
		"us.anthropic.claude-sonnet-4-20250514-v1:0":     `anthropic 400 true {"thinking":{"budget_tokens":2048,"type":"enabled"}}`,
		"global.anthropic.claude-opus-4-5-20251101-v1:0": `anthropic 405 true {"thinking":{"budget_tokens":2048,"type":"enabled"}}`,
		"global.anthropic.claude-opus-4-6-v1":            `anthropic 406 true {"thinking":{"type":"adaptive"}}`,
		"anthropic.claude-opus-4-8":                      `anthropic 408 true {"thinking":{"display":"summarized","type":"adaptive"}}`,
		"anthropic.claude-sonnet-5":                      `anthropic 500 true {"thinking":{"display":"summarized","type":"adaptive"}}`,
		"amazon.nova-lite-v1:0":                          "amazon 0 true <nil>",
		"us.amazon.nova-2-lite-v1:0":                     `amazon 0 true {"reasoningConfig":{"maxReasoningEffort":"medium","type":"enabled"}}`,
		"zai.glm-4.7":                                    "zai 0 false <nil>",
		"arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-5-20250929-v1:0":      `anthropic 405 true {"thinking":{"budget_tokens":2048,"type":"enabled"}}`,
		"arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-opus-4-7-v1:0": `anthropic 407 true {"thinking":{"display":"summarized","type":"adaptive"}}`,
		"arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123":                "abc123 0 false <nil>",
	} {
		asked := "<nil>"
		fields := thinking(id, 32000)
		if fields != nil {
			raw, _ := json.Marshal(fields)
			asked = string(raw)
		}
		if got := fmt.Sprint(vendor(id), " ", claudeVersion(id), " ", cachingOf(llm.Request{Model: id}).system, " ", asked); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", id, got, want)
		}
		if Reasons(id) != (fields != nil) {
			t.Errorf("%s: reasons %v", id, Reasons(id))
		}
	}
	if f := thinking(claudeID, 1500); f != nil {
		t.Errorf("thinking reserves tokens for reasoning although the limit is too small: %v", f)
	}
}

func TestOperation(t *testing.T) {
	for model, want := range map[string]string{
		"anthropic.claude-3-haiku-20240307-v1:0":            "https://x/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse-stream",
		"arn:aws:bedrock:us-east-1:1:inference-profile/a.b": "https://x/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fa.b/converse-stream",
	} {
		if got := operation("https://x/", model); got != want {
			t.Error(got)
		}
	}
	if got := URL("cn-north-1") + " " + URL("eu-west-1"); got != "https://bedrock-runtime.cn-north-1.amazonaws.com.cn https://bedrock-runtime.eu-west-1.amazonaws.com" {
		t.Error(got)
	}
}

// Parts that may change from request to request are after the cache point.
func TestSystemTail(t *testing.T) {
	req := llm.Request{Model: "anthropic.claude-sonnet-4-5-20250929-v1:0", System: "fixed", SystemTail: "moving"}
	body, err := encode(req, "")
	if want := `"system":[{"text":"fixed"},{"cachePoint":{"type":"default"}},{"text":"moving"}]`; err != nil || !strings.Contains(string(body), want) {
		t.Errorf("%s, %v", body, err)
	}
}
