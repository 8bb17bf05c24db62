package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
)

// planted begins every secret of the scripted servers; it must not appear anywhere.
const planted = "planted-secret-"

// loginServer is the common part of the scripted login servers. Only the newest tokens are valid,
// and only a client with the code of the last login by browser gets tokens.
type loginServer struct {
	mu        sync.Mutex // guards the fields below, and further fields of the servers
	n         int        // of tokens
	access    string     // the valid token
	refresh   string     // the valid refresh token
	challenge string     // of the last login by browser
	redirect  string
	renewed   int // successful refresh requests
	agents    map[string]bool
}

// noteClient notes the client of a request.
func (s *loginServer) noteClient(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.agents == nil {
		s.agents = map[string]bool{}
	}
	s.agents[r.UserAgent()] = true
}

// onlyUs checks that only eca sent requests, under its name.
func (s *loginServer) onlyUs(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.agents) > 0 && (len(s.agents) != 1 || !s.agents["eca"]) {
		t.Errorf("the requests have the user agents %v, want only eca", s.agents)
	}
}

// hasValidCode reports whether a request for tokens has the code of the last login, and comes from
// the client that began it. The caller holds mu.
func (s *loginServer) hasValidCode(r *http.Request) bool {
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	return r.FormValue("code") == planted+"code" && base64.RawURLEncoding.EncodeToString(sum[:]) == s.challenge && r.FormValue("redirect_uri") == s.redirect
}

// issue answers with new tokens; lifetime is in seconds. The caller holds mu.
func (s *loginServer) issue(w http.ResponseWriter, kind string, lifetime int) {
	s.n++
	s.access, s.refresh = fmt.Sprint(planted, "access-", s.n), fmt.Sprint(planted, "refresh-", s.n)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token": %q, "refresh_token": %q, "token_type": %q, "expires_in": %d}`, s.access, s.refresh, kind, lifetime)
}

// refuse answers a request for tokens with an error.
func refuse(w http.ResponseWriter, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprintf(w, `{"error": %q, "error_description": "no"}`, code)
}

// start starts the daemon of a rig and its editor. cfg is its configuration. Texts that begin with
// secret must not appear in the log or be sent to the editor.
func (r *loginRig) start(t *testing.T, o daemon.Options, cfg, secret string, env map[string]string) {
	t.Helper()
	all := map[string]string{"XDG_CONFIG_HOME": filepath.Join(o.StateDir, "config"), "ECA_CONFIG": cfg, "OLLAMA_API_URL": noServer}
	for k, v := range env {
		all[k] = v
	}
	o.Getenv = func(k string) string { return all[k] }
	o.CacheDir = filepath.Join(o.StateDir, "cache")
	o.Log = slog.New(slog.NewTextHandler(r, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.Editor = connect(t, daemon.New(o))
	r.Open(tempDir(t), nil)
	r.Await(0, "the start", fake.Ready())
	t.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if strings.Contains(r.log.String(), secret) {
			t.Errorf("a secret is in the log:\n%s", r.log.String())
		}
		for _, m := range r.Since(0) {
			if strings.Contains(m.String(), secret) {
				t.Errorf("a secret was sent: %s", m)
			}
		}
	})
}
