package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Handler answers a request of a server, within ctx, which also ends when the server
// cancels the request. What it returns is encoded as the result. An *RPCError goes to the
// server as it is; the text of another error does too.
type Handler func(ctx context.Context, r ServerRequest) (any, error)

// ServerRequest is what a server asks of eca (roots, sampling, elicitation).
type ServerRequest struct {
	Server string // its name in the configuration
	Method string
	Params json.RawMessage // as they came; may be empty
	// Calls are those of the server that run now, the oldest first: it asks because of one
	// of them, or of none.
	Calls []ActiveCall
}

// ActiveCall is a call of a tool that runs.
type ActiveCall struct {
	ChatID, CallID, Agent, Tool string
	Model                       string // full id

	taskID  string                  // of the task that it became
	hold    func() (release func()) // stops the clock of the call
	samples *samples
}

// RPCError is an error that a server gets with its code.
type RPCError struct {
	Code    int
	Message string
}

func (e *RPCError) Error() string { return e.Message }

const (
	// maxIncoming bounds the requests of a server that are answered at the same time; others
	// are refused.
	maxIncoming = 16
	// maxUnheard bounds its requests whose answers, refusals included, it has not taken.
	maxUnheard = 1000
)

// errUnheard is why the conversation with a server ends that asks and does not listen.
var errUnheard = fmt.Errorf("it asked for %d things and did not take the answers", maxUnheard)

// asked answers a request of the server, beside who reads.
func (s *session) asked(e envelope) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	if s.unheard++; s.unheard > maxUnheard {
		s.mu.Unlock()
		cancel()
		s.cancel(errUnheard)
		return
	}
	full := len(s.incoming) >= maxIncoming
	if !full {
		s.incoming[e.key()] = cancel
	} else {
		e.Params = nil // nobody looks at them
	}
	s.mu.Unlock()
	s.background(func() {
		defer cancel()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unheard--
		}()
		answer := envelope{JSONRPC: wire.JSONRPC_VERSION, ID: e.ID}
		if full {
			answer.Error = &wire.JSONRPCErrorDetails{Code: wire.INTERNAL_ERROR, Message: fmt.Sprintf("more than %d requests at a time", maxIncoming)}
		} else {
			answer.Result, answer.Error = s.answer(ctx, e.Method, e.Params)
			s.mu.Lock()
			delete(s.incoming, e.key())
			s.mu.Unlock()
			if ctx.Err() != nil {
				return // the server cancelled it, and wants no answer
			}
		}
		if err := s.transport.send(s.ctx, answer); err != nil {
			s.log.Debug("an MCP server could not be answered", "method", e.Method, "err", err)
		}
	})
}

// answer finds the answer to a request of the server.
func (s *session) answer(ctx context.Context, method string, params json.RawMessage) (result json.RawMessage, failed *wire.JSONRPCErrorDetails) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("bug in eca, please report it", "what", p, "method", method, "stack", string(debug.Stack()))
			failed = &wire.JSONRPCErrorDetails{Code: wire.INTERNAL_ERROR, Message: "internal error"}
		}
	}()
	if method == string(wire.MethodPing) {
		return json.RawMessage(`{}`), nil
	}
	handle := s.handlers[method]
	if handle == nil {
		return nil, &wire.JSONRPCErrorDetails{Code: wire.METHOD_NOT_FOUND, Message: "eca does not know the method " + shorten.Bytes(method, 100)}
	}
	out, err := handle(ctx, ServerRequest{Server: s.self.server, Method: method, Params: params, Calls: concerned(s.calls(), params)})
	if err == nil {
		result, err = json.Marshal(out)
	}
	var coded *RPCError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &coded):
		return nil, &wire.JSONRPCErrorDetails{Code: coded.Code, Message: coded.Message}
	}
	return nil, &wire.JSONRPCErrorDetails{Code: wire.INTERNAL_ERROR, Message: err.Error()}
}

// cancelled ends a request of the server that it cancelled.
func (s *session) cancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.incoming[idKey(p.ID)]; cancel != nil {
		cancel()
	}
}

// maxRounds is how often a server may ask for more before it answers.
const maxRounds = 10

// wanted is what a server of a version without a handshake answers when it wants to know
// more: requests as others send them, and what the same call has to bring along the next
// time.
type wanted struct {
	Type     string `json:"resultType"`
	Requests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	State json.RawMessage `json:"requestState"`
}

func wantsInput(result json.RawMessage) (wanted, bool) {
	var w wanted
	more := json.Unmarshal(result, &w) == nil && w.Type == string(wire.ResultTypeInputRequired)
	return w, more
}

// inputs answers what a server wants to know, all at once.
func (s *session) inputs(ctx context.Context, w wanted) (map[string]json.RawMessage, error) {
	if len(w.Requests) > maxIncoming {
		return nil, fmt.Errorf("the server asked more than %d things at a time", maxIncoming)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	var mu sync.Mutex
	responses := map[string]json.RawMessage{}
	for id, r := range w.Requests {
		work.Go(func() {
			result, failed := s.answer(ctx, r.Method, r.Params)
			if failed != nil {
				cancel(fmt.Errorf("what the server asked for (%s) can not be given: %s", shorten.Bytes(r.Method, 100), failed.Message))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			responses[id] = result
		})
	}
	work.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out := map[string]json.RawMessage{}
	if len(w.State) > 0 {
		out["requestState"] = w.State
	}
	if len(responses) > 0 {
		raw, err := json.Marshal(responses)
		if err != nil {
			return nil, fmt.Errorf("encode: %w", err)
		}
		out["inputResponses"] = raw
	}
	return out, nil
}
