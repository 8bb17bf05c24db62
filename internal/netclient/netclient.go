// Package netclient creates all HTTP clients of the program: it decides through which proxy a
// server is reached, which certificates are trusted, and which client certificate eca presents
// (eca-features.md 8).
//
// It owns the connections. Clients with equal Options share connections and reuse them. HTTP/2 is
// used if the server supports it, unless Options forbid it. Existing clients follow Use: new
// certificates apply to their next request. An error of a client is an *Error, whose text names the
// cause and hosts, but no secrets in the URL of a proxy or request. If a configured proxy cannot be
// used, the request fails: it is never bypassed.
//
// Servers on this machine are never reached through a proxy. The environment is read once, through
// the function given to New; the Go runtime itself finds the system's certificates (on Linux it
// uses SSL_CERT_FILE and SSL_CERT_DIR). The package does not limit the time of a request, only that
// of connecting, and does not retry.
package netclient

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Options are the options of a client's connections.
type Options struct {
	Connect time.Duration // limit for connecting, including proxies and TLS; 0 means none
	HTTP1   bool          // never HTTP/2

	// Guarded connections are made only if the Guard in the request's context permits them
	// (WithGuard), serve one request each, and present no client certificate: they are for servers
	// that the user did not choose.
	Guarded bool
}

// Network makes clients for one environment. It is safe for concurrent use.
type Network struct {
	proxies *Proxies

	mu         sync.Mutex // guards the fields below
	identity   *Identity
	clients    map[Options]*http.Client
	transports map[Options]*http.Transport // for the current identity
	retired    []*http.Transport           // may still have running requests
}

// New returns a network for an environment. The caller must call Close.
func New(getenv func(string) string) *Network {
	return &Network{
		proxies: ProxiesOf(getenv), identity: &Identity{},
		clients: map[Options]*http.Client{}, transports: map[Options]*http.Transport{},
	}
}

// Proxies returns the proxies in effect.
func (n *Network) Proxies() *Proxies { return n.proxies }

// Use sets the certificates for all further requests, and reports whether they differ from the
// previous ones.
func (n *Network) Use(id *Identity) (changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id.digest == n.identity.digest {
		return false
	}
	n.identity = id
	for options, t := range n.transports {
		t.CloseIdleConnections()
		n.retired = append(n.retired, t)
		delete(n.transports, options)
	}
	return true
}

// Client returns the client for the given options, always the same one.
func (n *Network) Client(o Options) *http.Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.clients[o]
	if !ok {
		c = &http.Client{Transport: &roundTripper{n, o}}
		n.clients[o] = c
	}
	return c
}

// Close closes all idle connections.
func (n *Network) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.transports {
		t.CloseIdleConnections()
	}
	for _, t := range n.retired {
		t.CloseIdleConnections()
	}
}

// transport returns the current transport.
func (n *Network) transport(o Options) *http.Transport {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, ok := n.transports[o]
	if !ok {
		t = newTransport(o, n.identity)
		n.transports[o] = t
	}
	return t
}

const (
	keepAlive = 30 * time.Second // between probes of an idle TCP connection
	maxIdle   = 90 * time.Second // until an unused connection is closed
	// An idle connection is probed after pingAfter, and closed after another pingWithin without an
	// answer, so that a broken connection does not swallow requests.
	pingAfter  = 30 * time.Second
	pingWithin = 15 * time.Second
)

func newTransport(o Options, id *Identity) *http.Transport {
	config := id.config()
	dialer := &net.Dialer{Timeout: o.Connect, KeepAlive: keepAlive}
	if o.Guarded {
		dialer.ControlContext = guarded
		config.GetClientCertificate = nil
	}
	t := &http.Transport{
		Proxy:                  func(r *http.Request) (*url.URL, error) { return routeOf(r.Context()).transportProxy(), nil },
		OnProxyConnectResponse: refusal,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			conn = promptly(conn)
			if !routeOf(ctx).tlsToProxy() {
				return conn, nil
			}
			return secured(ctx, conn, config, o.Connect, addr)
		},
		TLSClientConfig: config, TLSHandshakeTimeout: o.Connect,
		MaxIdleConnsPerHost: 4, IdleConnTimeout: maxIdle, ReadBufferSize: 32 << 10,
		DisableKeepAlives: o.Guarded,
		Protocols:         &http.Protocols{},
		HTTP2:             &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingWithin},
	}
	t.Protocols.SetHTTP1(true)
	t.Protocols.SetHTTP2(!o.HTTP1)
	return t
}

