package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
)

// connection is one life of a server, from its start to its end.
type connection struct {
	name   string
	asks   *Manager // answers what the server asks
	client *client.Client
	link   *link
	speak  func(...client.ClientOption) *client.Client // makes a client
	clean  func(string) string
	slots  chan struct{} // calls that run
	limit  time.Duration // of a call that says nothing

	listsChanged chan struct{} // hears that there are lists to ask for

	ctx    context.Context // ends with the life
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	mu       sync.Mutex // guards what follows
	stale    list       // what has to be asked for
	active   []*activeCall
	progress map[string]func(message string)
	tokens   int
	closed   bool
}

// errEnded is why a connection that eca closed is over.
var errEnded = errors.New("eca stopped the server")

// reach starts a server or connects to it, and asks what it offers. The reason of an error
// is fit for the user.
func (m *Manager) reach(ctx context.Context, s *server, c config.MCPServer, settings Settings) attempt {
	ctx, cancel := limited(ctx, settings.Start)
	defer cancel()
	launch, err := m.deps.Resolve(ctx, s.name, c)
	if err != nil {
		return attempt{err: permanentError{err}}
	}
	if launch.Clean == nil {
		launch.Clean = func(text string) string { return text }
	}
	conn, info, err := m.open(ctx, s.name, launch, c)
	if err == nil {
		offer := &Offer{
			Server: strings.TrimSpace(info.ServerInfo.Name + " " + info.ServerInfo.Version), Protocol: info.ProtocolVersion,
			Instructions: cut(launch.Clean(info.Instructions), maxInstructions),
		}
		if offer.Tools, err = conn.listTools(ctx, s); err == nil {
			conn.watch(settings, launch.URL != "")
			return attempt{conn: conn, offer: offer}
		}
		conn.close()
	}
	return attempt{err: explain(ctx, err, launch.Clean)}
}

// explain says in words why a start failed.
func explain(ctx context.Context, err error, clean func(string) string) error {
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, ctx.Err()) {
		err = cause
	}
	text := cut(clean(strings.TrimPrefix(err.Error(), "transport error: ")), 2000)
	var permanent permanentError
	var login *loginError
	switch {
	case errors.As(err, &login):
		return login
	case errors.Is(err, transport.ErrAuthorizationRequired):
		return fmt.Errorf("%w: %s", errUnauthorized, text)
	case errors.As(err, &permanent):
		return permanentError{errors.New(text)}
	}
	return errors.New(text)
}

// open makes a connection over the transport that fits, and shakes hands.
func (m *Manager) open(ctx context.Context, name string, l Launch, c config.MCPServer) (*connection, *wire.InitializeResult, error) {
	if l.URL != "" {
		return m.openHTTP(ctx, name, l, c)
	}
	t := newStdio(l, m.deps.Supervisor, m.deps.Log.With("server", name))
	conn := m.newConnection(name, t, l, c)
	info, err := conn.greet(ctx, m.deps.Version)
	if err != nil && answered(err) && conn.ctx.Err() == nil {
		info, err = conn.greetModern(ctx, m.deps.Version, m.deps.After)
	}
	if err != nil {
		conn.close()
		return nil, nil, err
	}
	return conn, info, nil
}

func (m *Manager) newConnection(name string, t transport.Interface, l Launch, c config.MCPServer) *connection {
	conn := &connection{
		name: name, asks: m,
		clean: l.Clean, listsChanged: make(chan struct{}, 1), progress: map[string]func(string){},
		slots: make(chan struct{}, parallelCalls(c)), limit: callLimit(c),
	}
	conn.ctx, conn.cancel = context.WithCancelCause(context.WithoutCancel(m.ctx))
	conn.link = newLink(conn.ctx, t)
	if s, ok := t.(*stdio); ok {
		s.over = conn.cancel
	}
	log := m.deps.Log.With("server", name)
	conn.speak = func(o ...client.ClientOption) *client.Client {
		cl := client.NewClient(conn.link.transport(), append(o, conn.answers()...)...)
		cl.OnNotification(func(n wire.JSONRPCNotification) { conn.notified(n, log) })
		return cl
	}
	return conn
}

// greet starts the transport and shakes hands in the way that servers of all versions but
// the newest understand.
func (c *connection) greet(ctx context.Context, version string) (*wire.InitializeResult, error) {
	c.client = c.speak(client.WithLegacyProtocolOnly()) //nolint:staticcheck // most servers know nothing else
	return c.shakeHands(ctx, version)
}

