package mcp

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

// way is one way to connect to a remote server.
type way struct {
	transport func() transport
	version   string        // to use; empty means any older version
	limit     time.Duration // of the handshake; 0 means no limit
	retryOnly bool          // tried only if an earlier way may have failed temporarily
}

// ways lists the ways to connect to a remote server, in the order of the attempts: the newest
// version, then the older ones, then HTTP with SSE. The way that worked last time comes first.
func ways(streamable, sse func() transport, limits waits, known handshake, configured string) []way {
	newest := way{transport: streamable, version: newestVersion}
	older := way{transport: streamable, version: configured}
	oldest := way{transport: sse, version: configured}
	switch {
	case wire.IsModernProtocol(configured):
		return []way{newest}
	case configured != "":
		return []way{older, oldest}
	case known.older():
		return []way{older, newest, oldest}
	}
	probe, again := newest, newest
	probe.limit, again.retryOnly = limits.remote, true
	if known.version != "" {
		probe.limit = limits.stuck
	}
	return []way{probe, older, again, oldest}
}

// openHTTP connects to a remote server by the first way that works.
func (m *Manager) openHTTP(ctx context.Context, s *server, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	address, err := url.Parse(l.URL)
	if err != nil || address.Host == "" {
		return nil, nil, permanentError{errors.New("invalid url")} // the text may contain a secret
	}
	client := &http.Client{Transport: withLogin(l, address, &hostTransport{next: m.deps.HTTP().Transport, host: address.Host, headers: l.Headers})}
	log := m.deps.Log.With("server", s.name)
	list := ways(
		func() transport { return &streamable{client: client, address: l.URL, log: log} },
		func() transport { return &olderHTTP{client: client, address: address, log: log} },
		m.waits, s.recall(c), c.ProtocolVersion,
	)
	var reason error // error of the older way, unless only the newest version is tried
	again := false   // whether to retry the newest version
	for _, w := range list {
		if w.retryOnly && !again {
			continue
		}
		conn, info, err := m.try(ctx, s.name, w, l, c)
		if err == nil {
			return conn, info, nil
		}
		log.Debug("a way to reach an MCP server failed", "version", w.version, "err", l.Clean(err.Error()))
		again = again || errors.Is(err, errLate) || slices.Contains(supported(err), newestVersion)
		switch {
		case ctx.Err() != nil || errors.Is(err, errUnauthorized) || unknownOnly(err):
			return nil, nil, err
		case w.version == newestVersion && len(list) > 1: // an older server may answer any request
			continue
		case reason == nil:
			reason = err
		}
		if !refuses(err) {
			return nil, nil, reason
		}
	}
	return nil, nil, reason
}

// try connects by one way.
func (m *Manager) try(ctx context.Context, name string, w way, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	if w.limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, w.limit, errLate)
		defer cancel()
		ctx = limited
	}
	conn := m.newConnection(name, w.transport(), l, c)
	err := conn.session.start(ctx)
	var info *wire.InitializeResult
	switch {
	case err != nil:
	case w.version == newestVersion && c.ProtocolVersion == "":
		if info, err = conn.session.discover(ctx, nil); err == nil {
			conn.session.agree(newestVersion)
		}
	default:
		info, err = conn.session.speak(ctx, w.version)
	}
	if err == nil {
		return conn, info, nil
	}
	conn.close("it could not be reached this way")
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return nil, nil, err
}

// refuses reports whether an error may come from a server that does not know the request.
func refuses(err error) bool {
	var status *statusError
	return answered(err) || errors.As(err, &status) && status.status < http.StatusInternalServerError
}

// closeTimeout limits the notification of a server that its session is over.
const closeTimeout = 300 * time.Millisecond

// hostTransport is the http.RoundTripper of one remote server. It adds the configured headers to
// requests to the server's own host only, and limits the size of answers.
type hostTransport struct {
	next    http.RoundTripper
	host    string
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (h *hostTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if strings.EqualFold(req.URL.Host, h.host) {
		for name, value := range h.headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := h.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media != sse.ContentType { // the event reader has its own limit
		resp.Body = &bounded{ReadCloser: resp.Body}
	}
	return resp, nil
}

// bounded is a body that fails when it becomes too long.
type bounded struct {
	io.ReadCloser
	size int // so far
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.size += n; b.size > maxMessage {
		return 0, errTooLong
	}
	return n, err
}
