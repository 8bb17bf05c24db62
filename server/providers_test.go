package server_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

const loginKey = "sk-entered-by-a-user-0123456789"

// loginRig is a daemon with a provider that requires loginKey, and a complete log.
type loginRig struct {
	*fake.Editor
	url string

	mu   sync.Mutex // guards the fields below
	keys []string   // the keys that the provider got
	log  bytes.Buffer
}

// Write implements io.Writer for the log.
func (r *loginRig) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.Write(p)
}

// newLoginRig starts a daemon. URL in the configured providers is replaced by their server's
// address.
func newLoginRig(t *testing.T, state, providers string, env map[string]string) *loginRig {
	t.Helper()
	r := &loginRig{}
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: Hello.}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	play := player.Handler(nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		key := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
		r.mu.Lock()
		r.keys = append(r.keys, key)
		r.mu.Unlock()
		switch {
		case key != loginKey:
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error": {"message": "the key ` + key + ` is wrong"}}`))
		case strings.HasSuffix(req.URL.Path, "/models"):
			_, _ = w.Write([]byte(`{"data": [{"id": "listed"}]}`))
		default:
			play.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(srv.Close)
	r.url = srv.URL + "/v1"
	r.start(t, daemon.Options{StateDir: state}, strings.ReplaceAll(providers, "URL", r.url), loginKey, env)
	return r
}

const oneProvider = `{"providers": {"acme": {"api": "openai-chat", "url": "URL", "requiresAuth": true, "models": {"m": {"cost": {"input": 2, "output": 8}}}}}}`

// list returns the statuses by id.
func (r *loginRig) list(t *testing.T) map[string]map[string]any {
	t.Helper()
	raw := r.Call("providers/list", map[string]any{})
	if strings.Contains(string(raw), loginKey) {
		t.Errorf("the key is in the list: %s", raw)
	}
	var res struct{ Providers []map[string]any }
	if err := json.Unmarshal(raw, &res); err != nil {
		t.Fatal(err)
	}
	out, last := map[string]map[string]any{}, ""
	for _, p := range res.Providers {
		id, _ := p["id"].(string)
		if id <= last {
			t.Errorf("the providers are not sorted: %s follows %s", id, last)
		}
		out[id], last = p, id
	}
	return out
}

func (r *loginRig) login(t *testing.T, provider, key string) {
	t.Helper()
	res := r.Call("providers/loginInput", map[string]any{"provider": provider, "data": map[string]any{"api-key": key}})
	if string(res) != `{"action":"done"}` {
		t.Errorf("providers/loginInput answered %s", res)
	}
}

func auth(t *testing.T, status map[string]any) string {
	t.Helper()
	out, err := marshal(status["auth"])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	unauthenticated = `{"status":"unauthenticated"}`
	loggedIn        = `{"source":"login","status":"authenticated","type":"api-key"}`
)

// A login from the first question to an answer of the model, with the client's messages; then a
// restart, and a logout.
//
// Covers: providers/list, providers/login, providers/loginInput, providers/logout
// Covers: providers/updated
func TestProviderLogin(t *testing.T) {
	t.Parallel()
	state := tempDir(t)
	r := newLoginRig(t, state, oneProvider, nil)
	before := r.list(t)["acme"]
	if auth(t, before) != unauthenticated || before["configured"] != true || len(before["models"].([]any)) != 0 {
		t.Errorf("before: %v", before)
	}
	if raw, _ := marshal(before["login"]); raw != `{"methods":[{"key":"api-key","label":"API key"}]}` {
		t.Errorf("methods: %s", raw)
	}
	for _, params := range []map[string]any{{"provider": "acme"}, {"provider": "acme", "method": "api-key", "requestId": 1}, {"provider": "acme", "method": nil}} {
		if res := r.Call("providers/login", params); string(res) != `{"action":"input","fields":[{"key":"api-key","label":"API key","type":"secret"}]}` {
			t.Errorf("providers/login answered %s", res)
		}
	}

	mark := r.Mark()
	r.login(t, "acme", " "+loginKey+"\n")
	r.Await(mark, "the models of the configuration", fake.Contains("config/updated", `"models":["acme/m"]`, `"selectModel":"acme/m"`))
	r.Await(mark, "the provider", fake.Contains("providers/updated", `{"id":"acme","configured":true,"auth":{"status":"authenticated","type":"api-key","source":"login"}`,
		`"models":[{"id":"m","capabilities":{"reason":true,"vision":false,"tools":true,"webSearch":false},"cost":{"input":0.000002,"output":0.000008}}]`,
		`"settings":{"api":"openai-chat","url":"`+r.url+`"}`))
	r.Await(mark, "the models of the provider", fake.Contains("config/updated", `"models":["acme/listed","acme/m"]`))
	r.Await(mark, "the provider with them", fake.Contains("providers/updated", `"id":"listed"`))
	for _, m := range r.Since(mark) {
		if strings.HasPrefix(m.Method, "config/") && strings.Contains(string(m.Params), "chatId") {
			t.Errorf("a scoped update: %s", m)
		}
	}
	r.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/m"})
	r.Await(mark, "the answer", fake.Content("text", "Hello."))
	r.Await(mark, "the end", fake.Finished())

	again := newLoginRig(t, state, oneProvider, nil)
	if got := auth(t, again.list(t)["acme"]); got != loggedIn {
		t.Errorf("after a restart: %s", got)
	}
	mark = again.Mark()
	if res := again.Call("providers/logout", map[string]any{"provider": "acme"}); string(res) != "{}" {
		t.Errorf("providers/logout answered %s", res)
	}
	again.Await(mark, "that no model is left", fake.Contains("config/updated", `"models":[]`))
	again.Await(mark, "the provider", fake.Contains("providers/updated", `{"id":"acme","configured":true,"auth":{"status":"unauthenticated"}`, `"models":[]`))
	again.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/m"})
	again.Await(mark, "the reason", fake.Content("text", "needs a key", `"role":"system"`))
	if data, err := os.ReadFile(filepath.Join(state, "credentials.json")); err != nil || strings.Contains(string(data), loginKey) {
		t.Errorf("after the logout: %s, %v", data, err)
	}
}

// Invalid logins are refused with a reason and a numeric code, and change nothing.
func TestProviderLoginRefuses(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, tempDir(t), `{"providers": {
		"acme": {"api": "openai-chat", "url": "URL", "requiresAuth": true},
		"bare": {"url": "URL"}, "tape": {"api": "cassette", "url": "/x"}}}`, nil)
	data := func(v any) map[string]any { return map[string]any{"provider": "acme", "data": v} }
	key := func(v any) map[string]any { return data(map[string]any{"api-key": v}) }
	mark := r.Mark()
	for _, c := range []struct {
		method string
		params any
		want   string
	}{
		{"providers/login", nil, `no provider ""`},
		{"providers/login", map[string]any{"provider": "nobody"}, `no provider "nobody"`},
		{"providers/login", map[string]any{"provider": "no-one"}, `no provider "no-one"`},
		{"providers/login", map[string]any{"provider": "acme", "method": "device"}, `no login method "device"`},
		{"providers/login", map[string]any{"provider": "bare"}, "no api"},
		{"providers/login", map[string]any{"provider": "tape"}, "no login"},
		{"providers/loginInput", map[string]any{"provider": "nobody", "data": map[string]any{"api-key": loginKey}}, `no provider "nobody"`},
		{"providers/loginInput", map[string]any{"provider": "acme"}, "api-key"},
		{"providers/loginInput", data(loginKey), "data"},
		{"providers/loginInput", data(map[string]any{"apiKey": loginKey}), "api-key"},
		{"providers/loginInput", key(""), "is empty; enter it"},
		{"providers/loginInput", key(" \t\n"), "is empty; enter it"},
		{"providers/loginInput", key(7), "is empty; enter it"},
		{"providers/loginInput", key(nil), "is empty; enter it"},
		{"providers/loginInput", key(loginKey + "\nX-Other: 1"), "visible ASCII"},
		{"providers/loginInput", key("“" + loginKey + "”"), "visible ASCII"},
		{"providers/loginInput", key(loginKey + strings.Repeat("x", 20<<10)), "at most"},
		{"providers/logout", map[string]any{"provider": "nobody"}, `no provider "nobody"`},
	} {
		res, err := r.TryCall(c.method, c.params)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), loginKey) {
			t.Errorf("%s %v: %s, %v", c.method, c.params, res, err)
		}
	}
	// Logging out without a login is not an error: nothing has to be done.
	if res := r.Call("providers/logout", map[string]any{"provider": "acme"}); string(res) != "{}" {
		t.Errorf("logout: %s", res)
	}
	r.Await(mark, "the provider", fake.Contains("providers/updated", `"id":"acme"`))
	if got := auth(t, r.list(t)["acme"]); got != unauthenticated {
		t.Errorf("afterwards: %s", got)
	}
}

