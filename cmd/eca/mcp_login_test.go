package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guardedMCP is an MCP server that wants a login, with its authorization server. It accepts one
// token.
func guardedMCP(t *testing.T, accepted string) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	object := func(pattern string, content map[string]any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(content)
		})
	}
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+accepted {
			answerMCP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer resource_metadata="%s/meta"`, s.URL))
		w.WriteHeader(http.StatusUnauthorized)
	})
	object("GET /meta", map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.URL}})
	object("GET /.well-known/oauth-authorization-server", map[string]any{
		"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token",
		"registration_endpoint": s.URL + "/register", "code_challenge_methods_supported": []string{"S256"},
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"client_id": "client-1", "token_endpoint_auth_method": "none"}`)
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		answer := url.Values{"code": {"code-1"}, "state": {q.Get("state")}}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	})
	object("POST /token", map[string]any{"access_token": "planted-token", "token_type": "Bearer", "expires_in": 3600})
	return s
}

// answerMCP answers a request to a server without tools.
func answerMCP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	switch err := json.NewDecoder(r.Body).Decode(&request); {
	case r.Method != http.MethodPost || err != nil:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case request.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set("Content-Type", "application/json")
		result := `{}`
		if request.Method == "initialize" {
			result = `{"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "guarded", "version": "1"}}`
		}
		fmt.Fprintf(w, `{"jsonrpc": "2.0", "id": %s, "result": %s}`, request.ID, result)
	}
}

// A user without an editor logs in to a remote MCP server, and out again.
func TestMCPLogin(t *testing.T) {
	s := guardedMCP(t, "planted-token")
	here := unconfiguredPlace(t)
	run := func(args ...string) string {
		t.Helper()
		out, errOut, _ := runProgram(t, here, "", append([]string{"mcp"}, args...)...)
		return out + errOut
	}
	run("add", "vault", s.URL+"/mcp")
	if said := run("login", "valt"); !strings.Contains(said, "there is no MCP server valt") || !strings.Contains(said, "vault") {
		t.Errorf("an unknown server: %s", said)
	}
	if said := run("logout", "vault"); said != "There was no login to vault.\n" {
		t.Errorf("logout before: %s", said)
	}

	out, said, err := loginToMCP(t, here)
	if err != nil || !strings.Contains(out, "Logged in to vault.") {
		t.Fatalf("%v\n%s%s", err, said, out)
	}
	if strings.Contains(said+out, "planted-token") {
		t.Error("the token is shown")
	}
	stored := filepath.Join(filepath.Dir(here.root), "state", "eca", "mcp", "credentials.json")
	if data, err := os.ReadFile(stored); err != nil || !strings.Contains(string(data), "planted-token") {
		t.Errorf("%s: %s, %v", stored, data, err)
	}
	if said := run("logout", "vault"); said != "Logged out of vault.\n" {
		t.Errorf("logout: %s", said)
	}
	if data, _ := os.ReadFile(stored); strings.Contains(string(data), "planted-token") {
		t.Error("the token is still stored")
	}
}

// A server that refuses the token that it has just given is not shown as one that works.
func TestMCPLoginRefused(t *testing.T) {
	s := guardedMCP(t, "another-token")
	here := unconfiguredPlace(t)
	runProgram(t, here, "", "mcp", "add", "vault", s.URL+"/mcp")
	out, said, err := loginToMCP(t, here)
	if err == nil || !strings.Contains(out, "Logged in to vault, but it does not work with that login.\nvault: requires-auth") {
		t.Errorf("%v\n%s%s", err, said, out)
	}
}

// loginToMCP logs in to the server vault as a user does who opens the address.
func loginToMCP(t *testing.T, here place) (stdout, stderr string, err error) {
	t.Helper()
	cmd := here.command("mcp", "login", "vault")
	cmd.Env = append(cmd.Env, "BROWSER=/nonexistent", "DISPLAY=", "WAYLAND_DISPLAY=")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`To log in to the MCP server vault, open (\S+)`)
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		stderr += lines.Text() + "\n"
		if m := address.FindStringSubmatch(lines.Text()); m != nil {
			resp, err := http.Get(m[1])
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	}
	err = cmd.Wait()
	return out.String(), stderr, err
}
