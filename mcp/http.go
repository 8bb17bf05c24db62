package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
)

// errUnauthorized is why a server that wants a login can not be used.
var errUnauthorized = errors.New("the server wants a login")

// openHTTP connects to a remote server: over Streamable HTTP with a handshake, then without
// one, then over HTTP with SSE, as long as the server refuses.
func (m *Manager) openHTTP(ctx context.Context, name string, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	address, err := url.Parse(l.URL)
	if err != nil || address.Host == "" {
		return nil, nil, permanentError{errors.New("the url is none")} // the text may be secret
	}
	quiet := slog.New(lowered{m.deps.Log.Handler()})
	d := &door{next: m.deps.HTTP().Transport, host: address.Host, headers: l.Headers}
	client := &http.Client{Transport: withLogin(l, address, d)}
	streamable := func(o ...transport.StreamableHTTPCOption) (transport.Interface, error) {
		return transport.NewStreamableHTTP(l.URL, append(o, transport.WithHTTPBasicClient(client), transport.WithHTTPLogger(quiet))...)
	}
	var first error
	for i, way := range []struct {
		make   func() (transport.Interface, error)
		modern bool
	}{
		{func() (transport.Interface, error) {
			return streamable(transport.WithContinuousListening()) //nolint:staticcheck // most servers know no other way to tell of changes
		}, false},
		{func() (transport.Interface, error) { return streamable() }, true},
		{func() (transport.Interface, error) {
			return transport.NewSSE(l.URL, transport.WithHTTPClient(client), transport.WithSSELogger(quiet), transport.WithResponseTimeout(noLimit))
		}, false},
	} {
		t, err := way.make()
		if err != nil {
			return nil, nil, permanentError{errors.New("the url is none")}
		}
		conn := m.newConnection(name, t, l, c)
		if sse, ok := t.(*transport.SSE); ok {
			sse.SetConnectionLostHandler(func(err error) { conn.cancel(fmt.Errorf("the connection broke off: %w", err)) })
		}
		var info *wire.InitializeResult
		if way.modern {
			info, err = conn.greetModern(ctx, m.deps.Version, m.deps.After)
		} else {
			info, err = conn.greet(ctx, m.deps.Version)
		}
		if err == nil {
			return conn, info, nil
		}
		refused := errors.Is(err, transport.ErrLegacySSEServer) || answered(err)
		conn.close()
		if i == 0 {
			if first = err; refused {
				first = d.refusal(err)
			}
		}
		if ctx.Err() != nil || errors.Is(err, transport.ErrAuthorizationRequired) || errors.Is(err, errUnauthorized) || i == 0 && !refused {
			return nil, nil, err
		}
	}
	return nil, nil, first
}

const (
	// noLimit stands where mcp-go wants a limit and calls have their own.
	noLimit = 24 * time.Hour
	// farewellTime is how long telling a server that its session is over may take.
	farewellTime = 300 * time.Millisecond
)

// door is the http.RoundTripper of one remote server. It adds the configured headers, on the
// way to the server's own host only, bounds what comes back, and keeps what the server said
// when it refused a request.
type door struct {
	next    http.RoundTripper
	host    string
	headers map[string]string

	mu      sync.Mutex // guards what follows
	refused string
}

// refusal prefers what the server said to what mcp-go makes of it.
func (d *door) refusal(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refused != "" && errors.Is(err, transport.ErrLegacySSEServer) {
		return errors.New(d.refused)
	}
	return err
}

// RoundTrip implements http.RoundTripper.
func (d *door) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	done := func() {}
	if req.Method == http.MethodDelete {
		ctx, done = context.WithTimeout(ctx, farewellTime)
	}
	req = req.Clone(ctx)
	if strings.EqualFold(req.URL.Host, d.host) {
		for name, value := range d.headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := d.next.RoundTrip(req)
	if err != nil {
		done()
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	resp.Body = &bounded{ReadCloser: resp.Body, events: media == "text/event-stream", done: done}
	if resp.StatusCode >= http.StatusBadRequest && req.Method == http.MethodPost {
		d.note(resp)
	}
	return resp, nil
}

// note keeps what a refusal says.
func (d *door) note(resp *http.Response) {
	const most = 500
	head, _ := io.ReadAll(io.LimitReader(resp.Body, most))
	resp.Body = &replayed{Reader: io.MultiReader(bytes.NewReader(head), resp.Body), Closer: resp.Body}
	text := fmt.Sprintf("the server answered HTTP %d", resp.StatusCode)
	if said := strings.Join(strings.Fields(strings.ToValidUTF8(string(head), "")), " "); said != "" {
		text += ": " + said
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.refused = text
}

type replayed struct {
	io.Reader
	io.Closer
}

// bounded is a body that ends with an error when a message in it becomes too long: the
// whole body, or one event of a stream.
type bounded struct {
	io.ReadCloser
	events bool
	size   int  // of the message so far
	empty  bool // the line so far
	done   context.CancelFunc
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

// Close implements io.Closer.
func (b *bounded) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

// lowered is a log in which everything is a detail: what mcp-go calls an error is often
// none, and what is one comes back as one.
type lowered struct{ slog.Handler }

// Enabled implements slog.Handler.
func (l lowered) Enabled(ctx context.Context, _ slog.Level) bool {
	return l.Handler.Enabled(ctx, slog.LevelDebug)
}

// Handle implements slog.Handler.
func (l lowered) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l lowered) WithAttrs(attrs []slog.Attr) slog.Handler {
	return lowered{l.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (l lowered) WithGroup(name string) slog.Handler { return lowered{l.Handler.WithGroup(name)} }
