package server_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

type noClose struct{ io.Reader }

func (noClose) Close() error { return nil }

func readFull(r io.Reader, into []byte) (int, error) { return io.ReadFull(r, into) }

const plainVault = `{"url": "URL/mcp?x=1"}`

var (
	vaultLocked = []string{"tool/serverUpdated", `"name":"vault","status":"requires-auth"`, `"hasAuth":false`}
	vaultOpen   = []string{"tool/serverUpdated", `"name":"vault","status":"running"`, `"hasAuth":true`, `"name":"look"`}
)

func vaultIs(of []string, more ...string) fake.Expectation {
	return fake.Contains(of[0], append(of[1:len(of):len(of)], more...)...)
}

// logInVault connects the vault, including the user's part.
func (r *loginRig) logInVault(v *vault) {
	mark := r.Mark()
	r.Notify("mcp/connectServer", map[string]any{"name": "vault"})
	r.Await(mark, "where to log in", fake.Contains("$/showMessage", `"type":"info"`, "vault", v.URL+"/authorize?"))
	r.Await(mark, "the login", fake.Contains("$/showMessage", `"type":"info"`, "logged in"))
	r.Await(mark, "it runs", vaultIs(vaultOpen))
}

// A login from the refusal to the tools. It survives a restart, is renewed with single-use tokens,
// and is revoked.
//
// Covers: mcp/connectServer, mcp/logoutServer
func TestMCPLogin(t *testing.T) {
	t.Parallel()
	v, c, state := newVault(t), newClock(), tempDir(t)
	r := vaultRig(t, v, c, state, plainVault)
	r.Await(0, "it wants a login", vaultIs(vaultLocked, `"error":"the server requires a login: `))
	r.logInVault(v)
	v.set(func() {
		if got := strings.Join(v.requestedScopes, "|"); got != "read offline_access" {
			t.Errorf("asked for %s", got)
		}
	})
	info, err := os.Stat(filepath.Join(state, "mcp", "credentials.json"))
	if err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("the file: %v, %v", info, err)
	}

	c.move(2 * time.Hour)
	again := vaultRig(t, v, c, state, plainVault)
	again.Await(0, "it runs", vaultIs(vaultOpen))
	v.set(func() {
		if v.renewed != 1 || len(v.clients) != 1 {
			t.Errorf("renewed %d times by %d clients", v.renewed, len(v.clients))
		}
		v.access = "" // before its expiry
	})
	mark := again.Mark()
	again.Notify("mcp/stopServer", map[string]any{"name": "vault"})
	again.Await(mark, "the stop", fake.Contains("tool/serverUpdated", `"name":"vault","status":"stopped"`))
	again.Notify("mcp/startServer", map[string]any{"name": "vault"})
	again.Await(mark, "it runs", vaultIs(vaultOpen))

	mark = again.Mark()
	again.Notify("mcp/logoutServer", map[string]any{"name": "vault"})
	again.Await(mark, "it wants a login", vaultIs(vaultLocked))
	raw, err := os.ReadFile(filepath.Join(state, "mcp", "credentials.json"))
	if err != nil || strings.Contains(string(raw), "vault") {
		t.Errorf("the login is still stored: %s, %v", raw, err)
	}
	if got := <-v.revoked; got != "refresh_token "+planted+"refresh-3" {
		t.Errorf("revoked %s, want the refresh token", got)
	}
}

