package service

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
)

// HTTPOptions say who may call over HTTP, and how much.
type HTTPOptions struct {
	Address string   // that is listened at, host:port
	Origins []string // of web pages that may call; none may by default
	Hosts   []string // names under which the service is reached, besides this machine's

	MaxBody     int64   // bytes of a request; default 4 MiB
	Rate        float64 // requests per second that start something, in the long run; default 200
	Burst       int     // of those, at once; default 1,000
	Concurrency int     // requests at the same time, streams included; default 1,024
}

// Handler serves HTTP (contract 8).
func (s *Service) Handler(o HTTPOptions) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	// A request goes to its worker in one message, with some words around it.
	o.MaxBody = min(o.MaxBody, s.nc.MaxPayload()*3/4)
	if o.Rate <= 0 {
		o.Rate = 200
	}
	o.Burst = orElse(o.Burst, 1000)
	h := &handler{s: s, o: o, running: make(chan struct{}, orElse(o.Concurrency, 1024))}
	h.token = sha256.Sum256([]byte("Bearer " + s.o.Token))
	h.starts = bucket{rate: o.Rate, size: float64(o.Burst), left: float64(o.Burst), at: s.now()}
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		host = o.Address
	}
	h.bound, _ = netip.ParseAddr(host) // not valid for a name
	h.hosts = slices.Concat(o.Hosts, []string{host, "localhost", "127.0.0.1", "::1"})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/execute", h.execute)
	mux.HandleFunc("POST /v1/jobs", h.submit)
	mux.HandleFunc("GET /v1/jobs/{id}", h.get)
	mux.HandleFunc("GET /v1/jobs/{id}/events", h.events)
	mux.HandleFunc("POST /v1/jobs/{id}/cancel", h.cancel)
	mux.HandleFunc("GET /v1/artifacts/{namespace}/{path...}", h.artifact)
	mux.HandleFunc("GET /v1/capabilities", h.capabilities)
	mux.HandleFunc("GET /v1/health", h.health)
	h.mux = mux
	return h
}

type handler struct {
	s       *Service
	o       HTTPOptions
	mux     *http.ServeMux
	bound   netip.Addr
	hosts   []string // without ports
	token   [sha256.Size]byte
	running chan struct{}
	starts  bucket
}

// refusal is a failure with an HTTP status that its code does not have.
type refusal struct {
	Failure
	status int
	after  time.Duration // when to try again; 0: not at all
}

func refuse(status int, code esrp.Code, format string, args ...any) *refusal {
	return &refusal{Failure: Failure{Code: code, Message: fmt.Sprintf(format, args...), Final: true}, status: status}
}

func busy(after time.Duration, format string, args ...any) *refusal {
	r := refuse(http.StatusTooManyRequests, esrp.BackendUnavailable, format, args...)
	r.Final, r.after = false, max(after, time.Second)
	return r
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	if r.ContentLength != 0 { // also of what is refused: the server reads it before it answers
		_ = http.NewResponseController(w).SetReadDeadline(h.s.now().Add(bodyTime)) // servers of tests may not have it
	}
	if refused := h.guard(w, r); refused != nil {
		h.refuse(w, refused)
		return
	}
	if preflight(r) {
		w.Header().Set("Access-Control-Allow-Methods", "GET, POST")
		w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, X-Idempotency-Key, X-Request-ID")
		w.Header().Set("Access-Control-Max-Age", "600")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	default:
		h.refuse(w, busy(retryAfter, "%d requests are being served", cap(h.running)))
		return
	}
	if _, pattern := h.mux.Handler(r); pattern == "" {
		probe := &statusOnly{header: w.Header()}
		h.mux.ServeHTTP(probe, r) // which also says what is allowed
		if probe.status < http.StatusBadRequest {
			probe.status = http.StatusNotFound
		}
		h.refuse(w, refuse(probe.status, esrp.InvalidInputSemantic, "%s %s is nothing that is served", r.Method, r.URL.Path))
		return
	}
	h.mux.ServeHTTP(w, r)
}

