package a2a

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Access says who may call a server of HTTP. Whoever calls may have programs run, so that
// web pages, of which any may be open on this machine, must not.
type Access struct {
	Address string   // that is listened at, host:port
	Token   string   // bearer token that each call needs; empty: none, but this machine only
	Origins []string // of web pages that may call, besides those of this machine at this port
	Hosts   []string // names under which the server is reached, besides this machine's
}

type access struct {
	next    http.Handler
	bound   netip.Addr
	hosts   []string // without ports
	origins []string
	token   []byte // hash of the header; nil: none is needed
}

// Guard lets through to next what may call. The agent card is for everybody who names the
// right host.
func (a Access) Guard(next http.Handler) http.Handler {
	host, port, err := net.SplitHostPort(a.Address)
	if err != nil {
		host, port = a.Address, ""
	}
	g := &access{next: next, hosts: slices.Clone(a.Hosts), origins: slices.Clone(a.Origins)}
	g.bound, _ = netip.ParseAddr(host) // not valid for a name
	for _, name := range []string{host, "localhost", "127.0.0.1", "::1"} {
		if name != "" {
			g.hosts = append(g.hosts, name)
			g.origins = append(g.origins, "http://"+net.JoinHostPort(name, port))
		}
	}
	if a.Token != "" {
		sum := sha256.Sum256([]byte(a.Token))
		g.token = sum[:]
	}
	return g
}

// ServeHTTP implements http.Handler.
func (g *access) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 { // also of what is refused: the server reads it before it answers
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // servers of tests may not have it
	}
	if !g.knownHost(r.Host) {
		http.Error(w, "this host is not served: a page may have pointed its name here", http.StatusForbidden)
		return
	}
	if g.token == nil && !fromHere(r.RemoteAddr) {
		http.Error(w, "without a token, only this machine may call", http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.ContainsFunc(g.origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			http.Error(w, "pages of this origin may not call", http.StatusForbidden)
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization, A2A-Version, A2A-Extensions")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if g.token != nil && r.URL.Path != CardPath && !g.authorized(r.Header.Get("Authorization")) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
		return
	}
	g.next.ServeHTTP(w, r)
}

func (g *access) authorized(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	sum := sha256.Sum256([]byte(token))
	return strings.EqualFold(scheme, "Bearer") && subtle.ConstantTimeCompare(sum[:], g.token) == 1
}

func fromHere(remote string) bool {
	at, err := netip.ParseAddrPort(remote)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

// knownHost says whether a request was meant for this server: names can be made to lead
// anywhere.
func (g *access) knownHost(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if slices.ContainsFunc(g.hosts, func(known string) bool { return strings.EqualFold(known, host) }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || g.bound.IsValid() && g.bound.IsUnspecified())
}
