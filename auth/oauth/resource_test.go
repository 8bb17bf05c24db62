package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

func testClient(t *testing.T) *Client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{HTTP: &http.Client{Transport: transport}, Now: time.Now}
}

// site answers some paths, and keeps in which order it was asked.
func site(t *testing.T, answers map[string]string) (at string, asked func() []string) {
	var mu sync.Mutex
	var paths []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths = append(paths, r.URL.Path)
		mu.Unlock()
		answer, ok := answers[r.URL.Path]
		switch {
		case !ok:
			http.NotFound(w, r)
		case strings.HasPrefix(answer, "status "):
			var status int
			_, _ = fmt.Sscanf(answer, "status %d", &status)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		default:
			_, _ = w.Write([]byte(strings.ReplaceAll(answer, "HERE", "http://"+r.Host)))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return paths
	}
}

// eca reads a server's metadata at the address that the server names, else before the server's
// path, else at its root. It ignores metadata of another server.
func TestResource(t *testing.T) {
	const places = "/.well-known/oauth-protected-resource"
	for name, c := range map[string]struct {
		answers map[string]string
		said    string
		id      string
		asked   string
		why     string
	}{
		"where it says":    {map[string]string{"/m": `{"resource": "HERE/a/b"}`}, "/m", "/a/b", "/m", ""},
		"its path":         {map[string]string{places + "/a/b": `{"resource": "HERE/a/b"}`}, "", "/a/b", places + "/a/b", ""},
		"its root":         {map[string]string{places: `{"resource": "HERE"}`}, "", "", places + "/a/b " + places, ""},
		"said wrongly":     {map[string]string{places: `{"resource": "HERE/"}`}, "/m", "/", "/m " + places + "/a/b " + places, ""},
		"a page":           {map[string]string{places + "/a/b": `<html>`, places: `{"resource": "HERE/a"}`}, "", "/a", places + "/a/b " + places, ""},
		"none":             {nil, "", "", places + "/a/b " + places, "no metadata"},
		"another path":     {map[string]string{places: `{"resource": "HERE/a/bc"}`}, "", "", places + "/a/b " + places, "not of this server"},
		"another host":     {map[string]string{places: `{"resource": "http://x.example/a/b"}`}, "", "", places + "/a/b " + places, "not of this server"},
		"nobody":           {map[string]string{places: `{}`}, "", "", places + "/a/b " + places, "not of this server"},
		"out of order":     {map[string]string{places + "/a/b": "status 503"}, "", "", places + "/a/b " + places, "status 503"},
		"a redirect":       {map[string]string{places + "/a/b": "status 302", "/elsewhere": `{"resource": "HERE/a/b"}`}, "", "", places + "/a/b " + places, "no metadata"},
		"in need of a key": {map[string]string{places + "/a/b": "status 401"}, "", "", places + "/a/b " + places, "no metadata"},
	} {
		t.Run(name, func(t *testing.T) {
			at, asked := site(t, c.answers)
			said := c.said
			if said != "" {
				said = at + said
			}
			r, err := testClient(t).Resource(context.Background(), at+"/a/b", said)
			if got := strings.Join(asked(), " "); got != c.asked {
				t.Errorf("asked %s", got)
			}
			if c.why != "" {
				if err == nil || !strings.Contains(err.Error(), c.why) || errors.Is(err, ErrNoMetadata) != (c.why == "no metadata") {
					t.Errorf("%v", err)
				}
			} else if err != nil || r.ID != at+c.id {
				t.Errorf("%+v, %v", r, err)
			}
		})
	}
	if _, err := testClient(t).Resource(context.Background(), "https://x.invalid/a", "http://x.example/meta"); err == nil || !strings.Contains(err.Error(), "https://") {
		t.Errorf("over plain HTTP: %v", err)
	}
}

func TestCanonical(t *testing.T) {
	for address, want := range map[string]string{
		"HTTPS://MCP.Example/Path/?a=b#c": "https://mcp.example/Path",
		"https://mcp.example":             "https://mcp.example",
		"http://[::1]:8080/":              "http://[::1]:8080",
	} {
		if got := Canonical(address); got != want {
			t.Errorf("%s: %s", address, got)
		}
	}
	for _, c := range []struct {
		resource, server string
		want             bool
	}{
		{"https://x/a", "https://x:443/a/", true},
		{"https://x", "https://X/a", true},
		{"https://x/a/b", "https://x/a", false},
		{"http://x", "https://x", false},
		{"https://x:1", "https://x", false},
		{"https://x/#f", "https://x/", false},
		{"", "https://x", false},
	} {
		if got := covers(c.resource, c.server); got != c.want {
			t.Errorf("%s covers %s: %v", c.resource, c.server, got)
		}
	}
}

