package testkit

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Seen records the requests to a test server.
type Seen struct {
	mu       sync.Mutex // guards requests
	requests []string
}

func (s *Seen) add(w string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, w)
}

// String lists the requests in order.
func (s *Seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.requests, " ")
}

// Proxy is an HTTP proxy that forwards requests and creates tunnels.
type Proxy struct {
	*httptest.Server
	Seen
}

// NewProxy starts a proxy, with TLS if config is not nil. dial maps the host and port of a request to
// the address that the proxy connects to. If credentials (user:password) is not empty, the proxy
// requires them.
func NewProxy(t testing.TB, config *tls.Config, credentials string, dial map[string]string) *Proxy {
	t.Helper()
	p := &Proxy{}
	forward := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, dial[addr])
	}}
	t.Cleanup(forward.CloseIdleConnections)
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(credentials))
		if credentials != "" && r.Header.Get("Proxy-Authorization") != want {
			p.add("407")
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		p.add(r.Method + ":" + r.Host)
		switch {
		case r.Host == "forbidden.example:443":
			w.WriteHeader(http.StatusForbidden)
		case r.Method == http.MethodConnect:
			tunnel(w, dial[r.Host])
		default:
			r.RequestURI = ""
			if !strings.Contains(r.Host, ":") {
				r.URL.Host = r.Host + ":80"
			}
			answer, err := forward.RoundTrip(r)
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer answer.Body.Close()
			w.WriteHeader(answer.StatusCode)
			_, _ = io.Copy(w, answer.Body)
		}
	}))
	if config == nil {
		p.Start()
	} else {
		p.TLS, p.EnableHTTP2 = config, true
		p.StartTLS()
	}
	t.Cleanup(p.Close)
	return p
}

// tunnel connects a client of a proxy to an address.
func tunnel(w http.ResponseWriter, to string) {
	server, err := net.Dial("tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer server.Close()
	conn, buffered, err := w.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\n\r\n"))
	join(conn, buffered.Reader, server)
}

func join(client net.Conn, from io.Reader, server net.Conn) {
	var wg sync.WaitGroup
	wg.Go(func() {
		_, _ = io.Copy(server, from)
		_ = server.(*net.TCPConn).CloseWrite()
	})
	_, _ = io.Copy(client, server)
	_ = client.Close()
	wg.Wait()
}

// Socks is a minimal SOCKS5 proxy (RFC 1928, 1929).
type Socks struct {
	Addr string
	Seen
}

// NewSocks starts a proxy.
func NewSocks(t testing.TB, credentials string, dial map[string]string) *Socks {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Socks{Addr: l.Addr().String()}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				s.serve(conn, credentials, dial)
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return s
}

func (s *Socks) serve(conn net.Conn, credentials string, dial map[string]string) {
	r := bufio.NewReader(conn)
	next := func(n int) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(r, b)
		return b
	}
	methods := next(int(next(2)[1]))
	switch {
	case credentials == "":
		_, _ = conn.Write([]byte{5, 0})
	case !strings.Contains(string(methods), "\x02"):
		_, _ = conn.Write([]byte{5, 0xff})
		return
	default:
		_, _ = conn.Write([]byte{5, 2})
		user := string(next(int(next(2)[1])))
		password := string(next(int(next(1)[0])))
		if user+":"+password != credentials {
			_, _ = conn.Write([]byte{1, 1})
			return
		}
		_, _ = conn.Write([]byte{1, 0})
	}
	head := next(4)
	if head[3] != 3 { // a name: the proxy looks it up
		_, _ = conn.Write([]byte{5, 8, 0, 1, 0, 0, 0, 0, 0, 0})
		return
	}
	host := string(next(int(next(1)[0])))
	target := net.JoinHostPort(host, strconv.Itoa(int(binary.BigEndian.Uint16(next(2)))))
	s.add(target)
	server, err := net.Dial("tcp", dial[target])
	if err != nil {
		_, _ = conn.Write([]byte{5, 5, 0, 1, 0, 0, 0, 0, 0, 0}) // connection refused
		return
	}
	defer server.Close()
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	join(conn, r, server)
}
