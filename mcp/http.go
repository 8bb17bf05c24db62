package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
)

// openHTTP connects to a remote server: over Streamable HTTP with a handshake, then without
// one, then over HTTP with SSE, as long as the server refuses.
func (m *Manager) openHTTP(ctx context.Context, name string, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	address, err := url.Parse(l.URL)
	if err != nil || address.Host == "" {
		return nil, nil, permanentError{errors.New("the url is none")} // the text may be secret
	}
	client := &http.Client{Transport: withLogin(l, address, &door{next: m.deps.HTTP().Transport, host: address.Host, headers: l.Headers})}
	log := m.deps.Log.With("server", name)
	var first error
	for _, way := range []struct {
		transport transport
		modern    bool
	}{
		{&streamable{client: client, address: l.URL, log: log}, false},
		{&streamable{client: client, address: l.URL, log: log}, true},
		{&olderHTTP{client: client, address: address, log: log}, false},
	} {
		if c.ProtocolVersion != "" && way.modern != wire.IsModernProtocol(c.ProtocolVersion) {
			continue
		}
		conn := m.newConnection(name, way.transport, l, c)
		var info *wire.InitializeResult
		err := conn.session.start(ctx)
		switch {
		case err != nil:
		case way.modern:
			info, err = conn.greetModern(ctx, m.deps.After)
		default:
			info, err = conn.session.greet(ctx, c.ProtocolVersion)
		}
		if err == nil {
			return conn, info, nil
		}
		conn.close()
		log.Debug("one way to reach an MCP server failed", "transport", fmt.Sprintf("%T", way.transport), "modern", way.modern, "err", l.Clean(err.Error()))
		if ctx.Err() != nil || errors.Is(err, errUnauthorized) || first == nil && !refuses(err) {
			return nil, nil, err
		}
		if first == nil {
			first = err
		}
	}
	return nil, nil, first
}

// refuses says whether an error may come from a server that does not know what it was asked.
func refuses(err error) bool {
	var status *statusError
	return answered(err) || errors.As(err, &status) && status.status < http.StatusInternalServerError
}

// farewellTime is how long telling a server that its session is over may take.
const farewellTime = 300 * time.Millisecond

// door is the http.RoundTripper of one remote server. It adds the configured headers, on the
// way to the server's own host only, and bounds what comes back.
type door struct {
	next    http.RoundTripper
	host    string
	headers map[string]string
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if strings.EqualFold(req.URL.Host, d.host) {
		for name, value := range d.headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := d.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	resp.Body = &bounded{ReadCloser: resp.Body, events: media == eventStream}
	return resp, nil
}

// bounded is a body that ends with an error when a message in it becomes too long: the
// whole body, or one event of a stream.
type bounded struct {
	io.ReadCloser
	events bool
	size   int  // of the message so far
	empty  bool // the line so far
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.events {
		b.size += n
	} else {
		for _, c := range p[:n] {
			switch {
			case c == '\n' && b.empty:
				b.size = 0
			case c == '\n':
				b.empty = true
			case c != '\r':
				b.empty = false
			}
			b.size++
		}
	}
	if b.size > maxMessage {
		return 0, errTooLong
	}
	return n, err
}
