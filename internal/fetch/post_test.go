package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// poster returns a Poster that uses no proxy unless env names one.
func poster(t *testing.T, rules Rules, env map[string]string) *Poster {
	t.Helper()
	network := netclient.New(func(name string) string { return env[name] })
	t.Cleanup(network.Close)
	rules.Section = "a2a.push"
	return NewPoster(network, rules, "eca-test")
}

func TestPostCheck(t *testing.T) {
	p := poster(t, Rules{Private: []string{"hooks.corp.example", "10.1.0.0/16", "127.0.0.1"}, Deny: []string{"evil.example"}}, nil)
	for address, ok := range map[string]bool{
		"https://example.com/hook": true, "http://example.com/hook": false, "https://evil.example": false,
		"http://hooks.corp.example": true, "http://a.hooks.corp.example": true, "http://nothooks.corp.example": false,
		"http://10.1.2.3": true, "http://10.2.2.3": false, "https://10.2.2.3": false, "http://8.8.8.8": false, "https://8.8.8.8": true,
		"http://127.0.0.1:8080/x": true, "http://localhost:8080/x": true, "http://localhost.localdomain/x": false, "http://127.0.0.2/x": false, "https://[::1]/x": false,
		"https://169.254.169.254/latest/meta-data": false, "https://u:p@example.com": false, "ftp://example.com": false, "example.com": false, "": false,
		"https://[fe80::1]/": false, "https://0x7f.1/": false, "https://2130706433/": false, "https://a.localhost/": true,
	} {
		if err := p.Check(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	strict := poster(t, Rules{}, nil)
	for _, address := range []string{"http://localhost/x", "https://localhost/x", "https://a.localhost/", "http://example.com"} {
		err := strict.Check(address)
		if err == nil || !strings.Contains(err.Error(), "a2a.push.privateHosts") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Post sends a notification unchanged, returns only the status of the answer, and follows no
// redirect.
func TestPost(t *testing.T) {
	var followed atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hook":
			body, _ := io.ReadAll(r.Body)
			if got := fmt.Sprintf("%s %s %s %s %s", r.Method, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.UserAgent(), body); got != "POST application/json Bearer abc eca-test {}" {
				t.Error(got)
			}
			w.WriteHeader(http.StatusAccepted)
		case "/away":
			http.Redirect(w, r, "/followed", http.StatusTemporaryRedirect)
		case "/followed":
			followed.Add(1)
		case "/endless":
			for {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		case "/silent":
			<-r.Context().Done()
		}
	}))
	defer server.Close()
	p := poster(t, Rules{Private: []string{"127.0.0.1"}}, nil)
	header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer abc"}}
	for path, want := range map[string]int{"/hook": 202, "/away": 307, "/endless": 200} {
		if status, err := p.Post(t.Context(), server.URL+path, header, []byte("{}")); status != want || err != nil {
			t.Errorf("%s: %d, %v", path, status, err)
		}
	}
	if followed.Load() > 0 {
		t.Error("a redirect was followed")
	}
	late := poster(t, Rules{Private: []string{"127.0.0.1"}}, nil)
	late.timeout = 50 * time.Millisecond
	if _, err := late.Post(t.Context(), server.URL+"/silent", header, nil); err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("silent: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Post(ctx, server.URL+"/hook", header, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Post refuses a name that leads to this machine when it dials, also if the name led elsewhere
// before.
func TestPostWhereNamesLead(t *testing.T) {
	var reached atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.der")
	if err := os.WriteFile(ca, server.Certificate().Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	identity, problems := netclient.Read(netclient.Files{CA: []netclient.Source{{Name: "test", Path: ca}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p := poster(t, Rules{}, nil)
	p.getter.network.Use(identity)
	// An address that stands for a name whose answer changed: it was checked as one of the internet,
	// and is dialed here.
	changing := &guardedTransport{p.getter, p.getter.network.Client(netclient.Options{Guarded: true}).Transport}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://innocent.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(strings.TrimPrefix(server.URL, "https://"))
	ctx := netclient.WithGuard(t.Context(), func(a netip.AddrPort) error { return p.getter.mayDial("innocent.example", a.Addr()) })
	direct := req.Clone(ctx)
	direct.URL.Host = at.String()
	var refused *netclient.Error
	if resp, err := changing.next.RoundTrip(direct); !errors.As(err, &refused) || refused.Kind != netclient.KindForbidden || !strings.Contains(err.Error(), "innocent.example is at 127.0.0.1") {
		t.Errorf("%v, %v", resp, err)
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d notifications reached this machine", n)
	}
	// The certificate is that of the server: nothing but the guard is in the way.
	open := poster(t, Rules{Private: []string{"127.0.0.0/8"}}, nil)
	open.getter.network.Use(identity)
	if status, err := open.Post(t.Context(), server.URL, nil, nil); err != nil || status != 200 || reached.Load() != 1 {
		t.Errorf("%d, %v", status, err)
	}
}
