package fetch

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/netclient"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// getter returns a Getter that uses no proxy unless env names one.
func getter(t *testing.T, rules Rules, env map[string]string) *Getter {
	t.Helper()
	network := netclient.New(func(name string) string { return env[name] })
	t.Cleanup(network.Close)
	return New(network, rules, "eca-test")
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "::ffff:8.8.8.8": true, "64:ff9b::808:808": true, "2002:808:808::1": true, "172.32.0.1": true, "100.128.0.1": true,
		"127.0.0.1": false, "127.9.9.9": false, "::1": false, "::ffff:127.0.0.1": false, "::ffff:7f00:1": false, "::127.0.0.1": false, "::": false,
		"10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.0.1": false, "::ffff:10.0.0.1": false, "fc00::1": false, "fd00:ec2::254": false,
		"169.254.169.254": false, "fe80::1": false, "fe80::1%eth0": false, "100.64.0.1": false, "0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "ff02::1": false,
		"255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.2.1": false, "168.63.129.16": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false, "2002:c0a8:1::1": false, "2001:0:1::1": false, "2001:db8::1": false, "fec0::1": false,
	} {
		if got := Public(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v", address, got)
		}
	}
}

func TestCheck(t *testing.T) {
	rules := Rules{Deny: []string{"Evil.example", "*.bad.example"}, Private: []string{"wiki.corp.example", "10.1.0.0/16", "::1"}}
	for address, ok := range map[string]bool{
		"https://example.com/a?b=c#d": true, "http://example.com:8080": true, " https://example.com ": true, "https://EXAMPLE.com.": true, "https://bücher.example/": true,
		"ftp://example.com": false, "file:///etc/passwd": false, "gopher://x": false, "javascript:1": false, "//example.com": false, "example.com": false, "": false,
		"https://user:secret@example.com": false, "https://user@example.com": false, "https://": false, "https://:80": false, "https://exa mple.com": false,
		"https://evil.example": false, "https://a.EVIL.example./": false, "https://notevil.example": true, "https://evil.example.org": true, "https://bad.example": false,
		"http://localhost": false, "http://LOCALHOST.": false, "http://a.localhost": false, "http://127.0.0.1": false, "http://[::1]": true, "http://[::ffff:127.0.0.1]": false,
		"http://0x7f000001": false, "http://2130706433": false, "http://127.1": false, "http://0177.0.0.1": false, "http://[fe80::1%25lo]": false, "http://169.254.169.254/latest": false,
		"http://10.1.2.3": true, "http://10.2.2.3": false, "http://[::ffff:10.1.2.3]": true, "http://wiki.corp.example": true, "http://１２７.0.0.1": false, "http://a\x00b": false,
		"https://example.com/" + strings.Repeat("a", maxURL): false,
	} {
		if err := getter(t, rules, nil).Check(address); (err == nil) != ok {
			t.Errorf("%.100q: %v", address, err)
		}
	}
	only := getter(t, Rules{Allow: []string{"docs.example"}}, nil)
	for address, ok := range map[string]bool{"https://docs.example": true, "https://go.docs.example": true, "https://mydocs.example": false, "https://docs.example.org": false} {
		if err := only.Check(address); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// Get does not follow a redirect to an address that it would refuse itself. It decides about the
// address of a name when it dials that address.
func TestNoWayIn(t *testing.T) {
	var reached atomic.Int32
	secret := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer secret.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(secret.URL, "http://"), ":")
	targets := []string{
		secret.URL, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0x7f000001:" + port, "http://127.1:" + port, "http://u:p@entry.example",
		"file:///etc/passwd", "http://169.254.169.254/", "http://denied.example/",
	}
	entry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var i int
		fmt.Sscanf(r.URL.Path, "/%d", &i)
		http.Redirect(w, r, targets[i], http.StatusFound)
	}))
	defer entry.Close()
	// The entry is reached by a name that the guard excepts; a proxy of ours stands for the
	// name server.
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Hostname() != "entry.example" {
			reached.Add(1)
			return
		}
		resp, err := entry.Client().Transport.RoundTrip(mustRequest(r.Context(), entry.URL+r.URL.Path))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer resp.Body.Close()
		w.Header().Set("Location", resp.Header.Get("Location"))
		w.WriteHeader(resp.StatusCode)
	}))
	defer proxy.Close()
	g := getter(t, Rules{Deny: []string{"denied.example"}}, map[string]string{"http_proxy": proxy.URL})
	for i, target := range targets {
		if page, err := g.Get(t.Context(), fmt.Sprintf("http://entry.example/%d", i), MaxBytes); err == nil {
			t.Errorf("%s: %+v", target, page)
		}
	}
	// The name itself is not refused. Its address is refused when it is dialed.
	network := netclient.New(func(string) string { return "" })
	defer network.Close()
	var asked []string
	ctx := netclient.WithGuard(t.Context(), func(a netip.AddrPort) error {
		asked = append(asked, a.Addr().Unmap().String())
		return (&Getter{}).mayDial("innocent.example", a.Addr())
	})
	client := network.Client(netclient.Options{Guarded: true})
	_, err := client.Do(mustRequest(ctx, "http://localhost:"+port))
	var refused *netclient.Error
	if !errors.As(err, &refused) || refused.Kind != netclient.KindForbidden || len(asked) == 0 || !strings.Contains(err.Error(), "not on the public internet") {
		t.Errorf("dialed %v: %v", asked, err)
	}
	if _, err := client.Do(mustRequest(t.Context(), secret.URL)); !errors.As(err, &refused) || refused.Kind != netclient.KindForbidden {
		t.Errorf("without a guard: %v", err)
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("%d requests reached a server that they must not reach", n)
	}
}

