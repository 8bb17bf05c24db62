package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A key from standard input is used, listed, and removed; it is never printed.
func TestLoginWithKey(t *testing.T) {
	const key = "key-of-its-own-form"
	here := newPlace(t, `ECA_CONFIG={"auth": {"store": "file"}, "providers": {"acme": {"api": "openai-chat", "url": "https://acme.example", "fetchModels": false, "models": {"m": {}}}}}`)
	out, stderr, code := runProgram(t, here, "", "login")
	if code != 0 || !strings.Contains(out, "acme: unauthenticated; api-key\n") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"login", "acme"}, 0, "Logged in to acme."},
		{[]string{"login"}, 0, "acme: authenticated (login); api-key\n"},
		{[]string{"models"}, 0, "acme/m"},
		{[]string{"logout", "acme"}, 0, "Logged out of acme."},
		{[]string{"login"}, 0, "acme: unauthenticated; api-key\n"},
		{[]string{"login", "nobody"}, 1, "no provider"},
		{[]string{"logout", "nobody"}, 1, "no provider"},
		{[]string{"login", "acme", "--method", "device"}, 1, "no login method"},
		{[]string{"login", "openai", "--method", "pro"}, 1, "does not log in with a ChatGPT subscription"},
		{[]string{"login", "github-copilot"}, 1, "auth.clientId"},
	} {
		out, stderr, code := runProgram(t, here, key+"\n", c.args...)
		if all := out + stderr; code != c.code || !strings.Contains(all, c.want) || strings.Contains(all, key) {
			t.Errorf("%v: exit %d: %s", c.args, code, all)
		}
	}
}

// A login by device code in a terminal without a browser.
func TestLoginWithDevice(t *testing.T) {
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/device" {
			fmt.Fprintf(w, `{"device_code": "d", "user_code": "AB-12", "verification_uri": "%s/activate", "expires_in": 60, "interval": 1}`, srv.URL)
			return
		}
		fmt.Fprint(w, `{"access_token": "token-of-its-own-form", "token_type": "bearer"}`)
	}))
	defer srv.Close()
	here := newPlace(t, `ECA_CONFIG={"auth": {"store": "file"}, "providers": {"acme": {"api": "openai-chat", "url": "https://acme.example", "fetchModels": false,
		"auth": {"clientId": "c", "tokenUrl": "`+srv.URL+`/token", "deviceUrl": "`+srv.URL+`/device"}}}}`)
	out, stderr, code := runProgram(t, here, "", "login", "acme")
	if code != 1 || !strings.Contains(stderr, "--method: device, api-key") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
	out, stderr, code = runProgram(t, here, "", "login", "acme", "--method", "device")
	if all := out + stderr; code != 0 || !strings.Contains(out, "Code: AB-12") || !strings.Contains(out, srv.URL+"/activate") || !strings.Contains(out, "Logged in to acme.") || strings.Contains(all, "token-of") {
		t.Errorf("exit %d: %s", code, all)
	}
}

// A mistake in the configuration is one sentence, and the result of the check is printed before the
// result of the login.
func TestLoginSaysThingsInOrder(t *testing.T) {
	here := newPlace(t, `ECA_CONFIG={"toolCall": {"sandbox": "maybe"}, "providers": {"mine": {"api": "openai-chat", "url": "http://127.0.0.1:1"}}}`)
	out, errOut, code := runProgram(t, here, "a-key\n", "login", "mine")
	if want := "The key is stored without a check: mine: connection refused by 127.0.0.1:1. Nothing listens at http://127.0.0.1:1: start the server. `eca doctor` checks it again.\nLogged in to mine.\n"; code != 0 || out != want {
		t.Errorf("exit %d: %q, want %q", code, out, want)
	}
	if strings.Contains(errOut, "level=") || !strings.Contains(errOut, "eca: ECA_CONFIG:1:15: toolCall.sandbox must be one of") {
		t.Errorf("%s", errOut)
	}
}
