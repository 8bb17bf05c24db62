package remote_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/remote"
	"github.com/seed-dec29ce4/eca/server"
)

// Without a certificate, a configuration does not let other machines connect. Access by others without
// TLS, and mistakes, are reported.
func TestPlan(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t, "ca")
	valid, expired := ca.Issue(testkit.Tomorrow(), "box.example"), ca.Issue(time.Now().Add(-time.Hour), "box.example")
	files := func(name string, c tls.Certificate) (cert, key string) {
		return ca.Write(name+".pem", testkit.CertPEM(c)), ca.Write(name+".key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, c.PrivateKey)))
	}
	cert, key := files("valid", valid)
	oldCert, oldKey := files("expired", expired)
	for _, c := range []struct {
		name, bind, password, cert, key string
		beyond, tls                     bool
		warning                         string
	}{
		{name: "by default"},
		{name: "an address", bind: "0.0.0.0", beyond: true, warning: "without TLS"},
		{name: "this machine's address", bind: "127.0.0.1"},
		{name: "a certificate", cert: cert, key: key, beyond: true, tls: true},
		{name: "an expired certificate", cert: oldCert, key: oldKey, warning: "valid from"},
		{name: "an address and an expired certificate", bind: "0.0.0.0", cert: oldCert, key: oldKey, warning: "valid from"},
		{name: "another key", cert: cert, key: oldKey, warning: "cannot use the certificate"},
		{name: "a missing file", cert: cert + "x", key: key, warning: "cannot use the certificate"},
		{name: "half a certificate", cert: cert, warning: "needs both"},
		{name: "a short password", bind: "0.0.0.0", password: "short", warning: "only this machine"},
	} {
		var cfg config.Remote
		cfg.BindHost, cfg.Password, cfg.TLS.CertFile, cfg.TLS.KeyFile = c.bind, c.password, c.cert, c.key
		p := remote.PlanFor(cfg, time.Now())
		if said := strings.Join(p.Warnings, "\n"); p.OpenToOthers() != c.beyond || p.TLS() != c.tls || !strings.Contains(said, c.warning) || (c.warning == "") != (said == "") {
			t.Errorf("%s: beyond %v, TLS %v, %q", c.name, p.OpenToOthers(), p.TLS(), said)
		}
	}
}

// issued is a certificate that was issued for a test.
type issued struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// issue issues a certificate: for a host, or for an authority if name is empty. A certificate without
// an issuer is its own.
func issue(t *testing.T, name string, by *issued, key crypto.Signer) *issued {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test " + name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: testkit.Tomorrow(),
		IsCA: name == "", BasicConstraintsValid: true,
	}
	if name != "" {
		template.DNSNames = []string{name}
	}
	if by == nil {
		by = &issued{template, key}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &issued{cert, key}
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// With a certificate, connections use TLS 1.2 or later, for each form of key and with a chain. A new
// certificate is used without a restart. If it cannot be read, the old one stays in use.
func TestTLS(t *testing.T) {
	t.Parallel()
	root := issue(t, "", nil, ecKey(t))
	intermediate := issue(t, "", root, ecKey(t))
	ec := ecKey(t)
	sec1, err := x509.MarshalECPrivateKey(ec)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	forms := []struct {
		name string
		by   *issued
		key  crypto.Signer
		pem  []byte
	}{
		{"ec8.example", root, ec, testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, ec))},
		{"sec1.example", root, ec, testkit.PEM("EC PRIVATE KEY", sec1)},
		{"rsa8.example", root, rsaKey, testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, rsaKey))},
		{"pkcs1.example", root, rsaKey, testkit.PEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))},
		{"chained.example", intermediate, ec, testkit.PEM("EC PRIVATE KEY", sec1)},
	}
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "served.pem"), filepath.Join(dir, "served.key")
	write := func(path string, content []byte) {
		t.Helper()
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	serve := func(i int) {
		f := forms[i]
		leaf := issue(t, f.name, f.by, f.key)
		write(cert, append(testkit.PEM("CERTIFICATE", leaf.cert.Raw), testkit.PEM("CERTIFICATE", f.by.cert.Raw)...))
		write(key, f.pem)
	}
	serve(0)
	r := newRig(t, "turns: []\n", object{"remote": object{"bindHost": "127.0.0.1", "tls": object{"certFile": cert, "keyFile": key}}}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(root.cert)
	get := func(name string, version uint16) error {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: name, MinVersion: version, MaxVersion: version}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		res, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("https://127.0.0.1:%d/api/v1/health", r.port))
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Errorf("%s", res.Proto)
		}
		return nil
	}
	for i, f := range forms {
		serve(i)
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if err := get(f.name, version); err != nil {
				t.Errorf("%s with %s: %v", f.name, tls.VersionName(version), err)
			}
		}
		if err := get(f.name, tls.VersionTLS11); err == nil {
			t.Errorf("%s with TLS 1.1", f.name)
		}
		if err := get(forms[max(i-1, 0)].name, 0); i > 0 && err == nil {
			t.Errorf("the certificate before %s still counts", f.name)
		}
		write(key, f.pem[:100])
		if err := get(f.name, 0); err != nil {
			t.Errorf("%s, while its key is unreadable: %v", f.name, err)
		}
	}
}

