// Package egress is the proxy through which sandboxed commands reach the network: HTTP, and TLS
// by CONNECT, to hosts of a list.
//
// A connection is made only to a host that is listed, or that the user allowed for the command, by
// the name that the command requests. The address that is dialed must be public, unless the address
// itself is listed. The package does not inspect the data in a tunnel: a listed host gets whatever
// the command sends.
package egress

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-dec29ce4/eca/internal/fetch"
)

// Port is the proxy's port in a network namespace.
const Port = 3128

const (
	connectTime = 20 * time.Second
	headerTime  = 30 * time.Second
)

// Hosts is a list of hosts: names and addresses, or *.suffix for all subdomains.
type Hosts []string

// NewHosts parses a list from the configuration. Entries with @ stand for the hosts of a package
// registry.
func NewHosts(list []string) (Hosts, error) {
	registries := map[string][]string{
		"@npm":    {"registry.npmjs.org", "registry.yarnpkg.com"},
		"@pypi":   {"pypi.org", "files.pythonhosted.org"},
		"@go":     {"proxy.golang.org", "sum.golang.org"},
		"@crates": {"crates.io", "index.crates.io", "static.crates.io"},
	}
	var out Hosts
	var errs []error
	for _, entry := range list {
		entry = normalizeHost(entry)
		switch hosts, ok := registries[entry]; {
		case ok:
			out = append(out, hosts...)
		case strings.HasPrefix(entry, "@"):
			errs = append(errs, fmt.Errorf("unknown registry %q; use @npm, @pypi, @go or @crates", entry))
		case entry == "" || strings.ContainsAny(strings.TrimPrefix(entry, "*."), "*/ ") || fetch.Valid(strings.TrimPrefix(entry, "*.")) != nil:
			errs = append(errs, fmt.Errorf("%q is not a valid host", entry))
		default:
			out = append(out, entry)
		}
	}
	return out, errors.Join(errs...)
}

func normalizeHost(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
}

// Contain reports whether a host is listed.
func (h Hosts) Contain(host string) bool {
	host = normalizeHost(host)
	return slices.ContainsFunc(h, func(entry string) bool {
		suffix, ok := strings.CutPrefix(entry, "*")
		return host == entry || ok && strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	})
}

// Proxy serves the commands in one network namespace.
type Proxy struct {
	Hosts func() Hosts // the current list

	mu      sync.Mutex // guards the fields below, and Client.refused
	clients map[string]*Client
	conns   map[net.Conn]bool
	closed  bool

	running sync.WaitGroup // the goroutines of connections
}

// Client is a command that uses the proxy. Its URL identifies it.
type Client struct {
	proxy   *Proxy
	token   string
	allowed []string // host:port, in addition to the listed hosts
	refused []Refusal
}

// Refusal is a refused connection.
type Refusal struct {
	Address  string // host:port
	Unlisted bool   // the host is not listed, so allowing the address would help
}

// maxRefused is how many refusals are stored for a client.
const maxRefused = 100

// NewClient registers a command that may also connect to the given addresses, as host:port. The
// caller must call Close.
func (p *Proxy) NewClient(allowed []string) *Client {
	c := &Client{proxy: p, token: rand.Text(), allowed: allowed}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clients == nil {
		p.clients = map[string]*Client{}
	}
	p.clients[c.token] = c
	return c
}

// URL returns the URL of the proxy for the client, in its network namespace.
func (c *Client) URL() string { return fmt.Sprintf("http://eca:%s@127.0.0.1:%d", c.token, Port) }

// Refused returns the client's refused connections. Those of a program that did not identify itself
// are listed for every client.
func (c *Client) Refused() []Refusal {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	return slices.Clone(c.refused)
}

// Close removes the client. Its connections stay open.
func (c *Client) Close() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	delete(c.proxy.clients, c.token)
}

// client returns the client that sent a request; nil if the request does not identify it.
func (p *Proxy) client(req *http.Request) *Client {
	parsed := http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}
	_, token, _ := parsed.BasicAuth()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients[token]
}

// isAllowed reports whether the user allowed an address for the client.
func (c *Client) isAllowed(host, port string) bool {
	return c != nil && slices.Contains(c.allowed, net.JoinHostPort(normalizeHost(host), port))
}

// Serve serves until the listener is closed.
func (p *Proxy) Serve(l net.Listener) { p.accept(l, p.serve) }

// Forward connects each connection to a port of this machine, until the listener is closed.
func (p *Proxy) Forward(l net.Listener, port int) {
	p.accept(l, func(c net.Conn) {
		to, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), connectTime)
		if err != nil {
			return
		}
		p.relay(c, c, to)
	})
}

