package server

import (
	"context"
	"errors"

	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// CompletionInline implements protocol.Server. Its errors are objects that have a type in addition
// to code and message (eca-protocol.md 4.13).
func (q *queries) CompletionInline(_ context.Context, req protocol.Request[protocol.CompletionParams]) (protocol.AsyncResult[protocol.CompletionResult], error) {
	p := req.Params
	return func(ctx context.Context) (protocol.CompletionResult, error) {
		text, err := q.host.Inline().Complete(ctx, inline.Cursor{
			Document: p.DocText, Line: int(p.Position.Line), Character: int(p.Position.Character), Path: string(p.Path),
		})
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err()
			}
			return protocol.CompletionResult{}, completionError(err)
		}
		return protocol.CompletionResult{Items: []protocol.CompletionItem{{
			Text: text, DocVersion: int(p.DocVersion), Range: protocol.Range{Start: p.Position, End: p.Position},
		}}}, nil
	}, nil
}

// completionError classifies a failure: harmless, possibly temporary, or something that the user
// has to correct.
func completionError(err error) error {
	kind, code := "error", jsonrpc.CodeRequestFailed
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, inline.ErrPosition):
		code = jsonrpc.CodeInvalidParams
	case errors.Is(err, inline.ErrNothing):
		kind = "info"
	case llm.AsError(err).Retryable(), llm.AsError(err).Kind == llm.ErrUnreachable:
		kind = "warning"
	}
	return &jsonrpc.Error{Code: code, Message: err.Error(), Members: map[string]any{"type": kind}}
}
