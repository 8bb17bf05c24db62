package server

import (
	"context"
	"log/slog"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// families combines the types that implement the methods of the protocol, one type for each family
// of methods. The compiler checks that no method is missing.
type families struct {
	*Server
	*prompts
	*chats
	*queries
	*selections
	*mcpServers
	*logins
	*jobs
	*rewrites
}

var _ protocol.Server = families{}

// handler handles one method; its parameters are still encoded.
type handler func(ctx context.Context, log *slog.Logger, req *jsonrpc.Request) (any, error)

// handlerTable maps the names of the methods to their handlers.
func handlerTable(face protocol.Server) map[string]handler {
	out := map[string]handler{}
	for _, m := range protocol.Methods() {
		if m.Handle != nil {
			out[m.Name] = func(ctx context.Context, log *slog.Logger, req *jsonrpc.Request) (any, error) {
				return m.Handle(ctx, face, log, req)
			}
		}
	}
	return out
}

// handle dispatches one message.
func (s *Server) handle(ctx context.Context, req *jsonrpc.Request) (any, error) {
	select {
	case s.handling <- struct{}{}:
		defer func() { <-s.handling }()
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
	h, ok := s.methods[req.Method]
	if !ok {
		if !req.IsCall {
			s.log.Debug("unknown notification", "method", req.Method)
			return nil, nil
		}
		return nil, jsonrpc.MethodNotFound(req.Method)
	}
	if err := s.admits(req.Method); err != nil {
		return nil, err
	}
	req.Params = s.numbers.resolve(req.Params)
	return s.handleInChat(ctx, req, h)
}
