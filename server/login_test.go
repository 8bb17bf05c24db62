package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// A login by chat at an authorisation server: the user pastes the redirect of the browser into the
// chat, where it is not shown again. A stop ends the login.
func TestLoginByChat(t *testing.T) {
	t.Parallel()
	a, c, state := newAuthority(t), newClock(), tempDir(t)
	r := oauthRig(t, a, c, state, oauthProvider)
	say := func(text string) int {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})
		return mark
	}
	link := func(mark int) string {
		r.Await(mark, "the link", fake.Content("text", a.URL+"/authorize?"))
		rest := ""
		for _, m := range r.Since(mark) {
			if _, after, ok := strings.Cut(m.String(), a.URL+"/authorize?"); ok && rest == "" {
				rest, _, _ = strings.Cut(after, `\n`)
			}
		}
		return a.URL + "/authorize?" + strings.ReplaceAll(rest, `\u0026`, "&")
	}
	mark := say("/login")
	r.Await(mark, "the choice", fake.Content("text", "1. acme (unauthenticated)", "Subscriptions of ChatGPT and Claude cannot be used"))
	r.Await(mark, "the status", fake.Contains("chat/statusChanged", `"status":"login"`))
	mark = say("1")
	r.Await(mark, "the methods", fake.Content("text", "1. oauth (Log in with the browser)", "3. api-key"))
	r.Await(mark, "the end", fake.Finished())
	if list := string(r.Call("chat/list", map[string]any{})); !strings.Contains(list, `"status":"login"`) {
		t.Errorf("chat/list: %s", list)
	}

	mark = say("oauth")
	u, err := url.Parse(a.visit(t, link(mark)))
	if err != nil {
		t.Fatal(err)
	}
	mark = say(planted + "code#wrong-state")
	r.Await(mark, "the mask", fake.Content("text", `"*****\n"`, `"role":"user"`))
	r.Await(mark, "the reason", fake.Content("text", "another login"))
	mark = say(u.String())
	r.Await(mark, "the end", fake.Content("text", "You are logged in to acme."))
	r.Await(mark, "the status", fake.Contains("chat/statusChanged", `"status":"idle"`))
	r.Await(mark, "the provider", fake.Contains("providers/updated", `"id":"acme"`, `"status":"authenticated","type":"oauth"`))
	r.Await(mark, "the models", fake.Contains("config/updated", `"acme/m"`))
	r.ask(t, "Hello.")

	// The redirect ends a waiting dialog. A stop ends the login and the dialog.
	mark = say("/login acme")
	r.Await(mark, "the end", fake.Finished())
	mark = say("1")
	if status := get(t, a.visit(t, link(mark))); status != http.StatusOK {
		t.Errorf("the redirect was answered with %d", status)
	}
	r.Await(mark, "the end", fake.Content("text", "You are logged in to acme."))
	r.Await(mark, "the end", fake.Finished())
	mark = say("/login acme")
	r.Await(mark, "the end", fake.Finished())
	mark = say("1")
	link(mark)
	r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	r.Await(mark, "the stop", fake.Contains("chat/statusChanged", `"status":"idle"`))
	if res, err := r.TryCall("providers/loginInput", map[string]any{"provider": "acme", "data": map[string]any{"code": "x"}}); err == nil {
		t.Errorf("the login still waits: %s", res)
	}
	r.ask(t, "Hello.")
	found := 0
	_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(planted)) {
			found++
			if filepath.Base(path) != "credentials.json" {
				t.Errorf("a secret is in %s", path)
			}
		}
		return err
	})
	if found != 1 {
		t.Errorf("%d files have secrets", found)
	}
}

