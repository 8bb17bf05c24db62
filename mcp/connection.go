package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// connection is one run of a server, from its start to its end: a session, and the requests that
// eca sends over it.
type connection struct {
	m            *Manager
	session      *session
	capabilities wire.ServerCapabilities
	clean        func(string) string
	slots        chan struct{} // limits the running calls
	silenceLimit time.Duration // how long the server may be silent during a call

	listsChanged chan struct{} // signals that lists have to be fetched

	ctx context.Context // ends with the run

	mu    sync.Mutex // guards the fields below
	stale listSet    // lists that have to be fetched

	toolsListed chan struct{} // closed when changed tools have been listed; nil if no tools have changed
	calls       []*activeCall
	openPages   map[string]chan struct{} // pages that the user was asked to open, by id
}

// connectAndList starts a server or connects to it, and fetches what it offers. The text of an error can be
// shown to the user.
func (m *Manager) connectAndList(ctx context.Context, s *server, c config.MCPServer, settings Settings) startResult {
	ctx, cancel := withTimeLimit(ctx, settings.Start)
	defer cancel()
	launch, err := m.deps.Resolve(ctx, s.name, c)
	if err != nil {
		return startResult{err: permanentError{err}}
	}
	clean := launch.Clean
	launch.Clean = func(text string) string {
		if clean != nil {
			text = clean(text)
		}
		return visible.Text(text)
	}
	conn, info, err := m.open(ctx, s, launch, c)
	if err == nil {
		offer := &Offer{
			Server: oneLine(strings.TrimSpace(info.ServerInfo.Name + " " + info.ServerInfo.Version)), Protocol: info.ProtocolVersion,
			Instructions: shorten.Bytes(launch.Clean(info.Instructions), maxInstructions),
		}
		conn.capabilities = info.Capabilities
		if offer.Tools, offer.LeftOut, err = conn.listTools(ctx, s); err == nil {
			m.listFirstPrompts(ctx, conn, s, offer)
			conn.session.awaitStream(ctx)
			conn.pingRegularly(settings, launch.URL != "")
			return startResult{conn: conn, offer: offer}
		}
		conn.close("its tools could not be listed")
	}
	err = startError(ctx, err, launch.Clean)
	if ctx.Err() != nil && s.strayOutput.Load() != nil {
		err = fmt.Errorf("%w; %s", err, s.describeStrayOutput())
	}
	return startResult{err: err}
}

// promptsLimit is how long listing a server's prompts may delay its start.
const promptsLimit = 5 * time.Second

// listFirstPrompts lists the prompts of a starting server, because clients request the slash commands
// as soon as the server is running. If the prompts do not arrive in time, they are fetched later.
func (m *Manager) listFirstPrompts(ctx context.Context, conn *connection, s *server, offer *Offer) {
	if conn.capabilities.Prompts != nil {
		ctx, cancel := withTimeLimit(ctx, promptsLimit)
		defer cancel()
		var err error
		if offer.Prompts, err = conn.listPrompts(ctx, s); err != nil {
			conn.markStale(promptsList)
		}
	}
	if conn.capabilities.Resources != nil {
		conn.markStale(resourcesList)
	}
}

// startError returns an error that tells the user why a start failed.
func startError(ctx context.Context, err error, clean func(string) string) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = cause
	}
	text := err.Error()
	var request *url.Error
	if errors.As(err, &request) { // the user already knows the address
		text = strings.Replace(text, fmt.Sprintf("%s %q: ", request.Op, request.URL), "", 1)
	}
	text = shorten.Bytes(clean(text), 2000)
	var permanent permanentError
	switch {
	case errors.Is(err, errUnauthorized):
		return unauthorized(err)
	case errors.As(err, &permanent):
		return permanentError{errors.New(text)}
	}
	return errors.New(text)
}

// open connects over the configured transport and performs the handshake.
func (m *Manager) open(ctx context.Context, s *server, l Launch, c config.MCPServer) (conn *connection, info *wire.InitializeResult, err error) {
	if l.URL != "" {
		conn, info, err = m.openHTTP(ctx, s, l, c)
	} else {
		conn, info, err = m.openProgram(ctx, s, l, c)
	}
	if err != nil {
		return nil, nil, err
	}
	if c.ProtocolVersion == "" {
		s.saveVersion(info.ProtocolVersion)
	}
	if wire.IsModernProtocol(info.ProtocolVersion) {
		conn.session.subscribe(m.deps.After)
	}
	return conn, info, nil
}

