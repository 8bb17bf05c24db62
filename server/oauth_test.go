package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
)

const oauthProvider = `{"providers": {"acme": {"api": "openai-chat", "url": "URL/v1", "requiresAuth": true, "retry": {"maxRetries": 0},
	"models": {"m": {}}, "auth": {"url": "URL/tenant", "clientId": "my-client", "scopes": ["models", "offline"]}}}}`

// oauthRig is a daemon whose provider acme logs in at an authority.
func oauthRig(t *testing.T, a *authority, c *handClock, state, cfg string) *loginRig {
	t.Helper()
	r := &loginRig{}
	r.start(t, daemon.Options{StateDir: state, Now: c.now, Sleep: c.sleep}, strings.ReplaceAll(cfg, "URL", a.URL), planted, nil)
	t.Cleanup(func() { a.onlyUs(t) })
	return r
}

// begin begins a login and returns the user's next step.
func (r *loginRig) begin(t *testing.T, method string) (step struct{ Action, URL, Code, Message string }) {
	t.Helper()
	raw := r.Call("providers/login", map[string]any{"provider": "acme", "method": method})
	if err := json.Unmarshal(raw, &step); err != nil {
		t.Fatal(err)
	}
	return step
}

// logIn does a complete login by browser.
func (r *loginRig) logIn(t *testing.T, a *authority) {
	t.Helper()
	mark := r.Mark()
	get(t, a.visit(t, r.begin(t, "oauth").URL))
	r.Await(mark, "the login", fake.Contains("providers/updated", `"id":"acme"`, `"status":"authenticated","type":"oauth"`))
}

// ask prompts and waits for the answer, or for the message that replaces it.
func (r *loginRig) ask(t *testing.T, want ...string) {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": fmt.Sprintf("c%p", r), "message": "hi", "model": "acme/m"})
	r.Await(mark, "the answer", fake.Content("text", want...))
	r.Await(mark, "the end", fake.Finished())
}

// A login by browser: the issuer leads to the server, the redirect comes back to this machine, a
// foreign redirect does not count, and the status has the expiry.
func TestOAuthBrowser(t *testing.T) {
	t.Parallel()
	a, c, state := newAuthority(t), newClock(), tempDir(t)
	r := oauthRig(t, a, c, state, oauthProvider)
	if raw := r.Call("providers/login", map[string]any{"provider": "acme"}); string(raw) !=
		`{"action":"choose-method","methods":[{"key":"oauth","label":"Log in with the browser"},{"key":"device","label":"Log in with a code, on any device"},{"key":"api-key","label":"API key"}]}` {
		t.Errorf("providers/login answered %s", raw)
	}
	mark := r.Mark()
	step := r.begin(t, "oauth")
	if step.Action != "authorize" || step.Message == "" {
		t.Errorf("%+v", step)
	}
	back := a.visit(t, step.URL)
	if status := get(t, strings.ReplaceAll(back, "state=", "state=x")); status != http.StatusBadRequest {
		t.Errorf("a redirect with another state was answered with %d", status)
	}
	if status := get(t, strings.ReplaceAll(back, "/callback", "/other")); status != http.StatusNotFound {
		t.Errorf("another path was answered with %d", status)
	}
	if status := get(t, back); status != http.StatusOK {
		t.Errorf("the redirect was answered with %d", status)
	}
	r.Await(mark, "the login", fake.Contains("providers/updated", `"id":"acme"`,
		fmt.Sprintf(`"auth":{"status":"authenticated","type":"oauth","source":"login","mode":"oauth","expiresAt":%d}`, c.now().Unix()+3600)))
	r.Await(mark, "the models", fake.Contains("config/updated", `"models":["acme/listed","acme/m"]`))
	r.ask(t, "Hello.")

	again := oauthRig(t, a, c, state, oauthProvider)
	again.ask(t, "Hello.")
	mark = again.Mark()
	again.Call("providers/logout", map[string]any{"provider": "acme"})
	again.Await(mark, "the logout", fake.Contains("providers/updated", `"id":"acme"`, `"auth":{"status":"unauthenticated"}`))
}

