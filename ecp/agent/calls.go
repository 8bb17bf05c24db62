package agent

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// method executes a request that arrived at the given time.
type method func(ctx context.Context, params json.RawMessage, arrived time.Time) (any, *ecp.Error)

// message is an incoming message. err is its answer if it is invalid or cannot be executed.
type message struct {
	ecp.Request
	err *ecp.Error
}

// parseMessages decodes a message, or an array of messages (batch). It returns one invalid message for an
// array that is malformed, empty or too long.
func parseMessages(raw []byte) (list []message, batch bool) {
	parts, batch := jsonrpc.Split(raw)
	switch n := len(parts); {
	case !batch:
		req, bad := ecp.ParseRequest(parts[0])
		return []message{{req, bad}}, false
	case parts == nil:
		return []message{{err: ecp.Errorf(ecp.CodeParse, "Parse error: invalid JSON")}}, false
	case n == 0:
		return []message{{err: ecp.Errorf(ecp.CodeInvalidRequest, "Invalid Request: the batch is empty")}}, false
	case n > maxWaiting:
		return []message{{err: ecp.Errorf(ecp.CodeInvalidRequest, "Invalid Request: a batch must not exceed %d messages, but has %d", maxWaiting, n)}}, false
	}
	for _, p := range parts {
		req, bad := ecp.ParseRequest(p)
		list = append(list, message{req, bad})
	}
	return list, true
}

// enqueueMessages adds messages that arrived together to the queue, without waiting. The returned
// function waits for their turn, executes them one after the other, and returns the answers.
// Notifications and the runtime's own answers get no answer. ordered is false if none of the
// messages is executed; their answers then need not wait for the answers to earlier messages.
func (a *Agent) enqueueMessages(ctx context.Context, list []message) (answers func() []ecp.Response, ordered bool) {
	arrived := a.opts.Now()
	if !slices.ContainsFunc(list, func(m message) bool { return m.err == nil && a.methodNamed(m.Method) != nil }) {
		return func() []ecp.Response { return a.answerAll(ctx, list, arrived) }, false
	}
	stop := len(list) == 1 && list[0].Method == ecp.MethodReset
	t, err := a.queue.enqueue(ctx, stop)
	if err != nil {
		for i := range list {
			if list[i].err == nil {
				list[i].err = ecp.Errorf(ecp.CodeFailed, "%v", err)
			}
		}
		return func() []ecp.Response { return a.answerAll(ctx, list, arrived) }, false
	}
	return func() []ecp.Response {
		t.wait()
		defer t.done()
		return a.answerAll(t.ctx, list, arrived)
	}, true
}

func (a *Agent) methodNamed(name string) method {
	switch name {
	case ecp.MethodInitialize:
		return a.initialize
	case ecp.MethodStep:
		return a.step
	case ecp.MethodReset:
		return a.reset
	}
	return nil
}

func (a *Agent) answerAll(ctx context.Context, list []message, arrived time.Time) (out []ecp.Response) {
	for _, m := range list {
		if answer, ok := a.answer(ctx, m, arrived); ok {
			out = append(out, answer)
		}
	}
	return out
}

// answer executes one message. answered is false if the message gets no answer.
func (a *Agent) answer(ctx context.Context, m message, arrived time.Time) (answer ecp.Response, answered bool) {
	if m.err != nil {
		// A message without an id is a notification, and gets no answer even if it is invalid.
		silent := m.ID == nil && m.Method != ""
		return ecp.Response{ID: m.ID, Err: m.err}, !silent
	}
	if m.IsAnswer {
		return ecp.Response{}, false
	}
	result, failed := a.execute(ctx, m, arrived)
	answer = ecp.Response{ID: m.ID, Err: failed}
	if failed == nil {
		var err error
		if answer.Result, err = ecp.Encode(result); err != nil {
			answer.Err = ecp.Errorf(ecp.CodeFailed, "cannot encode the result: %v", err)
		}
	}
	return answer, m.ID != nil
}

// execute runs a method and turns a panic into an error.
func (a *Agent) execute(ctx context.Context, m message, arrived time.Time) (result any, failed *ecp.Error) {
	do := a.methodNamed(m.Method)
	if do == nil {
		return nil, ecp.Errorf(ecp.CodeNoMethod, "Unknown method: %.200s", m.Method)
	}
	defer func() {
		if p := recover(); p != nil {
			a.opts.Log.Error("call panicked", "method", m.Method, "panic", p, "stack", string(debug.Stack()))
			result, failed = nil, ecp.Errorf(ecp.CodeFailed, "internal error: %v", p)
		}
	}()
	return do(ctx, m.Params, arrived)
}
