package mcp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
)

// versionStore remembers the versions of servers beyond the life of a manager, as the daemon does.
type versionStore struct {
	mu     sync.Mutex
	spoken map[string]string
}

func (k *versionStore) use(r *rig, _ *Settings) {
	r.m.deps.LastVersion = func(server string, _ config.MCPServer) string {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.spoken[server]
	}
	r.m.deps.SaveVersion = func(server string, _ config.MCPServer, version string) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.spoken[server] = version
	}
}

// shortenWaits makes all waits short.
func shortenWaits(r *rig, _ *Settings) {
	r.m.handshakeLimits = handshakeLimits{probe: 50 * time.Millisecond, remote: 50 * time.Millisecond, stuck: 50 * time.Millisecond}
}

// eca speaks the newest version that it shares with a program, without any configuration, and tries
// that version first the next time.
func TestNewestVersionWithoutConfiguration(t *testing.T) {
	for mode, want := range map[string]struct{ version, first, next string }{
		"modern":    {"2026-07-28", "server/discover", "server/discover"},
		"both":      {"2026-07-28", "server/discover", "server/discover"},
		"good":      {"2025-06-18", "server/discover initialize", "initialize"},
		"odd":       {"2025-06-18", "server/discover initialize", "initialize"},
		"agreeable": {"2025-06-18", "server/discover initialize", "initialize"},
		"candid":    {"2025-06-18", "server/discover initialize", "initialize"},
		"deaf":      {"2025-06-18", "server/discover initialize", "initialize"},
		"fragile":   {"2025-06-18", "initialize", "initialize"}, // of the second process
		"late":      {"2026-07-28", "server/discover initialize", ""},
		"newer":     {"2026-07-28", "server/discover initialize", "server/discover initialize"},
	} {
		t.Run(mode, func(t *testing.T) {
			known := &versionStore{spoken: map[string]string{}}
			for _, shook := range []string{want.first, want.next} {
				if shook == "" {
					continue
				}
				r := newRig(t, map[string]string{"s": mode}, known.use, func(r *rig, _ *Settings) {
					if mode == "deaf" || mode == "late" {
						r.m.handshakeLimits.probe = time.Millisecond
					}
				})
				if s := r.await("s", Running); s.Offer.Protocol != want.version {
					t.Errorf("the agreed version is %s, want %s", s.Offer.Protocol, want.version)
				}
				if got := r.text("s", "handshake", `{}`); got != shook {
					t.Errorf("the server received the handshake %q, want %q", got, shook)
				}
				r.m.Close()
			}
		})
	}
}

// A program that stops reading after an unknown question is restarted once.
func TestStuckProgramStartsAgain(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: whether a program has read its input is known on Linux only")
	}
	known := &versionStore{spoken: map[string]string{}}
	r := newRig(t, map[string]string{"s": "stuck"}, known.use, shortenWaits)
	r.await("s", Running)
	if got := r.text("s", "handshake", `{}`); got != "initialize" || known.spoken["s"] != "2025-06-18" {
		t.Errorf("the restarted server received the handshake %q, and eca remembers %v", got, known.spoken)
	}
}

// The error lists versions that eca does not know.
func TestUnknownVersionIsNamed(t *testing.T) {
	for _, mode := range []string{"future", "beyond"} {
		r := newRig(t, map[string]string{"s": mode})
		if s := r.await("s", Failed); !strings.Contains(s.Reason, `"2031-01-01"`) {
			t.Errorf("%s: %q", mode, s.Reason)
		}
		r.m.Close()
	}
}

// Remote servers that predate the newest version react to it in many ways. eca falls back to the
// older version with each of them.
func TestRemoteServersOfAllAges(t *testing.T) {
	for name, discover := range map[string]http.HandlerFunc{
		"refuses": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no session", http.StatusBadRequest) },
		"crashes": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "boom", http.StatusInternalServerError) },
		"greets":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") },
		"accepts": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) },
		"breaks":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"hangs": func(_ http.ResponseWriter, req *http.Request) {
			_, _ = io.Copy(io.Discard, req.Body) // so that the end of the request is noticed
			<-req.Context().Done()
		},
		"agreeable": nil, // an empty result
	} {
		t.Run(name, func(t *testing.T) {
			old := newScriptedHTTP(t, noStream, noStream)
			var mu sync.Mutex
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				if discover != nil && req.Header.Get("Mcp-Method") == "server/discover" {
					mu.Lock()
					asked++
					mu.Unlock()
					discover(w, req)
					return
				}
				old.ServeHTTP(w, req)
			}))
			t.Cleanup(func() {
				server.CloseClientConnections()
				server.Close()
			})
			known := &versionStore{spoken: map[string]string{}}
			for range 2 {
				r := newRig(t, map[string]string{"s": server.URL}, known.use, func(r *rig, _ *Settings) {
					if name == "hangs" || name == "accepts" {
						r.m.handshakeLimits.remote = 50 * time.Millisecond
					}
				})
				if s := r.await("s", Running); s.Offer.Protocol != "2025-11-25" {
					t.Errorf("the agreed version is %q", s.Offer.Protocol)
				}
				r.m.Close()
			}
			mu.Lock()
			defer mu.Unlock()
			if discover != nil && asked != 1 {
				t.Errorf("the server was asked %d times for its versions, want once", asked)
			}
		})
	}
}
