package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// connection is what all method families share: the JSON-RPC connection, the client's name and
// capabilities, and background work.
type connection struct {
	ctx   context.Context // ends with the connection
	conn  *jsonrpc.Conn
	log   *slog.Logger
	newID func() string

	news         *chat.Subscription   // changes that other clients make
	followPeriod func() time.Duration // see Options

	name         atomic.Pointer[client]                // nil before initialize
	capabilities atomic.Pointer[protocol.Capabilities] // nil before initialize

	work sync.WaitGroup // background work

	mu         sync.Mutex      // guards the fields below
	waiting    bool            // Serve is waiting for the remaining work; no more may start
	lastChange <-chan struct{} // closed when the last settings change has been made; nil before the first one
}

// background runs work in a goroutine. The work must end when c.ctx does; Serve waits for it. Once
// Serve has begun to wait, new work is dropped, because the client is gone.
func (c *connection) background(work func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		return
	}
	c.work.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				c.log.Error("background work panicked", "panic", p, "stack", string(debug.Stack()))
			}
		}()
		work()
	})
}

// wait waits for the background work and prevents more from starting.
func (c *connection) wait() {
	c.mu.Lock()
	c.waiting = true
	c.mu.Unlock()
	c.work.Wait()
}

// changeInOrder makes a settings change in the background. Changes take effect in the order in which the
// client requested them, and handlers do not wait for files. The function that change returns runs
// afterwards, concurrently with later changes; it may be nil.
func (c *connection) changeInOrder(change func() (after func())) {
	done := make(chan struct{})
	c.mu.Lock()
	previous := c.lastChange
	c.lastChange = done
	c.mu.Unlock()
	c.background(func() {
		after := func() func() {
			defer close(done)
			if previous != nil {
				<-previous
			}
			return change()
		}()
		if after != nil {
			after()
		}
	})
}

// notify sends a notification. It blocks while the client does not read.
func (c *connection) notify(ctx context.Context, method string, params any) {
	c.logMessage(params)
	if err := c.conn.Notify(ctx, method, params); err != nil && ctx.Err() == nil {
		c.log.Debug("notification not sent", "method", method, "err", err)
	}
}

// post sends a notification without waiting; handlers that run in order use it.
func (c *connection) post(method string, params any) {
	c.logMessage(params)
	if err := c.conn.Post(method, params); err != nil {
		c.log.Debug("notification not sent", "method", method, "err", err)
	}
}

// logMessage also logs a message to the user: the clients that share the webview show the log, but
// no messages.
func (c *connection) logMessage(params any) {
	if m, ok := params.(protocol.ShowMessage); ok {
		c.log.Info("message to the user", "kind", m.Type, "text", m.Message)
	}
}

var errUnreachable = errors.New("cannot reach the client")

// request calls the client and reads its answer. An error says in plain words why there is no
// answer; it wraps a *jsonrpc.Error if the client sent an error object.
func (c *connection) request(ctx context.Context, method string, params, result any) error {
	var raw json.RawMessage
	err := c.conn.Call(ctx, method, params, &raw)
	var refused *jsonrpc.Error
	switch {
	case err == nil && jsonrpc.IsNull(raw):
		return errors.New("the client gave no answer")
	case err == nil:
		if _, err := protocol.Decode(raw, result); err != nil {
			c.log.Warn("answer of the client unreadable", "method", method, "err", err)
			return errors.New("cannot read the client's answer")
		}
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &refused) && refused.Code == jsonrpc.CodeMethodNotFound:
		return fmt.Errorf("the client does not know %s: %w", method, refused)
	case errors.As(err, &refused):
		return fmt.Errorf("the client failed: %w", refused)
	}
	return fmt.Errorf("%w: %w", errUnreachable, err)
}