// If the configuration of a provider is incomplete, the login asks for the missing values, once.
func TestProviderLoginFields(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, tempDir(t), `{"providers": {"acme": {"api": "openai-chat", "fetchModels": false}}}`, nil)
	res := r.Call("providers/login", map[string]any{"provider": "acme"})
	if want := `[{"key":"api-key","label":"API key","type":"secret"},{"key":"url","label":"URL of the API","type":"text"},{"key":"models","label":"Models, separated by commas","type":"text"}]`; !strings.Contains(string(res), want) {
		t.Errorf("providers/login answered %s", res)
	}
	for _, url := range []string{"", "acme.example", "ftp://acme.example", "https://"} {
		if res, err := r.TryCall("providers/loginInput", map[string]any{"provider": "acme", "data": map[string]any{"api-key": loginKey, "url": url, "models": "m"}}); err == nil {
			t.Errorf("the url %q was taken: %s", url, res)
		}
	}
	mark := r.Mark()
	r.Call("providers/loginInput", map[string]any{"provider": "acme", "data": map[string]any{"api-key": loginKey, "url": r.url, "models": " a, b/c,,a", "other": true}})
	r.Await(mark, "the models", fake.Contains("config/updated", `"models":["acme/a","acme/b/c"]`))
	r.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/a"})
	r.Await(mark, "the answer", fake.Content("text", "Hello."))
}

