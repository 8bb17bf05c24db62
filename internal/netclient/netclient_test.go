package netclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is for connections that are open at the same time, on a busy machine too.
const limit = time.Minute

func network(t testing.TB, env map[string]string, files Files) *Network {
	t.Helper()
	n := New(func(name string) string { return env[name] })
	id, problems := Read(files)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	n.Use(id)
	t.Cleanup(n.Close)
	return n
}

func trustFiles(a *testkit.Authority) Files {
	return Files{CA: []Source{{"network.caCertFile", a.File()}}}
}

// get returns the answer of a URL and the HTTP version, or the error.
func get(n *Network, o Options, url string) (string, error) {
	resp, err := n.Client(o).Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%s %d %s", resp.Proto, resp.StatusCode, body), err
}

// server answers over TLS, with HTTP/2 if the client supports it.
func server(t testing.TB, config *tls.Config) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	if config == nil {
		srv.Start()
	} else {
		srv.TLS, srv.EnableHTTP2 = config, true
		srv.StartTLS()
	}
	t.Cleanup(srv.Close)
	return srv
}

func kindOf(err error) Kind {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Kind
}

func TestCertificates(t *testing.T) {
	ours, others := testkit.NewAuthority(t, "Our CA"), testkit.NewAuthority(t, "Other CA")
	good := server(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "127.0.0.1")}})
	expired := server(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(time.Now().Add(-time.Hour), "127.0.0.1")}})
	misnamed := server(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "elsewhere.example")}})
	unnamed := server(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow())}})
	stranger := server(t, &tls.Config{Certificates: []tls.Certificate{others.Issue(testkit.Tomorrow(), "127.0.0.1")}})
	plain := server(t, nil)
	n := network(t, nil, trustFiles(ours))
	for name, c := range map[string]struct {
		url  string
		o    Options
		kind Kind
		want string
	}{
		"trusted":      {good.URL, Options{Connect: limit}, "", "HTTP/2.0 200 hello"},
		"HTTP/1.1":     {good.URL, Options{Connect: limit, HTTP1: true}, "", "HTTP/1.1 200 hello"},
		"no limit":     {good.URL, Options{}, "", "HTTP/2.0 200 hello"},
		"expired":      {expired.URL, Options{Connect: limit}, KindCertificate, "is not valid now: only from"},
		"other name":   {misnamed.URL, Options{Connect: limit}, KindCertificate, "is for elsewhere.example"},
		"no name":      {unnamed.URL, Options{Connect: limit}, KindCertificate, "names no host; create one whose subjectAltName has the host"},
		"unknown CA":   {stranger.URL, Options{Connect: limit}, KindCertificate, `is signed by "Other CA", which is not trusted here; if it is your organisation's, save its certificate in a file and set network.caCertFile`},
		"no TLS":       {"https" + strings.TrimPrefix(plain.URL, "http"), Options{Connect: limit}, KindTLS, "does not use TLS"},
		"nobody":       {"http://127.0.0.1:1", Options{Connect: limit}, KindConnect, "connection refused by 127.0.0.1:1"},
		"no such name": {"http://no-such-host.invalid", Options{Connect: limit}, KindDNS, `host "no-such-host.invalid"`},
	} {
		got, err := get(n, c.o, c.url)
		if err != nil {
			got = err.Error()
		}
		if kindOf(err) != c.kind || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: %s", name, kindOf(err), got)
		}
	}
}

// Use also changes the certificates of existing clients.
func TestUse(t *testing.T) {
	ours := testkit.NewAuthority(t, "Our CA")
	srv := server(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "127.0.0.1")}})
	n := network(t, nil, Files{})
	client := n.Client(Options{Connect: limit})
	if _, err := client.Get(srv.URL); kindOf(err) != KindCertificate {
		t.Errorf("without the CA: %v", err)
	}
	id, _ := Read(trustFiles(ours))
	again, _ := Read(trustFiles(ours))
	if !n.Use(id) || n.Use(again) {
		t.Error("Use must return true for other certificates, and false for the same ones")
	}
	resp, err := client.Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if n.Client(Options{Connect: limit}) != client {
		t.Error("Client returned another client for the same options")
	}
}

