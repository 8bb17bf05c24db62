package catalog

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

// The snapshot has the context, the costs and the abilities of each model, and is at most 16 KiB.
func TestSnapshot(t *testing.T) {
	if len(snapshotJSON) > 16<<10 {
		t.Errorf("%d bytes", len(snapshotJSON))
	}
	c := New(Options{})
	for id, p := range c.snapshot().providers {
		for name, m := range p.models {
			f := m.facts
			if !f.Context.Known() || !f.InputCost.Known() || !f.OutputCost.Known() || !f.Reasoning.Known() || !f.Images.Known() || !m.assistant {
				t.Errorf("%s/%s: %+v", id, name, f)
			}
			if f.Output.Value >= f.Context.Value || f.InputCost.Value > f.OutputCost.Value || f.CacheReadCost.Value > f.InputCost.Value {
				t.Errorf("%s/%s has limits or costs that contradict each other: %+v", id, name, f)
			}
		}
	}
	f := c.Facts("openai", "https://api.openai.com", "gpt-5.2")
	if f.Context.Value != 400_000 || f.InputCost.Value != 1.75 || !strings.HasPrefix(string(f.Context.Source), "snapshot 20") {
		t.Errorf("%+v", f)
	}
}

const published = `{
	"acme": {"api": "https://api.acme.example/v1/", "models": {
		"a-1": {"reasoning": true, "tool_call": true, "modalities": {"input": ["text", "image"], "output": ["text"]}, "limit": {"context": 1000, "output": 100}, "cost": {"input": 1, "output": 2, "cache_read": 0.1, "cache_write": 1.25}},
		"old": {"status": "deprecated", "limit": {"context": 1}},
		"draw": {"tool_call": true, "modalities": {"output": ["image"]}},
		"embed": {"tool_call": false}}},
	"aaa-reseller": {"models": {"openai/gpt-5.2": {"limit": {"context": 5}}, "vendor/Only.Here": {"attachment": true, "limit": {"context": 6}, "cost": {"input": 9, "output": 9}}}},
	"amazon-bedrock": {"models": {"some.model-v1:0": {"limit": {"context": 7}}}},
	"openai": {"models": {"gpt-5.2": {"limit": {"context": 11}, "cost": {"input": 12}}}},
	"odd": {"api": 5, "models": {"m": {"reasoning": "yes", "limit": {"context": "many", "output": 50.0}, "cost": {"input": -1, "output": 1e300}, "modalities": 7}, "n": 3, "\u0007": {}}},
	"list": [1, 2],
	"none": null
}`

