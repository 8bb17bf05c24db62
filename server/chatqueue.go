package server

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// maxDiskWait is how long all later messages wait while a chat is read from disk for an earlier
// one. After that, only messages about the same chat wait. A working disk needs far less time, so
// messages normally take effect in the order in which they arrived.
const maxDiskWait = 20 * time.Millisecond

// chatQueues keeps the messages about a chat in order while the first of them waits for the disk.
type chatQueues struct {
	mu   sync.Mutex               // guards last
	last map[string]chan struct{} // by chat; closed when the last waiting message about the chat has been handled
}

// join queues a message about a chat. previous is closed when the earlier messages have been handled;
// it is nil if no message waits. The caller calls leave when it has handled the message. leave is
// nil if the message need not queue, because the chat is open and no message waits.
func (q *chatQueues) join(id string, open bool) (previous <-chan struct{}, leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, waits := q.last[id]
	if open && !waits {
		return nil, nil
	}
	handled := make(chan struct{})
	q.last[id] = handled
	return last, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.last[id] == handled {
			delete(q.last, id)
		}
		close(handled)
	}
}

// handleInChat handles a message about a chat. If the chat is not open, it has to be read first;
// messages about other chats wait for that only for a moment (maxDiskWait).
func (s *Server) handleInChat(ctx context.Context, req *jsonrpc.Request, h handler) (any, error) {
	var p protocol.ChatParams
	if !strings.HasPrefix(req.Method, "chat/") || json.Unmarshal(req.Params, &p) != nil || p.ChatID == "" {
		return h(ctx, s.log, req)
	}
	_, open := s.host.Engine().Lookup(string(p.ChatID))
	previous, leave := s.queues.join(string(p.ChatID), open)
	if leave == nil {
		return h(ctx, s.log, req)
	}
	type outcome struct {
		result any
		err    error
	}
	handled := make(chan outcome, 1)
	s.background(func() {
		defer leave()
		defer func() {
			if p := recover(); p != nil {
				s.log.Error("handler panicked", "method", req.Method, "panic", p, "stack", string(debug.Stack()))
				handled <- outcome{err: fmt.Errorf("internal error in %s: %v", req.Method, p)}
			}
		}()
		if previous != nil {
			<-previous
		}
		result, err := h(ctx, s.log, req)
		handled <- outcome{result, err}
	})
	if previous == nil {
		timer := time.NewTimer(maxDiskWait)
		defer timer.Stop()
		select {
		case o := <-handled:
			return o.result, o.err
		case <-timer.C:
		}
	}
	return jsonrpc.Later(func(ctx context.Context) (any, error) {
		select {
		case o := <-handled:
			if later, ok := o.result.(jsonrpc.Later); ok && o.err == nil {
				return later(ctx)
			}
			return o.result, o.err
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		}
	}), nil
}
