package server_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// streamCassette makes a cassette in which the first prompt is answered with the events of a
// stream, and all others with "Fine."
func streamCassette(t *testing.T, events ...string) string {
	t.Helper()
	var raw strings.Builder
	for _, e := range events {
		var kind struct{ Type string }
		if err := json.Unmarshal([]byte(e), &kind); err != nil {
			t.Fatalf("%v: %s", err, e)
		}
		if kind.Type != "" {
			fmt.Fprintf(&raw, "event: %s\n", kind.Type)
		}
		fmt.Fprintf(&raw, "data: %s\n\n", e)
	}
	script, err := json.Marshal(raw.String())
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("cassette: 1\nturns:\n  - steps: [{raw: %s}]\ndefault: {steps: [{text: Fine.}]}\n", script)
}

var (
	madePNG  = base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n of a cat"))
	notImage = base64.StdEncoding.EncodeToString([]byte("a cat"))
)

// anthropicSearch is an answer that searches the web once and cites what it found.
var anthropicSearch = []string{
	`{"type":"message_start","message":{"usage":{"input_tokens":10}}}`,
	`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`,
	`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"go release\"}"}}`,
	`{"type":"content_block_stop","index":0}`,
	`{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.example/dl","title":"Downloads","encrypted_content":"Zm9v"}]}}`,
	`{"type":"content_block_stop","index":1}`,
	`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"It is out."}}`,
	`{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"https://go.example/dl","title":"Down[loads]","encrypted_index":"x"}}}`,
	`{"type":"content_block_stop","index":2}`,
	`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5,"server_tool_use":{"web_search_requests":1}}}`,
	`{"type":"message_stop"}`,
}

var openaiSearch = []string{
	`{"type":"response.output_item.added","item":{"type":"web_search_call","id":"ws_1","status":"in_progress"}}`,
	`{"type":"response.output_item.done","item":{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go release","sources":[{"type":"url","url":"https://go.example/dl"}]}}}`,
	`{"type":"response.output_text.delta","delta":"It is out."}`,
	`{"type":"response.output_text.annotation.added","annotation":{"type":"url_citation","url":"https://go.example/dl","title":"Down[loads]"}}`,
	`{"type":"response.completed","response":{"output":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"go release"}}],"usage":{"input_tokens":10,"output_tokens":5}}}`,
}

var googleSearch = []string{
	`{"candidates":[{"content":{"parts":[{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["go release"]},"id":"g1"},"thoughtSignature":"c2ln"}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","response":{"x":1},"id":"g1"}}]}}]}`,
	`{"candidates":[{"content":{"parts":[{"text":"It is out."}]}}]}`,
	`{"candidates":[{"content":{"parts":[]},"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["go release"],"groundingChunks":[{"web":{"uri":"https://go.example/dl","title":"Down[loads]"}}]}}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5}}`,
}

// openChat opens a chat and returns the params of the messages that the client gets.
func (r *rig) openChat(id string) []string {
	mark := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": id})
	var out []string
	for _, m := range r.Since(mark) {
		out = append(out, string(m.Params))
	}
	return out
}

// playAnswer plays an answer of the model m in a wire format, and then sends a second prompt to the
// chat. It returns the messages of the first turn, and the bodies of the requests of both turns.
func playAnswer(t *testing.T, api, key string, events []string) (r *rig, shown string, bodies []string) {
	t.Helper()
	model := map[string]any{"cost": map[string]any{"input": 1, "output": 1}, "limit": map[string]any{"context": 200_000, "output": 8000}}
	if key != "" {
		model[key] = true
	}
	r = newRig(t, options{model: streamCassette(t, events...), api: api, config: map[string]any{"providers": map[string]any{"mock": map[string]any{
		"models": map[string]any{"m": model}, "retry": map[string]any{"maxRetries": 0, "maxAutoContinues": 0},
	}}}})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "first"})
	var out []string
	for _, m := range r.Since(mark) {
		out = append(out, string(m.Params))
	}
	r.turn(t, map[string]any{"chatId": "c", "message": "second"})
	return r, strings.Join(out, "\n"), r.bodies()
}

