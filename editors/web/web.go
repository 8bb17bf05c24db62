// Package web serves the chat page to a browser on this machine: its built files, and one
// WebSocket per page that carries the ECA protocol, one JSON-RPC message per text message.
//
// A session connects the pages to the server and outlives them: a page that is reloaded, or a
// second one, attaches to the same chats. The session starts and initializes the server, so pages
// send host/attach instead of initialize.
//
// Without a session secret, only the page's own files are served. A link's token is exchanged for
// the secret once. The Content-Security-Policy lets the page load from and connect to this server
// only. The caller checks with httpguard where a request comes from.
package web

import (
	"compress/gzip"
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

// dist is what build.mjs builds from src; CI compares the two. The script is compressed, so that the
// program stays small.
//
//go:embed dist/app.js.gz dist/icon.svg dist/index.html dist/manifest.json dist/style.css dist/sw.js
var dist embed.FS

// policy lets the page load its own files, show images of tool results, and connect to its own
// origin. Model output is never parsed as HTML, which trusted types enforce; their only policy is
// for the URL of the service worker.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types eca-worker"

// subprotocol is the WebSocket subprotocol. The page sends its session secret as a second one, because
// browsers let pages set no other header of the request.
const subprotocol = "eca"

// maxMessage is the maximum size of a page's message in bytes: a prompt with images.
const maxMessage = 64 << 20

// Options configure a Handler.
type Options struct {
	// Serve speaks the ECA protocol over a pair of pipes until ctx ends.
	Serve   func(ctx context.Context, r io.Reader, w io.Writer) error
	Folder  string // that the server works in
	Version string // of the program
	Log     *slog.Logger
	// Gate, if set, replaces the link's token and the session secret: devices use their tokens for both.
	Gate Gate
	// NewLink is called when a token has been used, with the token for the next page.
	NewLink func(token string)
}

// Gate decides what devices may do. A device is identified by its token.
type Gate interface {
	// Admit reports whether a token belongs to a device that may connect from the address.
	Admit(remoteAddress, token string) bool
	// Allow returns the params that the device may send with a message; ok is false if it may not send
	// the message at all. An answer has an empty method.
	Allow(token, method string, params []byte) (allowed []byte, ok bool)
	// Question returns the params to show to the device with a question; ok is false if the device must
	// not be asked.
	Question(token string, params []byte) (shown []byte, ok bool)
	// MayAnswer reports whether the device may give this answer to a question with these params. It may
	// read a file.
	MayAnswer(token string, params, answer []byte) bool
}

// allowAll is the Gate of pages on this machine, which may do everything.
type allowAll struct{}

func (allowAll) Admit(string, string) bool                       { return false }
func (allowAll) Allow(_, _ string, params []byte) ([]byte, bool) { return params, true }
func (allowAll) Question(_ string, params []byte) ([]byte, bool) { return params, true }
func (allowAll) MayAnswer(string, []byte, []byte) bool           { return true }

// Handler serves pages.
type Handler struct {
	mux     *http.ServeMux
	session *session
	log     *slog.Logger
	newLink func(token string)
	gate    Gate

	mu     sync.Mutex // guards token and secret
	token  string     // of the link for the next page
	secret string     // the session secret
}

// New starts the server and returns its handler, and the token for the first page.
func New(ctx context.Context, o Options) (*Handler, string) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name of an embedded folder
	}
	h := &Handler{mux: http.NewServeMux(), log: o.Log, newLink: o.NewLink, gate: o.Gate, token: rand.Text(), secret: rand.Text()}
	h.session = startSession(ctx, o)
	h.mux.Handle("GET /", http.FileServerFS(files))
	h.mux.HandleFunc("GET /app.js", h.script)
	h.mux.HandleFunc("POST /session", h.exchange)
	h.mux.HandleFunc("GET /socket", h.socket)
	return h, h.token
}

// Close disconnects the pages, ends the server and waits for it.
func (h *Handler) Close() { h.session.close() }

// Ended is closed when the server has ended.
func (h *Handler) Ended() <-chan struct{} { return h.session.ended }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Cache-Control", "no-store")
	h.mux.ServeHTTP(w, r)
}

// script sends the page's script, compressed to clients that accept that.
func (h *Handler) script(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	w.Header().Set("Vary", "Accept-Encoding")
	f, err := dist.Open("dist/app.js.gz")
	if err != nil {
		panic(err) // the name of an embedded file
	}
	defer f.Close()
	var text io.Reader = f
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
	} else if text, err = gzip.NewReader(f); err != nil {
		panic(err) // as above
	}
	if _, err := io.Copy(w, text); err != nil {
		h.log.Debug("the script was not sent", "err", err)
	}
}

// exchange returns the session secret for the token of a link, which then becomes invalid. It also
// accepts the secret itself: a page whose socket was refused learns in this way whether to try again.
func (h *Handler) exchange(w http.ResponseWriter, r *http.Request) {
	const tokenSize = 1 << 10
	body, err := httpguard.ReadBody(w, r, tokenSize)
	if err != nil {
		http.Error(w, "the token is too long or incomplete", http.StatusBadRequest)
		return
	}
	var given struct {
		Token string `json:"token"`
	}
	if err := json.Unmarshal(body, &given); err != nil {
		http.Error(w, "not a JSON object with a token", http.StatusBadRequest)
		return
	}
	if h.gate != nil {
		if !h.gate.Admit(r.RemoteAddr, given.Token) {
			http.Error(w, "this token is wrong, was revoked, or was not used in time", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{"session": given.Token}) // a device's token is its secret
		return
	}
	h.mu.Lock()
	fromLink, known := equalSecrets(given.Token, h.token), equalSecrets(given.Token, h.secret)
	if fromLink {
		h.token = rand.Text()
	}
	next, secret := h.token, h.secret
	h.mu.Unlock()
	if !fromLink && !known {
		http.Error(w, "this link was used already, or belongs to an earlier run of eca web", http.StatusForbidden)
		return
	}
	if fromLink && h.newLink != nil {
		h.newLink(next)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"session": secret})
}

// socket connects a page that has the session secret.
func (h *Handler) socket(w http.ResponseWriter, r *http.Request) {
	token, ok := h.authorizeSocket(r)
	if !ok {
		http.Error(w, "the session is missing or wrong", http.StatusUnauthorized)
		return
	}
	// The guard has checked the origin, by a list that Accept does not know.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{subprotocol}})
	if err != nil {
		h.log.Debug("no WebSocket", "err", err) // Accept has answered
		return
	}
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(maxMessage)
	var gate Gate = allowAll{}
	if h.gate != nil {
		gate = h.gate
	}
	h.session.converse(r.Context(), conn, gate, token)
}

// authorizeSocket returns the session secret or device token of a request, and whether it is valid.
func (h *Handler) authorizeSocket(r *http.Request) (secret string, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, list := range r.Header.Values("Sec-WebSocket-Protocol") {
		for name := range strings.SplitSeq(list, ",") {
			secret, ok := strings.CutPrefix(strings.TrimSpace(name), "session.")
			if ok && (h.gate == nil && equalSecrets(secret, h.secret) || h.gate != nil && h.gate.Admit(r.RemoteAddr, secret)) {
				return secret, true
			}
		}
	}
	return "", false
}