func TestClientCertificate(t *testing.T) {
	ours, others := testkit.NewAuthority(t, "Our CA"), testkit.NewAuthority(t, "Other CA")
	pool := x509.NewCertPool()
	pool.AddCert(ours.Cert)
	config := &tls.Config{
		Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "127.0.0.1")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}
	srv := server(t, config)
	me := ours.Issue(testkit.Tomorrow())
	cert, key := ours.Write("me.pem", testkit.CertPEM(me)), ours.Write("me.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, me.PrivateKey)))
	files := trustFiles(ours)
	files.Cert, files.Key = Source{"network.clientCert", cert}, Source{"network.clientKey", key}
	if got, err := get(network(t, nil, files), Options{Connect: limit}, srv.URL); err != nil || got != "HTTP/2.0 200 hello" {
		t.Errorf("%s, %v", got, err)
	}

	// Even if the connection fails, the server's request is known.
	_, err := get(network(t, nil, trustFiles(ours)), Options{Connect: limit}, srv.URL)
	if kindOf(err) != KindClientCertificate || !strings.Contains(err.Error(), "requires a client certificate: set network.clientCert") {
		t.Errorf("without one: %v", err)
	}

	// In TLS 1.2 the server's word arrives before our request is sent.
	old := config.Clone()
	old.MaxVersion = tls.VersionTLS12
	srv = server(t, old)
	other := others.Issue(testkit.Tomorrow())
	files.Cert.Path = others.Write("other.pem", testkit.CertPEM(other))
	files.Key.Path = others.Write("other.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, other.PrivateKey)))
	_, err = get(network(t, nil, files), Options{Connect: limit}, srv.URL)
	if kindOf(err) != KindClientCertificate || !strings.Contains(err.Error(), "does not accept our client certificate") {
		t.Errorf("with another's: %v", err)
	}
}

func TestProxy(t *testing.T) {
	ours := testkit.NewAuthority(t, "Our CA")
	secure := server(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "models.example")}})
	plain := server(t, nil)
	dial := map[string]string{
		"models.example:443": secure.Listener.Addr().String(), "models.example:80": plain.Listener.Addr().String(),
		"broken.example:443": "127.0.0.1:1",
	}
	const credentials = "me:p@ss/word"
	const written = "me:p%40ss%2Fword@"
	open := testkit.NewProxy(t, nil, "", dial)
	closed := testkit.NewProxy(t, nil, credentials, dial)
	overTLS := testkit.NewProxy(t, &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "127.0.0.1")}}, credentials, dial)
	foreign := testkit.NewProxy(t, &tls.Config{Certificates: []tls.Certificate{testkit.NewAuthority(t, "Foreign CA").Issue(testkit.Tomorrow(), "127.0.0.1")}}, "", dial)
	foreign.Config.ErrorLog = log.New(io.Discard, "", 0)
	socks, closedSocks := testkit.NewSocks(t, "", dial), testkit.NewSocks(t, credentials, dial)
	host := func(p *testkit.Proxy) string { return p.Listener.Addr().String() }
	for name, c := range map[string]struct {
		proxy, url string
		kind       Kind
		want       string
	}{
		"tunnel":                         {"http://" + host(open), "https://models.example/", "", "HTTP/2.0 200 hello"},
		"without a scheme":               {host(open), "https://models.example/", "", "HTTP/2.0 200 hello"},
		"forwarded":                      {"http://" + host(open), "http://models.example/", "", "HTTP/1.1 200 hello"},
		"tunnel, credentials":            {"http://" + written + host(closed), "https://models.example/", "", "HTTP/2.0 200 hello"},
		"forwarded, credentials":         {written + host(closed), "http://models.example/", "", "HTTP/1.1 200 hello"},
		"tunnel, no credentials":         {"http://" + host(closed), "https://models.example/", KindProxyAuth, "requires a user and a password"},
		"tunnel, wrong credentials":      {"http://me:s3cretly@" + host(closed), "https://models.example/", KindProxyAuth, "does not accept the user and the password"},
		"forwarded, wrong credentials":   {"http://me:s3cretly@" + host(closed), "http://models.example/", KindProxyAuth, "does not accept the user and the password"},
		"over TLS":                       {"https://" + written + host(overTLS), "https://models.example/", "", "HTTP/2.0 200 hello"},
		"over TLS, forwarded":            {"https://" + written + host(overTLS), "http://models.example/", "", "HTTP/1.1 200 hello"},
		"over TLS, wrong credentials":    {"https://me:s3cretly@" + host(overTLS), "https://models.example/", KindProxyAuth, "does not accept the user and the password"},
		"over TLS, not trusted":          {"https://me:s3cretly@" + host(foreign), "https://models.example/", KindCertificate, `cannot be used: the certificate of 127.0.0.1:`},
		"TLS to a proxy without":         {"https://me:s3cretly@" + host(open), "https://models.example/", KindTLS, "does not use TLS"},
		"refused by the proxy":           {"http://" + host(open), "https://forbidden.example/", KindProxy, "does not connect to forbidden.example:443: it answers 403 Forbidden"},
		"nobody behind the proxy":        {"http://" + host(open), "https://broken.example/", KindProxy, "answers 502 Bad Gateway"},
		"nobody there":                   {"http://me:s3cretly@127.0.0.1:1", "https://models.example/", KindProxy, "the proxy http://127.0.0.1:1 cannot be used: connection refused by 127.0.0.1:1"},
		"a name nobody knows":            {"http://me:s3cretly@no-such-proxy.invalid:80", "https://models.example/", KindProxy, `host "no-such-proxy.invalid"`},
		"SOCKS":                          {"socks5://" + socks.Addr, "https://models.example/", "", "HTTP/2.0 200 hello"},
		"SOCKS, plain":                   {"socks5h://" + socks.Addr, "http://models.example/", "", "HTTP/1.1 200 hello"},
		"SOCKS, credentials":             {"socks5://" + written + closedSocks.Addr, "https://models.example/", "", "HTTP/2.0 200 hello"},
		"SOCKS, wrong credentials":       {"socks5://me:s3cretly@" + closedSocks.Addr, "https://models.example/", KindProxyAuth, "does not accept the user and the password"},
		"SOCKS, no credentials":          {"socks5://" + closedSocks.Addr, "https://models.example/", KindProxyAuth, "requires a user and a password"},
		"SOCKS, nobody behind":           {"socks5://" + socks.Addr, "https://broken.example/", KindProxy, "does not connect to broken.example:443"},
		"not a proxy":                    {"ftp://me:s3cretly@" + host(open), "https://models.example/", KindProxy, "https_proxy is not a usable proxy"},
		"unescaped password":             {"http://me:s3cretly#@" + host(open), "https://models.example/", KindProxy, "special characters"},
		"this machine is asked directly": {"http://127.0.0.1:1", plain.URL, "", "HTTP/1.1 200 hello"},
	} {
		env := map[string]string{"https_proxy": c.proxy, "HTTPS_PROXY": "http://127.0.0.1:2", "HTTP_PROXY": c.proxy}
		n := network(t, env, trustFiles(ours))
		got, err := get(n, Options{Connect: limit}, c.url)
		if err != nil {
			got = err.Error()
		}
		if kindOf(err) != c.kind || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s: %s", name, kindOf(err), got)
		}
		if name == "nobody there" && !Explain(err, "").Permanent() {
			t.Errorf("%s: waiting could help: %s", name, got)
		}
		for _, secret := range append(n.Proxies().Secrets(), "s3cretly", "p@ss", "p%40ss", "me:") {
			if strings.Contains(got, secret) {
				t.Errorf("%s: %q is shown: %s", name, secret, got)
			}
		}
		n.Close()
	}
	if got := socks.String(); !strings.Contains(got, "models.example:443") {
		t.Errorf("the SOCKS proxy was asked for %s", got)
	}
}

