package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"net/textproto"
	"os"
	"strconv"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/server"
)

// silentRig is a client that writes but reads only when it is told to.
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
	d := daemon.New(daemon.Options{StateDir: state, CacheDir: state, Getenv: func(k string) string { return map[string]string{"ECA_CONFIG": string(config)}[k] }})
	inR, inW := pipe(t)
	outR, outW := pipe(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(context.Background(), inR, outW, server.Options{Host: d})
		d.Close()
		_ = outW.Close()
	}()
	r := &silentRig{t: t, root: tempDir(t), in: inW, out: bufio.NewReader(outR)}
	t.Cleanup(func() {
		_ = inW.Close()
		go func() { _, _ = io.Copy(io.Discard, outR) }()
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
		header, err := textproto.NewReader(r.out).ReadMIMEHeader()
		if err != nil {
			r.t.Fatalf("after %d bytes of text: %v", len(text), err)
		}
		n, _ := strconv.Atoi(header.Get("Content-Length"))
		body := make([]byte, n)
		if _, err := io.ReadFull(r.out, body); err != nil {
			r.t.Fatal(err)
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
