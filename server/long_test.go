package server_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A conversation of 300 turns with tools runs to its end without help, although the model refuses
// long requests and does not announce the limit.
func TestLongConversation(t *testing.T) {
	needs.Long(t)
	const turns, longest = 300, 120_000
	var refused, compacted atomic.Int32
	r := newRig(t, options{
		model: `
cassette: 1
turns:
  - {user: 'Summarize this conversation', steps: [{text: "SUMMARY"}]}
default:
  steps:
    - {text: "I read it.", calls: [{tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}]}
    - {text: "It is long."}
`,
		config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"m": map[string]any{"limit": map[string]any{"context": 0}}}}}},
		wrap: func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				body, err := io.ReadAll(req.Body)
				if err != nil {
					t.Error(err)
				}
				if len(body) > longest {
					refused.Add(1)
					http.Error(w, `{"error":{"message":"This model's maximum context length was exceeded"}}`, http.StatusBadRequest)
					return
				}
				if bytes.Contains(body, []byte("Summarize this conversation")) {
					compacted.Add(1)
				}
				req.Body = io.NopCloser(bytes.NewReader(body))
				next.ServeHTTP(w, req)
			})
		},
	})
	if err := os.WriteFile(filepath.Join(r.root, "a.txt"), []byte(strings.Repeat("all work and no play\n", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	for i := range turns {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": fmt.Sprintf("turn %d", i)})
		r.Await(mark, fmt.Sprintf("the end of turn %d", i), fake.Finished())
		r.Await(mark, fmt.Sprintf("a good end of turn %d", i), fake.Contains("chat/contentReceived", `"finished"`, `"reason":"done"`))
	}
	const often = 5
	if compacted.Load() < often || refused.Load() < often {
		t.Errorf("refused %d times, compacted %d times", refused.Load(), compacted.Load())
	}
	// The user loses nothing of it.
	if chats, _ := listChats(t, r, nil); chats["c"]["messageCount"].(float64) < turns*5 {
		t.Errorf("left: %v", chats["c"])
	}
}
