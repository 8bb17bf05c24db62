// Package egress is the proxy through which sandboxed commands reach the network: HTTP, and TLS
// by CONNECT, to hosts of a list.
//
// It guarantees that a connection is made only to a host that is listed, or that the user allowed
// the command that asks, by the name that the command gave, and only to an address of the public
// internet, decided on the address that is dialed; other addresses must be listed themselves. It
// does not read what goes through a tunnel: a listed host gets whatever the command sends it.
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

// Port is where the proxy listens in a network namespace.
const Port = 3128

const (
	connectTime = 20 * time.Second
	headerTime  = 30 * time.Second
)

// Hosts is a list of hosts: names and addresses, exact, or *.suffix for all below one.
type Hosts []string

// NewHosts reads a list of the configuration. Entries with @ stand for the hosts of a registry.
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
		entry = normal(entry)
		switch hosts, ok := registries[entry]; {
		case ok:
			out = append(out, hosts...)
		case strings.HasPrefix(entry, "@"):
			errs = append(errs, fmt.Errorf("%q is not a registry that eca knows: @npm, @pypi, @go, @crates", entry))
		case entry == "" || strings.ContainsAny(strings.TrimPrefix(entry, "*."), "*/ ") || fetch.Valid(strings.TrimPrefix(entry, "*.")) != nil:
			errs = append(errs, fmt.Errorf("%q is not a host", entry))
		default:
			out = append(out, entry)
		}
	}
	return out, errors.Join(errs...)
}

func normal(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.TrimSpace(host), "."))
}

// Contain reports whether a host is listed.
func (h Hosts) Contain(host string) bool {
	host = normal(host)
	return slices.ContainsFunc(h, func(entry string) bool {
		suffix, ok := strings.CutPrefix(entry, "*")
		return host == entry || ok && strings.HasSuffix(host, suffix) && len(host) > len(suffix)
	})
}

// Proxy serves the commands of one network namespace.
type Proxy struct {
	Hosts func() Hosts // the list as it is now

	mu      sync.Mutex // guards what follows, and what clients were refused
	clients map[string]*Client
	conns   map[net.Conn]bool
	closed  bool

	open sync.WaitGroup
}

// Client is one command that uses the proxy. Its URL identifies it.
type Client struct {
	proxy   *Proxy
	token   string
	allowed []string // host:port, beside the listed hosts
	refused []Refusal
}

// Refusal is a connection that a client did not get.
type Refusal struct {
	Address  string // host:port
	Unlisted bool   // allowing the address would help
}

// maxRefused bounds what is remembered of a client.
const maxRefused = 100

// NewClient registers a command that may also connect to some addresses, as host:port. Close must
// be called.
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

// URL is where the client finds the proxy in its network namespace.
func (c *Client) URL() string { return fmt.Sprintf("http://eca:%s@127.0.0.1:%d", c.token, Port) }

// Refused returns what the client was refused so far. Refusals of a program that did not
// identify itself are listed for each client.
func (c *Client) Refused() []Refusal {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	return slices.Clone(c.refused)
}

// Close forgets the client. Its connections go on.
func (c *Client) Close() {
	c.proxy.mu.Lock()
	defer c.proxy.mu.Unlock()
	delete(c.proxy.clients, c.token)
}

// client returns the client that a request is from; nil if it does not say.
func (p *Proxy) client(req *http.Request) *Client {
	asked := http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}
	_, token, _ := asked.BasicAuth()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients[token]
}

// may reports whether the client was allowed an address.
func (c *Client) may(host, port string) bool {
	return c != nil && slices.Contains(c.allowed, net.JoinHostPort(normal(host), port))
}

// Serve serves until the listener is closed.
func (p *Proxy) Serve(l net.Listener) { p.accept(l, p.serve) }

// Forward connects each connection with a port of this machine, until the listener is closed.
func (p *Proxy) Forward(l net.Listener, port int) {
	p.accept(l, func(c net.Conn) {
		to, err := net.DialTimeout("tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)), connectTime)
		if err != nil {
			return
		}
		p.join(c, c, to)
	})
}

// Close ends all connections and waits for what serves them. Listeners are closed before.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.open.Wait()
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
		p.open.Go(func() {
			defer p.drop(c)
			serve(c)
		})
	}
}

// track notes a connection that Close ends; false if it has been called.
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

func (p *Proxy) drop(c net.Conn) {
	_ = c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// serve answers one request: what follows it on the connection is for the same host.
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
			answer(c, http.StatusBadRequest, "the request names no host and port")
			return
		}
	case req.URL.Scheme != "http" || host == "":
		answer(c, http.StatusBadRequest, "this is a proxy of eca for sandboxed commands")
		return
	case port == "":
		port = "80"
	}
	client := p.client(req)
	to, err := p.dial(client, host, port)
	var refused refusedError
	switch {
	case errors.As(err, &refused):
		p.note(client, Refusal{net.JoinHostPort(normal(host), port), refused.unlisted})
		answer(c, http.StatusForbidden, err.Error())
		return
	case err != nil:
		answer(c, http.StatusBadGateway, fmt.Sprintf("eca cannot connect to %s: %v", host, err))
		return
	}
	if tunnel {
		if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			_ = to.Close()
			return
		}
		p.join(c, in, to)
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
	defer p.drop(to)
	if err := req.Write(to); err == nil {
		_, _ = io.Copy(c, to)
	}
}

// refusedError says why a host is not connected to.
type refusedError struct {
	cause    string
	unlisted bool
}

func (e refusedError) Error() string { return e.cause }

// dial connects to a host that may be reached.
func (p *Proxy) dial(client *Client, host, port string) (net.Conn, error) {
	listed := p.Hosts().Contain(host) || client.may(host, port)
	if !listed {
		return nil, refusedError{fmt.Sprintf("eca's sandbox does not let this command connect to %s: the host is not in toolCall.sandboxHosts. Ask the user to list it there, or to approve the command.", net.JoinHostPort(host, port)), true}
	}
	_, err := netip.ParseAddr(host)
	byAddress := err == nil && listed
	dialer := net.Dialer{Timeout: connectTime, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if !byAddress && !fetch.Public(at.Addr()) {
			return refusedError{cause: fmt.Sprintf("eca's sandbox does not let this command connect to %s: its address %s is not of the public internet. The user can list the address itself in toolCall.sandboxHosts.", host, at.Addr())}
		}
		return nil
	}}
	return dialer.Dial("tcp", net.JoinHostPort(host, port))
}

// note records a refusal for a client; for all if it is nil.
func (p *Proxy) note(client *Client, r Refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.clients {
		if (client == nil || c == client) && len(c.refused) < maxRefused && !slices.Contains(c.refused, r) {
			c.refused = append(c.refused, r)
		}
	}
}

// join copies both ways until both ends have said all.
func (p *Proxy) join(c net.Conn, in io.Reader, to net.Conn) {
	if !p.track(to) {
		_ = to.Close()
		return
	}
	defer p.drop(to)
	var back sync.WaitGroup
	back.Go(func() { pour(c, to) })
	pour(to, in)
	back.Wait()
}

// pour copies to the end and passes that on.
func pour(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok {
		_ = to.Close()
		return
	}
	_ = half.CloseWrite()
}

func answer(c net.Conn, status int, text string) {
	_, _ = fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s\n", status, http.StatusText(status), len(text)+1, text)
}