// greetModern is for servers that refuse that: they speak a version without a handshake, in
// which the client has to ask for notifications.
func (c *connection) greetModern(ctx context.Context, version string, after func(time.Duration) (<-chan time.Time, func())) (*wire.InitializeResult, error) {
	c.client = c.speak()
	info, err := c.shakeHands(ctx, version)
	if err != nil || !wire.IsModernProtocol(info.ProtocolVersion) {
		return info, err
	}
	c.background(func() {
		for {
			err := c.client.Listen(c.ctx, wire.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
			if err != nil && answered(err) {
				return // it has nothing to tell
			}
			again, giveUp := after(listenAgain)
			select {
			case <-again:
			case <-c.ctx.Done():
				giveUp()
				return
			}
		}
	})
	return info, nil
}

// listenAgain is how long to wait before a stream of notifications is asked for again.
const listenAgain = 5 * time.Second

func (c *connection) shakeHands(ctx context.Context, version string) (*wire.InitializeResult, error) {
	stop := context.AfterFunc(ctx, func() { c.cancel(context.Cause(ctx)) })
	defer stop()
	if err := c.client.Start(c.ctx); err != nil {
		return nil, c.causeOr(err)
	}
	request := wire.InitializeRequest{}
	request.Params.ClientInfo = wire.Implementation{Name: "ECA", Version: version}
	info, err := c.client.Initialize(ctx, request)
	if err != nil {
		return nil, c.causeOr(err)
	}
	return info, nil
}

// causeOr prefers the reason why the connection ended to what somebody saw of that.
func (c *connection) causeOr(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		return cause
	}
	return err
}

// lost is closed when the connection is over.
func (c *connection) lost() <-chan struct{} { return c.ctx.Done() }

// cause says why the connection is over.
func (c *connection) cause() error {
	cause := context.Cause(c.ctx)
	if errors.Is(cause, errUnauthorized) || errors.Is(cause, errEnded) {
		return cause
	}
	return errors.New(cut(c.clean(cause.Error()), 2000))
}

// close ends the connection, and its child, and returns when nothing is left.
func (c *connection) close() {
	c.cancel(errEnded)
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	_ = c.client.Close() // what it says is that the child had to be killed
	c.work.Wait()
}

// background runs work that ends with the connection, unless that is over.
func (c *connection) background(work func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.work.Go(work)
	}
}

// notified takes notice of what a server says on its own. It runs where the transport
// reads, and never waits.
func (c *connection) notified(n wire.JSONRPCNotification, log interface{ Debug(string, ...any) }) {
	switch n.Method {
	case wire.MethodNotificationToolsListChanged:
		c.outdated(toolsList)
	case wire.MethodNotificationPromptsListChanged:
		c.outdated(promptsList)
	case wire.MethodNotificationResourcesListChanged:
		c.outdated(resourcesList)
	case string(wire.MethodNotificationProgress):
		token, _ := n.Params.AdditionalFields["progressToken"].(string)
		message, _ := n.Params.AdditionalFields["message"].(string)
		c.mu.Lock()
		heard := c.progress[token]
		c.mu.Unlock()
		if heard != nil {
			heard(cut(c.clean(message), maxProgress))
		}
	case string(wire.MethodNotificationCancelled):
		c.link.cancelled(n.Params.AdditionalFields["requestId"])
	case "notifications/message":
		data, _ := json.Marshal(n.Params.AdditionalFields["data"])
		log.Debug("MCP server says", "level", n.Params.AdditionalFields["level"], "text", cut(c.clean(string(data)), maxLogLine))
	}
}

// pingTime is how long a server may take to answer a ping.
const pingTime = 5 * time.Second

// alive asks whether the server is there, and ends the connection if it is not.
func (c *connection) alive() {
	ctx, cancel := context.WithTimeout(c.ctx, pingTime)
	defer cancel()
	err := c.client.Ping(ctx) //nolint:staticcheck // most servers know it; for others it does nothing
	switch {
	case err == nil || c.ctx.Err() != nil:
	case errors.Is(err, transport.ErrAuthorizationRequired), errors.Is(err, errUnauthorized):
		c.cancel(unauthorized(err))
	case answered(err):
	default:
		c.cancel(fmt.Errorf("it does not answer any more: %w", err))
	}
}

// answered says whether an error is a server's answer, and not what became of a request.
func answered(err error) bool {
	var lost *transport.Error
	return !errors.As(err, &lost)
}

// watch pings a remote server now and then: nothing else tells that it is gone.
func (c *connection) watch(settings Settings, remote bool) {
	if !remote || settings.KeepAlive <= 0 {
		return
	}
	c.background(func() {
		t := time.NewTicker(settings.KeepAlive)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				c.alive()
			case <-c.ctx.Done():
				return
			}
		}
	})
}

// cut shortens a text to about n bytes of valid UTF-8.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}
