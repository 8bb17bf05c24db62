package egress

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestHosts(t *testing.T) {
	hosts, err := NewHosts([]string{"Example.com.", "*.suffix.example", "@go", "10.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]bool{
		"example.com": true, "EXAMPLE.com.": true, "sub.example.com": false, "evil-example.com": false, "example.com.evil": false,
		"a.suffix.example": true, "a.b.suffix.example": true, "suffix.example": false, "asuffix.example": false,
		"proxy.golang.org": true, "golang.org": false, "10.0.0.1": true, "10.0.0.2": false, "": false,
	} {
		if got := hosts.Contain(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
	for _, bad := range []string{"@nothing", "", "*", "a/b", "http://x", "*.*.x", "a b"} {
		if _, err := NewHosts([]string{bad}); err == nil {
			t.Errorf("%q is taken for a host", bad)
		}
	}
}

// start serves a proxy and returns its address.
func start(t *testing.T, p *Proxy) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.Serve(l)
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
		p.Close()
	})
	return l.Addr().String()
}

func get(t *testing.T, proxy, address string, trusting *http.Client) (int, string) {
	t.Helper()
	via, err := url.Parse("http://" + proxy)
	if err != nil {
		t.Fatal(err)
	}
	base := trusting.Transport.(*http.Transport).Clone() //nolint:forcetypeassert // of httptest
	base.Proxy = http.ProxyURL(via)
	defer base.CloseIdleConnections()
	resp, err := (&http.Client{Transport: base}).Get(address)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body)
}

// Requests and tunnels reach listed addresses. The proxy refuses other ones, also if a listed name
// or a redirect leads there.
func TestProxy(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/away" {
			http.Redirect(w, r, "http://other.example/", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "reached "+r.Header.Get("Proxy-Connection"))
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	p := &Proxy{Hosts: func() Hosts { return Hosts{"127.0.0.1", "localhost"} }}
	proxy := start(t, p)
	client := p.NewClient([]string{"agreed.invalid:81"})
	defer client.Close()
	proxy = "eca:" + client.token + "@" + proxy
	for _, s := range []*httptest.Server{plain, secure} {
		if code, body := get(t, proxy, s.URL, s.Client()); code != 200 || body != "reached " {
			t.Errorf("%s: %d %s", s.URL, code, body)
		}
	}
	port := plain.URL[strings.LastIndexByte(plain.URL, ':'):]
	for address, want := range map[string]string{
		"http://localhost" + port:   "not on the public internet", // listed, but by a name that leads to this machine
		"http://127.0.0.2" + port:   "not in toolCall.sandboxHosts",
		"http://[::1]" + port:       "not in toolCall.sandboxHosts",
		"http://127.1" + port:       "not in toolCall.sandboxHosts",
		"http://other.example/":     "not in toolCall.sandboxHosts",
		plain.URL + "/away":         "not in toolCall.sandboxHosts",
		"https://other.example/":    "Forbidden",
		"http://agreed.invalid:81/": "cannot connect",
		"http://agreed.invalid:82/": "agreed.invalid:82: the host is not in toolCall.sandboxHosts",
	} {
		if code, body := get(t, proxy, address, secure.Client()); !strings.Contains(body, want) || code == 200 {
			t.Errorf("%s: %d %s", address, code, body)
		}
	}
	refused := client.Refused()
	for _, want := range []Refusal{{"other.example:443", true}, {"agreed.invalid:82", true}, {"localhost" + port, false}} {
		if !slices.Contains(refused, want) {
			t.Errorf("refused: %v, without %v", refused, want)
		}
	}
}

// The hosts that are allowed for one command, and the refusals that it gets, do not count for another
// command.
func TestClientsAreSeparate(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "reached "+r.Header.Get("Proxy-Authorization"))
	}))
	defer plain.Close()
	address := strings.TrimPrefix(plain.URL, "http://")
	p := &Proxy{Hosts: func() Hosts { return nil }}
	proxy := start(t, p)
	agreed, other := p.NewClient([]string{address}), p.NewClient(nil)
	for user, want := range map[string]int{"eca:" + agreed.token + "@": 200, "eca:" + other.token + "@": 403, "": 403, "eca:guessed@": 403} {
		if code, body := get(t, user+proxy, plain.URL, plain.Client()); code != want || code == 200 && body != "reached " {
			t.Errorf("%q: %d %s", user, code, body)
		}
	}
	if got := other.Refused(); len(got) != 1 || got[0] != (Refusal{address, true}) {
		t.Errorf("refused: %v", got)
	}
	agreed.Close()
	if code, _ := get(t, "eca:"+agreed.token+"@"+proxy, plain.URL, plain.Client()); code != 403 {
		t.Errorf("a request with the token of a command that has ended: %d", code)
	}
}

// The proxy answers invalid requests itself, and closes a connection with other input.
func TestProxyBadRequests(t *testing.T) {
	proxy := start(t, &Proxy{Hosts: func() Hosts { return Hosts{"127.0.0.1"} }})
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\nHost: x\r\n\r\n":                     "400",
		"GET ftp://127.0.0.1/ HTTP/1.1\r\nHost: x\r\n\r\n":      "400",
		"CONNECT 127.0.0.1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n": "400",
		"\x16\x03\x01\r\n\r\n":                                  "",
	} {
		c, err := net.Dial("tcp", proxy)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(c, request)
		answer, _ := io.ReadAll(c)
		_ = c.Close()
		if !strings.Contains(string(answer), want) || want == "" && len(answer) > 0 {
			t.Errorf("%q: %q", request, answer)
		}
	}
}
