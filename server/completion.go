package server

import (
	"context"
	"errors"

	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// CompletionInline implements protocol.Server. Its failures are errors whose object
// has a type beside code and message (eca-protocol 4.13).
func (s *Server) CompletionInline(_ context.Context, req protocol.Request[protocol.CompletionParams]) (protocol.Later[protocol.CompletionResult], error) {
	p := req.Params
	return func(ctx context.Context) (protocol.CompletionResult, error) {
		text, err := s.host.Inline().Complete(ctx, inline.Cursor{
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

// completionError says how serious a failure is: nothing to worry about, something
// that may be better the next time, or something to be put right.
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