func newCatalog(t *testing.T, text string) *Catalog {
	t.Helper()
	path := filepath.Join(t.TempDir(), "models-dev.json")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := New(Options{Path: path, Now: time.Now})
	if err := c.Refresh(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLookup(t *testing.T) {
	c := newCatalog(t, published)
	for _, tt := range []struct {
		provider, url, name string
		context             int64
		input               float64 // -1: unknown
	}{
		{"any-name", "https://API.acme.example/v1", "a-1", 1000, 1}, // by URL
		{"acme", "https://elsewhere.example", "a-1", 1000, -1},      // another acme: its prices are its own
		{"acme", "https://api.acme.example/v1", "old", 0, -1},
		{"aaa-reseller", "https://r.example", "openai/gpt-5.2", 5, -1},
		{"bedrock", "https://bedrock.example", "some.model-v1:0", 7, -1},
		{"openai", "https://api.openai.com", "gpt-5.2", 11, 12},
		{"openai", "https://api.openai.com", "GPT-5-2", 11, 12},
		{"openai", "https://api.openai.com", "gpt-4.1", 1047576, 2}, // only the snapshot has it
		{"mine", "http://localhost:4000", "azure/gpt-5.2", 11, -1},  // who made it comes before resellers
		{"mine", "http://localhost:4000", "only-here", 6, -1},
		{"mine", "http://localhost:4000", "never-heard-of", 0, -1},
	} {
		f := c.Facts(tt.provider, tt.url, tt.name)
		if f.Context.Value != tt.context || f.InputCost.Known() != (tt.input >= 0) || f.InputCost.Known() && f.InputCost.Value != tt.input {
			t.Errorf("%s %s: %+v", tt.provider, tt.name, f)
		}
	}
	if f := c.Facts("acme", "https://api.acme.example/v1", "alias", "a-1"); f.CacheWriteCost.Value != 1.25 || !f.Images.Value || f.Tools.Source != FromModelsDev {
		t.Errorf("by the second name: %+v", f)
	}
	if f := c.Facts("odd", "", "m"); f.Output.Value != 50 || f.Context.Known() || f.InputCost.Known() || f.OutputCost.Known() || f.Reasoning.Known() {
		t.Errorf("odd values: %+v", f)
	}
	for provider, want := range map[string]string{"acme": "", "openai": "gpt-5.2", "odd": "m n", "nobody": ""} {
		if got := strings.Join(c.Models(provider, ""), " "); got != want {
			t.Errorf("models of %s: %s", provider, got)
		}
	}
	if got := c.Models("x", "https://api.acme.example/v1"); len(got) != 1 || got[0] != "a-1" {
		t.Errorf("models by URL: %s", got)
	}
	if got := New(Options{}).Models("anthropic", "https://api.anthropic.com"); len(got) < 5 {
		t.Errorf("models of the snapshot: %s", got)
	}
}

// answer is a network with one server.
type answer func(*http.Request) (*http.Response, error)

func (a answer) RoundTrip(r *http.Request) (*http.Response, error) { return a(r) }

func TestRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "eca", "models-dev.json")
		status, text, asked := 200, published, 0
		newOne := func() *Catalog {
			return New(Options{Path: path, URL: "https://models.example/api.json", Now: time.Now, Client: &http.Client{Transport: answer(func(r *http.Request) (*http.Response, error) {
				asked++
				if text == "silence" {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
			})}})
		}
		known := func(c *Catalog) bool { return c.Facts("", "https://api.acme.example/v1", "a-1").Context.Known() }
		stamp := func() { // the file system's clock is not this bubble's
			if err := os.Chtimes(path, time.Now(), time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		c := newOne()
		if err := c.Refresh(t.Context(), false); err != nil || asked != 0 || known(c) {
			t.Fatalf("nothing to read: %v, asked %d", err, asked)
		}
		if err := c.Refresh(t.Context(), true); err != nil || asked != 1 || !known(c) {
			t.Fatalf("first: %v, asked %d", err, asked)
		}
		stamp()
		for _, c := range []*Catalog{c, newOne()} {
			if err := c.Refresh(t.Context(), true); err != nil || asked != 1 || !known(c) {
				t.Errorf("same day: %v, asked %d", err, asked)
			}
		}
		time.Sleep(25 * time.Hour)
		for _, bad := range []struct {
			status int
			text   string
		}{{500, published}, {200, "<html>Log in to this network</html>"}, {200, "{}"}, {200, `[1]`}, {200, "silence"}, {200, strings.Repeat(" ", maxBytes+1)}} {
			status, text, asked = bad.status, bad.text, 0
			c, began := newOne(), time.Now()
			if err := c.Refresh(t.Context(), true); err == nil || asked != 1 || !known(c) {
				t.Errorf("%d %.20s: %v, asked %d, still known: %v", bad.status, bad.text, err, asked, known(c))
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("%.20s: took %v", bad.text, took)
			}
		}
		status, text = 200, `{"acme": {"api": "https://api.acme.example/v1", "models": {"a-1": {"limit": {"context": 2000}}}}}`
		if err := c.Refresh(t.Context(), true); err != nil || c.Facts("", "https://api.acme.example/v1", "a-1").Context.Value != 2000 {
			t.Errorf("next day: %v", err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != text {
			t.Errorf("the file: %s, %v", data, err)
		}
		if files, _ := os.ReadDir(filepath.Dir(path)); len(files) != 1 {
			t.Errorf("left behind: %v", files)
		}
	})
}

func TestRefreshBadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "models-dev.json")
	for _, text := range []string{"garbage", `{"acme": {`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := New(Options{Path: path, URL: "https://models.example", Now: time.Now, Client: &http.Client{Transport: answer(func(*http.Request) (*http.Response, error) {
			return nil, errors.New("no network")
		})}})
		err := c.Refresh(t.Context(), true)
		if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "no network") {
			t.Errorf("%s: %v", text, err)
		}
		if !c.Facts("openai", "", "gpt-5.2").Context.Known() {
			t.Error("after a failed Refresh, the snapshot is not used")
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(published))
	f.Add(snapshotJSON)
	f.Add([]byte(`{"a": {"models": {"": {}, "x/": {"limit": {"context": 1e400}}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		idx, err := parse(data, "fuzz")
		if err != nil {
			return
		}
		for id, p := range idx.providers {
			idx.provider(id, p.url)
			for name, m := range p.models {
				if p.find(name) != m || !validName(name) || m.provider != id {
					t.Errorf("%q/%q is not found as itself", id, name)
				}
				for _, n := range []llm.Fact[int64]{m.facts.Context, m.facts.Output} {
					if n.Known() && (n.Value < 1 || n.Value > maxTokens) {
						t.Errorf("%q/%q: %d tokens", id, name, n.Value)
					}
				}
			}
		}
	})
}
