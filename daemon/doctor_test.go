package daemon

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// The doctor finds problems with the network, and certificates that will expire soon.
func TestDoctorNetwork(t *testing.T) {
	ca := testkit.NewAuthority(t, "Company CA")
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data": []}`)) }))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{ca.Issue(testkit.Tomorrow(), "models.example")}}
	srv.StartTLS()
	defer srv.Close()
	proxy := testkit.NewProxy(t, nil, "me:pass-of-the-proxy", map[string]string{"models.example:443": srv.Listener.Addr().String()})
	me := ca.Issue(testkit.Tomorrow())
	options := func(password string) (string, map[string]string) {
		raw, err := json.Marshal(map[string]any{
			"network": map[string]any{
				"caCertFile": ca.File(), "clientCert": ca.Write("me.pem", testkit.CertPEM(me)),
				"clientKey": ca.Write("me.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, me.PrivateKey))),
			},
			"providers": map[string]any{"acme": map[string]any{"api": "openai-chat", "url": "https://models.example/v1", "key": "sk-acme-0123456789"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return string(raw), map[string]string{"all_proxy": "me:" + password + "@" + proxy.Listener.Addr().String()}
	}
	examine := func(o Options, password string) (doctor.Report, string) {
		raw, env := options(password)
		d := newDaemonWith(t, o, raw, env)
		report := d.Doctor(context.Background(), false)
		text := report.Markdown()
		if strings.Contains(text, password) || strings.Contains(text, "sk-acme") {
			t.Errorf("a secret is shown: %s", text)
		}
		return report, text
	}
	has := func(text string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("no %q in %s", w, text)
			}
		}
	}
	_, text := examine(Options{}, "pass-of-the-proxy")
	has(text, "⚠️ **provider acme**: openai-chat, https://models.example/v1: key from initializationOptions:1, answers, but lists no models; name them in providers.acme.models",
		"✅ **network.caCertFile**: "+ca.File()+": CN=Company CA, until", "⚠️ **network.clientCert**: ",
		"**proxy for https://**: http://"+proxy.Listener.Addr().String()+", with a user, from all_proxy")
	report, text := examine(Options{Now: func() time.Time { return time.Now().Add(48 * time.Hour) }}, "not-the-password")
	has(text, "❌ **provider acme**", "does not accept the user and the password", "❌ **network.clientCert**", "expired on")
	if report.Healthy {
		t.Error("the report is healthy, although the certificate has expired and the proxy refuses the password")
	}
}
