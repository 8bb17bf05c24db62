package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// vault is an MCP server that requires a login, its login server, and a user's browser.
type vault struct {
	*httptest.Server
	mcp *mcpServer

	loginServer

	// Guarded by its mutex.
	scopes          []string            // of the valid token
	requestedScopes []string            // in the requests for authorisation
	clients         map[string][]string // redirects, by client
	answer          string              // the user's answer, if not a code
	issuer          string              // the issuer named in the answer, if not the login server
	visits          sync.WaitGroup
	silent          bool // the browser does nothing
	opened          chan string
	revoked         chan string
}

func newVault(t *testing.T) *vault {
	t.Helper()
	v := &vault{mcp: newMCPServer(t), clients: map[string][]string{}, opened: make(chan string, 8), revoked: make(chan string, 8)}
	mux := http.NewServeMux()
	v.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		v.CloseClientConnections()
		v.Close()
		v.visits.Wait()
	})
	mux.HandleFunc("/mcp", v.serve)
	object := func(path string, content map[string]any) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			v.noteClient(r)
			_ = json.NewEncoder(w).Encode(content)
		})
	}
	object("/meta", map[string]any{"resource": v.URL + "/mcp", "authorization_servers": []string{v.URL + "/tenant"}, "scopes_supported": []string{"read", "write", "admin"}})
	object("/.well-known/oauth-authorization-server/tenant", map[string]any{
		"issuer": v.URL + "/tenant", "authorization_endpoint": v.URL + "/authorize", "token_endpoint": v.URL + "/token",
		"registration_endpoint": v.URL + "/register", "revocation_endpoint": v.URL + "/revoke", "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"client_secret_basic"}, "authorization_response_iss_parameter_supported": true,
		"scopes_supported": []string{"read", "offline_access"},
	})
	mux.HandleFunc("POST /register", v.register)
	mux.HandleFunc("GET /authorize", v.authorize)
	mux.HandleFunc("POST /token", v.token)
	mux.HandleFunc("POST /revoke", func(w http.ResponseWriter, r *http.Request) {
		v.noteClient(r)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.revoked <- r.FormValue("token_type_hint") + " " + r.FormValue("token")
		if r.FormValue("token") == v.refresh {
			v.access, v.refresh = "", ""
		}
		w.WriteHeader(http.StatusOK)
	})
	return v
}

// serve is the MCP server. Listing requires the scope read, calling a tool requires write.
func (v *vault) serve(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body := &strings.Builder{}
	v.mu.Lock()
	good, may := token != "" && token == v.access, slices.Contains(v.scopes, "write")
	v.mu.Unlock()
	if !good {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="vault", resource_metadata="%s/meta", scope="read"`, v.URL))
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if r.Method == http.MethodPost {
		raw := make([]byte, r.ContentLength)
		_, _ = readFull(r.Body, raw)
		body.Write(raw)
		if strings.Contains(body.String(), `"tools/call"`) && !may {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="write", resource_metadata="%s/meta"`, v.URL))
			w.WriteHeader(http.StatusForbidden)
			return
		}
	}
	r.Body = noClose{strings.NewReader(body.String())}
	v.mcp.ServeHTTP(w, r)
}

func (v *vault) register(w http.ResponseWriter, r *http.Request) {
	v.noteClient(r)
	var wish struct {
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
		Kind      string   `json:"application_type"`
	}
	if err := json.NewDecoder(r.Body).Decode(&wish); err != nil || wish.Name != "ECA (Editor Code Assistant)" || len(wish.Redirects) != 1 || wish.Kind != "native" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	id := fmt.Sprint("client-", len(v.clients)+1)
	v.clients[id] = wish.Redirects
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, `{"client_id": %q, "client_secret": %q, "token_endpoint_auth_method": %q}`, id, planted+id, wish.Method)
}

func (v *vault) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requestedScopes = append(v.requestedScopes, q.Get("scope"))
	v.challenge, v.redirect = q.Get("code_challenge"), q.Get("redirect_uri")
	if !slices.Contains(v.clients[q.Get("client_id")], v.redirect) || q.Get("resource") != v.URL+"/mcp" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" {
		http.Error(w, "no", http.StatusBadRequest)
		return
	}
	answer := url.Values{"code": {planted + "code"}, "state": {q.Get("state")}, "iss": {v.URL + "/tenant"}}
	if v.answer != "" {
		answer.Del("code")
		answer.Set("error", v.answer)
	}
	if v.issuer != "" {
		answer.Set("iss", v.issuer)
	}
	v.scopes = strings.Fields(q.Get("scope"))
	http.Redirect(w, r, v.redirect+"?"+answer.Encode(), http.StatusFound)
}

func (v *vault) token(w http.ResponseWriter, r *http.Request) {
	v.noteClient(r)
	v.mu.Lock()
	defer v.mu.Unlock()
	id, secret, ok := r.BasicAuth()
	if !ok || secret != planted+id || v.clients[id] == nil || r.FormValue("resource") != v.URL+"/mcp" {
		refuse(w, "invalid_client")
		return
	}
	switch r.FormValue("grant_type") {
	case "authorization_code":
		if !v.hasValidCode(r) {
			refuse(w, "invalid_grant")
			return
		}
	case "refresh_token":
		if v.refresh == "" || r.FormValue("refresh_token") != v.refresh {
			refuse(w, "invalid_grant")
			return
		}
		v.renewed++
	default:
		refuse(w, "unsupported_grant_type")
		return
	}
	v.issue(w, "Bearer", 3600)
}

// open is the browser.
func (v *vault) open(_ context.Context, address string) error {
	v.opened <- address
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.silent {
		return fmt.Errorf("there is no display")
	}
	v.visits.Go(func() {
		if resp, err := http.Get(address); err == nil { //nolint:noctx // of a test
			_ = resp.Body.Close()
		}
	})
	return nil
}

// set changes the state of the vault.
func (v *vault) set(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
}

const vaultTape = `
cassette: 1
turns:
  - user: "look"
    steps:
      - calls: [{id: c1, tool: vault__look, arguments: {}}]
      - {text: "I looked."}
`

// vaultRig is a daemon with the vault among its servers. Planted secrets must not appear.
func vaultRig(t *testing.T, v *vault, c *handClock, state, server string) *loginRig {
	t.Helper()
	player, err := cassette.Parse([]byte(vaultTape))
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(player.Handler(nil))
	t.Cleanup(model.Close)
	cfg, err := json.Marshal(map[string]any{
		"providers":    map[string]any{"acme": map[string]any{"api": "openai-chat", "url": model.URL + "/v1", "key": "k", "models": map[string]any{"m": map[string]any{}}}},
		"defaultModel": "acme/m", "mcpServers": map[string]any{"vault": json.RawMessage(strings.ReplaceAll(server, "URL", v.URL))},
		"toolCall": map[string]any{"approval": map[string]any{"allow": map[string]any{"vault": map[string]any{}}}},
		"chat":     map[string]any{"title": false},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &loginRig{}
	r.start(t, daemon.Options{StateDir: state, Now: c.now, Sleep: c.sleep, OpenURL: v.open}, string(cfg), planted, nil)
	t.Cleanup(func() { v.onlyUs(t) })
	return r
}
