package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// With env "test", background work happens in a fixed order, and the answer to a prompt is the last
// message of its turn (eca-recorded). Deltas arrive one by one.
func TestEnvTest(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{
		model:  "cassette: 1\ntitle: Some title\ndefault:\n  steps:\n    - {text: hello there}\nturns: []\n",
		config: map[string]any{"chat": map[string]any{"title": true}},
		init:   map[string]any{"initializationOptions": map[string]any{"env": "test"}},
	})
	r.Await(0, "the start", fake.Ready())
	for i, id := range []string{"one", "two"} {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": id, "message": "hi"})
		var got []string
		for _, m := range r.Since(mark) {
			for _, what := range []string{"chat/opened", `"role":"user"`, `"running"}`, `"metadata"`, "Waiting model", "Generating", `"text":"hello "`, `"text":"there"`, `"usage"`, `"idle"`, `"finished"`} {
				if strings.Contains(m.String(), what) {
					got = append(got, strings.Trim(what, `"}`))
				}
			}
		}
		want := `chat/opened role":"user running metadata Waiting model Generating text":"hello  text":"there usage idle finished`
		if g := strings.Join(got, " "); g != want {
			t.Errorf("turn %d: when the answer came, this was heard:\n%s\nwant\n%s", i, g, want)
		}
	}
	// Answers of commands have the role system there, and are not rendered as Markdown.
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "one", "message": "/costs"})
	r.Await(mark, "the answer of the command", fake.Content("text", "| mock/m |", `"role":"system"`))
	// Such suites are separated only by the cache folder.
	if _, err := os.Stat(filepath.Join(r.state, "cache", "state", "chats.db")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(r.state, "chats.db")); err == nil {
		t.Error("the store is where it is without env")
	}
	if !strings.Contains(string(r.requests[0].body), "Title generator") {
		t.Errorf("the title's request does not name itself: %s", r.requests[0].body)
	}
}
