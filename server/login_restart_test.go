package server_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// A chat asks for a key, eca is restarted, and the user enters the key. The key reaches neither a
// model nor the store nor a trace, and the user is asked to begin again.
func TestKeyEnteredAfterARestartStaysSecret(t *testing.T) {
	t.Parallel()
	const key = "acme_key_of_its_own_form"
	o := pendingLogin(t)
	r := newHost(t, o)
	var trace strings.Builder
	r.Editor = connect(t, r.daemon, func(incoming bool, body []byte) {
		if incoming {
			r.mu.Lock()
			defer r.mu.Unlock()
			trace.Write(body)
		}
	})
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": key})
	r.Await(mark, "the mask", fake.Content("text", `"*****\n"`, `"role":"user"`))
	r.Await(mark, "what happened", fake.Content("text", "login that was open in this chat ended", "/login"))
	r.Await(mark, "the status", fake.Contains("chat/statusChanged", `"status":"idle"`))
	mark = r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "hello"})
	r.Await(mark, "an answer of the model", fake.Content("text", "fine"))

	r.mu.Lock()
	defer r.mu.Unlock()
	if strings.Contains(trace.String(), key) {
		t.Errorf("the key is in the trace: %s", trace.String())
	}
	for _, req := range r.requests {
		if bytes.Contains(req.body, []byte(key)) {
			t.Errorf("the model was sent %s", req.body)
		}
	}
	_ = filepath.WalkDir(r.state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte(key)) {
			t.Errorf("the key is in %s", path)
		}
		return nil
	})
}

// After a restart during a pending login, eca treats a command as a command, not as the key.
func TestCommandAfterARestartBeginsTheLoginAgain(t *testing.T) {
	t.Parallel()
	o := pendingLogin(t)
	r := newRig(t, o)
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "/login acme"})
	r.Await(mark, "the question", fake.Content("text", "API key?"))
	mark = r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "cancel"})
	r.Await(mark, "the end of the login", fake.Content("text", "The login is cancelled."))
	mark = r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "hello"})
	r.Await(mark, "an answer of the model", fake.Content("text", "fine"))
}

// pendingLogin returns the options of a daemon whose predecessor ended while chat c was asking for
// a key.
func pendingLogin(t *testing.T) options {
	t.Helper()
	o := options{
		model: "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n",
		config: map[string]any{"providers": map[string]any{"acme": map[string]any{
			"api": "openai-chat", "url": noServer, "requiresAuth": true, "fetchModels": false, "models": map[string]any{"m": map[string]any{}},
		}}},
	}
	first := newRig(t, o)
	first.Await(0, "the start", fake.Ready())
	first.turn(t, map[string]any{"chatId": "c", "message": "/login acme"})
	first.Await(0, "the question", fake.Contains("chat/statusChanged", `"status":"login"`))
	first.Close()
	o.state, o.root = first.state, first.root
	return o
}