// A client is registered with what the server wants of it, and refused with its reason.
func TestRegister(t *testing.T) {
	for name, c := range map[string]struct {
		status      int
		answer, why string
	}{
		"all right": {http.StatusCreated, `{"client_id": "i", "client_secret": "s"}`, ""},
		"refused":   {http.StatusBadRequest, `{"error": "invalid_redirect_uri", "error_description": "no\nlocalhost"}`, "invalid_redirect_uri: no localhost"},
		"closed":    {http.StatusForbidden, `<html>`, "status 403"},
		"nobody":    {http.StatusCreated, `{}`, "without an id"},
		"too late":  {http.StatusOK, `{"client_id": "i", "client_secret": "s", "client_secret_expires_at": 5}`, "expired"},
		"nonsense":  {http.StatusOK, `[`, "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			var wish map[string]any
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_ = json.NewDecoder(r.Body).Decode(&wish)
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer s.Close()
			a := Authority{Register: s.URL, SecretMethods: []string{"client_secret_post"}}
			got, err := testClient(t).Register(context.Background(), a, "eca", "http://localhost:1/cb", []string{"a", "b"})
			if c.why != "" {
				if err == nil || !strings.Contains(err.Error(), c.why) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || got != (Registration{"i", "s", ""}) || fmt.Sprint(wish["redirect_uris"]) != "[http://localhost:1/cb]" ||
				wish["token_endpoint_auth_method"] != "client_secret_post" || wish["scope"] != "a b" {
				t.Errorf("%+v, %v; asked for %v", got, err, wish)
			}
			if p := a.As(got); p.ClientSecret != "s" || p.SecretInHeader {
				t.Errorf("%+v", p)
			}
		})
	}
	for _, c := range []struct {
		offered      []string
		secret, want string
	}{
		{nil, "", "none"},
		{nil, "s", "client_secret_basic"},
		{[]string{"client_secret_post", "client_secret_basic"}, "s", "client_secret_basic"},
		{[]string{"client_secret_post"}, "", "client_secret_post"},
		{[]string{"none", "client_secret_basic"}, "", "none"},
		{[]string{"private_key_jwt"}, "s", "client_secret_basic"},
	} {
		if got := (Authority{SecretMethods: c.offered}).Method(c.secret); got != c.want {
			t.Errorf("%v with %q: %s", c.offered, c.secret, got)
		}
	}
}

// The answer to the browser counts only if it comes from the server that was asked.
func TestAnswerNamesItsServer(t *testing.T) {
	for _, c := range []struct {
		named string
		must  bool
		query string
		want  bool
	}{
		{"https://a", true, "iss=https://a", true},
		{"https://a", false, "", true},
		{"https://a", true, "", false},
		{"https://a", false, "iss=https://b", false},
		{"https://a", true, "iss=https://a/", false},
		{"https://a", false, "iss=", false},
		{"", false, "iss=https://b", true},
	} {
		b := &BrowserLogin{state: "s", provider: Provider{ResponseIssuer: c.named, SendsIssuer: c.must}}
		q, err := url.ParseQuery("state=s&code=c&" + c.query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.read(q); (err == nil) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A redirect by https has a certificate of its own; one that was prepared and not used
// leaves nothing behind.
func TestLand(t *testing.T) {
	c := testClient(t)
	b, err := c.Land("https://localhost:0/auth/callback")
	if err != nil || b.Pasting || !strings.HasPrefix(b.Redirect, "https://localhost:") {
		t.Fatalf("%+v, %v", b, err)
	}
	if err := b.Begin(Provider{AuthorizeURL: "https://x.example/a", TokenURL: "https://x.example/t", ClientID: "c", Resource: "https://mcp.example"}); err != nil {
		t.Fatal(err)
	}
	if u, err := url.Parse(b.URL); err != nil || u.Query().Get("resource") != "https://mcp.example" || u.Query().Get("redirect_uri") != b.Redirect {
		t.Errorf("%s, %v", b.URL, err)
	}
	if _, err := c.HTTP.Get(b.Redirect); err == nil || !strings.Contains(err.Error(), "certificate") { //nolint:noctx,bodyclose // it has none
		t.Errorf("an unknown certificate: %v", err)
	}
	b.Close()
	unused, err := c.Land("http://localhost:0/x")
	if err != nil {
		t.Fatal(err)
	}
	unused.Close()
	if again, err := c.Land(unused.Redirect); err != nil || again.Pasting {
		t.Errorf("its port is still taken: %v", err)
	} else {
		again.Close()
	}
}
