package mcp

import (
	"context"
	"fmt"
	"time"
)

// awaitConnection sends the connection to a call that needs it, now or when the server has started. It
// starts a server that failed.
func (s *server) awaitConnection(reply chan<- connectResult) {
	if s.state == Running && s.conn.ctx.Err() != nil {
		s.connectionLost(s.conn, s.conn.cause()) // the supervisor has not noticed the loss yet
	}
	switch s.state {
	case Running:
		reply <- connectResult{conn: s.conn}
	case Starting:
		s.waiting = append(s.waiting, reply)
	case Failed:
		if !s.shouldRun {
			reply <- connectResult{err: s.unreachable(s.reason)}
			return
		}
		s.waiting = append(s.waiting, reply)
		s.beginStart()
	case NeedsLogin:
		reply <- connectResult{err: s.unreachable("it needs a login: " + s.reason)}
	case Disabled, Stopped, Stopping:
		reply <- connectResult{err: s.unreachable("it is " + string(s.state))}
	}
}

func (s *server) unreachable(reason string) error {
	return fmt.Errorf("cannot reach the MCP server %s: %s", s.name, reason)
}

// connection returns the connection of the server. It waits while the server is starting, and starts a
// failed server immediately.
func (s *server) connection(ctx context.Context) (*connection, error) {
	reply := make(chan connectResult, 1)
	s.enqueue(func() { s.awaitConnection(reply) })
	select {
	case r := <-reply:
		return r.conn, r.err
	case <-s.done:
		return nil, s.unreachable(s.endReason())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// withTimeLimit returns ctx with a time limit if d is positive.
func withTimeLimit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("no answer within %s", d))
}
