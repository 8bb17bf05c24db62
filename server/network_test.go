package server_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// guarded is a scripted provider in a company network: its certificate is signed by a private
// authority, it requires a client certificate, and it is reached through a proxy.
type guarded struct {
	ca      *testkit.Authority
	proxy   *testkit.Proxy
	opened  atomic.Int32 // connections to the provider
	network map[string]any
	config  map[string]any
}

// hello prompts and returns all texts of the turn, from every role.
func (r *rig) hello(t *testing.T) string {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hello"})
	r.Await(mark, "the end", fake.Finished())
	var b strings.Builder
	for _, m := range r.Since(mark) {
		var p struct{ Content struct{ Type, Text string } }
		if json.Unmarshal(m.Params, &p) == nil {
			b.WriteString(p.Content.Text)
		}
	}
	return b.String()
}

const proxyPassword = "pass-of-the-proxy"

func newGuarded(t *testing.T, api string) *guarded {
	t.Helper()
	g := &guarded{ca: testkit.NewAuthority(t, "Company CA")}
	player, err := cassette.Parse([]byte("cassette: 1\ndefault:\n  steps: [{text: \"It went well.\"}]\nturns: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(g.ca.Cert)
	srv := httptest.NewUnstartedServer(player.Handler(nil))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			g.opened.Add(1)
		}
	}
	srv.TLS, srv.EnableHTTP2 = &tls.Config{
		Certificates: []tls.Certificate{g.ca.Issue(testkit.Tomorrow(), "models.example")},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: pool,
	}, true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	me := g.ca.Issue(testkit.Tomorrow())
	g.network = map[string]any{
		"caCertFile": g.ca.File(),
		"clientCert": g.ca.Write("me.pem", testkit.CertPEM(me)),
		"clientKey":  g.ca.Write("me.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, me.PrivateKey))),
	}
	g.proxy = testkit.NewProxy(t, nil, "me:"+proxyPassword, map[string]string{"models.example:443": srv.Listener.Addr().String()})
	g.config = map[string]any{"providers": map[string]any{"mock": map[string]any{"url": "https://models.example/v1", "api": api}}}
	return g
}

func (g *guarded) env(password string) map[string]string {
	return map[string]string{"HTTPS_PROXY": "http://me:" + password + "@" + g.proxy.Listener.Addr().String()}
}

// Requests of each API go through a proxy that requires a password, to a server that requires a
// certificate, over one connection.
func TestNetwork(t *testing.T) {
	t.Parallel()
	for _, api := range apis {
		if api == "bedrock" {
			continue // its server's name contains a region
		}
		g := newGuarded(t, api)
		g.config["network"] = g.network
		r := newRig(t, options{config: g.config, env: g.env(proxyPassword), api: api})
		for range 5 {
			if got := r.hello(t); !strings.Contains(got, "It went well.") {
				t.Errorf("%s: %s", api, got)
			}
		}
		if n := g.opened.Load(); n != 1 {
			t.Errorf("%s: %d connections", api, n)
		}
	}
}

// HTTP/1.1 reuses its connection too, because answers are read to their ends.
func TestNetworkHTTP1(t *testing.T) {
	needs.Long(t)
	for _, api := range []string{"openai-responses", "openai-chat", "anthropic"} {
		g := newGuarded(t, api)
		g.config["network"] = g.network
		g.config["providers"].(map[string]any)["mock"].(map[string]any)["httpClient"] = "http-1.1"
		r := newRig(t, options{config: g.config, env: g.env(proxyPassword), api: api})
		for range 100 {
			if got := r.hello(t); !strings.Contains(got, "It went well.") {
				t.Fatalf("%s: %s", api, got)
			}
		}
		if n := g.opened.Load(); n > 20 { // a busy machine may miss the end of some
			t.Errorf("%s: %d connections", api, n)
		}
	}
}

// The cause of an error is named at once, and requests that cannot succeed are not repeated.
func TestNetworkErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		password string
		network  []string // keys that are configured
		want     string
	}{
		"unknown CA":     {proxyPassword, nil, `is signed by "Company CA", which is not trusted here`},
		"no certificate": {proxyPassword, []string{"caCertFile"}, "requires a client certificate"},
		"wrong password": {"wrong-password", []string{"caCertFile", "clientCert", "clientKey"}, "does not accept the user and the password"},
		"special signs":  {"wrong-#-password", nil, "HTTPS_PROXY is not a usable proxy"},
	} {
		g := newGuarded(t, "openai-responses")
		section := map[string]any{}
		for _, key := range c.network {
			section[key] = g.network[key]
		}
		g.config["network"] = section
		r := newRig(t, options{config: g.config, env: g.env(c.password)})
		if got := r.hello(t); !strings.Contains(got, c.want) || strings.Contains(got, "Retrying") || strings.Contains(got, c.password) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Certificates count as soon as their files exist. A workspace cannot add any.
func TestNetworkReload(t *testing.T) {
	t.Parallel()
	g := newGuarded(t, "openai-responses")
	section, err := json.Marshal(map[string]any{"network": g.network, "welcomeMessage": "with certificates"})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{config: g.config, env: g.env(proxyPassword)})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.save(t, r.workspaceFile(), string(section))
	r.Await(mark, "the refusal", fake.Contains("$/showMessage", "network can be set only in your own configuration"))
	if got := r.hello(t); !strings.Contains(got, "not trusted here") {
		t.Errorf("a workspace's certificates count: %s", got)
	}
	r.save(t, r.workspaceFile(), "{}")
	r.save(t, r.globalFile(), strings.ReplaceAll(string(section), "with certificates", "with the user's certificates"))
	r.Await(mark, "the new configuration", fake.Contains("config/updated", "with the user's certificates"))
	if got := r.hello(t); !strings.Contains(got, "It went well.") {
		t.Errorf("the user's do not: %s", got)
	}
}
