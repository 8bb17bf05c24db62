package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A chat that began with any API continues with any other, and back. Each request is valid for its
// API. Parts that only the earlier API could read are left out, and the user is notified once.
func TestSwitchAPI(t *testing.T) {
	needs.Long(t)
	r := newRig(t, options{model: fullConversation, root: fullWorkspace(t), providers: allAPIs(nil)})
	r.Await(0, "the start", fake.Ready())
	for from := range wireAPIs() {
		for to := range wireAPIs() {
			t.Run(from+" to "+to, func(t *testing.T) {
				chat := from + "-to-" + to
				turn := func(model, text string, notices int) {
					t.Helper()
					mark := r.Mark()
					r.turn(t, map[string]any{"chatId": chat, "message": text, "model": model})
					heard := 0
					for _, m := range r.Since(mark) {
						if strings.Contains(m.String(), "This chat continues with "+model) {
							heard++
						}
					}
					bodies := r.bodies()
					last := bodies[len(bodies)-1]
					api, _, _ := strings.Cut(model, "/")
					if err := validRequest(api, last); err != nil {
						t.Errorf("%s: %v\n%s", text, err, last)
					}
					if heard != notices {
						t.Errorf("%s: %d notices, not %d", text, heard, notices)
					}
					// The reasoning of the first turn, and its signatures, are only for its own
					// API.
					foreign := strings.Contains(last, "Two at once.") || strings.Contains(last, "sealed-") || strings.Contains(last, "signed-")
					if own := api == from; foreign != own {
						t.Errorf("%s: reasoning is in the request: %v\n%s", text, foreign, last)
					}
					for _, said := range []string{"Looking at both. ", "hello there", "functions"} {
						if !strings.Contains(last, said) {
							t.Errorf("%s: %q is gone", text, said)
						}
					}
				}
				other := 0
				if from != to {
					other = 1
				}
				turn(from+"/m", "first", 0)
				turn(to+"/m", "second", other)
				turn(from+"/m", "back", 0) // it reads its own reasoning again
			})
		}
	}
}

// A model without image support gets a text in place of images, and the user is notified once. The
// next model with support gets the images.
func TestSwitchToAModelWithoutImages(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: fullConversation, root: fullWorkspace(t), providers: allAPIs(nil)})
	r.Await(0, "the start", fake.Ready())
	said := func(from int, text string) int {
		n := 0
		for _, m := range r.Since(from) {
			n += strings.Count(m.String(), text)
		}
		return n
	}
	const data = "iVBORw0KGgogb2YgYSBjYXQ=" // the picture
	for i, c := range []struct {
		model, notice string
		sees          bool
	}{
		{"anthropic/m", "", true},
		{"openai-responses/blind", "It is not sent the reasoning of the models before it, which only they can read, and cannot see the image in it.", false},
		{"openai-responses/blind", "", false},
	} {
		mark := r.Mark()
		r.turn(t, map[string]any{"chatId": "c", "message": fmt.Sprint("turn ", i), "model": c.model})
		bodies := r.bodies()
		last := bodies[len(bodies)-1]
		if strings.Contains(last, data) != c.sees || strings.Contains(last, "This model is not known to take images") == c.sees {
			t.Errorf("turn %d: %s", i, last)
		}
		want := 0
		if c.notice != "" {
			want = 1
		}
		if said(mark, "This chat continues with") != want || said(mark, c.notice) < want {
			t.Errorf("turn %d: no notice, or several: %v", i, r.Since(mark))
		}
	}
}

// validRequest finds errors: one request for each API breaks several rules.
func TestValidRequest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ api, body, want string }{
		{"anthropic", `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a.b","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":" "}]}]}`, "id \"a.b\" does not match|blank text|calls without result"},
		{"anthropic", `{"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"a"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"signed-1"}]}]}`, "signature|not the user's"},
		{"bedrock", `{"messages":[{"role":"user","content":[{"text":"a"},{"toolResult":{"toolUseId":"x","content":[]}}]},{"role":"user","content":[{}]}]}`, "answers no open call|behind something else|an empty result|an empty block|message 1 is of user"},
		{"bedrock", `{"messages":[{"role":"user","content":[{"text":"a"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"x","name":"f.g","input":[]}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"x","content":[{"text":"r"}]}}]}]}`, "name \"f.g\"|input is not an object|calls without toolConfig"},
		{"google", `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"functionCall":{"name":"1f","args":{}}}]},{"role":"user","parts":[{"inlineData":{"mimeType":"image/gif","data":"eA=="}}]}]}`, "name \"1f\"|not an image it takes: image/gif|content 2 answers"},
		{"ollama", `{"messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":{}}}]},{"role":"user"}]}`, "arguments is not an object|used twice|calls without result"},
		{"openai-chat", `{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"` + strings.Repeat("a", 41) + `","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"hm"},{"role":"tool","tool_call_id":"b","content":[]}]}`, "id \"aaa|calls without result|a result is not a text|answers no open call"},
		{"openai-responses", `{"store":true,"input":[{"type":"reasoning","id":"r"},{"role":"user","content":[{"type":"output_text"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"[]"}]}`, "would be stored|encrypted_content|reasoning led to|user says|arguments is not an object|calls without result"},
	} {
		err := validRequest(c.api, c.body)
		for want := range strings.SplitSeq(c.want, "|") {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in: %v", c.api, want, err)
			}
		}
	}
}
