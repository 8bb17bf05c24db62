package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
	"github.com/seed-dec29ce4/eca/internal/netclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// authority is a login server, and the metadata of the MCP server at /mcp.
type authority struct {
	*httptest.Server
	metadata map[string]any

	mu      sync.Mutex // guards the fields below
	grants  []string
	clients []string // their redirects
	life    int
	now     time.Time
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{life: 3600, now: time.Unix(1e9, 0)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(a.metadata)
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var wish struct {
			Redirects []string `json:"redirect_uris"`
		}
		_ = json.NewDecoder(r.Body).Decode(&wish)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.clients = append(a.clients, wish.Redirects...)
		fmt.Fprintf(w, `{"client_id": "client-%d"}`, len(a.clients))
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		http.Redirect(w, r, q.Get("redirect_uri")+"?code=c&state="+q.Get("state"), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		defer a.mu.Unlock()
		id, _, _ := r.BasicAuth()
		a.grants = append(a.grants, r.FormValue("grant_type")+" "+r.FormValue("client_id")+id)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token": "token-%d", "token_type": "Bearer", "expires_in": %d}`, len(a.grants), a.life)
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	a.metadata = map[string]any{
		"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
		"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic"},
	}
	return a
}

func (a *authority) clock() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now
}

func (a *authority) accounts(t *testing.T) *Logins {
	t.Helper()
	network := netclient.New(func(string) string { return "" })
	t.Cleanup(network.Close)
	store := auth.New(t.TempDir(), nil)
	t.Cleanup(store.Close)
	return New(Deps{
		Store: func() *auth.Store { return store }, Now: a.clock, Log: slog.New(slog.DiscardHandler),
		HTTP: func() *http.Client { return network.Client(netclient.Options{Guarded: true}) },
	})
}

// browse logs in as a user who agrees.
func browse(t *testing.T, account *Account) error {
	t.Helper()
	var visit sync.WaitGroup
	defer visit.Wait()
	transport := &http.Transport{DisableKeepAlives: true}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return account.Login(ctx, func(url string) {
		visit.Go(func() {
			if resp, err := (&http.Client{Transport: transport}).Get(url); err == nil { //nolint:noctx // of a test
				_ = resp.Body.Close()
			}
		})
	})
}

// A login server that is unsafe or unusable is refused before a browser opens.
func TestLoginRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		value  any
		server Server
		why    string
	}{
		"no PKCE":         {"code_challenge_methods_supported", nil, Server{}, "PKCE"},
		"plain PKCE":      {"code_challenge_methods_supported", []string{"plain"}, Server{}, "PKCE"},
		"no registration": {"registration_endpoint", nil, Server{}, "set mcpServers.s.clientId"},
		"another issuer":  {"issuer", "https://x.example", Server{}, "not of the issuer"},
		"plain endpoint":  {"token_endpoint", "http://x.example/token", Server{}, "https://"},
		"odd endpoint":    {"authorization_endpoint", "javascript:alert(1)", Server{}, "https://"},
		"only clients":    {"grant_types_supported", []string{"client_credentials"}, Server{}, "clientSecret"},
		"plain HTTP":      {"issuer", "", Server{URL: "http://mcp.example/mcp"}, "https url"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			a.metadata[c.key] = c.value
			c.server.Key = "s#ws:1"
			if c.server.URL == "" {
				c.server.URL = a.URL + "/mcp"
			}
			account := a.accounts(t).Of(c.server)
			err := account.Login(t.Context(), func(url string) { t.Errorf("a browser was sent to %s", url) })
			if err == nil || !strings.Contains(err.Error(), c.why) || account.Exists() {
				t.Errorf("%v", err)
			}
		})
	}
}

