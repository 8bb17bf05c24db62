package server

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// rewrites implements rewrite/prompt.
type rewrites struct {
	*connection
	host interface{ Inline() *inline.Engine }

	mu         sync.Mutex          // guards unfinished
	unfinished map[string]*rewrite // by the client's id
}

// rewrite is one rewrite/prompt, from its request to its last notification.
type rewrite struct {
	id       string
	ctx      context.Context // ends with the connection, or when a newer rewrite with the same id begins
	cancel   context.CancelFunc
	ended    chan struct{} // closed when the last notification has been sent
	previous *rewrite      // with the same id; may be nil
}

// RewritePrompt implements protocol.Server. The answer comes before the model begins,
// and before the first notification (eca-protocol.md 4.14).
//
// A newer rewrite with the same id replaces an older one. From then on nothing is sent for the
// older one, not even its end, because the client would take that for the end of the newer one.
func (rs *rewrites) RewritePrompt(_ context.Context, req protocol.Request[protocol.RewriteParams]) (protocol.AsyncResult[protocol.RewriteResult], error) {
	p := req.Params
	for _, required := range []struct{ name, value string }{{"id", string(p.ID)}, {"text", p.Text}, {"prompt", p.Prompt}} {
		if required.value == "" {
			return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "rewrite/prompt: %s is missing", required.name)
		}
	}
	rw := rs.begin(string(p.ID))
	return func(ctx context.Context) (res protocol.RewriteResult, err error) {
		running := false
		defer func() {
			if !running {
				rs.end(rw)
			}
		}()
		if rw.previous != nil {
			select {
			case <-rw.previous.ended: // this takes little time, because it was cancelled
			case <-ctx.Done():
				return res, ctx.Err()
			}
		}
		r, err := rs.host.Inline().Rewrite(selection(p))
		if err != nil {
			return res, jsonrpc.Errorf(jsonrpc.CodeRequestFailed, "%v", err)
		}
		if ctx.Err() != nil || rw.ctx.Err() != nil {
			return res, context.Canceled
		}
		running = true
		rs.background(func() {
			defer rs.end(rw)
			if req.Answered != nil {
				select {
				case <-req.Answered:
				case <-rw.ctx.Done():
				}
			}
			rs.run(rw, r)
		})
		return protocol.RewriteResult{Status: protocol.StatusPrompting, Model: r.Model}, nil
	}, nil
}

func selection(p protocol.RewriteParams) inline.Selection {
	start, end := p.Range.Start, p.Range.End
	if end.Character == 0 && end.Line > start.Line {
		end.Line-- // whole lines are selected, up to the start of the next one
	}
	return inline.Selection{
		Text: p.Text, Instruction: p.Prompt, Path: string(p.Path), FirstLine: int(start.Line), LastLine: int(end.Line),
	}
}

// begin registers a rewrite and cancels the one with the same id, if any.
func (rs *rewrites) begin(id string) *rewrite {
	rw := &rewrite{id: id, ended: make(chan struct{})}
	rw.ctx, rw.cancel = context.WithCancel(rs.ctx)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rw.previous = rs.unfinished[id]; rw.previous != nil {
		rw.previous.cancel()
	}
	rs.unfinished[id] = rw
	return rw
}

func (rs *rewrites) end(rw *rewrite) {
	rw.cancel()
	rw.previous = nil // otherwise the chain of rewrites would never be freed
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.unfinished[rw.id] == rw {
		delete(rs.unfinished, rw.id)
	}
	close(rw.ended)
}

// run sends the model's replacement for the selection. The last notification is always
// finished or error (eca-protocol.md 5).
func (rs *rewrites) run(rw *rewrite, r *inline.Rewriting) {
	send := func(c protocol.RewriteContent) {
		if rw.ctx.Err() == nil {
			rs.notify(rw.ctx, "rewrite/contentReceived", protocol.RewriteReceived{RewriteID: rw.id, Content: c})
		}
	}
	defer func() {
		if p := recover(); p != nil {
			rs.log.Error("rewrite panicked", "panic", p, "stack", string(debug.Stack()))
			send(protocol.RewriteContent{Type: "error", Message: fmt.Sprintf("internal error: %v", p)})
		}
	}()
	for step, err := range r.Stream(rw.ctx) {
		if err != nil {
			send(protocol.RewriteContent{Type: "error", Message: err.Error()})
			return
		}
		send(rewriteContent(step))
	}
}

func rewriteContent(step inline.Step) protocol.RewriteContent {
	switch step.Kind {
	case inline.Started:
		return protocol.RewriteContent{Type: "started"}
	case inline.Reasoning:
		return protocol.RewriteContent{Type: "reasoning"}
	case inline.Finished:
		ms := step.Elapsed.Milliseconds()
		return protocol.RewriteContent{Type: "finished", TotalTimeMs: &ms}
	}
	return protocol.RewriteContent{Type: "text", Text: step.Text}
}