// A server requires a further scope for a call: the model and the user are notified. The next login
// requests the old and the new scopes, with the same client.
func TestMCPLoginForAFurtherScope(t *testing.T) {
	t.Parallel()
	v, c := newVault(t), newClock()
	r := vaultRig(t, v, c, tempDir(t), plainVault)
	r.Await(0, "it wants a login", vaultIs(vaultLocked))
	r.logInVault(v)
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "look"})
	r.Await(mark, "the refusal", fake.Contains("chat/contentReceived", `"toolCalled"`, `"error":true`, "more permissions (write)"))
	r.Await(mark, "the status", fake.Contains("tool/serverUpdated", `"status":"requires-auth"`, `"hasAuth":true`, "more permissions (write); log in again"))
	r.Await(mark, "the end", fake.Finished())
	r.logInVault(v)
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "d", "message": "look"})
	r.Await(mark, "the result", fake.Contains("chat/contentReceived", `"toolCalled"`, `"error":null`, "seen"))
	r.Await(mark, "the end", fake.Finished())
	v.set(func() {
		if got := strings.Join(v.requestedScopes, "|"); got != "read offline_access|read offline_access write" && got != "read offline_access|read offline_access write offline_access" {
			t.Errorf("asked for %s", got)
		}
		v.scopes = []string{"read"} // it would refuse forever
	})
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "e", "message": "look"})
	r.Await(mark, "the refusal", fake.Contains("chat/contentReceived", `"toolCalled"`, `"error":true`, "403"))
	r.Await(mark, "the end", fake.Finished())
}

// An error is shown with its reason, and nothing is stored. A newer login replaces a waiting one.
func TestMCPLoginFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*vault)
		why    string
	}{
		"denied":         {func(v *vault) { v.answer = "access_denied" }, "denied"},
		"another issuer": {func(v *vault) { v.issuer = "https://elsewhere.example" }, "comes from a different login server"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVault(t)
			c.change(v)
			r := vaultRig(t, v, newClock(), tempDir(t), plainVault)
			r.Await(0, "it wants a login", vaultIs(vaultLocked))
			mark := r.Mark()
			r.Notify("mcp/connectServer", map[string]any{"name": "vault"})
			r.Await(mark, "the reason", fake.Contains("$/showMessage", `"type":"error"`, "vault", c.why))
			v.set(func() {
				if v.n != 0 {
					t.Error("the login server issued a token for a failed login")
				}
				v.answer, v.issuer, v.silent = "", "", true
			})
			<-v.opened
			mark = r.Mark()
			r.Notify("mcp/connectServer", map[string]any{"name": "vault"})
			r.Await(mark, "a link", fake.Contains("$/showMessage", `"type":"info"`, "To log in to the MCP server vault, open "+v.URL+"/authorize?"))
			first := <-v.opened
			r.Notify("mcp/connectServer", map[string]any{"name": "vault"})
			second := <-v.opened
			if first == second {
				t.Error("the second login opened the same address as the first")
			}
			if status := get(t, second); status != http.StatusOK {
				t.Errorf("the browser ended with %d", status)
			}
			r.Await(mark, "it runs", vaultIs(vaultOpen))
		})
	}
}

// The user's login in one editor counts in the others.
func TestMCPLoginInAnotherEditor(t *testing.T) {
	t.Parallel()
	v, c, state := newVault(t), newClock(), tempDir(t)
	first := vaultRig(t, v, c, state, plainVault)
	second := vaultRig(t, v, c, state, plainVault)
	first.Await(0, "it wants a login", vaultIs(vaultLocked))
	second.Await(0, "it wants a login", vaultIs(vaultLocked))
	mark := second.Mark()
	first.logInVault(v)
	second.Await(mark, "it runs there", vaultIs(vaultOpen))
}

// A token from the configuration replaces logins, and a login for one address does not count for
// another.
func TestMCPLoginIsForOneServer(t *testing.T) {
	t.Parallel()
	v, c, state := newVault(t), newClock(), tempDir(t)
	first := vaultRig(t, v, c, state, plainVault)
	first.Await(0, "it wants a login", vaultIs(vaultLocked))
	first.logInVault(v)
	other := newVault(t)
	r := vaultRig(t, other, c, state, plainVault)
	r.Await(0, "it wants a login", vaultIs(vaultLocked))
	r = vaultRig(t, v, c, state, `{"url": "URL/mcp", "authScope": "work"}`)
	r.Await(0, "it wants a login", vaultIs(vaultLocked))
	r = vaultRig(t, v, c, state, `{"url": "URL/mcp", "headers": {"authorization": "Bearer wrong"}}`)
	r.Await(0, "it wants a login", vaultIs(vaultLocked))
	mark := r.Mark()
	r.Notify("mcp/connectServer", map[string]any{"name": "vault"})
	r.Await(mark, "the reason", fake.Contains("$/showMessage", `"type":"error"`, "Authorization"))
}