// On a machine without the user's browser, the user pastes the redirect address, the code with its
// state, or the code.
func TestOAuthPaste(t *testing.T) {
	t.Parallel()
	a, c := newAuthority(t), newClock()
	r := oauthRig(t, a, c, tempDir(t), oauthProvider)
	paste := func(text string) (json.RawMessage, error) {
		return r.TryCall("providers/loginInput", map[string]any{"provider": "acme", "data": map[string]any{"code": text}})
	}
	if res, err := paste("x"); err == nil || !strings.Contains(err.Error(), "no login") {
		t.Errorf("a code without a login: %s, %v", res, err)
	}
	for name, form := range map[string]func(u *url.URL) string{
		"address":        func(u *url.URL) string { return " " + u.String() + "\n" },
		"code and state": func(u *url.URL) string { return u.Query().Get("code") + "#" + u.Query().Get("state") },
		"code":           func(u *url.URL) string { return u.Query().Get("code") },
	} {
		t.Run(name, func(t *testing.T) {
			mark := r.Mark()
			u, err := url.Parse(a.visit(t, r.begin(t, "oauth").URL))
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range []string{" ", "two words", planted + "code#other-state", "http://127.0.0.1/callback?code=x&state=y"} {
				if res, err := paste(bad); err == nil {
					t.Errorf("%q was taken: %s", bad, res)
				}
			}
			if res, err := paste(form(u)); err != nil || string(res) != `{"action":"done"}` {
				t.Errorf("%s, %v", res, err)
			}
			r.Await(mark, "the login", fake.Contains("providers/updated", `"id":"acme"`, `"status":"authenticated"`))
			r.ask(t, "Hello.")
			r.Call("providers/logout", map[string]any{"provider": "acme"})
		})
	}
	// A refused code ends the login, with the reason.
	a.visit(t, r.begin(t, "oauth").URL)
	if res, err := paste("another-code"); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("a wrong code: %s, %v", res, err)
	}
	// The user's refusal at the server is shown.
	mark := r.Mark()
	back := a.visit(t, r.begin(t, "oauth").URL)
	get(t, strings.Replace(back, "code="+planted+"code", "error=access_denied", 1))
	r.Await(mark, "the refusal", fake.Contains("$/showMessage", `"type":"error"`, "acme", "denied"))
	if got := auth(t, r.list(t)["acme"]); got != unauthenticated {
		t.Errorf("afterwards: %s", got)
	}
}

// The device flow: it waits as long as the server says, and each outcome is shown.
func TestOAuthDevice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []string
		slept   string
		failure string
	}{
		"at once":   {[]string{""}, "[5s]", ""},
		"slow down": {[]string{"authorization_pending", "slow_down", "authorization_pending", "slow_down", ""}, "[5s 5s 10s 10s 15s]", ""},
		"denied":    {[]string{"authorization_pending", "access_denied"}, "[5s 5s]", "denied"},
		"expired":   {[]string{"expired_token"}, "[5s]", "expired before"},
		"never":     {strings.Split(strings.Repeat("authorization_pending ", 300), " ")[:300], "", "expired before"},
		"refused":   {[]string{"invalid_client"}, "[5s]", "invalid_client"},
	} {
		t.Run(name, func(t *testing.T) {
			a, clk := newAuthority(t), newClock()
			a.device = c.answers
			r := oauthRig(t, a, clk, tempDir(t), oauthProvider)
			mark := r.Mark()
			step := r.begin(t, "device")
			if step.Action != "device-code" || step.Code != "WXYZ-1234" || step.URL != a.URL+"/activate" {
				t.Errorf("%+v", step)
			}
			if c.failure != "" {
				r.Await(mark, "the reason", fake.Contains("$/showMessage", `"type":"error"`, "acme", c.failure))
				if got := auth(t, r.list(t)["acme"]); got != unauthenticated {
					t.Errorf("afterwards: %s", got)
				}
			} else {
				r.Await(mark, "the login", fake.Contains("providers/updated", `"id":"acme"`, `"mode":"device"`))
				r.ask(t, "Hello.")
			}
			clk.mu.Lock()
			defer clk.mu.Unlock()
			if got := fmt.Sprint(clk.slept); c.slept != "" && got != c.slept {
				t.Errorf("waited %s, want %s", got, c.slept)
			}
		})
	}
}

// Tokens are renewed one minute before they expire, once for all concurrent requests. If a provider
// refuses a token, it gets a new one, once.
func TestOAuthRefresh(t *testing.T) {
	t.Parallel()
	a, c, state := newAuthority(t), newClock(), tempDir(t)
	r := oauthRig(t, a, c, state, oauthProvider)
	r.logIn(t, a)
	r.ask(t, "Hello.")
	c.move(time.Hour - 61*time.Second)
	r.ask(t, "Hello.")
	if n := a.renewals(); n != 0 {
		t.Errorf("renewed %d times with more than a minute left", n)
	}
	c.move(2 * time.Second)
	r.ask(t, "Hello.")
	if n := a.renewals(); n != 1 {
		t.Errorf("renewed %d times", n)
	}
	// The provider revokes the token before its expiry.
	a.mu.Lock()
	a.access, a.requests = "", nil
	a.mu.Unlock()
	r.ask(t, "Hello.")
	a.mu.Lock()
	// A concurrent request for its models may use the same token.
	if a.renewed != 2 || len(a.requests) < 2 || a.requests[0] == a.requests[len(a.requests)-1] {
		t.Errorf("renewed %d times, %d requests", a.renewed, len(a.requests))
	}
	a.mu.Unlock()
	// A server that is down does not end the login.
	a.mu.Lock()
	a.down = true
	a.mu.Unlock()
	c.move(2 * time.Hour)
	r.ask(t, "cannot be renewed now", `"role":"system"`)
	a.mu.Lock()
	a.down = false
	a.mu.Unlock()
	r.ask(t, "Hello.")
}

