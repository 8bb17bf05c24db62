// Package httpguard decides which callers an HTTP server accepts, and limits the resources of a
// request.
//
// Since a caller may run programs, a web page that the user happens to have open must not be
// accepted. The guard guarantees: a request for an unknown host name is rejected, since a page may
// have pointed its own name at this machine (DNS rebinding); a page may call only from a known
// origin; without a token, only this machine may call; a request that stalls is dropped after a
// while. The package does not decide what a caller may do, and does not define a protocol's
// answers.
package httpguard

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/localhost"
)

// Options define who may call.
type Options struct {
	Address string   // the listening address, host:port
	Token   string   // bearer token that each call needs; if empty, only this machine may call
	Origins []string // origins of web pages that may call
	Hosts   []string // names of the server, in addition to those of this machine
	// OwnTokens means that the server checks tokens itself and does not call Authorize.
	OwnTokens bool
}

// Pages defines what a protocol allows to permitted web pages.
type Pages struct {
	Own     bool   // pages from this machine at the server's port may call, too
	Served  bool   // pages from the host name of the request may call, too
	Methods string // allowed methods of requests, separated by commas
	Headers string // allowed headers of requests
	Expose  string // headers of answers that pages may read
}

// Guard checks the requests to one server.
type Guard struct {
	pages   Pages
	bound   netip.Addr
	hosts   []string // without ports
	origins []string
	token   []byte // hash; nil if no token is needed
	local   bool   // only this machine may call
}

// New returns a Guard.
func New(o Options, pages Pages) *Guard {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		host, port = o.Address, ""
	}
	g := &Guard{pages: pages, hosts: slices.Clone(o.Hosts), origins: slices.Clone(o.Origins)}
	g.bound, _ = netip.ParseAddr(host) // invalid for a name
	if host != "" {
		g.hosts = append(g.hosts, host)
	}
	if pages.Own {
		for _, name := range []string{host, "localhost", "127.0.0.1", "::1"} {
			g.origins = append(g.origins, "http://"+net.JoinHostPort(name, port))
		}
	}
	g.local = o.Token == "" && !o.OwnTokens
	if o.Token != "" {
		sum := sha256.Sum256([]byte(o.Token))
		g.token = sum[:]
	}
	return g
}

// Refusal is why a request is rejected.
type Refusal struct {
	Status  int
	Message string
}

// Write answers with the refusal as plain text.
func (r *Refusal) Write(w http.ResponseWriter) { http.Error(w, r.Message, r.Status) }

// Admit checks the origin and the host of a request. done means that the request was answered: it
// was a browser's preflight request, which needs no token.
func (g *Guard) Admit(w http.ResponseWriter, r *http.Request) (done bool, refused *Refusal) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 { // even for rejected requests: the server reads the body before it answers
		limitBodyTime(w)
	}
	if !g.knownHost(r.Host) {
		return false, &Refusal{http.StatusForbidden, "unknown host name: a web page may have pointed its own name at this machine"}
	}
	if g.local && !isLocal(r.RemoteAddr) {
		return false, &Refusal{http.StatusForbidden, "without a token, only this machine may call"}
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false, nil
	}
	known := slices.ContainsFunc(g.origins, func(o string) bool { return strings.EqualFold(o, origin) })
	if !known && (!g.pages.Served || !isSameHost(origin, r)) {
		return false, &Refusal{http.StatusForbidden, "web pages of this origin are not allowed to call"}
	}
	w.Header().Set("Access-Control-Allow-Origin", origin)
	w.Header().Set("Vary", "Origin")
	if g.pages.Expose != "" {
		w.Header().Set("Access-Control-Expose-Headers", g.pages.Expose)
	}
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false, nil
	}
	w.Header().Set("Access-Control-Allow-Methods", g.pages.Methods)
	w.Header().Set("Access-Control-Allow-Headers", g.pages.Headers)
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		w.Header().Set("Access-Control-Allow-Private-Network", "true")
	}
	w.Header().Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true, nil
}

// Authorize checks the token of a request that was admitted.
func (g *Guard) Authorize(w http.ResponseWriter, r *http.Request) *Refusal {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	sum := sha256.Sum256([]byte(token))
	if g.token == nil || strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token) == 1 {
		return nil
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	return &Refusal{http.StatusUnauthorized, "the bearer token is missing or wrong"}
}

// TokenInPath serves requests whose path begins with the token, since a link cannot set a header.
// next gets the rest of the path. Proxies must not cache the answers.
func (g *Guard) TokenInPath(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'none'")
		done, refused := g.Admit(w, r)
		if done {
			return
		}
		token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if refused == nil {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token)
			refused = g.Authorize(w, r)
		}
		if refused != nil {
			refused.Write(w)
			return
		}
		r.URL.Path, r.URL.RawPath = "/"+rest, ""
		next.ServeHTTP(w, r)
	})
}

// PathOf returns the path below which TokenInPath serves.
func PathOf(token string) string { return "/" + token + "/" }

// isSameHost reports whether an origin is the host of the request itself, which was already accepted.
// The scheme may differ, since a proxy may terminate TLS.
func isSameHost(origin string, r *http.Request) bool {
	return strings.EqualFold(origin, "https://"+r.Host) || r.TLS == nil && strings.EqualFold(origin, "http://"+r.Host)
}

func isLocal(remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	return err == nil && localhost.Is(host)
}

// knownHost reports whether a request is meant for this server. A server that listens on all
// addresses accepts any address; names must be known.
func (g *Guard) knownHost(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if localhost.Is(host) || slices.ContainsFunc(g.hosts, func(known string) bool { return strings.EqualFold(known, host) }) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && g.bound.IsValid() && g.bound.IsUnspecified()
}

// bodyTime is how long the body of a request may take to arrive.
const bodyTime = time.Minute

func limitBodyTime(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // servers in tests may not support it
}

// ErrTooLarge is the error for a body that exceeds the limit.
var ErrTooLarge = errors.New("the body is too large")

// ReadBody reads the body of a request, and returns ErrTooLarge if it has more than limit bytes. It
// lifts the time limit for the answer.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit { // the body is not read
		w.Header().Set("Connection", "close")
		return nil, ErrTooLarge
	}
	limitBodyTime(w)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, ErrTooLarge
	case err != nil: // the server reads the rest, which must not take forever
		return nil, err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	return body, nil
}

// NewServer returns a server that disconnects clients that send no request for a while.
func NewServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
}

// ServeUntil serves until ctx ends. Then it calls stop, which should end running work, and waits up to
// grace for the answers to open requests.
func ServeUntil(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration, stop func()) error {
	server := NewServer(handler)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		stop()
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close()
		}
		err = <-served
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ListenAddress completes a listening address: without a host it is this machine's loopback
// address. An address that other machines can reach requires a token, since a caller can run
// programs.
//
// variable is the name of the environment variable with the token. It may be empty.
func ListenAddress(address, token, variable string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errors.New("the address must be host:port, like 127.0.0.1:8765, not " + (&url.URL{Path: address}).String())
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if token == "" && !localhost.Is(host) {
		remedy := "listen at 127.0.0.1"
		if variable != "" {
			remedy = "set " + variable + " to a token that callers must know, or " + remedy
		}
		return "", errors.New("at " + host + " other machines could call and run programs; " + remedy)
	}
	return net.JoinHostPort(host, port), nil
}