// A client that supports questions shows the choices. The key is still entered as a prompt, because
// clients show questions with their answers.
func TestLoginByQuestions(t *testing.T) {
	t.Parallel()
	env := map[string]string{"ECA_CONFIG": strings.ReplaceAll(oauthProvider, "URL", noServer), "OLLAMA_API_URL": noServer, "XDG_CONFIG_HOME": tempDir(t)}
	d := daemon.New(daemon.Options{
		Getenv: func(k string) string { return env[k] }, StateDir: tempDir(t), CacheDir: tempDir(t), Log: slog.New(slog.DiscardHandler),
	})
	ed := connect(t, d)
	ed.Open(tempDir(t), map[string]any{"capabilities": json.RawMessage(everything)})
	ed.Await(0, "the start", fake.Ready())
	var mu sync.Mutex
	var asked []string
	answers := []string{"acme", "api-key", ""}
	ed.Answer("chat/askQuestion", func(_ context.Context, params json.RawMessage) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, string(params))
		answer := answers[len(asked)-1]
		return map[string]any{"answer": answer, "cancelled": answer == ""}, nil
	})
	say := func(text string) int {
		mark := ed.Mark()
		ed.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})
		return mark
	}
	ed.Await(say("/login"), "the question for the key", fake.Content("text", "API key?"))
	ed.Await(say(loginKey), "the end", fake.Content("text", "You are logged in to acme."))
	ed.Await(say("/login"), "the end", fake.Content("text", "The login is cancelled."))
	mu.Lock()
	defer mu.Unlock()
	if len(asked) != 3 || !strings.Contains(asked[0], `"allowFreeform":false`) || !strings.Contains(asked[0], `{"label":"acme","description":"unauthenticated"}`) ||
		!strings.Contains(asked[1], `"label":"device"`) || strings.Contains(asked[0], "toolCallId\":\"") {
		t.Errorf("asked: %s", asked)
	}
	for _, m := range ed.Since(0) {
		if strings.Contains(m.String(), loginKey) {
			t.Errorf("the key was sent: %s", m)
		}
	}
}

// Login input is not in a trace of the messages either.
func TestLoginTrace(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen strings.Builder
	env := map[string]string{"ECA_CONFIG": oneProvider, "OLLAMA_API_URL": noServer, "XDG_CONFIG_HOME": tempDir(t)}
	d := daemon.New(daemon.Options{
		Getenv: func(k string) string { return env[k] }, StateDir: tempDir(t), CacheDir: tempDir(t), Log: slog.New(slog.DiscardHandler),
	})
	ed := connect(t, d, func(_ bool, body []byte) {
		mu.Lock()
		defer mu.Unlock()
		seen.Write(body)
		seen.WriteByte('\n')
	})
	ed.Open(tempDir(t), nil)
	ed.Await(0, "the start", fake.Ready())
	const key = "acme_key_of_its_own_form"
	mark := ed.Mark()
	ed.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/login acme"})
	ed.Await(mark, "the question", fake.Contains("chat/statusChanged", `"status":"login"`))
	ed.Call("chat/prompt", map[string]any{"chatId": "c", "message": key})
	ed.Await(mark, "the login", fake.Content("text", "You are logged in"))
	ed.Call("providers/loginInput", map[string]any{"provider": "acme", "data": map[string]any{"api-key": key}})
	_, _ = ed.TryCall("providers/loginInput", map[string]any{"provider": "acme", "data": map[string]any{"code": key}})
	ed.Await(mark, "the end", fake.Finished())
	ed.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/costs"})
	mu.Lock()
	defer mu.Unlock()
	if text := seen.String(); strings.Contains(text, key) || !strings.Contains(text, `"/costs"`) || !strings.Contains(text, `"provider":"acme"`) {
		t.Errorf("the trace:\n%s", text)
	}
}