// all_proxy applies if no other variable does. no_proxy takes precedence over all of them.
func TestProxyVariables(t *testing.T) {
	plain := server(t, nil)
	dial := map[string]string{"a.example:80": plain.Listener.Addr().String(), "b.example:80": plain.Listener.Addr().String()}
	p := testkit.NewProxy(t, nil, "", dial)
	n := network(t, map[string]string{"ALL_PROXY": p.URL, "no_proxy": "b.example"}, Files{})
	if got, err := get(n, Options{Connect: limit}, "http://a.example"); err != nil || !strings.HasSuffix(got, "hello") {
		t.Errorf("%s, %v", got, err)
	}
	_, _ = get(n, Options{Connect: limit}, "http://b.example")
	if got := p.String(); got != "GET:a.example" {
		t.Errorf("the proxy was asked for %s", got)
	}
	info := n.Proxies().List()
	if len(info) != 2 || info[0] != (ProxyInfo{For: "http", Variable: "ALL_PROXY", URL: p.URL}) || info[1].For != "https" || n.Proxies().Exceptions() != "b.example" {
		t.Errorf("%+v", info)
	}
}

// Consecutive requests use one connection, with HTTP/1.1 and HTTP/2, directly and through a proxy.
func TestReuse(t *testing.T) {
	ours := testkit.NewAuthority(t, "Our CA")
	for _, through := range []string{"", "a proxy"} {
		for _, o := range []Options{{Connect: limit}, {Connect: limit, HTTP1: true}} {
			var opened atomic.Int32
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }))
			srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
				if s == http.StateNew {
					opened.Add(1)
				}
			}
			srv.TLS, srv.EnableHTTP2 = &tls.Config{Certificates: []tls.Certificate{ours.Issue(testkit.Tomorrow(), "127.0.0.1", "models.example")}}, true
			srv.StartTLS()
			url, env := srv.URL, map[string]string{}
			if through != "" {
				url = "https://models.example"
				env["https_proxy"] = testkit.NewProxy(t, nil, "", map[string]string{"models.example:443": srv.Listener.Addr().String()}).URL
			}
			n := network(t, env, trustFiles(ours))
			for range 100 {
				if _, err := get(n, o, url); err != nil {
					t.Fatal(err)
				}
			}
			// HTTP/1.1 lets a connection go if a busy machine does not say soon that a request is
			// written.
			if most := map[bool]int32{false: 1, true: 5}[o.HTTP1]; opened.Load() > most {
				t.Errorf("%+v %s: %d connections", o, through, opened.Load())
			}
			n.Close()
			srv.Close()
		}
	}
}

