package daemon

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// A preset offers its models only if it has a URL, a key and known models.
func TestPresets(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		env    map[string]string
		want   string
	}{
		"nothing":        {`{}`, nil, "demo/offline"},
		"a key":          {`{"providers": {"deepseek": {"models": {"deepseek-chat": {}}}}}`, map[string]string{"DEEPSEEK_API_KEY": "k"}, "deepseek/deepseek-chat deepseek/deepseek-v4-flash deepseek/deepseek-v4-pro"},
		"no url":         {`{}`, map[string]string{"AZURE_API_KEY": "k"}, ""},
		"a url":          {`{"providers": {"azure": {"models": {"mine": {}}}}}`, map[string]string{"AZURE_API_KEY": "k", "AZURE_API_URL": "https://r.openai.azure.com/openai/v1"}, "azure/mine"},
		"by snapshot":    {`{}`, map[string]string{"Z_AI_API_KEY": "k"}, "z-ai/glm-4.7 z-ai/glm-5 z-ai/glm-5.1 z-ai/glm-5.2"},
		"access unknown": {`{}`, map[string]string{"BEDROCK_API_KEY": "k", "AWS_REGION": "us-east-1"}, ""},
		"local, if used": {`{"providers": {"lmstudio": {"models": {"qwen": {}}}}}`, nil, "lmstudio/qwen"},
	} {
		d := newDaemon(t, c.config, c.env)
		if got := strings.Join(d.ModelChoice().IDs, " "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// say returns what a model answers.
func say(t *testing.T, d *Daemon, id string) string {
	t.Helper()
	m, err := d.Resolve(id, "")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for delta, err := range m.Client.Stream(context.Background(), llm.Request{Model: m.Name, Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: "x"}}}}}) {
		if err != nil {
			t.Fatal(err)
		}
		text += delta.Text
	}
	return text
}

func player(t *testing.T) http.Handler {
	t.Helper()
	p, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: hi}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	return p.Handler(nil)
}

// The preset for Google uses Google's own API and its header for the key. With a URL of the user and no
// api, it uses Chat Completions, as the reference server does.
func TestGooglePreset(t *testing.T) {
	play := player(t)
	asked := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/models"):
			_, _ = w.Write([]byte(`{"models":[{"name":"models/gemini-9","supportedGenerationMethods":["generateContent"],"inputTokenLimit":1000,"outputTokenLimit":10,"thinking":true}],"data":[{"id":"compatible"}]}`))
		default:
			asked = r.URL.Path + " " + r.Header.Get("x-goog-api-key") + r.Header.Get("Authorization")
			play.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	const native, compatible = "/v1/models/gemini-9:streamGenerateContent k", "/v1/chat/completions Bearer k"
	for name, c := range map[string]struct{ options, url, want string }{
		"url and api":             {`{"providers": {"google": {"url": "URL", "api": "google"}}}`, "", native},
		"url":                     {`{"providers": {"google": {"url": "URL"}}}`, "", compatible},
		"url by variable":         {`{}`, srv.URL + "/v1", compatible},
		"url by variable, api":    {`{"providers": {"google": {"api": "google"}}}`, srv.URL + "/v1", native},
		"url in another spelling": {`{"providers": {"Google": {"url": "URL"}}}`, "", compatible},
	} {
		d := newDaemon(t, strings.ReplaceAll(c.options, "URL", srv.URL+"/v1"), map[string]string{"GOOGLE_API_KEY": "k", "GOOGLE_API_URL": c.url})
		d.SyncModels(context.Background())
		model := "google/gemini-9"
		if c.want == compatible {
			model = "google/compatible"
		}
		if got := strings.Join(d.ModelChoice().IDs, " "); got != model {
			t.Errorf("%s: models %s", name, got)
		}
		if text := say(t, d, model); text != "hi" || asked != c.want {
			t.Errorf("%s: asked %q, answer %q", name, asked, text)
		}
		if m, _ := d.Resolve(model, ""); c.want == native && (m.Limit.Context != 1000 || m.Limit.Output != 10 || !m.Reasoning) {
			t.Errorf("%s: %+v", name, m)
		}
	}
	d := newDaemon(t, `{}`, map[string]string{"GOOGLE_API_KEY": "k"})
	if p := d.Config().Providers["google"]; p.API != "google" || p.URL != "https://generativelanguage.googleapis.com/v1beta" {
		t.Errorf("the preset: %+v", p)
	}
}

// Ollama needs no configuration. eca offers its models only while it runs.
func TestOllamaPreset(t *testing.T) {
	play := player(t)
	tags := `{"models":[]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/tags" {
			_, _ = w.Write([]byte(tags))
			return
		}
		play.ServeHTTP(w, r)
	}))
	defer srv.Close()
	d := newDaemon(t, `{}`, map[string]string{"OLLAMA_API_URL": srv.URL})
	state := func() auth.State {
		for _, p := range d.Providers() {
			if p.ID == "ollama" {
				return p.Auth.State
			}
		}
		return ""
	}
	if got := d.ModelChoice().Default; got != providers.DemoModel || state() != auth.NotRunning {
		t.Errorf("before it was asked: %s, %s", got, state())
	}
	d.SyncModels(context.Background())
	if got := d.ModelChoice().Default; got != providers.DemoModel || state() != auth.Local {
		t.Errorf("without models: %s, %s", got, state())
	}
	tags = `{"models":[{"name":"qwen3:8b"}]}`
	d.SyncModels(context.Background())
	if got := strings.Join(d.ModelChoice().IDs, " "); got != "ollama/qwen3:8b" || state() != auth.Local || len(d.Notices()) > 0 {
		t.Errorf("running: %s, %s, %v", got, state(), d.Notices())
	}
	if m, err := d.Resolve("", ""); err != nil || m.ID != "ollama/qwen3:8b" || m.Limit.Context != 8192 || !m.Reasoning {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := d.Resolve("ollama/deepseek-v4-pro", ""); err != nil || m.Limit != (config.Limit{}) || !m.Reasoning {
		t.Errorf("a model that this server does not list has limits from the catalogue: %+v, %v", m, err)
	}
	if text := say(t, d, "ollama/qwen3:8b"); text != "hi" {
		t.Errorf("answer %q", text)
	}
	srv.Close()
	d.SyncModels(context.Background())
	if got := d.ModelChoice().Default; got != providers.DemoModel || state() != auth.NotRunning {
		t.Errorf("after it ended: %s, %s", got, state())
	}
	for name, c := range map[string]struct{ options, models string }{
		"far away, without a key":   {`{"providers": {"ollama": {"url": "http://gpu.example", "fetchModels": false, "models": {"m": {}}}}}`, "ollama/m"},
		"with a key that is needed": {`{"providers": {"ollama": {"requiresAuth": true, "fetchModels": false, "models": {"m": {}}}}}`, ""},
	} {
		if got := strings.Join(newDaemon(t, c.options, nil).ModelChoice().IDs, " "); got != c.models {
			t.Errorf("%s: %s", name, got)
		}
	}
}
