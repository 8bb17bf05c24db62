package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// authority is a scripted authorisation server, and a provider of models that accepts only its
// newest access token.
type authority struct {
	*httptest.Server

	loginServer

	// Guarded by its mutex.
	lifetime int      // of tokens, in seconds; 0: not sent
	single   bool     // refresh tokens can be used once
	device   []string // the next answers to polls: errors, "" is a success
	revoked  bool     // refresh tokens are refused
	down     bool     // refresh requests are answered with 503
	metadata map[string]any
	requests []string      // to the provider: the tokens
	gate     chan struct{} // not nil: renewals wait for it to close
	entered  chan struct{} // gets an element for each waiting renewal
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps:\n    - {text: Hello.}\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{lifetime: 3600, single: true, entered: make(chan struct{}, 8)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server/tenant", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(a.metadata)
	})
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST /device", func(w http.ResponseWriter, r *http.Request) {
		a.noteClient(r)
		if r.FormValue("client_id") != "my-client" || r.FormValue("scope") != "models offline" {
			refuse(w, "invalid_request")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"device_code": "%sdevice", "user_code": "WXYZ-1234", "verification_uri": "%s/activate", "expires_in": 600, "interval": 5}`, planted, a.URL)
	})
	play := player.Handler(nil)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		a.mu.Lock()
		good := token != "" && token == a.access
		if !strings.HasSuffix(r.URL.Path, "/models") {
			a.requests = append(a.requests, token)
		}
		a.mu.Unlock()
		switch {
		case !good:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error": {"message": "the token %s is not good"}}`, token)
		case strings.HasSuffix(r.URL.Path, "/models"):
			_, _ = io.WriteString(w, `{"data": [{"id": "listed"}]}`)
		default:
			play.ServeHTTP(w, r)
		}
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	a.metadata = map[string]any{
		"issuer": a.URL + "/tenant", "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token",
		"device_authorization_endpoint": a.URL + "/device", "code_challenge_methods_supported": []string{"S256"},
	}
	return a
}

func (a *authority) token(w http.ResponseWriter, r *http.Request) {
	a.noteClient(r)
	if r.FormValue("grant_type") == "refresh_token" {
		a.mu.Lock()
		gate := a.gate
		a.mu.Unlock()
		if gate != nil {
			a.entered <- struct{}{}
			<-gate
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.FormValue("client_id") != "my-client" {
		refuse(w, "invalid_client")
		return
	}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		if !a.hasValidCode(r) {
			refuse(w, "invalid_grant")
			return
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		answer := "expired_token"
		if len(a.device) > 0 {
			answer, a.device = a.device[0], a.device[1:]
		}
		if r.FormValue("device_code") != planted+"device" {
			answer = "invalid_grant"
		}
		if answer != "" {
			refuse(w, answer)
			return
		}
	case "refresh_token":
		if a.down {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if a.revoked || r.FormValue("refresh_token") != a.refresh {
			if a.single {
				a.access = "" // a stolen token: all tokens are revoked
			}
			refuse(w, "invalid_grant")
			return
		}
		a.renewed++
	default:
		refuse(w, "unsupported_grant_type")
		return
	}
	a.issue(w, "bearer", a.lifetime)
}

func (a *authority) renewals() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.renewed
}

// visit acts as a browser that follows a link: it logs in, and returns the redirect.
func (a *authority) visit(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	if u.Path != "/authorize" || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("client_id") != "my-client" || q.Get("state") == "" {
		t.Errorf("the link: %s", link)
	}
	a.mu.Lock()
	a.challenge, a.redirect = q.Get("code_challenge"), q.Get("redirect_uri")
	a.mu.Unlock()
	return q.Get("redirect_uri") + "?" + url.Values{"code": {planted + "code"}, "state": {q.Get("state")}}.Encode()
}

// get follows a redirect and returns the status.
func get(t *testing.T, address string) int {
	t.Helper()
	resp, err := http.Get(address) //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// handClock is a clock that tests move; sleeping moves it.
type handClock struct {
	mu    sync.Mutex // guards the fields below
	at    time.Time
	slept []time.Duration
}

func newClock() *handClock { return &handClock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }

func (c *handClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *handClock) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *handClock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slept = append(c.slept, d)
	c.at = c.at.Add(d)
	return ctx.Err()
}
