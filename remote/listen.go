package remote

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// The range of ports that the server tries without remote.port. The reference's page looks for servers
// at these ports.
const firstPort, lastPort = 7777, 7796

// The minimum and the recommended length of passwords. Shorter ones can be guessed despite the
// throttle.
const minPassword, goodPassword = 8, 12

// Plan describes where the server listens according to a configuration, with warnings for the user.
type Plan struct {
	Host     string   // the address to listen at; empty means all addresses
	Hosts    []string // the host names that requests may contain, in addition to those of this machine
	Warnings []string
	cert     *certificate // nil means no TLS
}

// TLS reports whether the server uses TLS.
func (p Plan) TLS() bool { return p.cert != nil }

// OpenToOthers reports whether other machines can connect.
func (p Plan) OpenToOthers() bool { return !localhost.Is(p.Host) }

// PlanFor returns the plan for a configuration. It reads the certificate.
func PlanFor(cfg config.Remote, now time.Time) Plan {
	p := Plan{Host: "127.0.0.1"}
	cert, err := loadCertificate(cfg, now)
	switch {
	case err != nil:
		p.Warnings = append(p.Warnings, err.Error()+"; without a certificate, only this machine can connect")
	case cert != nil:
		p.cert = cert
		p.Hosts = append(p.Hosts, cert.names()...)
		p.Host = ""
	}
	if cfg.TLS.CertURL != "" || cfg.TLS.KeyURL != "" {
		p.Warnings = append(p.Warnings, "remote.tls.certUrl and keyUrl have no effect: others would have the same key; use certFile and keyFile")
	}
	if cfg.BindHost != "" && err == nil { // if the certificate cannot be used, other machines must not connect without TLS
		p.Host = strings.Trim(cfg.BindHost, "[]")
		if p.cert == nil && p.OpenToOthers() {
			p.Warnings = append(p.Warnings, "remote.bindHost makes eca listen without TLS: everyone on the way can read and change what is sent")
		}
	}
	switch n := len(cfg.Password); {
	case n > 0 && n < minPassword:
		p.Warnings = append(p.Warnings, fmt.Sprintf("remote.password has fewer than %d characters, so only this machine can connect", minPassword))
		p.Host = "127.0.0.1"
	case n > 0 && n < goodPassword:
		p.Warnings = append(p.Warnings, fmt.Sprintf("remote.password has fewer than %d characters; pair devices with `eca remote pair` instead", goodPassword))
	}
	if cfg.Host != "" {
		host, _, err := net.SplitHostPort(cfg.Host)
		if err != nil {
			host = cfg.Host
		}
		p.Hosts = append(p.Hosts, strings.Trim(host, "[]"))
	}
	p.Hosts = append(p.Hosts, cfg.Hosts...)
	if name, err := os.Hostname(); err == nil && p.OpenToOthers() {
		p.Hosts = append(p.Hosts, name, name+".local")
	}
	return p
}

// listen opens a port: the configured one, else the port that the workspace used last, else the first
// free one of the range.
func (p Plan) listen(port, last int) (net.Listener, error) {
	try := func(port int) (net.Listener, error) {
		return net.Listen("tcp", net.JoinHostPort(p.Host, strconv.Itoa(port)))
	}
	if port != 0 {
		return try(port)
	}
	var first error
	ports := []int{}
	if last != 0 {
		ports = append(ports, last)
	}
	for port := firstPort; port <= lastPort; port++ {
		ports = append(ports, port)
	}
	for _, port := range ports {
		l, err := try(port)
		if err == nil {
			return l, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// URL returns the address to open from elsewhere, or on this machine if others cannot connect.
func (p Plan) URL(cfg config.Remote, port int) string {
	scheme := "http"
	if p.TLS() {
		scheme = "https"
	}
	if cfg.Host != "" {
		if _, _, err := net.SplitHostPort(cfg.Host); err == nil {
			return addressOf(scheme, cfg.Host)
		}
		return addressOf(scheme, net.JoinHostPort(strings.Trim(cfg.Host, "[]"), strconv.Itoa(port)))
	}
	return addressOf(scheme, net.JoinHostPort(p.name(), strconv.Itoa(port)))
}

// name returns a name or an address under which the server is reached.
func (p Plan) name() string {
	if p.cert != nil {
		for _, name := range p.cert.names() {
			if !strings.HasPrefix(name, "*") {
				return name
			}
		}
	}
	if addr, err := netip.ParseAddr(p.Host); err == nil && !addr.IsUnspecified() && !addr.IsLoopback() {
		return p.Host
	}
	if !p.OpenToOthers() {
		// For web pages elsewhere, Chrome treats localhost as another address space, but not names
		// below localhost.
		return "eca.localhost"
	}
	return lanAddress()
}

// lanAddress returns a private address of this machine, or else its name.
func lanAddress() string {
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsPrivate() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return "127.0.0.1"
	}
	return name
}

// certificate is the user's certificate. It is read again when its files change.
type certificate struct {
	certFile, keyFile string

	mu     sync.Mutex // guards the fields below
	loaded *tls.Certificate
	stamps [2]fs.FileInfo
}

// loadCertificate returns the configured certificate; nil without one.
func loadCertificate(cfg config.Remote, now time.Time) (*certificate, error) {
	if cfg.TLS.CertFile == "" && cfg.TLS.KeyFile == "" {
		return nil, nil
	}
	if cfg.TLS.CertFile == "" || cfg.TLS.KeyFile == "" {
		return nil, errors.New("remote.tls needs both certFile and keyFile")
	}
	c := &certificate{certFile: cfg.TLS.CertFile, keyFile: cfg.TLS.KeyFile}
	cert, err := c.current()
	if err != nil {
		return nil, fmt.Errorf("remote.tls: cannot use the certificate: %w", err)
	}
	if now.After(cert.Leaf.NotAfter) || now.Before(cert.Leaf.NotBefore) {
		return nil, fmt.Errorf("remote.tls: the certificate is valid from %s to %s", cert.Leaf.NotBefore.Format(time.DateOnly), cert.Leaf.NotAfter.Format(time.DateOnly))
	}
	return c, nil
}

// current returns the certificate in the files. If they cannot be read now, it returns the last valid
// certificate.
func (c *certificate) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var stamps [2]fs.FileInfo
	for i, path := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(path)
		if err != nil {
			if c.loaded != nil {
				return c.loaded, nil
			}
			return nil, err
		}
		stamps[i] = info
	}
	if c.loaded != nil && safeio.Same(c.stamps[0], stamps[0]) && safeio.Same(c.stamps[1], stamps[1]) {
		return c.loaded, nil
	}
	cert, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil && cert.Leaf == nil {
		cert.Leaf, err = x509.ParseCertificate(cert.Certificate[0])
	}
	if err != nil {
		if c.loaded != nil {
			return c.loaded, nil
		}
		return nil, err
	}
	c.loaded, c.stamps = &cert, stamps
	return c.loaded, nil
}

// names lists the names of the certificate.
func (c *certificate) names() []string {
	cert, err := c.current()
	if err != nil {
		return nil
	}
	out := append([]string{}, cert.Leaf.DNSNames...)
	for _, ip := range cert.Leaf.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}

// config returns the TLS configuration of the server.
func (c *certificate) config() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current() },
	}
}
