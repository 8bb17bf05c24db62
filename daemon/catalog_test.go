package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

// published is a catalogue in models.dev's format; URL is a provider's address.
const published = `{
	"acme": {"api": "URL", "models": {
		"listed": {"reasoning": false, "tool_call": false, "attachment": true, "limit": {"context": 100, "output": 100}, "cost": {"input": 3, "output": 4}},
		"unlisted": {"reasoning": true, "tool_call": true, "limit": {"context": 200, "output": 20}, "cost": {"input": 5, "output": 6, "cache_read": 0.5}}}},
	"openai": {"models": {"gpt-5.2": {"limit": {"context": 123}}}}
}`

// The user's facts about a model precede the provider's, and those precede
// the catalogue.
func TestFacts(t *testing.T) {
	var asked atomic.Int32
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api.json":
			asked.Add(1)
			_, _ = w.Write([]byte(strings.ReplaceAll(published, "URL", srv.URL+"/v1")))
		case "/v1/models":
			_, _ = w.Write([]byte(`{"data": [{"id": "listed", "context_length": 150}, {"id": "new", "pricing": {"prompt": "0.0000025", "completion": 7}}]}`))
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	options := fmt.Sprintf(`{"providers": {
		"acme": {"api": "openai-chat", "url": %q, "models": {
			"mine": {"modelName": "listed", "limit": {"output": 9}, "cost": {"input": 1}, "reason": true, "imageInput": false},
			"quiet": {"modelName": "listed", "extraPayload": {"reasoning_effort": "high", "top_p": 1}}}},
		"none": {"api": "openai-chat", "url": %q, "key": "k"},
		"only": {"api": "openai-chat", "url": %[1]q, "fetchModels": false, "models": {"m": {}}}
	}}`, srv.URL+"/v1", srv.URL+"/none")
	d := newDaemonWith(t, Options{CatalogURL: srv.URL + "/api.json"}, options, map[string]string{"OPENAI_API_KEY": "k", "OPENAI_API_URL": srv.URL + "/nothing"})
	if m, err := d.Resolve("openai/gpt-5.2", ""); err != nil || m.Limit.Context != 400_000 {
		t.Errorf("before the catalogue was fetched: %+v, %v", m.Limit, err)
	}
	for range 2 {
		d.SyncModels(context.Background())
	}
	if asked.Load() != 1 {
		t.Errorf("the catalogue was fetched %d times", asked.Load())
	}
	if _, err := os.Stat(filepath.Join(d.opts.CacheDir, "models-dev.json")); err != nil {
		t.Error(err)
	}
	// The models of a provider come from its own list or, without one, from the catalogue.
	if got := strings.Join(d.ModelChoice().IDs, " "); got != "acme/listed acme/mine acme/new acme/quiet only/m openai/gpt-5.2" {
		t.Errorf("models: %s", got)
	}
	for id, want := range map[string]string{
		"acme/listed":    "listed 150/100 3/4 reason=false images=true tools=false",
		"acme/mine":      "listed 150/9 1/4 reason=true images=false tools=false",
		"acme/new":       "new 0/0 2.5/? reason=true images=false tools=true",
		"acme/unlisted":  "unlisted 200/20 5/6 reason=true images=false tools=true",
		"none/unlisted":  "unlisted 200/20 ?/? reason=true images=false tools=true",
		"openai/gpt-5.2": "gpt-5.2 123/0 1.75/14 reason=true images=true tools=true", // an answer of 128000 tokens does not fit
		"openai/gpt-4x":  "gpt-4x 0/0 ?/? reason=false images=false tools=true",
	} {
		m, err := d.Resolve(id, "")
		cost := func(v *float64) string {
			if v == nil {
				return "?"
			}
			return fmt.Sprint(*v)
		}
		got := fmt.Sprintf("%s %d/%d %s/%s reason=%v images=%v tools=%v", m.Name, m.Limit.Context, m.Limit.Output, cost(m.Cost.Input), cost(m.Cost.Output), m.Reasoning, !m.NoImages, !m.NoTools)
		if err != nil || got != want {
			t.Errorf("%s: %s, want %s, %v", id, got, want, err)
		}
	}
	if m, _ := d.Resolve("acme/quiet", ""); fmt.Sprint(chat.Model(m).Payload("x")) != "map[top_p:1]" {
		t.Errorf("the payload for a model that cannot reason is %v, want only top_p", chat.Model(m).Payload("x"))
	}
	for _, p := range d.Providers() {
		switch {
		case p.ID == "none" && !strings.HasPrefix(p.ListError, "none answered 404 Not Found"), p.ID == "acme" && p.ListError != "":
			t.Errorf("%s: unlisted: %s", p.ID, p.ListError)
		case p.ID == "acme" && (p.Models[1].Name != "mine" || p.Models[1].Context.Source != llm.FromProvider || p.Models[1].Output.Source != llm.FromConfig):
			t.Errorf("%+v", p.Models)
		}
	}
}

