// Package netclient makes the HTTP clients of the whole program: which proxy a server is
// reached through, which certificates are trusted, and with which one eca shows who it is
// (eca-features 8).
//
// It owns the connections. Guarantees: clients with equal Options share connections, and
// keep them for the next request; HTTP/2 is spoken where the server can, unless Options
// forbid it; a client that somebody holds follows Use, so that other certificates count
// from the next request on; an error of a client is an *Error, whose text names the cause
// and hosts, never what is secret in the URL of a proxy or of a request. A proxy that is
// configured but cannot be used is an error: nothing goes past it.
//
// Servers on this machine are never asked through a proxy. The environment is read once,
// through the function New is given; how the Go runtime finds the system's certificates
// is its own (on Linux it heeds SSL_CERT_FILE and SSL_CERT_DIR). The package does not
// limit the time of a request, only that until its connection stands, and does not retry.
package netclient

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// Options is what one client's connections have in common.
type Options struct {
	Connect time.Duration // until a connection stands, proxies and TLS included; 0 means unlimited
	HTTP1   bool          // never HTTP/2

	// Guarded connections are made only if the Guard of the request's context lets them
	// (WithGuard), serve one request each, and show no client certificate: for servers that
	// somebody else chose.
	Guarded bool
}

// Network makes clients for one environment. It is safe for concurrent use.
type Network struct {
	proxies *Proxies

	mu         sync.Mutex // guards what follows
	identity   *Identity
	clients    map[Options]*http.Client
	transports map[Options]*http.Transport // of the current identity
	retired    []*http.Transport           // requests may still run on them
}

// New returns a network for an environment. Close must be called.
func New(getenv func(string) string) *Network {
	return &Network{
		proxies: ProxiesOf(getenv), identity: &Identity{},
		clients: map[Options]*http.Client{}, transports: map[Options]*http.Transport{},
	}
}

// Proxies returns the proxies in effect.
func (n *Network) Proxies() *Proxies { return n.proxies }

// Use puts certificates into effect: requests that begin from now on know them. It
// reports whether they are others than before.
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

// Client returns the client for some options; always the same.
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

// Close closes the connections that no request uses.
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

// transport returns what sends requests now.
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
	// A connection over which nothing came for pingAfter is probed, and given up after
	// pingWithin more: one that died silently must not swallow requests.
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

// secured speaks TLS to a proxy. The transport would offer the proxy HTTP/2, in which it
// cannot ask for a tunnel.
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

// route is what is known of a request while it is on its way. The connection made for
// it may serve others later.
type route struct {
	proxy                *url.URL    // nil: none
	certificateRequested atomic.Bool // a server asked for a client certificate, and none is configured
}

type routeKey struct{}

// routeOf returns the route of a request by its context; connections are made in
// contexts that descend from it.
func routeOf(ctx context.Context) *route {
	j, _ := ctx.Value(routeKey{}).(*route)
	return j
}

func (j *route) tlsToProxy() bool { return j != nil && j.proxy != nil && j.proxy.Scheme == "https" }

// transportProxy is the proxy as the transport knows it: without the TLS that is
// done when dialing.
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

// roundTripper is the http.RoundTripper of the clients with the same options.
type roundTripper struct {
	network *Network
	options Options
}

// RoundTrip implements http.RoundTripper. Its error is an *Error unless the request's
// context ended.
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

// CloseIdleConnections implements what http.Client.CloseIdleConnections asks for.
func (s *roundTripper) CloseIdleConnections() { s.network.transport(s.options).CloseIdleConnections() }