// dialAll connects to a port at all addresses of all interfaces except those of loopback, and
// returns the addresses where that works and where it does not.
func dialAll(t *testing.T, port int) (open, closed []string) {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		addresses, err := i.Addrs()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			n, ok := a.(*net.IPNet)
			if !ok || n.IP.IsLoopback() {
				continue
			}
			address := n.IP.String()
			if n.IP.IsLinkLocalUnicast() && n.IP.To4() == nil {
				address += "%" + i.Name
			}
			conn, err := net.DialTimeout("tcp", net.JoinHostPort(address, fmt.Sprint(port)), 5*time.Second)
			if err != nil {
				closed = append(closed, address)
				continue
			}
			_ = conn.Close()
			open = append(open, address)
		}
	}
	return open, closed
}

// Without a certificate, no interface of this machine but loopback has the port, also if the first
// port is in use. With bindHost, all of IPv4 have it, and /remote warns about it.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	for host, said := range map[string]string{"": "Open http://eca.localhost:", "0.0.0.0": "without TLS"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			settings := object{"port": 0}
			if host == "" {
				if taken, err := net.Listen("tcp", "127.0.0.1:7777"); err == nil { // otherwise, another program has it
					defer taken.Close()
				}
			} else {
				settings["bindHost"] = host
			}
			r := newRig(t, "turns: []\n", object{"remote": settings}, nil)
			places, err := r.devices.Endpoints()
			if err != nil || len(places) != 1 || host == "" && places[0].Port == 7777 {
				t.Fatal(places, err)
			}
			open, closed := dialAll(t, places[0].Port)
			if host == "" && len(open) != 0 {
				t.Errorf("the remote server listens at %s, want loopback only", open)
			}
			for _, address := range closed {
				if host != "" && !strings.Contains(address, ":") { // IPv4
					t.Errorf("the remote server does not listen at %s", address)
				}
			}
			r.Call("chat/prompt", object{"chatId": "c", "message": "/remote"})
			r.Await(0, "the address", fake.Content("text", said))
		})
	}
}

// With a certificate that cannot be used, only this machine can connect, without TLS, and /remote
// says why.
func TestExpiredCertificate(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t, "ca")
	c := ca.Issue(time.Now().Add(-time.Hour), "box.example")
	cert, key := ca.Write("c.pem", testkit.CertPEM(c)), ca.Write("c.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, c.PrivateKey)))
	r := newRig(t, "turns: []\n", object{"remote": object{"bindHost": "0.0.0.0", "tls": object{"certFile": cert, "keyFile": key}}}, nil)
	if status, result := r.do("GET", "/health", nil); status != 200 {
		t.Error(status, result)
	}
	if open, _ := dialAll(t, r.port); len(open) != 0 {
		t.Errorf("the remote server listens at %s, want loopback only", open)
	}
	r.Call("chat/prompt", object{"chatId": "c", "message": "/remote"})
	r.Await(0, "the reason", fake.Content("text", "Open http://eca.localhost:", "the certificate is valid from"))
}

// An editor whose port another one has shows a message that says so, and so does /remote.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	first := newRig(t, "turns: []\n", nil, nil)
	d := first.world.Daemon() // of another editor in the same workspace
	attach(d, first.world.State(), first.world.Root, slog.New(slog.DiscardHandler))
	toServer, in := io.Pipe()
	out, toEditor := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(context.Background(), toServer, toEditor, server.Options{Host: d, Version: "test"})
		d.Close()
		_ = toEditor.Close()
	}()
	second := fake.Connect(t, out, in)
	defer func() {
		_ = in.Close()
		<-served
		second.Close()
	}()
	second.Open(first.world.Root, nil)
	want := fmt.Sprintf("port %d is used by the eca of another editor (process %d", first.port, os.Getpid())
	second.Await(0, "the notice", fake.Contains("$/showMessage", want))
	second.Call("chat/prompt", object{"chatId": "c", "message": "/remote"})
	second.Await(0, "the status", fake.Content("text", want))
	if notices := strings.Join(first.daemon.Notices(), "\n"); strings.Contains(notices, "remote server") {
		t.Error("the first editor gets the notice:", notices)
	}
}