// Two daemons with the same expired token renew it once: the refresh token can be used only once.
func TestOAuthRefreshRace(t *testing.T) {
	t.Parallel()
	a, c, state := newAuthority(t), newClock(), tempDir(t)
	one := oauthRig(t, a, c, state, oauthProvider)
	one.logIn(t, a)
	two := oauthRig(t, a, c, state, oauthProvider)
	c.move(2 * time.Hour)
	gate := make(chan struct{})
	a.mu.Lock()
	a.gate = gate
	a.mu.Unlock()
	marks := map[*loginRig]int{}
	for _, r := range []*loginRig{one, two} {
		marks[r] = r.Mark()
		for _, id := range []string{"x", "y"} {
			r.Call("chat/prompt", map[string]any{"chatId": id + fmt.Sprintf("%p", r), "message": "hi", "model": "acme/m"})
		}
	}
	<-a.entered // one is at the server; the others wait for it, or are about to
	close(gate)
	for _, r := range []*loginRig{one, two} {
		for _, id := range []string{"x", "y"} {
			chat := `"chatId":"` + id + fmt.Sprintf("%p", r) + `"`
			r.Await(marks[r], "the answer", fake.Contains("chat/contentReceived", chat, "Hello."))
			r.Await(marks[r], "the end", fake.Contains("chat/contentReceived", chat, `"state":"finished"`))
		}
		for _, m := range r.Since(marks[r]) {
			if strings.Contains(m.String(), "expired") {
				t.Errorf("a login was lost: %s", m)
			}
		}
	}
	if n := a.renewals(); n != 1 {
		t.Errorf("renewed %d times", n)
	}
}

// If the server revokes a login, each daemon shows its status as expired, and prompts fail with the
// reason until the user logs in again.
func TestOAuthRevoked(t *testing.T) {
	t.Parallel()
	a, c, state := newAuthority(t), newClock(), tempDir(t)
	cfg := strings.Replace(oauthProvider, `"requiresAuth": true`, `"requiresAuth": true, "fetchModels": false`, 1)
	r := oauthRig(t, a, c, state, cfg)
	other := oauthRig(t, a, c, state, cfg)
	r.logIn(t, a)
	a.mu.Lock()
	a.revoked = true
	a.mu.Unlock()
	c.move(2 * time.Hour)
	mark, otherMark := r.Mark(), other.Mark()
	r.ask(t, "The login for provider acme has expired. Log in again: /login acme", `"role":"system"`)
	for rig, mark := range map[*loginRig]int{r: mark, other: otherMark} {
		rig.Await(mark, "the status", fake.Contains("providers/updated", `"id":"acme"`, `"auth":{"status":"expired","type":"oauth","source":"login","mode":"oauth"}`))
	}
	r.ask(t, "needs a new login", `"role":"system"`)
	a.mu.Lock()
	a.revoked = false
	a.mu.Unlock()
	r.logIn(t, a)
	r.ask(t, "Hello.")
}

// eca sends tokens only to the provider's address for which they were issued: if the configuration
// names another address, the login counts as expired.
func TestOAuthBound(t *testing.T) {
	t.Parallel()
	a, c, state := newAuthority(t), newClock(), tempDir(t)
	oauthRig(t, a, c, state, oauthProvider).logIn(t, a)
	thief := newAuthority(t)
	cfg := strings.ReplaceAll(oauthProvider, `"url": "URL/v1"`, `"url": "`+thief.URL+`/v1"`)
	r := oauthRig(t, a, c, state, cfg)
	if got := auth(t, r.list(t)["acme"]); !strings.Contains(got, `"status":"expired"`) {
		t.Errorf("status: %s", got)
	}
	r.ask(t, "needs a new login")
	if len(thief.requests) > 0 {
		t.Errorf("another server got requests with the tokens %v", thief.requests)
	}
}

// Invalid servers are refused with the reason.
func TestOAuthDiscoveryRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   string
		value any
		auth  string
		want  string
	}{
		"another issuer":  {"issuer", "https://elsewhere.example", "", "not of the issuer"},
		"no token":        {"token_endpoint", "", "", "token endpoint"},
		"plain http":      {"token_endpoint", "http://elsewhere.example/token", "", "https://"},
		"no PKCE":         {"code_challenge_methods_supported", []string{"plain"}, "", "offers no login by browser"},
		"no metadata":     {"", nil, `"url": "URL/nowhere", "clientId": "my-client"`, "has no metadata that eca can use"},
		"unreachable":     {"", nil, `"url": "` + noServer + `", "clientId": "my-client"`, "cannot be reached"},
		"plain issuer":    {"", nil, `"url": "http://elsewhere.example", "clientId": "my-client"`, "https://"},
		"nothing is said": {"", nil, `"clientId": "my-client"`, "no login method"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			if c.key != "" {
				a.metadata[c.key] = c.value
			}
			cfg := oauthProvider
			if c.auth != "" {
				i := strings.Index(cfg, `"auth": {`)
				cfg = cfg[:i] + `"auth": {` + c.auth + `}}}}`
			}
			r := oauthRig(t, a, newClock(), tempDir(t), cfg)
			if res, err := r.TryCall("providers/login", map[string]any{"provider": "acme", "method": "oauth"}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s, %v", res, err)
			}
		})
	}
}
