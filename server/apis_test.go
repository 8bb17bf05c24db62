package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// wireTest is what the tests of all wire formats must know about one.
type wireTest struct {
	model   string                                             // a model that reasons, sees and calls tools; no other format has it, because tests tell requests apart by it
	valid   func(body string) error                            // checks a request against the documentation of the API
	history string                                             // key of the messages in a request
	lenient bool                                               // messages of one role may follow each other
	read    func(message map[string]any) (m turnSaid, ok bool) // reads a message; ok is false for a system prompt
}

// wireTests has a method for each wire format, with the format's name without dashes. A new format
// has its method in a file of its own.
type wireTests struct{}

func (wireTests) OpenaiResponses() wireTest {
	return wireTest{"gpt-5.2", validResponses, "input", true, readResponses}
}

func (wireTests) OpenaiChat() wireTest {
	return wireTest{"some-model", validChat, "messages", true, readChat}
}

func (wireTests) Anthropic() wireTest {
	return wireTest{"claude-sonnet-4-6", validAnthropic, "messages", false, readAnthropic}
}

func (wireTests) Google() wireTest {
	return wireTest{"gemini-3-pro", validGoogle, "contents", false, readGoogle}
}

func (wireTests) Ollama() wireTest {
	return wireTest{"qwen3-vl", validOllama, "messages", true, readChat}
}

func (wireTests) Bedrock() wireTest {
	return wireTest{"us.anthropic.claude-sonnet-4-5-20250929-v1:0", validBedrock, "messages", false, readBedrock}
}

// wireTestOf returns the wireTest of an API.
func wireTestOf(api string) wireTest {
	name := ""
	for part := range strings.SplitSeq(api, "-") {
		name += strings.ToUpper(part[:1]) + part[1:]
	}
	method := reflect.ValueOf(wireTests{}).MethodByName(name)
	if !method.IsValid() {
		panic("add the method " + name + " to wireTests, in a file of its own")
	}
	return method.Call(nil)[0].Interface().(wireTest)
}

// wireAPIs are all wire formats, each with a model that reasons, sees and calls tools.
func wireAPIs() map[string]string {
	out, formatOf := map[string]string{}, map[string]string{}
	for _, api := range apis {
		model := wireTestOf(api).model
		if other := formatOf[model]; other != "" {
			panic(fmt.Sprintf("wireTests: %s and %s have the same model, %s; choose another model for one of them", other, api, model))
		}
		out[api], formatOf[model] = model, api
	}
	return out
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
