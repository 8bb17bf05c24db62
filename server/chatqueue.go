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

// diskPatience is how long all messages wait for one whose chat has to be read first. After that,
// only messages about the same chat wait. A working disk needs far less time, so messages normally
// take effect in the order in which they came.
const diskPatience = 20 * time.Millisecond

// chatQueues keep the messages about a chat in order while the first of them waits for the disk.
type chatQueues struct {
	mu   sync.Mutex               // guards last
	last map[string]chan struct{} // of the last waiting message about a chat; closed when it is handled
}

// join queues a message about a chat. before is closed when the earlier messages are handled; it is
// nil if no message waits. If the chat is open too, leave is nil, and the message need not queue.
func (q *chatQueues) join(id string, open bool) (before <-chan struct{}, leave func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	last, waits := q.last[id]
	if open && !waits {
		return nil, nil
	}
	mine := make(chan struct{})
	q.last[id] = mine
	return last, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.last[id] == mine {
			delete(q.last, id)
		}
		close(mine)
	}
}

// handleInChat handles a message about a chat. If the chat is not open, it has to be read first.
// Messages about other chats do not wait for that.
func (s *Server) handleInChat(ctx context.Context, req *jsonrpc.Request, h handler) (any, error) {
	var p protocol.ChatParams
	if !strings.HasPrefix(req.Method, "chat/") || json.Unmarshal(req.Params, &p) != nil || p.ChatID == "" {
		return h(ctx, req)
	}
	_, open := s.host.Engine().Lookup(string(p.ChatID))
	before, leave := s.queues.join(string(p.ChatID), open)
	if leave == nil {
		return h(ctx, req)
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
		if before != nil {
			<-before
		}
		result, err := h(ctx, req)
		handled <- outcome{result, err}
	})
	if before == nil {
		timer := time.NewTimer(diskPatience)
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