func contains(t *testing.T, what, text string, want ...string) {
	t.Helper()
	at := 0
	for _, w := range want {
		i := strings.Index(text[at:], w)
		if i < 0 {
			t.Errorf("%s: %s is missing, or not in its place, in\n%s", what, w, text)
			return
		}
		at += i
	}
}

// Searches by a provider are shown as calls, count as costs, and are in the next request in the form that
// the API requires.
func TestProviderSearch(t *testing.T) {
	t.Parallel()
	for api, c := range map[string]struct {
		events  []string
		offered []string // in the first request
		back    []string // in the second one
		cost    string
	}{
		"anthropic":        {anthropicSearch, []string{`"type":"web_search_20250305"`, `"max_uses":10`}, []string{`{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"go release"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://go.example/dl","title":"Downloads","encrypted_content":"Zm9v"}]},{"type":"text","text":"It is out."}`}, "0.01"},
		"openai-responses": {openaiSearch, []string{`"web_search_call.action.sources"`, `"type":"web_search"`}, []string{`"type":"web_search_call"`, `It is out.`}, "0.01"},
		"google":           {googleSearch, []string{`{"googleSearch":{}}`, `"includeServerSideToolInvocations":true`}, []string{`"thoughtSignature":"c2ln","toolCall":{"toolType":"GOOGLE_SEARCH_WEB"`, `"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB"`, `{"text":"It is out."}`}, "0.01"},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			r, shown, bodies := playAnswer(t, api, "webSearch", c.events)
			for _, want := range c.offered {
				contains(t, "the first request", bodies[0], want)
			}
			contains(t, "the second request", bodies[1], c.back...)
			if strings.Contains(bodies[1], "Sources:") {
				t.Error("the model is sent eca's list of sources as its own words")
			}
			contains(t, "the turn", shown, `"toolCallPrepare"`, `Searching the web`, `"toolCallRun"`, `"toolCallRunning"`, `"toolCalled"`, `It is out.`, `Sources:\n\n- [Down(loads)](https://go.example/dl)`)
			contains(t, "the call", shown, `"name":"web_search","server":"llm","origin":"server","summary":"Web searching 'go release'"`)
			contains(t, "the cost", shown, `"lastMessageCost":"`+c.cost+`"`)
			contains(t, "the chat, opened again", strings.Join(r.openChat("c"), "\n"), `"toolCalled"`, `It is out.`, `Sources:`)
		})
	}
}

