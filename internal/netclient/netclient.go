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

// transport returns the transport for the current certificates.
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
		dialer.ControlContext = checkGuard
		config.GetClientCertificate = nil
	}
	t := &http.Transport{
		Proxy:                  func(r *http.Request) (*url.URL, error) { return routeOf(r.Context()).transportProxy(), nil },
		OnProxyConnectResponse: proxyRefusal,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			conn = withQuickAck(conn)
			if !routeOf(ctx).tlsToProxy() {
				return conn, nil
			}
			return startTLSToProxy(ctx, conn, config, o.Connect, addr)
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

// startTLSToProxy establishes TLS with a proxy, without HTTP/2: the transport would offer it, but cannot
// create tunnels over it.
func startTLSToProxy(ctx context.Context, conn net.Conn, config *tls.Config, limit time.Duration, addr string) (net.Conn, error) {
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

// routeOf returns the route of a request; nil if it has none. ctx is the context of the request, or that
// of a connection made for the request.
func routeOf(ctx context.Context) *route {
	r, _ := ctx.Value(routeKey{}).(*route)
	return r
}

func (r *route) tlsToProxy() bool { return r != nil && r.proxy != nil && r.proxy.Scheme == "https" }

// transportProxy returns the proxy for the transport, without TLS, which is done when dialing.
func (r *route) transportProxy() *url.URL {
	if r == nil || !r.tlsToProxy() {
		if r == nil {
			return nil
		}
		return r.proxy
	}
	plain := *r.proxy
	plain.Scheme, plain.Host = "http", address(r.proxy)
	return &plain
}

// roundTripper is the http.RoundTripper of clients with the same options.
type roundTripper struct {
	network *Network
	options Options
}

// RoundTrip implements http.RoundTripper. Its error is an *Error unless the request's context has
// ended.
func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	proxy, err := t.network.proxies.For(req.URL)
	if err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	r := &route{proxy: proxy}
	ctx, cancel := context.WithCancelCause(context.WithValue(req.Context(), routeKey{}, r))
	var timer *time.Timer
	if t.options.Connect > 0 {
		timer = time.AfterFunc(t.options.Connect, func() { cancel(connectTimeout(req.URL, proxy, t.options.Connect)) })
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { timer.Stop() }})
	}
	resp, err := t.network.transport(t.options).RoundTrip(req.WithContext(ctx))
	if timer != nil {
		timer.Stop()
	}
	if err == nil && proxy != nil && resp.StatusCode == http.StatusProxyAuthRequired {
		err = proxyRefusal(ctx, proxy, nil, resp)
		_ = resp.Body.Close()
	}
	if err != nil {
		defer cancel(nil)
		if req.Context().Err() != nil {
			return nil, req.Context().Err()
		}
		return nil, explain(err, context.Cause(ctx), req.URL, r)
	}
	resp.Body = withCloseHook(resp.Body, func() { cancel(nil) })
	return resp, nil
}

// CloseIdleConnections is called by http.Client.CloseIdleConnections.
func (t *roundTripper) CloseIdleConnections() { t.network.transport(t.options).CloseIdleConnections() }

// Guard returns an error if a connection must not be made. It is called with the resolved address
// right before each connection, so that the name cannot resolve to another address in between. It
// is not called for connections to a proxy.
type Guard func(netip.AddrPort) error

type guardKey struct{}

// WithGuard returns a context for requests of a client whose Options are Guarded.
func WithGuard(ctx context.Context, g Guard) context.Context {
	return context.WithValue(ctx, guardKey{}, g)
}

// checkGuard is a net.Dialer.ControlContext.
func checkGuard(ctx context.Context, _, address string, _ syscall.RawConn) error {
	if r := routeOf(ctx); r != nil && r.proxy != nil {
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

// withCloseHook returns a body that calls end when it is closed. The body of an upgraded connection stays
// writable.
func withCloseHook(body io.ReadCloser, end func()) io.ReadCloser {
	if w, ok := body.(io.Writer); ok {
		return &writableBody{closeHookBody{body, end}, w}
	}
	return &closeHookBody{body, end}
}

type closeHookBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (e *closeHookBody) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

type writableBody struct {
	closeHookBody
	io.Writer
}
