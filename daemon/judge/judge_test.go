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
	"testing"

	"github.com/seed-dec29ce4/eca/daemon/judge"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A judge has the models of the user's configuration, also where a command prints the key, and
// its requests are on record, without that key.
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
		t.Errorf("on record: %s (%v)", text, err)
	}
}

// A judge that is never asked reads nothing.
func TestUnusedJudge(t *testing.T) {
	judge.New(judge.Options{Getenv: func(name string) string {
		t.Errorf("%s is read", name)
		return ""
	}}).Close()
}