// Searches that the provider began and did not end are ended in the order in which they began.
func TestUnendedProviderSearches(t *testing.T) {
	t.Parallel()
	var events []string
	for i := range 9 {
		events = append(events, fmt.Sprintf(`{"type":"response.output_item.added","item":{"type":"web_search_call","id":"ws_%d","status":"in_progress"}}`, 9-i))
	}
	events = append(events, `{"type":"response.output_text.delta","delta":"It is out."}`, `{"type":"response.completed","response":{"usage":{"input_tokens":10,"output_tokens":5}}}`)
	_, shown, _ := playAnswer(t, "openai-responses", "webSearch", events)
	var began, ended []string
	for line := range strings.Lines(shown) {
		var p struct {
			Content struct{ Type, ID string }
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		switch p.Content.Type {
		case "toolCallPrepare":
			began = append(began, p.Content.ID)
		case "toolCalled":
			ended = append(ended, p.Content.ID)
		}
	}
	if len(began) != 9 || !slices.Equal(began, ended) {
		t.Errorf("began %q, ended %q", began, ended)
	}
}

// Without the key in the configuration, no tool of a provider is offered.
func TestProviderToolsAreOff(t *testing.T) {
	t.Parallel()
	for api, events := range map[string][]string{"anthropic": anthropicSearch, "openai-responses": openaiSearch, "google": googleSearch} {
		_, _, bodies := playAnswer(t, api, "", events)
		for _, name := range []string{`"web_search`, `googleSearch`, `image_generation`, `responseModalities`} {
			if strings.Contains(bodies[0], name) {
				t.Errorf("%s: the request offers %s", api, name)
			}
		}
	}
}

// Images that a model makes are shown and stored, and are in the next request to the model.
func TestProviderImages(t *testing.T) {
	t.Parallel()
	for api, c := range map[string]struct {
		events  func(data string) []string
		offered string
		back    string
	}{
		"openai-responses": {func(data string) []string {
			return []string{
				`{"type":"response.output_item.added","item":{"type":"image_generation_call","id":"ig_1","status":"in_progress"}}`,
				`{"type":"response.image_generation_call.partial_image","item_id":"ig_1","partial_image_b64":"AAAA"}`,
				`{"type":"response.output_item.done","item":{"type":"image_generation_call","id":"ig_1","status":"completed","output_format":"png","revised_prompt":"A cat","result":"` + data + `"}}`,
				`{"type":"response.completed","response":{"output":[{"type":"image_generation_call","id":"ig_1","status":"completed","result":"` + data + `"}],"usage":{"input_tokens":10,"output_tokens":5}}}`,
			}
		}, `"type":"image_generation"`, `{"id":"ig_1","type":"image_generation_call","status":"completed","result":"` + madePNG + `"}`},
		"google": {func(data string) []string {
			return []string{
				`{"candidates":[{"content":{"parts":[{"thought":true,"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}}]}`,
				`{"candidates":[{"content":{"parts":[{"inlineData":{"mimeType":"image/png","data":"` + data + `"},"thoughtSignature":"c2ln"}]}}]}`,
				`{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5}}`,
			}
		}, `"responseModalities":["TEXT","IMAGE"]`, `{"inlineData":{"mimeType":"image/png","data":"` + madePNG + `"},"thoughtSignature":"c2ln"}`},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			r, shown, bodies := playAnswer(t, api, "imageGeneration", c.events(madePNG))
			contains(t, "the first request", bodies[0], c.offered)
			contains(t, "the second request", bodies[1], c.back)
			contains(t, "the turn", shown, `Generating image`, `"toolCalled"`, `"type":"image","mediaType":"image/png","base64":"`+madePNG+`"`)
			if n := strings.Count(shown, `"type":"image"`); n != 1 || strings.Contains(shown, "answer is empty") {
				t.Errorf("the turn shows %d images:\n%s", n, shown)
			}
			contains(t, "the chat, opened again", strings.Join(r.openChat("c"), "\n"), `"type":"image","mediaType":"image/png","base64":"`+madePNG+`"`)
		})
		for name, data := range map[string]string{"not base64": "%%", "not an image": notImage} {
			t.Run(api+", "+name, func(t *testing.T) {
				t.Parallel()
				_, shown, bodies := playAnswer(t, api, "imageGeneration", c.events(data))
				contains(t, "the turn", shown, `"error":true`, `left out`)
				if strings.Contains(shown, `"type":"image"`) || strings.Contains(bodies[1], data) {
					t.Errorf("a damaged image is used:\n%s\n%s", shown, bodies[1])
				}
			})
		}
	}
}

// If a chat with an image that a model made continues with a model of another API, that model gets the
// image.
func TestProviderImageForAnotherModel(t *testing.T) {
	t.Parallel()
	model := streamCassette(t, `{"type":"response.output_item.done","item":{"type":"image_generation_call","id":"ig_1","status":"completed","result":"`+madePNG+`"}}`,
		`{"type":"response.completed","response":{"usage":{"input_tokens":1,"output_tokens":1}}}`)
	r := newRig(t, options{model: model, providers: allAPIs(nil)})
	r.Await(0, "the start", fake.Ready())
	r.turn(t, map[string]any{"chatId": "c", "message": "draw", "model": "openai-responses/m"})
	for api := range wireAPIs() {
		if api == "openai-responses" {
			continue
		}
		r.turn(t, map[string]any{"chatId": "c", "message": "what is it?", "model": api + "/m"})
		bodies := r.bodies()
		last := bodies[len(bodies)-1]
		contains(t, api, last, "I made an image here", madePNG)
	}
}

// If a provider pauses its answer again and again, the turn ends after a limited number of requests.
func TestProviderPauses(t *testing.T) {
	t.Parallel()
	pause := append(append([]string{}, anthropicSearch[:4]...), `{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`)
	_, shown, bodies := playAnswer(t, "anthropic", "webSearch", pause)
	contains(t, "the turn", shown, "The provider paused the answer repeatedly", `"state":"finished"`)
	contains(t, "the second request", bodies[1], `"role":"assistant"`, `"type":"server_tool_use"`)
	if len(bodies) < 3 || len(bodies) > 10 {
		t.Errorf("%d requests", len(bodies))
	}
}