// Close closes all connections and waits for their goroutines. Close the listeners first.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.running.Wait()
}

func (p *Proxy) accept(l net.Listener, serve func(net.Conn)) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if !p.track(c) {
			_ = c.Close()
			return
		}
		p.running.Go(func() {
			defer p.untrack(c)
			serve(c)
		})
	}
}

// track registers a connection for Close; it returns false after Close was called.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	if p.conns == nil {
		p.conns = map[net.Conn]bool{}
	}
	p.conns[c] = true
	return true
}

func (p *Proxy) untrack(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// serve serves one request; all further data on the connection is for the same host.
func (p *Proxy) serve(c net.Conn) {
	_ = c.SetReadDeadline(time.Now().Add(headerTime))
	in := bufio.NewReader(c)
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	host, port := req.URL.Hostname(), req.URL.Port()
	tunnel := req.Method == http.MethodConnect
	switch {
	case tunnel:
		if host, port, err = net.SplitHostPort(req.Host); err != nil {
			writeAnswer(c, http.StatusBadRequest, "the request names no host and port")
			return
		}
	case req.URL.Scheme != "http" || host == "":
		writeAnswer(c, http.StatusBadRequest, "this is a proxy of eca for sandboxed commands")
		return
	case port == "":
		port = "80"
	}
	client := p.client(req)
	to, err := p.dial(client, host, port)
	var refused refusedError
	switch {
	case errors.As(err, &refused):
		p.recordRefusal(client, Refusal{net.JoinHostPort(normalizeHost(host), port), refused.unlisted})
		writeAnswer(c, http.StatusForbidden, err.Error())
		return
	case err != nil:
		writeAnswer(c, http.StatusBadGateway, fmt.Sprintf("eca cannot connect to %s: %v", host, err))
		return
	}
	if tunnel {
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			_ = to.Close()
			return
		}
		p.relay(c, in, to)
		return
	}
	for _, name := range []string{"Proxy-Connection", "Proxy-Authorization"} {
		req.Header.Del(name)
	}
	req.Close = true // the next request may be for another host
	if !p.track(to) {
		_ = to.Close()
		return
	}
	defer p.untrack(to)
	if err := req.Write(to); err == nil {
		_, _ = io.Copy(c, to)
	}
}

// refusedError is the reason why a host must not be connected to.
type refusedError struct {
	cause    string
	unlisted bool
}

func (e refusedError) Error() string { return e.cause }

// dial connects to a host, if that is allowed.
func (p *Proxy) dial(client *Client, host, port string) (net.Conn, error) {
	if !p.Hosts().Contain(host) && !client.isAllowed(host, port) {
		return nil, refusedError{fmt.Sprintf("eca's sandbox does not let this command connect to %s: the host is not in toolCall.sandboxHosts. Ask the user to list it there, or to approve the command.", net.JoinHostPort(host, port)), true}
	}
	_, err := netip.ParseAddr(host)
	byAddress := err == nil // the user listed or approved the address itself
	dialer := net.Dialer{Timeout: connectTime, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !byAddress && !fetch.Public(at.Addr()) {
			return refusedError{cause: fmt.Sprintf("eca's sandbox does not let this command connect to %s: its address %s is not on the public internet. The user can list the address itself in toolCall.sandboxHosts.", host, at.Addr())}
		}
		return nil
	}}
	return dialer.Dial("tcp", net.JoinHostPort(host, port))
}

// recordRefusal records a refusal for a client, or for all if client is nil.
func (p *Proxy) recordRefusal(client *Client, r Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		if (client == nil || c == client) && len(c.refused) < maxRefused && !slices.Contains(c.refused, r) {
			c.refused = append(c.refused, r)
		}
	}
}

// relay copies data in both directions until both ends are closed. in is what the client c still sends;
// some of it may be buffered.
func (p *Proxy) relay(c net.Conn, in io.Reader, to net.Conn) {
	if !p.track(to) {
		_ = to.Close()
		return
	}
	defer p.untrack(to)
	var back sync.WaitGroup
	back.Go(func() { copyAndCloseWrite(c, to) })
	copyAndCloseWrite(to, in)
	back.Wait()
}

// copyAndCloseWrite copies all data, and then closes the destination for writing.
func copyAndCloseWrite(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok {
		_ = to.Close()
		return
	}
	_ = half.CloseWrite()
}

func writeAnswer(c net.Conn, status int, text string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", status, http.StatusText(status), len(text)+1, text)
}
