package oauth

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func browser(t testing.TB, redirect string) *BrowserLogin {
	t.Helper()
	c := &Client{HTTP: &http.Client{Transport: http.NewFileTransport(http.Dir("."))}, Now: time.Now}
	b, err := c.StartBrowserLogin(Provider{AuthorizeURL: "https://x.example/a", TokenURL: "https://x.example/t", ClientID: "c", RedirectURL: redirect, Params: map[string]string{"audience": "api"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// Where the redirect leads decides whether it can be received.
func TestRedirects(t *testing.T) {
	taken := browser(t, "")
	u, err := url.Parse(taken.URL)
	if err != nil || taken.Pasting || u.Query().Get("audience") != "api" {
		t.Fatalf("%s, %v", taken.URL, err)
	}
	at := u.Query().Get("redirect_uri")
	for redirect, pasting := range map[string]bool{
		at:                               true, // the port is taken
		"https://x.example/callback":     true,
		"http://192.0.2.1/callback":      true,
		"my-app://callback":              true,
		"http://localhost:0/other":       false,
		"http://127.0.0.1:0":             false,
		"urn:ietf:wg:oauth:2.0:oob":      true,
		"http://127.0.0.1.example:0/foo": true,
	} {
		if b := browser(t, redirect); b.Pasting != pasting {
			t.Errorf("%s: pasting %v", redirect, b.Pasting)
		}
	}
	for _, p := range []Provider{
		{AuthorizeURL: "http://x.example/a", TokenURL: "https://x.example/t"},
		{AuthorizeURL: "https://x.example/a", TokenURL: "http://x.example/t"},
		{AuthorizeURL: "https://x.example/a"},
		{AuthorizeURL: "https://x.example/a", TokenURL: "https://x.example/t", RedirectURL: "callback"},
	} {
		if b, err := (&Client{}).StartBrowserLogin(p); err == nil {
			t.Errorf("%+v was taken: %s", p, b.URL)
		}
	}
}

// Paste accepts a code without a state or with the state of this login, and only the first one. The
// test pastes any text.
func FuzzPaste(f *testing.F) {
	f.Add("code")
	f.Add("code#state")
	f.Add("http://127.0.0.1/callback?code=x&state=y")
	f.Add("http://127.0.0.1/callback?error=access_denied")
	f.Add("%zz?://#")
	f.Fuzz(func(t *testing.T, text string) {
		b := &BrowserLogin{state: "the-state", answer: make(chan callback, 1)}
		err := b.Paste(text)
		foreign := strings.Contains(text, "#") || strings.Contains(text, "state=") && strings.Contains(text, "://")
		if err == nil && foreign && !strings.Contains(text, "the-state") {
			t.Errorf("%q was taken", text)
		}
		if taken := len(b.answer) == 1; taken != (err == nil) {
			t.Errorf("%q: taken %v, %v", text, taken, err)
		}
		_ = b.Paste("another")
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := (&BrowserLogin{answer: make(chan callback)}).Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}
