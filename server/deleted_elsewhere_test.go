package server_test

import (
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// An edit of a chat that another process has deleted is refused, and does not create the chat again.
// A prompt begins it again.
func TestChatDeletedByAnotherDaemon(t *testing.T) {
	t.Parallel()
	tape := "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n"
	a := newRig(t, options{model: tape})
	b := newRig(t, options{model: tape, state: a.state, root: a.root})
	for name, c := range map[string]struct {
		method string
		want   string // part of the error; empty if the result says that there is no such chat
		params map[string]any
	}{
		"title":    {"chat/update", "deleted", map[string]any{"title": "Pears"}},
		"trust":    {"chat/update", "no such chat", map[string]any{"trust": true}},
		"pin":      {"chat/update", "deleted", map[string]any{"pinned": true}},
		"clear":    {"chat/clear", "deleted", map[string]any{"messages": true}},
		"rollback": {"chat/rollback", "deleted", map[string]any{"contentId": "x"}},
		"flag":     {"chat/addFlag", "deleted", map[string]any{"contentId": "x", "text": "f"}},
		"fork":     {"chat/fork", "deleted", map[string]any{"contentId": "x"}},
		"open":     {"chat/open", "", map[string]any{}},
		"history":  {"chat/history", "", map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			id := "c-" + name
			a.turn(t, map[string]any{"chatId": id, "message": "hi"})
			b.Call("chat/delete", map[string]any{"chatId": id})
			c.params["chatId"] = id
			res, err := a.TryCall(c.method, c.params)
			switch {
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%s: %s, %v", c.method, res, err)
			case c.want == "" && (err != nil || !strings.Contains(string(res), "false") && !strings.Contains(string(res), "chat_not_found")):
				t.Errorf("%s: %s, %v", c.method, res, err)
			}
			if chats, _ := listChats(t, b, nil); chats[id] != nil {
				t.Errorf("the chat exists again: %v", chats[id])
			}
			a.turn(t, map[string]any{"chatId": id, "message": "again"})
			if chats, _ := listChats(t, b, nil); chats[id] == nil || chats[id]["messageCount"] != 2.0 {
				t.Errorf("after a prompt: %v", chats[id])
			}
		})
	}
}

// A prompt without text and contexts asks no model, and does not stop a running turn.
func TestEmptyPromptAsksNoModel(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\nturns:\n  - {user: long, steps: [{text: Begun, hang: true}]}\ndefault: {steps: [{text: asked}]}\n"})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "long"})
	r.Await(0, "the answer", fake.Content("text", "Begun"))
	for _, id := range []string{"c", "other"} {
		for _, text := range []string{"", " ", "\n\t \u00a0"} {
			mark := r.Mark()
			if res := string(r.Call("chat/prompt", map[string]any{"chatId": id, "message": text})); !strings.Contains(res, `"status":"error"`) {
				t.Errorf("%q in %s: %s", text, id, res)
			}
			method := map[string]string{"c": "$/showMessage", "other": "chat/contentReceived"}[id]
			r.Await(mark, "the reason", fake.Contains(method, "the prompt is empty"))
		}
	}
	mark := r.Mark()
	r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	r.Await(mark, "the end of the turn", fake.Content("progress", "finished", "stopped"))
	for _, m := range r.Since(0) {
		if strings.Contains(string(m.Params), "asked") && m.Method == "chat/contentReceived" && !strings.Contains(string(m.Params), "no model was asked") {
			t.Errorf("a model was asked: %s", m.Params)
		}
	}
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "image", "message": "", "contexts": []map[string]any{{"type": "text", "label": "l", "content": "see"}}})
	r.Await(mark, "the answer about a context", fake.Content("text", "asked"))
}