// statusOnly hears what the mux would say.
type statusOnly struct {
	header http.Header
	status int
}

func (s *statusOnly) Header() http.Header         { return s.header }
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }
func (s *statusOnly) WriteHeader(status int)      { s.status = status }

// guard says why a request is not served.
func (h *handler) guard(w http.ResponseWriter, r *http.Request) *refusal {
	if !h.knownHost(r.Host) {
		return refuse(http.StatusForbidden, esrp.InvalidInputSemantic, "this host is not served: a page may have pointed its name here")
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.ContainsFunc(h.o.Origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			return refuse(http.StatusForbidden, esrp.InvalidInputSemantic, "pages of this origin may not call")
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", "ETag, Location, Retry-After")
		w.Header().Set("Vary", "Origin")
		if preflight(r) {
			return nil
		}
	}
	sum := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	if subtle.ConstantTimeCompare(sum[:], h.token[:]) == 0 {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return refuse(http.StatusUnauthorized, esrp.InvalidInputSemantic, "the bearer token is missing or wrong")
	}
	return nil
}

// preflight says whether a browser asks what a page may send; it has no token for that. guard
// has looked at the page's origin before.
func preflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// knownHost says whether a request was meant for us. Who listens at every address is
// reached by any of them, but names must be known.
func (h *handler) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if slices.ContainsFunc(h.hosts, func(known string) bool { return known != "" && strings.EqualFold(known, host) }) {
		return true
	}
	_, err := netip.ParseAddr(host)
	return err == nil && (h.o.Address == "" || h.bound.IsValid() && h.bound.IsUnspecified() || strings.HasPrefix(h.o.Address, ":"))
}

// CheckAddress completes an address to listen at: without a host it is this machine's.
func CheckAddress(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// refuse answers with a failure; the request is nobody's.
func (h *handler) refuse(w http.ResponseWriter, r *refusal) {
	if r.after > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(r.after.Seconds()), 'f', 0, 64))
	}
	h.write(w, r.status, failed(&r.Failure))
}

// fail answers with an error, to a request if its id is known.
func (h *handler) fail(w http.ResponseWriter, id esrp.UUID, err error) {
	var refused *refusal
	if errors.As(err, &refused) {
		h.refuse(w, refused)
		return
	}
	var f *Failure
	var transition *esrp.TransitionError
	out := esrp.Response{}
	status := 0
	switch {
	case errors.As(err, &f):
		out = failed(f)
	case errors.As(err, &transition):
		out = failed(&Failure{Code: esrp.InvalidInputSemantic, Message: err.Error()})
	case errors.Is(err, errNoJob):
		status, out = http.StatusNotFound, failed(&Failure{Code: esrp.InvalidInputSemantic, Message: err.Error()})
	default:
		h.s.log.Warn("a request could not be served", "err", err)
		out = failed(&Failure{Code: esrp.Unknown, Message: "the service could not do it; its log says why"})
	}
	out.RequestID = id
	if status == 0 {
		status = out.HTTPStatus()
	}
	h.write(w, status, out)
}

func (h *handler) write(w http.ResponseWriter, status int, r esrp.Response) {
	doc, err := r.Value().Canonical()
	if err != nil {
		h.s.log.Error("a response can not be written", "err", err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	writeJSON(w, status, doc)
}

func writeJSON(w http.ResponseWriter, status int, doc []byte) {
	// What is refused may still arrive: the server reads it before it answers.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime + writeTime)) // servers of tests may not have it
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(doc) // who does not listen hears it when it asks again
}

// bucket lets some requests through at once, and then so many per second.
type bucket struct {
	mu         sync.Mutex // guards left and at
	rate, size float64
	left       float64
	at         time.Time
}

// take takes one, or says after what time there is one.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left = min(b.size, b.left+b.rate*max(0, now.Sub(b.at).Seconds()))
	b.at = now
	if b.left < 1 {
		return time.Duration((1 - b.left) / b.rate * float64(time.Second))
	}
	b.left--
	return 0
}
