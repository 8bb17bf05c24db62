package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// silentRig is a client that writes, but reads only on request.
type silentRig struct {
	t    *testing.T
	root string
	in   *os.File
	out  *bufio.Reader
}

func newSilentRig(t *testing.T, tape string) *silentRig {
	t.Helper()
	player, err := cassette.Parse([]byte(tape))
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(player.Handler(nil))
	t.Cleanup(provider.Close)
	config, err := json.Marshal(map[string]any{
		"providers": map[string]any{"mock": map[string]any{"api": "openai-responses", "url": provider.URL, "key": "k", "fetchModels": false, "models": map[string]any{"m": map[string]any{}}}},
		"chat":      map[string]any{"title": false}, "defaultModel": "mock/m",
	})
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	d := daemon.New(daemon.Options{StateDir: state, CacheDir: state, Getenv: func(k string) string {
		return map[string]string{"ECA_CONFIG": string(config), "OLLAMA_API_URL": noServer}[k]
	}})
	out, in, done := serve(t, d)
	r := &silentRig{t: t, root: tempDir(t), in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		_ = in.Close()
		go func() { _, _ = io.Copy(io.Discard, out) }()
		<-done
	})
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"workspaceFolders":[{"uri":"file://%s","name":"ws"}]}}`, r.root))
	r.send(`{"jsonrpc":"2.0","method":"initialized"}`)
	return r
}

func (r *silentRig) send(body string) {
	r.t.Helper()
	if _, err := fmt.Fprintf(r.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		r.t.Fatal(err)
	}
}

func (r *silentRig) prompt(text string) {
	r.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"chat/prompt","params":{"chatId":"c","trust":true,"message":%q}}`, text))
}

// readToEnd reads until the turn has finished and returns the model's text.
func (r *silentRig) readToEnd() string {
	r.t.Helper()
	text := ""
	for {
		body, err := readFrame(r.out)
		if err != nil {
			r.t.Fatalf("after %d bytes of text: %v", len(text), err)
		}
		var m struct {
			Params struct {
				Role    string
				Content struct{ Type, Text, State string }
			}
		}
		if err := json.Unmarshal(body, &m); err != nil {
			r.t.Fatal(err)
		}
		c := m.Params.Content
		if c.Type == "text" && m.Params.Role == "assistant" {
			text += c.Text
		}
		if c.State == "finished" {
			return text
		}
	}
}
