package daemon

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// When the configuration changes, eca requests the models only of the providers whose settings changed,
// and keeps the lists of the others.
func TestWatchKeepsModels(t *testing.T) {
	var mu sync.Mutex // guards asked
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		asked = append(asked, key)
		_, _ = fmt.Fprintf(w, `{"data":[{"id":"of-%s"}]}`, key)
	}))
	defer srv.Close()
	home := t.TempDir()
	save := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, "eca.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	providers := func(keys ...any) string {
		return fmt.Sprintf(`{"defaultModel": %q, "providers": {"a": {"api": "openai-chat", "url": "`+srv.URL+`", "key": %q}, "b": {"api": "openai-chat", "url": "`+srv.URL+`", "key": %q}}}`, keys...)
	}
	save(providers("a/x", "k1", "k2"))
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), ConfigFile: filepath.Join(home, "eca.json"), Getenv: func(string) string { return "" }})
	defer d.Close()
	d.Configure(nil, nil)
	d.SyncModels(context.Background())
	before, err := d.Resolve("a/of-k1", "")
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	changes := make(chan struct{}, 100)
	var watching sync.WaitGroup
	watching.Go(func() { d.Watch(ctx, func() { changes <- struct{}{} }) })
	await := func(want string) {
		t.Helper()
		deadline := time.After(time.Minute)
		for {
			choice := d.ModelChoice()
			if got := choice.Default + " " + strings.Join(choice.IDs, " "); got == want {
				return
			}
			select {
			case <-changes:
			case <-deadline:
				t.Fatalf("models: %+v, want %s", d.ModelChoice(), want)
			}
		}
	}
	await("a/x a/of-k1 b/of-k2")
	save(providers("a/y", "k1", "k2"))
	await("a/y a/of-k1 b/of-k2")
	save(providers("a/y", "k1", "k3"))
	await("a/y a/of-k1 b/of-k3")
	if after, err := d.Resolve("a/of-k1", ""); err != nil || after.Client != before.Client {
		t.Errorf("the client of an unchanged provider was replaced: %v", err)
	}
	cancel()
	watching.Wait()
	slices.Sort(asked)
	if got := strings.Join(asked, " "); got != "k1 k2 k3" {
		t.Errorf("asked for models with %s", got)
	}
}

// Entries of the sandbox's lists that are not hosts or ports are reported with their file and line.
func TestBadSandboxEntriesAreReported(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, ".config", "eca", "config.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = `{
  "toolCall": {
    "sandboxHosts": ["@npm", "http://bad.example/x", "@nothing"],
    "sandboxNetwork": {"allow": ["a b", "ok.example"]},
    "sandboxPorts": [5432, 70000, -1, 3128]
  }
}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := New(Options{StateDir: t.TempDir(), CacheDir: t.TempDir(), Getenv: func(name string) string {
		return map[string]string{"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "OLLAMA_API_URL": "http://127.0.0.1:1"}[name]
	}})
	t.Cleanup(d.Close)
	d.Configure(nil, []string{t.TempDir()})
	said := fmt.Sprint(d.Config().Problems)
	for entry, line := range map[string]int{`"http://bad.example/x"`: 3, `"@nothing"`: 3, `"a b"`: 4, "70000": 5, "-1": 5, "3128": 5} {
		found := false
		for _, p := range d.Config().Problems {
			found = found || p.Source == file && p.Line == line && strings.Contains(p.Cause, entry)
		}
		if !found {
			t.Errorf("%s in line %d is not reported: %s", entry, line, said)
		}
	}
}