// eca acts as the configured client, as the one that it registered here before, or as a new one.
func TestClients(t *testing.T) {
	a := newAuthority(t)
	logins := a.accounts(t)
	s := Server{Key: "s", URL: a.URL + "/mcp"}
	for range 2 {
		if err := browse(t, logins.Of(s)); err != nil {
			t.Fatal(err)
		}
	}
	a.metadata["issuer"] = a.URL + "/" // another issuer, by name
	s.ClientID, s.ClientSecret = "mine", "secret"
	if err := browse(t, logins.Of(s)); err != nil {
		t.Fatal(err)
	}
	document := Server{Key: "d", URL: a.URL + "/mcp", ClientID: "https://eca.example/client.json"}
	if err := browse(t, logins.Of(document)); err != nil { // the login server does not support such clients
		t.Fatal(err)
	}
	a.metadata["client_id_metadata_document_supported"] = true
	if err := browse(t, logins.Of(document)); err != nil {
		t.Fatal(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	const code = "authorization_code "
	want := code + "client-1|" + code + "client-1|" + code + "mine|" + code + "client-2|" + code + "https://eca.example/client.json"
	if got := strings.Join(a.grants, "|"); got != want {
		t.Errorf("came as %s", got)
	}
	if len(a.clients) != 2 || !strings.HasPrefix(a.clients[0], "http://localhost:") || !strings.HasSuffix(a.clients[0], "/auth/callback") {
		t.Errorf("registered: %v", a.clients)
	}
}

// Without a user, the client logs in automatically, and again when its token expires.
func TestClientLogsInItself(t *testing.T) {
	a := newAuthority(t)
	a.metadata["grant_types_supported"] = []string{"client_credentials"}
	account := a.accounts(t).Of(Server{Key: "s", URL: a.URL + "/mcp", ClientID: "i", ClientSecret: "s"})
	challenge := []string{`Bearer scope="a"`}
	if token, err := account.Token(t.Context()); token != "" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	for _, want := range []string{"token-1", "token-2"} {
		if token, err := account.Refused(t.Context(), http.StatusUnauthorized, challenge, ""); token != want || err != nil {
			t.Errorf("%q, %v", token, err)
		}
		if token, err := account.Token(t.Context()); token != want || err != nil {
			t.Errorf("%q, %v", token, err)
		}
		a.mu.Lock()
		a.now = a.now.Add(2 * time.Hour)
		a.mu.Unlock()
		if token, err := account.Token(t.Context()); token != "" || err != nil {
			t.Errorf("after its time: %q, %v", token, err)
		}
	}
	user := a.accounts(t).Of(Server{Key: "s", URL: a.URL + "/mcp"})
	var needed *NeededError
	if _, err := user.Refused(t.Context(), http.StatusUnauthorized, nil, ""); !errors.As(err, &needed) {
		t.Errorf("%v", err)
	}
	if token, err := user.Refused(t.Context(), http.StatusForbidden, []string{`Bearer error="insufficient_scope"`}, "x"); token != "" || err != nil {
		t.Errorf("a refusal that names nothing: %q, %v", token, err)
	}
}

// A login with too little permission does not justify a start of the server; another login does.
func TestUsable(t *testing.T) {
	a := newAuthority(t)
	account := a.accounts(t).Of(Server{Key: "s", URL: a.URL + "/mcp"})
	if account.Usable() {
		t.Error("Usable is true for an account without a login")
	}
	if err := browse(t, account); err != nil {
		t.Fatal(err)
	}
	token, err := account.Token(t.Context())
	if err != nil || token == "" || !account.Usable() {
		t.Fatalf("%q, %v", token, err)
	}
	var needed *NeededError
	more := []string{`Bearer error="insufficient_scope", scope="more"`}
	if _, err := account.Refused(t.Context(), http.StatusForbidden, more, token); !errors.As(err, &needed) || account.Usable() {
		t.Errorf("%v, usable %v", err, account.Usable())
	}
	if err := browse(t, account); err != nil || !account.Usable() {
		t.Errorf("after another login: %v", err)
	}
}

// Metadata cannot lead eca to this machine or a private network, unless the server is there.
func TestGuard(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer s.Close()
	network := netclient.New(func(string) string { return "" })
	defer network.Close()
	for _, inside := range []bool{false, true} {
		g := &guard{next: network.Client(netclient.Options{Guarded: true}).Transport, private: inside}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := g.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		if (err == nil) != inside || !inside && !strings.Contains(err.Error(), "private address") {
			t.Errorf("inside %v: %v", inside, err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	logins := New(Deps{Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		hosts := map[string][]netip.Addr{
			"intra.example": {netip.MustParseAddr("10.1.2.3")}, "mcp.example": {netip.MustParseAddr("1.1.1.1")},
			"both.example": {netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("1.1.1.1")},
		}
		if list, ok := hosts[host]; ok {
			return list, nil
		}
		return nil, errors.New("no such host")
	}})
	for address, want := range map[string]bool{
		"https://intra.example/mcp": true, "https://mcp.example": false, "https://both.example": false, "https://none.example": false,
		"http://127.0.0.1:1/": true, "http://[::1]/": true, "https://192.168.0.1": true, "https://1.1.1.1": false, "%": false,
	} {
		if got := logins.Of(Server{URL: address}).onPrivateNetwork(t.Context()); got != want {
			t.Errorf("%s is inside: %v", address, got)
		}
	}
}

func TestKey(t *testing.T) {
	for scope, want := range map[string]string{"": "s", "global": "s", "work": "s#scope:work"} {
		if got := Key("s", scope, []string{"/a"}); got != want {
			t.Errorf("%q: %s", scope, got)
		}
	}
	one, other := Key("s", "workspace", []string{"/a", "/b"}), Key("s", "workspace", []string{"/a"})
	if one == other || one != Key("s", "workspace", []string{"/b", "/a"}) || !strings.HasPrefix(one, "s#ws:") {
		t.Errorf("%s, %s", one, other)
	}
}

func TestScopes(t *testing.T) {
	old := auth.Credential{For: auth.Binding{Scope: "a b"}}
	all := oauth.Resource{Scopes: []string{"x", "y"}}
	for _, c := range []struct {
		said oauth.Challenge
		at   []string
		want string
	}{
		{oauth.Challenge{}, nil, "x y"},
		{oauth.Challenge{Scopes: []string{"c"}}, nil, "c"},
		{oauth.Challenge{Scopes: []string{"c"}}, []string{offline}, "c " + offline},
		{oauth.Challenge{Scopes: []string{"c", "b"}, Error: "insufficient_scope"}, nil, "a b c"},
	} {
		if got := strings.Join(scopes(c.said, all, oauth.Authority{Scopes: c.at}, old), " "); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := scopes(oauth.Challenge{}, oauth.Resource{}, oauth.Authority{Scopes: []string{offline}}, old); len(got) != 0 {
		t.Errorf("without scopes in the challenge and the metadata, the login requests %v", got)
	}
}
