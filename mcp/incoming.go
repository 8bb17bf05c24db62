package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"sync"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// Handler answers a request of a server within ctx, which also ends when the server cancels the
// request. The returned value is encoded as the result. A *jsonrpc.Error is sent to the server
// unchanged; other errors are sent as text.
type Handler func(ctx context.Context, r ServerRequest) (any, error)

// ServerRequest is a request of a server to eca (roots, sampling, elicitation).
type ServerRequest struct {
	Server string          // its name in the configuration
	Params json.RawMessage // as sent; may be empty
	// Calls are the running calls of tools of the server, the oldest first. The server may have sent
	// the request because of one of them.
	Calls []ActiveCall
}

// ActiveCall is a running tool call.
type ActiveCall struct {
	ChatID, CallID, Tool string
	Model                string // full id

	taskID     string                  // id of the task that the call became
	pauseTimer func() (release func()) // stops the timer of the call
	samples    *sampleCounter
}

const (
	// maxIncoming limits the requests of a server that are answered at the same time; eca refuses
	// further ones.
	maxIncoming = 16
	// maxUnsentAnswers limits the answers, including refusals, that a server may leave unread.
	maxUnsentAnswers = 1000
)

// errUnreadAnswers ends the session with a server that sends requests and does not read the answers.
var errUnreadAnswers = fmt.Errorf("it sent %d requests and did not read the answers", maxUnsentAnswers)

// answerInBackground answers a request of the server without blocking the reader.
func (s *session) answerInBackground(e envelope) {
	ctx, cancel := context.WithCancel(s.ctx)
	s.mu.Lock()
	if s.unsentAnswers++; s.unsentAnswers > maxUnsentAnswers {
		s.mu.Unlock()
		cancel()
		s.cancel(errUnreadAnswers)
		return
	}
	full, remove := s.incoming.Len() >= maxIncoming, func() {}
	if !full {
		remove = s.incoming.Add(e.key(), cancel)
	} else {
		e.Params = nil // frees memory: the refusal does not need the parameters
	}
	s.mu.Unlock()
	s.background(func() {
		defer cancel()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unsentAnswers--
		}()
		answer := envelope{Message: jsonrpc.Message{ID: e.ID}}
		if full {
			answer.Error = jsonrpc.Errorf(jsonrpc.CodeInternal, "more than %d requests at a time", maxIncoming)
		} else {
			answer.Result, answer.Error = s.answer(ctx, e.Method, e.Params)
			remove()
			if ctx.Err() != nil {
				return // the server cancelled it and expects no answer
			}
		}
		if err := s.transport.send(s.ctx, answer); err != nil {
			s.log.Debug("cannot answer an MCP server", "method", e.Method, "err", err)
		}
	})
}

// answer computes the answer to a request of the server.
func (s *session) answer(ctx context.Context, method string, params json.RawMessage) (result json.RawMessage, answerErr *jsonrpc.Error) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("bug in eca, please report it", "what", p, "method", method, "stack", string(debug.Stack()))
			answerErr = jsonrpc.Errorf(jsonrpc.CodeInternal, "internal error")
		}
	}()
	if method == string(wire.MethodPing) {
		return json.RawMessage(`{}`), nil
	}
	handle := s.handlers[method]
	if handle == nil {
		return nil, jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "eca does not know the method %s", shorten.Bytes(method, 100))
	}
	out, err := handle(ctx, ServerRequest{Server: s.self.server, Params: params, Calls: relatedCallLast(s.calls(), params)})
	if err == nil {
		result, err = json.Marshal(out)
	}
	if err == nil {
		return result, nil
	}
	if coded, ok := err.(*jsonrpc.Error); ok { //nolint:errorlint // a wrapped one came from another peer
		return nil, coded
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInternal, "%v", err)
}

// handleCancelled ends a request that the server cancelled.
func (s *session) handleCancelled(params json.RawMessage) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.incoming.Cancel(idKey(p.ID))
}

// maxRounds limits how often a server may request more input before it returns a result.
const maxRounds = 10

// inputRequest is the answer of a server of the newest version that needs more input before it can
// return a result. It contains the server's requests, and a state that eca sends back with the
// responses when it repeats the call.
type inputRequest struct {
	Type     string `json:"resultType"`
	Requests map[string]struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	} `json:"inputRequests"`
	State json.RawMessage `json:"requestState"`
}

func parseInputRequest(result json.RawMessage) (inputRequest, bool) {
	var w inputRequest
	more := json.Unmarshal(result, &w) == nil && w.Type == string(wire.ResultTypeInputRequired)
	return w, more
}

// answerInputRequests answers all the requests for input concurrently.
func (s *session) answerInputRequests(ctx context.Context, w inputRequest) (map[string]json.RawMessage, error) {
	if len(w.Requests) > maxIncoming {
		return nil, fmt.Errorf("the server sent more than %d requests at the same time", maxIncoming)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var work sync.WaitGroup
	var mu sync.Mutex
	responses := map[string]json.RawMessage{}
	for id, r := range w.Requests {
		work.Go(func() {
			result, answerErr := s.answer(ctx, r.Method, r.Params)
			if answerErr != nil {
				cancel(fmt.Errorf("cannot answer the server's request %s: %s", shorten.Bytes(r.Method, 100), answerErr.Message))
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