// The limit applies to the whole time until a connection is made, including the answer of a proxy. It
// does not apply to the request afterwards.
func TestConnectLimit(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, scheme := range []string{"http", "https", "socks5"} {
		n := network(t, map[string]string{"https_proxy": scheme + "://me:s3cretly@" + l.Addr().String()}, Files{})
		_, err := get(n, Options{Connect: 50 * time.Millisecond}, "https://models.example/?key=s3cretly")
		if k := kindOf(err); k != KindTimeout && k != KindProxy || strings.Contains(fmt.Sprint(errors.Unwrap(err)), "s3cretly") {
			t.Errorf("%s: %s: %v", scheme, k, err)
		}
		n.Close()
	}
	// On a busy machine a connection may take longer than the shortest limit.
	for _, short := range []time.Duration{time.Second, 10 * time.Second, limit} {
		slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			time.Sleep(2 * short)
			_, _ = w.Write([]byte("at last"))
		}))
		n := network(t, nil, Files{})
		got, err := get(n, Options{Connect: short}, slow.URL)
		n.Close()
		slow.Close()
		if kindOf(err) == KindTimeout && strings.Contains(err.Error(), "connect") && short < limit {
			continue
		}
		if err != nil || !strings.HasSuffix(got, "at last") {
			t.Errorf("%s, %v", got, err)
		}
		break
	}
}

// A request whose context is cancelled fails with the context's error, which contains no secret.
func TestCancel(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	defer srv.Close()
	n := network(t, nil, Files{})
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, cancel)
	resp, err := n.Client(Options{Connect: limit}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if !errors.Is(err, context.Canceled) || kindOf(err) != "" {
		t.Errorf("%v", err)
	}
	n.Client(Options{Connect: limit}).CloseIdleConnections()
}