// providers/list shows the source of the key that eca uses. When a user logs in or out, a notice names
// another source that takes precedence or still has a key.
func TestProviderKeySources(t *testing.T) {
	t.Parallel()
	state := tempDir(t)
	r := newLoginRig(t, state, `{"providers": {
		"conf": {"api": "openai-chat", "url": "URL", "key": "sk-config", "extraHeaders": {"X-Token": "`+loginKey+`"}},
		"env": {"api": "openai-chat", "url": "http://user:`+loginKey+`@127.0.0.1:9/v1?key=`+loginKey+`", "models": {"m": {}}},
		"local": {"api": "openai-chat", "url": "URL"},
		"tape": {"api": "cassette", "url": "/no/such.yaml"}}}`,
		map[string]string{"ENV_API_KEY": "sk-env", "OPENAI_API_KEY": "sk-openai", "OPENAI_API_URL": "http://127.0.0.1:9"})
	list := r.list(t)
	for id, want := range map[string]string{
		"conf":   `{"source":"config","status":"authenticated","type":"api-key"}`,
		"env":    `{"envVar":"ENV_API_KEY","source":"env","status":"authenticated","type":"api-key"}`,
		"openai": `{"envVar":"OPENAI_API_KEY","source":"env","status":"authenticated","type":"api-key"}`,
		"local":  `{"status":"local"}`,
		"tape":   `{"status":"local"}`,
		"google": unauthenticated,
		"ollama": `{"status":"not-running"}`,
	} {
		if got := auth(t, list[id]); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
	if list["ollama"]["login"] != nil || list["openai"]["label"] != "OpenAI" || list["tape"]["login"] != nil {
		t.Errorf("%v", list)
	}
	if got, _ := marshal(list["conf"]["settings"]); got != `{"api":"openai-chat","extraHeaders":{"X-Token":"[REDACTED]"},"url":"`+r.url+`"}` {
		t.Errorf("settings: %s", got)
	}

	// The configuration takes precedence over a login, and a notice says so.
	mark := r.Mark()
	r.login(t, "conf", loginKey)
	r.Await(mark, "the notice", fake.Contains("$/showMessage", `"type":"warning"`, "not used", "ECA_CONFIG"))
	r.Call("providers/logout", map[string]any{"provider": "conf"})
	r.Await(mark, "the other notice", fake.Contains("$/showMessage", "still has a key", "ECA_CONFIG"))
	// A login takes precedence over the environment.
	r.login(t, "env", loginKey)
	if got := auth(t, r.list(t)["env"]); got != loggedIn {
		t.Errorf("after a login: %s", got)
	}
	mark = r.Mark()
	r.Call("providers/logout", map[string]any{"provider": "env"})
	r.Await(mark, "the notice", fake.Contains("$/showMessage", "still has a key", "ENV_API_KEY"))

	// The key of a provider that is not configured any more can still be removed.
	r.login(t, "local", loginKey)
	other := newLoginRig(t, state, `{}`, nil)
	if gone := other.list(t)["local"]; auth(t, gone) != loggedIn || gone["configured"] != false {
		t.Errorf("a provider without configuration: %v", gone)
	}
	mark = other.Mark()
	other.Call("providers/logout", map[string]any{"provider": "local"})
	other.Await(mark, "its end", fake.Contains("providers/updated", `{"id":"local","configured":false,"auth":{"status":"unauthenticated"},"models":[]}`))
	if still := other.list(t)["local"]; still != nil {
		t.Errorf("a provider without configuration and login is still listed: %v", still)
	}
}

// A wrong key that the provider repeats in its error is not shown, and a new key is used from the
// next request on.
func TestProviderKeyIsReplaced(t *testing.T) {
	t.Parallel()
	r := newLoginRig(t, tempDir(t), oneProvider, nil)
	const wrong = "acme_wrong_key_of_its_own_form"
	mark := r.Mark()
	r.login(t, "acme", wrong)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi", "model": "acme/m"})
	r.Await(mark, "the refusal", fake.Content("text", "[REDACTED] is wrong", `"role":"system"`))
	r.Await(mark, "the end", fake.Finished())
	r.login(t, "acme", loginKey)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi", "model": "acme/m"})
	r.Await(mark, "the answer", fake.Content("text", "Hello."))
	for _, m := range r.Since(0) {
		if strings.Contains(m.String(), wrong) {
			t.Errorf("the wrong key was shown: %s", m)
		}
	}
}

// Two daemons share a login immediately, without a restart.
func TestProviderLoginTwoDaemons(t *testing.T) {
	t.Parallel()
	state := tempDir(t)
	a := newLoginRig(t, state, oneProvider, nil)
	b := newLoginRig(t, state, oneProvider, nil)
	mark := b.Mark()
	a.login(t, "acme", loginKey)
	if got := auth(t, b.list(t)["acme"]); got != loggedIn {
		t.Errorf("the other daemon: %s", got)
	}
	b.Await(mark, "the news", fake.Contains("providers/updated", `"id":"acme"`, `"status":"authenticated"`))
	b.Await(mark, "the models", fake.Contains("config/updated", `"models":["acme/listed","acme/m"]`))
	mark = b.Mark()
	b.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/m"})
	b.Await(mark, "the answer", fake.Content("text", "Hello."))
	b.Call("providers/logout", map[string]any{"provider": "acme"})
	if got := auth(t, a.list(t)["acme"]); got != unauthenticated {
		t.Errorf("after the other's logout: %s", got)
	}
	mark = a.Mark()
	a.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/m"})
	a.Await(mark, "the reason", fake.Content("text", "needs a key"))
}

// An unusable file is named, and a login does not overwrite it.
func TestProviderCredentialsBroken(t *testing.T) {
	t.Parallel()
	state := tempDir(t)
	path := filepath.Join(state, "credentials.json")
	text := `{"version": 1, "providers": {"acme": {"type": "api-key", "key": "` + loginKey + `"}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newLoginRig(t, state, oneProvider, nil)
	r.Await(0, "the warning", fake.Contains("$/showMessage", `"type":"warning"`, path, "not valid JSON"))
	if got := auth(t, r.list(t)["acme"]); got != unauthenticated {
		t.Errorf("status: %s", got)
	}
	for _, method := range []string{"providers/loginInput", "providers/logout"} {
		_, err := r.TryCall(method, map[string]any{"provider": "acme", "data": map[string]any{"api-key": loginKey}})
		if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), loginKey) {
			t.Errorf("%s: %v", method, err)
		}
	}
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"message": "hi", "model": "acme/m"})
	r.Await(mark, "the reason", fake.Content("text", "needs a key", "not valid JSON"))
	if data, err := os.ReadFile(path); err != nil || string(data) != text {
		t.Errorf("the file was changed: %s, %v", data, err)
	}
}

// If a provider cannot be asked for its models, a message names it, its address, the cause and the
// source of the address.
func TestProviderThatCannotBeAskedIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\nturns: []\n", config: map[string]any{"providers": map[string]any{"mine": map[string]any{"api": "openai-chat", "url": noServer}}}})
	r.Await(0, "the provider", fake.Contains("$/showMessage", "provider mine does not list its models", "127.0.0.1:1", "providers.mine.url of ECA_CONFIG"))
}
