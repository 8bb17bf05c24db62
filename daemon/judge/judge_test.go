package judge_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon/judge"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A judge uses the models of the user's configuration, also if a command prints the key. The journal
// records its requests without the key.
func TestJudgeOfTheConfiguration(t *testing.T) {
	needs.POSIX(t)
	const key = "an_unusual_key"
	var asked string
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Authorization")
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"RESULT: PASS `+key+`"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer provider.Close()
	home := t.TempDir()
	configuration, err := json.Marshal(map[string]any{"providers": map[string]any{"mine": map[string]any{
		"api": "openai-chat", "url": provider.URL, "key": "${cmd:echo " + key + "}", "fetchModels": false, "models": map[string]any{"m": map[string]any{}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(home, "config", "eca"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "config", "eca", "config.json"), configuration, 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"XDG_CONFIG_HOME": filepath.Join(home, "config"), "XDG_STATE_HOME": filepath.Join(home, "state"), "XDG_CACHE_HOME": filepath.Join(home, "cache"),
	}
	j := judge.New(judge.Options{Model: "mine/m", Getenv: func(name string) string { return env[name] }, Environ: func() []string { return nil }})
	answer, err := j.Ask(t.Context(), "", "Judge.", "Is it kind?")
	j.Close()
	if err != nil || answer != "RESULT: PASS "+key || asked != "Bearer "+key {
		t.Errorf("%q with %q, %v", answer, asked, err)
	}
	var recorded strings.Builder
	err = filepath.WalkDir(filepath.Join(home, "state"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		recorded.Write(data)
		return err
	})
	if text := recorded.String(); err != nil || !strings.Contains(text, "Is it kind?") || !strings.Contains(text, "RESULT: PASS") || strings.Contains(text, key) {
		t.Errorf("the journal has %s (%v)", text, err)
	}
}

// Requests of a judge count for the budget of the day. At the limit, eca sends no request.
func TestJudgeSpendsTheBudgetOfTheDay(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked++
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"RESULT: PASS"},"finish_reason":"stop"}],"usage":{"prompt_tokens":200,"completion_tokens":100}}`+"\n\ndata: [DONE]\n\n")
	}))
	defer provider.Close()
	home := t.TempDir()
	configuration := `{"budget": {"day": "$0.06"}, "providers": {"mine": {"api": "openai-chat", "url": "` + provider.URL + `", "key": "k", "fetchModels": false,
		"models": {"m": {"cost": {"input": 100, "output": 200}}}}}}`
	if err := os.Mkdir(filepath.Join(home, "eca"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "eca", "config.json"), []byte(configuration), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home, "XDG_CACHE_HOME": home}
	for i, want := range []string{"", "", "today's budget is used up: $0.0800, 600 tokens; budget.day"} { // a judge for each run of ecp
		j := judge.New(judge.Options{Model: "mine/m", Getenv: func(name string) string { return env[name] }, Environ: func() []string { return nil }})
		answer, err := j.Ask(t.Context(), "", "Judge.", "Is it kind?")
		j.Close()
		switch {
		case want == "" && (err != nil || answer != "RESULT: PASS"):
			t.Errorf("question %d: %q, %v", i+1, answer, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("question %d: %q, %v", i+1, answer, err)
		}
	}
	if asked != 2 {
		t.Errorf("the provider got %d requests, want 2", asked)
	}
}

// A judge without questions does not read the environment.
func TestUnusedJudge(t *testing.T) {
	judge.New(judge.Options{Getenv: func(name string) string {
		t.Errorf("the unused judge read the variable %s", name)
		return ""
	}}).Close()
}