// eca does not fetch the catalogue if fetching is turned off or no provider would use it. It uses an
// existing file in each case.
func TestCatalogFetch(t *testing.T) {
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer srv.Close()
	provider := `"providers": {"acme": {"api": "openai-chat", "url": "http://127.0.0.1:1", "fetchModels": false, "models": {"m": {}}}}`
	tape := filepath.Join(t.TempDir(), "tape.yaml")
	if err := os.WriteFile(tape, []byte("cassette: 1\nturns: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for options, want := range map[string]int32{
		`{` + provider + `}`:                       1,
		`{"fetchModels": false, ` + provider + `}`: 0,
		`{"pureConfig": true, ` + provider + `}`:   0,
		`{"env": "test", ` + provider + `}`:        0,
		fmt.Sprintf(`{"providers": {"tape": {"api": "cassette", "url": %q, "models": {"m": {}}}}}`, tape): 0,
		`{}`: 0,
	} {
		asked.Store(0)
		d := newDaemonWith(t, Options{CatalogURL: srv.URL}, options, nil)
		path := filepath.Join(d.opts.CacheDir, "models-dev.json")
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(published, "URL", "")), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, d.opts.Now().AddDate(0, 0, -2), d.opts.Now().AddDate(0, 0, -2)); err != nil {
			t.Fatal(err)
		}
		d.SyncModels(context.Background())
		if asked.Load() != want {
			t.Errorf("%s: asked %d times", options, asked.Load())
		}
		if _, usable := d.Config().Providers["acme"]; usable {
			if m, err := d.Resolve("acme/unlisted", ""); err != nil || m.Limit.Context == 0 {
				t.Errorf("%s: the file was not read: %+v, %v", options, m.Limit, err)
			}
		}
	}
}

// With env "test", the catalogue in the cache applies from the start.
func TestCatalogEnvTest(t *testing.T) {
	cache := t.TempDir()
	if err := os.WriteFile(filepath.Join(cache, "models-dev.json"), []byte(`{"openai": {"models": {"gpt-5.2": {"limit": {"context": 77}}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := New(Options{StateDir: t.TempDir(), CacheDir: cache, Getenv: func(k string) string { return map[string]string{"OPENAI_API_KEY": "k"}[k] }})
	t.Cleanup(d.Close)
	d.Configure([]byte(`{"env": "test", "pureConfig": true}`), nil)
	if m, err := d.Resolve("openai/gpt-5.2", ""); err != nil || m.Limit != (config.Limit{Context: 77}) {
		t.Errorf("%+v, %v", m.Limit, err)
	}
}

func TestDefaultModelWaterfall(t *testing.T) {
	provider := func(name, models string) string {
		return fmt.Sprintf(`%q: {"api": "openai-chat", "url": "http://localhost:1", "fetchModels": false, "models": {%s}}`, name, models)
	}
	anthropic := provider("anthropic", `"claude-sonnet-4-6": {}, "a": {}`)
	openai := provider("openai", `"gpt-5.2": {}, "a": {}`)
	copilot := provider("github-copilot", `"gpt-5.5": {}, "a": {}`)
	ollama := provider("ollama", `"z": {}, "q": {}`)
	other := provider("aa", `"first": {}`)
	for want, providers := range map[string][]string{
		"anthropic/claude-sonnet-4-6": {other, ollama, copilot, openai, anthropic},
		"openai/gpt-5.2":              {other, ollama, copilot, openai},
		"github-copilot/gpt-5.5":      {other, ollama, copilot},
		"ollama/q":                    {other, ollama},
		"aa/first":                    {other, provider("anthropic", `"old": {}`)},
	} {
		d := newDaemon(t, `{"providers": {`+strings.Join(providers, ",")+`}}`, nil)
		if got := d.ModelChoice().Default; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// An invalid pattern is named with its file and line, and the others work.
func TestBadVariantPattern(t *testing.T) {
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Getenv: func(k string) string { return map[string]string{"OPENAI_API_KEY": "k"}[k] }})
	t.Cleanup(d.Close)
	d.Configure([]byte("{\n\"variantsByModel\": {\"((\": {\"variants\": {\"v\": {\"x\": 1}}}}}"), nil)
	if p := d.Config().Problems; len(p) != 1 || !strings.HasPrefix(p[0].String(), `initializationOptions:2:21: variantsByModel: "((" is not a valid pattern`) {
		t.Errorf("problems: %v", p)
	}
	variants, _ := d.Variants("openai/gpt-5.2")
	if got := strings.Join(variants, " "); got != "high low medium none xhigh" {
		t.Errorf("variants: %s", got)
	}
}