// Copilot with the user's own client id: GitHub's login is exchanged for a short-lived key, under
// eca's name. A login without Copilot is refused with the reason.
func TestCopilot(t *testing.T) {
	t.Parallel()
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: Hello.}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	play := player.Handler(nil)
	clk := newClock()
	var mu sync.Mutex
	admitted, revoked, keys, initiators, identities := false, false, 0, []string{}, map[string]bool{}
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		for name, values := range r.Header {
			for _, v := range values {
				if strings.Contains(strings.ToLower(v), "vscode") || strings.Contains(v, "copilot") {
					t.Errorf("another product's identity: %s: %s", name, v)
				}
			}
		}
		identities[r.UserAgent()] = true
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/login/device/code":
			fmt.Fprintf(w, `{"device_code": "%sdevice", "user_code": "AB-12", "verification_uri": "%s/login/device", "expires_in": 600, "interval": 5}`, planted, srv.URL)
		case "/login/oauth/access_token":
			fmt.Fprintf(w, `{"access_token": "%sgithub", "token_type": "bearer", "scope": ""}`, planted)
		case "/api/v3/copilot_internal/v2/token":
			switch {
			case revoked:
				w.WriteHeader(http.StatusUnauthorized)
			case !admitted:
				w.WriteHeader(http.StatusNotFound)
			case r.Header.Get("Authorization") != "Bearer "+planted+"github" || r.Header.Get("Editor-Version") != "eca/dev":
				t.Errorf("asked for a key with %v", r.Header)
			default:
				keys++
				fmt.Fprintf(w, `{"token": "%skey-%d", "expires_at": %d, "endpoints": {"api": "%s"}}`, planted, keys, clk.now().Unix()+1500, srv.URL)
			}
		case "/models":
			_ = json.NewEncoder(w).Encode(map[string]any{"data": []any{
				map[string]any{"id": "gpt-x", "supported_endpoints": []string{"/chat/completions"}, "capabilities": map[string]any{"type": "chat"}},
				map[string]any{"id": "other-endpoint", "supported_endpoints": []string{"/responses"}},
				map[string]any{"id": "vectors", "capabilities": map[string]any{"type": "embeddings"}},
			}})
		default:
			if r.Header.Get("Authorization") != fmt.Sprintf("Bearer %skey-%d", planted, keys) {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			initiators = append(initiators, r.URL.Path+" "+r.Header.Get("X-Initiator"))
			w.Header().Del("Content-Type")
			play.ServeHTTP(w, r)
		}
	}))
	defer srv.Close()
	a := &authority{Server: srv}
	cfg := `{"providers": {"github-copilot": {"models": {"m": {}}, "retry": {"maxRetries": 0}, "auth": {"url": "URL", "clientId": "my-client"}}}}`
	r := oauthRig(t, a, clk, tempDir(t), cfg)
	mark := r.Mark()
	login := func() {
		if raw := r.Call("providers/login", map[string]any{"provider": "github-copilot"}); !strings.Contains(string(raw), `"action":"device-code"`) || !strings.Contains(string(raw), "AB-12") {
			t.Errorf("providers/login answered %s", raw)
		}
	}
	login()
	r.Await(mark, "the reason", fake.Contains("$/showMessage", `"type":"error"`, "does not pretend"))
	mu.Lock()
	admitted = true
	mu.Unlock()
	login()
	r.Await(mark, "the login", fake.Contains("providers/updated", `"id":"github-copilot"`, `"status":"authenticated"`))
	r.Await(mark, "the models", fake.Contains("config/updated", `"models":["github-copilot/gpt-x","github-copilot/m"]`))
	ask := func(want string) {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi", "model": "github-copilot/m"})
		r.Await(mark, "the answer", fake.Content("text", want))
		r.Await(mark, "the end", fake.Finished())
	}
	ask("Hello.")
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return keys
	}
	before := count()
	ask("Hello.")
	if n := count(); n != before {
		t.Errorf("%d keys instead of %d", n, before)
	}
	clk.move(1450 * time.Second)
	ask("Hello.")
	if n := count(); n != before+1 {
		t.Errorf("%d keys instead of %d after one expired", n, before+1)
	}
	mu.Lock()
	revoked = true
	mu.Unlock()
	clk.move(1450 * time.Second)
	ask("expired")
	mu.Lock()
	defer mu.Unlock()
	if len(identities) != 1 || !identities["eca"] || len(initiators) == 0 || initiators[0] != "/chat/completions user" {
		t.Errorf("identities %v, initiators %v", identities, initiators)
	}
}
