package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A command of the configuration runs once, regardless of the number of requests and of other
// changes. It runs again when its own file changes.
func TestConfigCommand(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	dir := tempDir(t)
	var mu sync.Mutex // guards keys
	var keys []string
	r := newRig(t, options{
		model: "cassette: 1\ndefault:\n  steps:\n    - {text: hello}\nturns: []\n", closed: true,
		wrap: func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				mu.Lock()
				keys = append(keys, req.Header.Get("X-Key"))
				mu.Unlock()
				h.ServeHTTP(w, req)
			})
		},
	})
	file := func(welcome, command string) string {
		return fmt.Sprintf(`{"welcomeMessage": %q, "providers": {"mock": {"extraHeaders": {"X-Key": "${cmd:%s}"}}}}`, welcome, command)
	}
	count := "echo run >> " + filepath.Join(dir, "runs") + "; cat " + filepath.Join(dir, "runs") + " | wc -l | tr -d ' '"
	r.save(t, r.globalFile(), file("one", "printf key-; "+count))
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Ready())
	prompts := func(n int) {
		t.Helper()
		mark := r.Mark()
		for i := range n {
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
			r.Await(mark, "the end", fake.Times(i+1, "chat/contentReceived", `"state":"finished"`))
		}
	}
	prompts(50)
	// Another file changes, and the client sends a query.
	r.save(t, r.workspaceFile(), `{"defaultModel": "mock/other"}`)
	r.Await(0, "the other change", fake.Contains("config/updated", "mock/other"))
	prompts(1)
	r.save(t, r.globalFile(), file("two", "printf key-; "+count))
	r.Await(0, "the change", fake.Contains("config/updated", `"two"`))
	prompts(1)
	mu.Lock()
	defer mu.Unlock()
	want := append(slices.Repeat([]string{"key-1"}, 51), "key-2")
	if !slices.Equal(keys, want) {
		t.Errorf("the model was asked with %q", keys)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "runs")); err != nil || strings.Count(string(got), "run") != 2 {
		t.Errorf("the command noted %q (%v), want two runs", got, err)
	}
}

// A prompt waits for a command that is too slow for the answer to initialize. A failed command is
// named, but its text is not shown.
func TestConfigCommandSlow(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	gate := filepath.Join(tempDir(t), "gate")
	r := newRig(t, options{
		model: "cassette: 1\ndefault:\n  steps:\n    - {text: hello}\nturns: []\n", closed: true,
		config: map[string]any{"providers": map[string]any{"mock": map[string]any{"key": "${cmd:until [ -e " + gate + " ]; do sleep 0.05; done; printf from-command}"}}},
	})
	r.save(t, r.globalFile(), `{"providers": {"other": {"key": "${cmd:echo no such entry >&2; exit 3}"}}}`)
	r.Open(r.root, nil)
	r.Await(0, "what is not there yet", fake.Contains("$/showMessage", ": providers.mock.key: the command is still running"))
	r.Await(0, "what failed", fake.Contains("$/showMessage", r.globalFile()+":1:26: providers.other.key: ${cmd:...}: exit code 3: no such entry"))
	done := make(chan string)
	go func() { done <- string(r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})) }()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Error(err)
	}
	if answer := <-done; !strings.Contains(answer, `"mock/m"`) {
		t.Errorf("the prompt was answered by %s", answer)
	}
	r.Await(0, "the end", fake.Finished())
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/config"})
	r.Await(0, "the key, hidden", fake.Content("text", "providers.mock.key = [REDACTED]  // ECA_CONFIG:1"))
	for _, m := range r.Since(0) {
		if strings.Contains(m.String(), "from-command") {
			t.Errorf("the client got the output of the command: %s", m)
		}
	}
}
