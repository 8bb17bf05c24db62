package agent

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

// HTTPOptions say who may call over HTTP.
type HTTPOptions struct {
	Address string   // that is listened at, host:port
	Origins []string // of web pages that may call, besides those of this machine at this port
	Hosts   []string // names under which the agent is reached, besides this machine's
	Token   string   // bearer token that each call needs; empty: none
}

// bodyTime is how long a message may take to arrive.
const bodyTime = time.Minute

// Handler serves the protocol over HTTP (1.6): one message, or an array, per POST to
// ecp.Endpoint. Answers are JSON, or one server-sent event where only that is acceptable.
func (a *Agent) Handler(o HTTPOptions) http.Handler {
	host, port, err := net.SplitHostPort(o.Address)
	if err != nil {
		host, port = o.Address, ""
	}
	h := &handler{agent: a, hosts: slices.Clone(o.Hosts), origins: slices.Clone(o.Origins)}
	h.bound, _ = netip.ParseAddr(host) // not valid for a name
	for _, name := range []string{host, "localhost", "127.0.0.1", "::1"} {
		if name != "" {
			h.hosts = append(h.hosts, name)
			h.origins = append(h.origins, "http://"+net.JoinHostPort(name, port))
		}
	}
	if o.Token != "" {
		sum := sha256.Sum256([]byte("Bearer " + o.Token))
		h.token = sum[:]
	}
	return h
}

type handler struct {
	agent   *Agent
	bound   netip.Addr
	hosts   []string // without ports
	origins []string
	token   []byte // hash of the header
}

// ServeHTTP implements http.Handler. The checks come in the order of the reference.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.ContentLength != 0 { // also of what is refused: the server reads it before it answers
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // servers of tests may not have it
	}
	if r.URL.Path != ecp.Endpoint {
		http.Error(w, "there is only "+ecp.Endpoint, http.StatusNotFound)
		return
	}
	if !h.knownHost(r.Host) {
		http.Error(w, "this host is not served: a page may have pointed its name here", http.StatusForbidden)
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" {
		if !slices.ContainsFunc(h.origins, func(o string) bool { return strings.EqualFold(o, origin) }) {
			http.Error(w, "pages of this origin may not call", http.StatusForbidden)
			return
		}
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Vary", "Origin")
		if r.Method == http.MethodOptions {
			w.Header().Set("Access-Control-Allow-Methods", http.MethodPost)
			w.Header().Set("Access-Control-Allow-Headers", "Content-Type, Accept, Authorization")
			w.WriteHeader(http.StatusNoContent)
			return
		}
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "calls are POST requests; there is no stream of the server's own", http.StatusMethodNotAllowed)
		return
	}
	if h.token != nil {
		if sum := sha256.Sum256([]byte(r.Header.Get("Authorization"))); subtle.ConstantTimeCompare(sum[:], h.token) == 0 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "the bearer token is missing or wrong", http.StatusUnauthorized)
			return
		}
	}
	plain, events := accepts(r.Header.Values("Accept"))
	if !plain && !events {
		http.Error(w, "answers are application/json or text/event-stream", http.StatusNotAcceptable)
		return
	}
	if t := r.Header.Get("Content-Type"); t != "" && !isJSON(t) {
		http.Error(w, "messages are application/json", http.StatusUnsupportedMediaType)
		return
	}
	h.post(w, r, !plain)
}

// post answers a message.
func (h *handler) post(w http.ResponseWriter, r *http.Request, events bool) {
	control := http.NewResponseController(w)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxMessage))
	if err == nil { // a step may take long; the rest of a message, which the server reads, may not
		_ = control.SetReadDeadline(time.Time{})
	}
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		http.Error(w, tooLong(MaxMessage).Error(), http.StatusRequestEntityTooLarge)
		return
	case err != nil:
		http.Error(w, "the message did not arrive", http.StatusBadRequest)
		return
	}
	list, batch := parse(body)
	answers, _ := h.agent.take(r.Context(), list)
	if events && slices.ContainsFunc(list, func(m message) bool { return m.ID != nil }) {
		w.Header().Set("Content-Type", sse.ContentType)
		w.Header().Set("Cache-Control", "no-store")
		_ = control.Flush() // who waits sees that it is being worked on
	}
	out := answers()
	if len(out) == 0 {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	var v any = out
	if !batch {
		v = out[0]
	}
	line, err := ecp.Encode(v)
	if err != nil {
		h.agent.log.Error("an answer can not be encoded", "err", err)
		http.Error(w, "the answer can not be encoded", http.StatusInternalServerError)
		return
	}
	if w.Header().Get("Content-Type") == sse.ContentType {
		_, _ = w.Write(sse.Append(nil, "", "message", line))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if !batch && out[0].Err != nil && out[0].Err.Code == ecp.CodeParse {
		w.WriteHeader(http.StatusBadRequest)
	}
	_, _ = w.Write(line) // who left does not read it
}

// knownHost says whether a request was meant for this agent: names can be made to lead
// anywhere.
func (h *handler) knownHost(hostport string) bool {
	host := hostport
	if name, _, err := net.SplitHostPort(hostport); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.Trim(host, "[]"), ".")
	if slices.ContainsFunc(h.hosts, func(known string) bool { return strings.EqualFold(known, host) }) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.IsLoopback() || h.bound.IsValid() && h.bound.IsUnspecified())
}

// accepts says which kinds of answers are acceptable; without a word all are.
func accepts(header []string) (plain, events bool) {
	if len(header) == 0 {
		return true, true
	}
	for part := range strings.SplitSeq(strings.Join(header, ","), ",") {
		kind, params, err := mime.ParseMediaType(strings.TrimSpace(part))
		if err != nil || params["q"] == "0" {
			continue
		}
		switch kind {
		case "*/*":
			plain, events = true, true
		case "application/json", "application/*":
			plain = true
		case "text/event-stream", "text/*":
			events = true
		}
	}
	return plain, events
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasPrefix(kind, "application/") && strings.HasSuffix(kind, "+json"))
}

// CheckAddress completes an address to listen at: without a host it is this machine's own.
// One that others reach needs a token, since whoever calls runs programs.
func CheckAddress(address, token string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", errors.New("the address must be host:port, like 127.0.0.1:8765, not " + (&url.URL{Path: address}).String())
	}
	if host == "" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if local := host == "localhost" || err == nil && ip.IsLoopback(); !local && token == "" {
		return "", errors.New("at " + host + " others can call, and so run programs here: set a token, or listen at 127.0.0.1")
	}
	return net.JoinHostPort(host, port), nil
}