// secured establishes TLS with a proxy. The transport itself would offer HTTP/2 to the proxy, over
// which it cannot create tunnels.
func secured(ctx context.Context, conn net.Conn, config *tls.Config, limit time.Duration, addr string) (net.Conn, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	host, _, err := net.SplitHostPort(addr)
	if err == nil {
		config.ServerName = host
		tlsConn := tls.Client(conn, config)
		if err = tlsConn.HandshakeContext(ctx); err == nil {
			return tlsConn, nil
		}
	}
	_ = conn.Close()
	return nil, err
}

// route describes a request in progress. The connection made for it may serve other requests later.
type route struct {
	proxy                *url.URL    // nil without a proxy
	certificateRequested atomic.Bool // a server asked for a client certificate, and none is configured
}

type routeKey struct{}

// routeOf returns the route of a request from its context; contexts of connections are derived from
// it.
func routeOf(ctx context.Context) *route {
	j, _ := ctx.Value(routeKey{}).(*route)
	return j
}

func (j *route) tlsToProxy() bool { return j != nil && j.proxy != nil && j.proxy.Scheme == "https" }

// transportProxy returns the proxy for the transport, without TLS, which is done when dialing.
func (j *route) transportProxy() *url.URL {
	if j == nil || !j.tlsToProxy() {
		if j == nil {
			return nil
		}
		return j.proxy
	}
	plain := *j.proxy
	plain.Scheme, plain.Host = "http", address(j.proxy)
	return &plain
}

// roundTripper is the http.RoundTripper of clients with the same options.
type roundTripper struct {
	network *Network
	options Options
}

// RoundTrip implements http.RoundTripper. Its error is an *Error unless the request's context has
// ended.
func (s *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	proxy, err := s.network.proxies.For(req.URL)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	j := &route{proxy: proxy}
	ctx, cancel := context.WithCancelCause(context.WithValue(req.Context(), routeKey{}, j))
	var timer *time.Timer
	if s.options.Connect > 0 {
		timer = time.AfterFunc(s.options.Connect, func() { cancel(late(req.URL, proxy, s.options.Connect)) })
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { timer.Stop() }})
	}
	resp, err := s.network.transport(s.options).RoundTrip(req.WithContext(ctx))
	if timer != nil {
		timer.Stop()
	}
	if err == nil && proxy != nil && resp.StatusCode == http.StatusProxyAuthRequired {
		err = refusal(ctx, proxy, nil, resp)
		_ = resp.Body.Close()
	}
	if err != nil {
		defer cancel(nil)
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		return nil, explain(err, context.Cause(ctx), req.URL, j)
	}
	resp.Body = ending(resp.Body, func() { cancel(nil) })
	return resp, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (s *roundTripper) CloseIdleConnections() { s.network.transport(s.options).CloseIdleConnections() }

// Guard returns an error if a connection must not be made. It is called with the resolved address
// right before each connection, so that the name cannot resolve to another address in between. It
// is not called for connections to a proxy.
type Guard func(netip.AddrPort) error

type guardKey struct{}

// WithGuard returns a context for requests of a client whose Options are Guarded.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// guarded is a net.Dialer.ControlContext.
func guarded(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if j := routeOf(ctx); j != nil && j.proxy != nil {
		return nil
	}
	guard, _ := ctx.Value(guardKey{}).(Guard)
	at, err := netip.ParseAddrPort(address)
	switch {
	case guard == nil:
		err = fmt.Errorf("connections to %s have no guard", address)
	case err == nil:
		err = guard(at)
	}
	if err != nil {
		return &Error{Kind: KindForbidden, Message: err.Error(), Cause: err}
	}
	return nil
}

// ending returns a body that calls end when it is closed. If a connection was taken over, the body
// can still be written to.
func ending(body io.ReadCloser, end func()) io.ReadCloser {
	if w, ok := body.(io.Writer); ok {
		return &duplex{ended{body, end}, w}
	}
	return &ended{body, end}
}

type ended struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (e *ended) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

type duplex struct {
	ended
	io.Writer
}