func mustRequest(ctx context.Context, address string) *http.Request {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		panic(err)
	}
	return req
}

func TestGet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/long":
			_, _ = w.Write([]byte(strings.Repeat("0123456789", 100)))
		case "/bomb": // 100 MB in 100 KB
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			block := make([]byte, 1<<20)
			for range 100 {
				if _, err := z.Write(block); err != nil {
					return
				}
			}
		case "/endless":
			_, _ = w.Write([]byte("and so on"))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		case "/huge":
			_, _ = w.Write(make([]byte, MaxBytes+10))
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/to":
			http.SetCookie(w, &http.Cookie{Name: "c", Value: "1"})
			http.Redirect(w, r, "/what", http.StatusFound)
		case "/what":
			fmt.Fprintf(w, "%s %q %q %q %s", r.Method, r.Header["Cookie"], r.Header["Authorization"], r.Header["Referer"], r.UserAgent())
		case "/broken":
			w.Header().Set("Content-Length", "1000")
			_, _ = w.Write([]byte("short"))
		default:
			http.Error(w, "no such page", http.StatusNotFound)
		}
	}))
	defer server.Close()
	g := getter(t, Rules{Private: []string{"127.0.0.1"}}, nil)
	for path, want := range map[string]string{
		"/long":   "200 0123456789 true",
		"/bomb":   "200 " + strings.Repeat("\x00", 10) + " true",
		"/nope":   "404 no such pa true",
		"/loop":   "!more than 5 redirects",
		"/broken": "!broke off",
	} {
		limit := 10
		if path == "/broken" {
			limit = 100
		}
		page, err := g.Get(t.Context(), server.URL+path, limit)
		if cause, failed := strings.CutPrefix(want, "!"); failed {
			if err == nil || !strings.Contains(err.Error(), cause) {
				t.Errorf("%s: %v", path, err)
			}
		} else if err != nil || fmt.Sprintf("%d %s %v", page.Status, page.Body, page.Cut) != want {
			t.Errorf("%s: %+v, %v", path, page, err)
		}
	}
	// Content beyond the limit is not even unpacked.
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _ = g.Get(t.Context(), server.URL+"/bomb", 10)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 32<<20 {
		t.Errorf("%d bytes were allocated for 10", allocated)
	}
	if page, err := g.Get(t.Context(), server.URL+"/huge", MaxBytes*2); err != nil || len(page.Body) != MaxBytes || !page.Cut {
		t.Errorf("huge: %v", err)
	}
	page, err := g.Get(t.Context(), server.URL+"/to#part", MaxBytes*2)
	if err != nil || string(page.Body) != `GET [] [] [] eca-test` || page.URL != server.URL+"/what" || page.Cut {
		t.Errorf("%+v, %v", page, err)
	}
	late := getter(t, Rules{Private: []string{"127.0.0.1"}}, nil)
	late.timeout = 50 * time.Millisecond
	if _, err := late.Get(t.Context(), server.URL+"/endless", 100); err == nil || !strings.Contains(err.Error(), "did not arrive within 50ms") {
		t.Errorf("endless: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Get(ctx, server.URL+"/long", 10); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Get does not follow a redirect from https to http.
func TestRedirectOutOfTLS(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("plain")) }))
	defer plain.Close()
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.der")
	if err := os.WriteFile(ca, server.Certificate().Raw, 0o600); err != nil {
		t.Fatal(err)
	}
	identity, problems := netclient.Read(netclient.Files{CA: []netclient.Source{{Name: "test", Path: ca}}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	network := netclient.New(func(string) string { return "" })
	defer network.Close()
	network.Use(identity)
	g := New(network, Rules{Private: []string{"127.0.0.1"}}, "eca-test")
	if page, err := g.Get(t.Context(), server.URL, 100); err == nil || !strings.Contains(err.Error(), "leads from https to http") {
		t.Errorf("%+v, %v", page, err)
	}
}

// An address that check accepts has a host that may be public and is not denied.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"http://example.com", "http://[::ffff:7f00:1]", "http://0x7f.1", "http://a@b", "http://１２７。0。0。1", "http://localhost%00", "http://[::1]:80\\@example.com"} {
		f.Add(s)
	}
	network := netclient.New(func(string) string { return "" })
	g := New(network, Rules{Deny: []string{"denied.example"}}, "")
	f.Fuzz(func(t *testing.T, address string) {
		u, err := g.parse(address)
		if err != nil {
			return
		}
		again, err := url.Parse(u.String())
		if err != nil || again.Host != u.Host || again.User != nil || again.Scheme != "http" && again.Scheme != "https" {
			t.Fatalf("%q became %q: %v", address, u, err)
		}
		if a, err := netip.ParseAddr(again.Hostname()); err == nil && !Public(a) {
			t.Errorf("%q leads to %s", address, a)
		}
		if strings.HasSuffix("."+strings.ToLower(again.Hostname()), ".denied.example") {
			t.Errorf("%q leads to a denied host", address)
		}
	})
}