func (m *Manager) newConnection(name string, t transport, l Launch, c config.MCPServer) *connection {
	s := newSession(context.WithoutCancel(m.ctx), t)
	conn := &connection{
		m: m, session: s, ctx: s.ctx, clean: l.Clean, listsChanged: make(chan struct{}, 1),
		slots: make(chan struct{}, parallelCalls(c)), silenceLimit: callLimit(c),
	}
	s.self = self{server: name, info: wire.Implementation{Name: "ECA", Version: m.deps.Version}, capabilities: m.capabilities()}
	s.handlers, s.calls, s.onNotification, s.log = responder{m.deps}.handlers(), conn.activeCalls, conn.handleNotification, m.deps.Log.With("server", name)
	return conn
}

// capabilities returns the capabilities for which eca has handlers.
func (m *Manager) capabilities() map[string]any {
	out, handlers := map[string]any{}, responder{m.deps}.handlers()
	for method, can := range map[string]struct {
		name  string
		value any
	}{
		string(wire.MethodListRoots):             {"roots", map[string]any{"listChanged": true}},
		string(wire.MethodSamplingCreateMessage): {"sampling", struct{}{}},
		string(wire.MethodElicitationCreate):     {"elicitation", map[string]any{"form": struct{}{}, "url": struct{}{}}},
	} {
		if handlers[method] != nil {
			out[can.name] = can.value
		}
	}
	return out
}

// done is closed when the connection is over.
func (c *connection) done() <-chan struct{} { return c.ctx.Done() }

// cause returns the reason why the connection is over.
func (c *connection) cause() error {
	cause := context.Cause(c.ctx)
	if errors.Is(cause, errUnauthorized) {
		return cause
	}
	return errors.New(shorten.Bytes(c.clean(cause.Error()), 2000))
}

// close ends the connection and its child process, and returns when both are gone. why is the reason
// for calls that are still running.
func (c *connection) close(why string) { c.session.close(why) }

// handleNotification handles a notification of the server. It runs on the goroutine that reads from the
// server, so it never waits.
func (c *connection) handleNotification(method string, params json.RawMessage) {
	switch method {
	case wire.MethodNotificationToolsListChanged:
		c.markStale(toolsList)
	case wire.MethodNotificationPromptsListChanged:
		c.markStale(promptsList)
	case wire.MethodNotificationResourcesListChanged:
		c.markStale(resourcesList)
	case string(wire.MethodNotificationElicitationComplete):
		c.handlePageDone(params)
	case "notifications/message":
		var message struct {
			Level string          `json:"level"`
			Data  json.RawMessage `json:"data"`
		}
		_ = json.Unmarshal(params, &message) // an unreadable message counts as empty
		c.session.log.Debug("MCP server says", "level", message.Level, "text", shorten.Bytes(c.clean(string(message.Data)), maxLogLine))
	}
}

// ping pings the server and ends the connection if the server is gone.
func (c *connection) ping() {
	ctx, cancel := context.WithTimeout(c.ctx, pingTimeout)
	defer cancel()
	if c.session.modern() {
		return // the newest version has no ping, and no connection that could be lost
	}
	err := c.session.call(ctx, string(wire.MethodPing), nil, nil)
	switch {
	case err == nil || c.ctx.Err() != nil || answered(err):
	case errors.Is(err, errUnauthorized):
		c.session.cancel(unauthorized(err))
	case errors.Is(err, errSessionLost):
		c.session.cancel(err)
	default:
		c.session.cancel(fmt.Errorf("it no longer answers: %w", err))
	}
}

// pingRegularly pings a remote server regularly, because eca would otherwise not notice that the server is
// gone.
func (c *connection) pingRegularly(settings Settings, remote bool) {
	if !remote || settings.KeepAlive <= 0 {
		return
	}
	c.session.background(func() {
		t := time.NewTicker(settings.KeepAlive)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				c.ping()
			case <-c.ctx.Done():
				return
			}
		}
	})
}
