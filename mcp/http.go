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

// httpAttempt is an attempt to connect to a remote server: a transport and a protocol version.
type httpAttempt struct {
	transport func() transport
	version   string        // the protocol version; empty means any older version
	limit     time.Duration // of the handshake; 0 means no limit
	retryOnly bool          // make this attempt only if an earlier one may have failed temporarily
}

// httpAttempts lists the attempts to connect to a remote server, in order: the newest version, then the
// older ones, then HTTP with SSE. If an older version worked last time, it comes first.
func httpAttempts(streamable, sse func() transport, limits handshakeLimits, known handshake, configured string) []httpAttempt {
	newest := httpAttempt{transport: streamable, version: newestVersion}
	older := httpAttempt{transport: streamable, version: configured}
	oldest := httpAttempt{transport: sse, version: configured}
	switch {
	case wire.IsModernProtocol(configured):
		return []httpAttempt{newest}
	case configured != "":
		return []httpAttempt{older, oldest}
	case known.older():
		return []httpAttempt{older, newest, oldest}
	}
	probe, retry := newest, newest
	probe.limit, retry.retryOnly = limits.remote, true
	if known.version != "" {
		probe.limit = limits.stuck
	}
	return []httpAttempt{probe, older, retry, oldest}
}

// openHTTP connects to a remote server with the first attempt that succeeds.
func (m *Manager) openHTTP(ctx context.Context, s *server, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	address, err := url.Parse(l.URL)
	if err != nil || address.Host == "" {
		return nil, nil, permanentError{errors.New("invalid url")} // the text may contain a secret
	}
	client := &http.Client{Transport: withLogin(l, address, &hostTransport{next: m.deps.HTTP().Transport, host: address.Host, headers: l.Headers})}
	log := m.deps.Log.With("server", s.name)
	list := httpAttempts(
		func() transport { return &streamable{client: client, address: l.URL, log: log} },
		func() transport { return &olderHTTP{client: client, address: address, log: log} },
		m.handshakeLimits, s.lastHandshake(c), c.ProtocolVersion,
	)
	var firstErr error   // the error to return: of the first attempt with an older version, if there is one
	retryNewest := false // whether to try the newest version again
	for _, attempt := range list {
		if attempt.retryOnly && !retryNewest {
			continue
		}
		conn, info, err := m.tryOnce(ctx, s.name, attempt, l, c)
		if err == nil {
			return conn, info, nil
		}
		log.Debug("an attempt to connect to an MCP server failed", "version", attempt.version, "err", l.Clean(err.Error()))
		retryNewest = retryNewest || errors.Is(err, errTimeout) || slices.Contains(supportedVersions(err), newestVersion)
		switch {
		case ctx.Err() != nil || errors.Is(err, errUnauthorized) || noCommonVersion(err):
			return nil, nil, err
		case attempt.version == newestVersion && len(list) > 1: // an older server may answer any request
			continue
		case firstErr == nil:
			firstErr = err
		}
		if !canTryNext(err) {
			return nil, nil, firstErr
		}
	}
	return nil, nil, firstErr
}

// tryOnce makes one attempt to connect.
func (m *Manager) tryOnce(ctx context.Context, name string, attempt httpAttempt, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	if attempt.limit > 0 {
		limited, cancel := context.WithTimeoutCause(ctx, attempt.limit, errTimeout)
		defer cancel()
		ctx = limited
	}
	conn := m.newConnection(name, attempt.transport(), l, c)
	err := conn.session.start(ctx)
	var info *wire.InitializeResult
	switch {
	case err != nil:
	case attempt.version == newestVersion && c.ProtocolVersion == "":
		if info, err = conn.session.discover(ctx, nil); err == nil {
			conn.session.setVersion(newestVersion)
		}
	default:
		info, err = conn.session.performHandshake(ctx, attempt.version)
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

// canTryNext reports whether another attempt can succeed: an error may mean that the server does not
// know the request.
func canTryNext(err error) bool {
	var status *statusError
	return answered(err) || errors.As(err, &status) && status.status < http.StatusInternalServerError
}

// closeTimeout limits the notification of a server that its session is over.
const closeTimeout = 300 * time.Millisecond

// hostTransport is the http.RoundTripper of one remote server. It adds the configured headers to
// requests to the server's own host only, and limits the size of answers. The host to which a redirect
// leads does not get the address of the server, which may contain a key.
type hostTransport struct {
	next    http.RoundTripper
	host    string
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (h *hostTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Del("Referer")
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
		resp.Body = &limitedBody{ReadCloser: resp.Body}
	}
	return resp, nil
}

// limitedBody is a body that fails when it becomes too long.
type limitedBody struct {
	io.ReadCloser
	size int // so far
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.size += n; b.size > maxMessage {
		return 0, errTooLong
	}
	return n, err
}
