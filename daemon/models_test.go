package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

func TestMain(m *testing.M) {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	// The pattern matcher keeps one clock for a moment after a match with a time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

func newDaemon(t *testing.T, options string, env map[string]string) *Daemon {
	t.Helper()
	return newDaemonWith(t, Options{}, options, env)
}

func newDaemonWith(t *testing.T, o Options, options string, env map[string]string) *Daemon {
	t.Helper()
	all := map[string]string{"OLLAMA_API_URL": "http://127.0.0.1:1"} // not what may run on this machine
	maps.Copy(all, env)
	o.StateDir, o.CacheDir, o.Getenv = t.TempDir(), t.TempDir(), func(k string) string { return all[k] }
	d := New(o)
	t.Cleanup(d.Close)
	d.Configure(json.RawMessage(options), []string{t.TempDir()})
	if p := d.Config().Problems; len(p) > 0 {
		t.Fatal(p)
	}
	return d
}

const someProviders = `{"providers": {
	"alpha": {"api": "openai-chat", "url": "https://alpha.example/v1", "key": "k", "models": {"one": {"modelName": "real-one", "limit": {"context": 7}}, "two/three": {}}},
	"beta": {"api": "openai-responses", "url": "https://beta.example", "key": "k", "models": {"two": {}, "gpt-4x": {}}},
	"keyless": {"api": "openai-chat", "url": "https://keyless.example", "models": {"m": {}}},
	"local": {"api": "openai-chat", "url": "http://localhost:9/v1", "models": {"m": {}}}
}}`

func TestResolve(t *testing.T) {
	d := newDaemon(t, someProviders, nil)
	choice := d.ModelChoice()
	if got := strings.Join(choice.IDs, " "); got != "alpha/one alpha/two/three beta/gpt-4x beta/two local/m" || choice.Default != "alpha/one" {
		t.Errorf("choice: %+v", choice)
	}
	for _, c := range []struct{ name, current, id, sent string }{
		{"", "", "alpha/one", "real-one"},
		{"alpha/one", "", "alpha/one", "real-one"},
		{"alpha/two/three", "", "alpha/two/three", "two/three"},
		{"alpha/unlisted", "", "alpha/unlisted", "unlisted"},
		{"two", "", "beta/two", "two"},
		{"two", "alpha/one", "alpha/two", "two"},
		{"two/three", "alpha/one", "alpha/two/three", "two/three"},
		{"demo/offline", "", "demo/offline", "offline"},
	} {
		m, err := d.Resolve(c.name, c.current)
		if err != nil || m.ID != c.id || m.Name != c.sent {
			t.Errorf("%q: %s %s, %v", c.name, m.ID, m.Name, err)
		}
	}
	for name, want := range map[string]string{
		"nowhere/x": "no provider nowhere", "bare": "provider/model", "keyless/m": "KEYLESS_API_KEY", "openai/gpt-5": "OPENAI_API_KEY",
	} {
		if _, err := d.Resolve(name, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if m, _ := d.Resolve("beta/two", ""); !m.Reasoning {
		t.Error("beta/two, a model of the Responses API, counts as a model without reasoning")
	}
	if m, _ := d.Resolve("beta/gpt-4x", ""); m.Reasoning {
		t.Error("beta/gpt-4x, an old model, counts as a model with reasoning")
	}
}

func TestDefaultModel(t *testing.T) {
	key := map[string]string{"OPENAI_API_KEY": "k"}
	for name, c := range map[string]struct {
		options string
		env     map[string]string
		want    string
	}{
		"nothing":              {`{}`, nil, "demo/offline"},
		"openai":               {`{}`, key, "openai/gpt-5.2"},
		"configured":           {`{"defaultModel": "openai/gpt-4.1"}`, key, "openai/gpt-4.1"},
		"configured, unlisted": {`{"defaultModel": "openai/my-own"}`, key, "openai/my-own"},
		"anthropic":            {`{}`, map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, "anthropic/claude-sonnet-4-6"},
		"configured, unusable": {`{"defaultModel": "other/x"}`, key, "openai/gpt-5.2"},
	} {
		d := newDaemon(t, c.options, c.env)
		if got := d.ModelChoice().Default; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		d.AskLocalModels(t.Context())
		if demo := c.want == "demo/offline"; demo != strings.Contains(strings.Join(d.Notices(), ""), "demo/offline") {
			t.Errorf("%s: notices %v", name, d.Notices())
		}
	}
}

// OPENAI_API_URL can name a compatible server without the Responses API. eca uses its Chat Completions
// API and its list of models.
func TestCompatibleServer(t *testing.T) {
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: hi}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]int{}
	play := player.Handler(nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paths[r.URL.Path]++
		switch {
		case r.Header.Get("Authorization") != "Bearer k":
			http.Error(w, "no key", http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			_, _ = w.Write([]byte(`{"data":[{"id":"served"},{"id":"text-embedding-3"}]}`))
		case strings.HasSuffix(r.URL.Path, "/responses"):
			http.NotFound(w, r)
		default:
			play.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	d := newDaemon(t, `{}`, map[string]string{"OPENAI_API_KEY": "k", "OPENAI_API_URL": srv.URL + "/v1"})
	d.SyncModels(context.Background())
	ids := strings.Join(d.ModelChoice().IDs, " ")
	if !strings.Contains(ids, "openai/served") || strings.Contains(ids, "embedding") {
		t.Errorf("models: %s", ids)
	}
	m, err := d.Resolve("openai/served", "")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		text := ""
		req := llm.Request{Model: m.Name, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "x"}}}}}
		for delta, err := range m.Client.Stream(context.Background(), req) {
			if err != nil {
				t.Fatal(err)
			}
			text += delta.Text
		}
		if text != "hi" {
			t.Errorf("answer %q", text)
		}
	}
	if paths["/v1/responses"] != 1 || paths["/v1/chat/completions"] != 2 {
		t.Errorf("requests: %v", paths)
	}
}

// eca sends the key and requests the models as Anthropic's API requires. A header that the user
// configured takes precedence over the key.
func TestAnthropic(t *testing.T) {
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: hi}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	play := player.Handler(nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("X-Api-Key") != "k" || r.Header.Get("Authorization") != "":
			http.Error(w, "no key", http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			_, _ = w.Write([]byte(`{"data":[{"id":"claude-3-haiku"},{"id":"claude-opus-9"}],"has_more":false}`))
		default:
			play.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	d := newDaemon(t, `{"providers": {"anthropic": {"extraHeaders": {"x-api-key": "k"}}}}`, map[string]string{"ANTHROPIC_API_KEY": "other", "ANTHROPIC_API_URL": srv.URL})
	d.SyncModels(context.Background())
	if got := strings.Join(d.ModelChoice().IDs, " "); got != "anthropic/claude-3-haiku anthropic/claude-opus-9" {
		t.Errorf("models: %s", got)
	}
	for name, reasons := range map[string]bool{"claude-opus-9": true, "claude-3-haiku": false} {
		m, err := d.Resolve("anthropic/"+name, "")
		if err != nil || m.Reasoning != reasons {
			t.Fatalf("%s: reasoning %v, %v", name, m.Reasoning, err)
		}
		text := ""
		for delta, err := range m.Client.Stream(context.Background(), llm.Request{Model: m.Name, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "x"}}}}}) {
			if err != nil {
				t.Fatal(err)
			}
			text += delta.Text
		}
		if text != "hi" {
			t.Errorf("%s: answer %q", name, text)
		}
	}
}
