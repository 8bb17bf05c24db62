package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// The requirements and models of each provider, with the sources of the facts.
func TestModels(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sk-secret-0123456789" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"data": [{"id": "known", "context_length": 4000}, {"id": "new"}]}`))
	}))
	defer srv.Close()
	config := `ECA_CONFIG={"providers": {
		"acme": {"api": "openai-chat", "url": "` + srv.URL + `/v1", "key": "sk-secret-0123456789", "models": {"mine": {"modelName": "known", "limit": {"output": 5}}}},
		"wrong": {"api": "openai-chat", "url": "` + srv.URL + `", "key": "sk-wrong-0123456789"}}}`
	here := newPlace(t, config)
	out, stderr, code := runProgram(t, here, "", "models")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var got []string
	for line := range strings.Lines(out) {
		line = strings.Join(strings.Fields(line), " ")
		if id, needs, ok := strings.Cut(line, ": needs "); !ok || slices.Contains([]string{"lmstudio", "ollama", "openai"}, id) {
			got = append(got, line)
		} else if !strings.HasPrefix(needs, "a key") && !strings.HasPrefix(needs, "a url") && !strings.HasPrefix(needs, "a login. eca has no application") {
			t.Errorf("a preset: %s", line)
		}
	}
	want := []string{
		"acme: usable",
		"lmstudio: needs models in the configuration",
		"ollama: needs its server to run",
		"openai: needs a key: log in to it, or set providers.openai.key or the environment variable OPENAI_API_KEY",
		"wrong: not usable: wrong answered 401 Unauthorized: no further explanation. The key is providers.wrong.key of ECA_CONFIG:3: change it there",
		"",
		"MODEL TOKENS ANSWER INPUT $ OUTPUT $ CACHE R/W $ REASONS IMAGES TOOLS SOURCE",
		"acme/known 4000 500 1.5 2.25 -/- yes no yes provider, models.dev, assumed",
		"acme/mine 4000 5 1.5 2.25 -/- yes no yes provider, config, models.dev, assumed",
		"acme/new - - - - -/- yes no yes assumed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	out, _, _ = runProgram(t, here, "", "models", "--json")
	type provider struct {
		ID, Missing, Unlisted string
		Usable                bool
		Models                []struct {
			ID     string
			Output struct {
				Value  int64
				Source string
			}
			InputCost *struct{ Value float64 }
		}
	}
	var doc struct{ Providers []provider }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	byID := func(id string) provider {
		i := slices.IndexFunc(doc.Providers, func(p provider) bool { return p.ID == id })
		if i < 0 {
			t.Fatalf("no %s in %s", id, out)
		}
		return doc.Providers[i]
	}
	acme, openai, wrong := byID("acme"), byID("openai"), byID("wrong")
	if m := acme.Models[1]; !acme.Usable || m.ID != "acme/mine" || m.Output.Value != 5 || m.Output.Source != "config" || m.InputCost.Value != 1.5 {
		t.Errorf("acme: %+v", acme)
	}
	if acme.Models[2].InputCost != nil || openai.Usable || openai.Missing == "" || wrong.Unlisted == "" {
		t.Errorf("providers: %+v", doc.Providers)
	}
	if strings.Contains(out, "sk-") {
		t.Errorf("a key is shown: %s", out)
	}
	if _, stderr, code := runProgram(t, here, "", "models", "--jsn"); code != 2 || !strings.Contains(stderr, "--jsn") {
		t.Errorf("a typo: exit %d, %s", code, stderr)
	}
}

// A provider that hangs does not delay the models of the others.
func TestModelsOfOthersAreShownWhileOneHangs(t *testing.T) {
	needs.Long(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/hang") {
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`{"data": [{"id": "there"}]}`))
	}))
	defer srv.Close()
	here := newPlace(t, `ECA_CONFIG={"providers": {
		"aaa": {"api": "openai-chat", "url": "`+srv.URL+`/hang", "key": "k"},
		"good": {"api": "openai-chat", "url": "`+srv.URL+`", "key": "k"}}}`)
	out, stderr, code := runProgram(t, here, "", "models")
	if code != 0 || !strings.Contains(stderr, "Waiting for aaa to list models") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	first, second := strings.Index(out, "good/there"), strings.Index(out, "aaa: usable, but did not list its models: "+strings.TrimPrefix(srv.URL, "http://")+" does not answer")
	if first < 0 || second < first || strings.Contains(out, "deadline") || strings.Count(out, "good: usable") != 1 {
		t.Errorf("%s", out)
	}
}
