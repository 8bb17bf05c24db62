package server

import (
	"context"
	"log/slog"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// families combines the types that implement the methods of the protocol, one type for each family
// of methods. The compiler checks that no method is missing; a test checks the table below against
// the same interface.
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

// table maps the names of the methods to their handlers.
func table(s protocol.Server) map[string]handler {
	return map[string]handler{
		"initialize":                          asRequest(s.Initialize),
		"initialized":                         asNotification(s.Initialized),
		"shutdown":                            asRequest(s.Shutdown),
		"exit":                                asNotification(s.Exit),
		"workspace/didChangeWorkspaceFolders": asNotification(s.WorkspaceDidChangeWorkspaceFolders),

		"chat/prompt":            asRequest(s.ChatPrompt),
		"chat/promptStop":        asNotification(s.ChatPromptStop),
		"chat/promptSteer":       asNotification(s.ChatPromptSteer),
		"chat/promptSteerRemove": asNotification(s.ChatPromptSteerRemove),
		"chat/toolCallApprove":   asNotification(s.ChatToolCallApprove),
		"chat/toolCallReject":    asNotification(s.ChatToolCallReject),

		"chat/queryContext":  asRequest(s.ChatQueryContext),
		"chat/queryFiles":    asRequest(s.ChatQueryFiles),
		"chat/queryCommands": asRequest(s.ChatQueryCommands),

		"chat/delete":     asRequest(s.ChatDelete),
		"chat/clear":      asRequest(s.ChatClear),
		"chat/rollback":   asRequest(s.ChatRollback),
		"chat/addFlag":    asRequest(s.ChatAddFlag),
		"chat/removeFlag": asRequest(s.ChatRemoveFlag),
		"chat/fork":       asRequest(s.ChatFork),
		"chat/update":     asRequest(s.ChatUpdate),
		"chat/list":       asRequest(s.ChatList),
		"chat/open":       asRequest(s.ChatOpen),
		"chat/history":    asRequest(s.ChatHistory),
		"chat/search":     asRequest(s.ChatSearch),

		"chat/selectedAgentChanged":    asNotification(s.ChatSelectedAgentChanged),
		"chat/selectedBehaviorChanged": asNotification(s.ChatSelectedBehaviorChanged),
		"chat/selectedModelChanged":    asNotification(s.ChatSelectedModelChanged),

		"mcp/startServer":   asNotification(s.MCPStartServer),
		"mcp/stopServer":    asNotification(s.MCPStopServer),
		"mcp/connectServer": asNotification(s.MCPConnectServer),
		"mcp/logoutServer":  asNotification(s.MCPLogoutServer),
		"mcp/enableServer":  asNotification(s.MCPEnableServer),
		"mcp/disableServer": asNotification(s.MCPDisableServer),
		"mcp/updateServer":  asRequest(s.MCPUpdateServer),
		"mcp/addServer":     asRequest(s.MCPAddServer),
		"mcp/removeServer":  asRequest(s.MCPRemoveServer),

		"providers/list":       asRequest(s.ProvidersList),
		"providers/login":      asRequest(s.ProvidersLogin),
		"providers/loginInput": asRequest(s.ProvidersLoginInput),
		"providers/logout":     asRequest(s.ProvidersLogout),

		"jobs/list":       asRequest(s.JobsList),
		"jobs/kill":       asRequest(s.JobsKill),
		"jobs/readOutput": asRequest(s.JobsReadOutput),

		"completion/inline": asRequest(s.CompletionInline),
		"rewrite/prompt":    asRequest(s.RewritePrompt),
	}
}

// asRequest adapts a method that returns an answer.
func asRequest[P, R any](method func(context.Context, protocol.Request[P]) (protocol.AsyncResult[R], error)) handler {
	return func(ctx context.Context, log *slog.Logger, req *jsonrpc.Request) (any, error) {
		params, err := decode[P](log, req)
		if err != nil {
			return nil, err
		}
		later, err := method(ctx, protocol.Request[P]{Params: params, Answered: req.Answered()})
		if err != nil {
			return nil, err
		}
		return jsonrpc.Later(func(ctx context.Context) (any, error) {
			res, err := later(ctx)
			if err != nil {
				return nil, err
			}
			return res, nil
		}), nil
	}
}

// asNotification adapts a method that returns no answer.
func asNotification[P any](method func(context.Context, P) error) handler {
	return func(ctx context.Context, log *slog.Logger, req *jsonrpc.Request) (any, error) {
		params, err := decode[P](log, req)
		if err != nil {
			return nil, err
		}
		return nil, method(ctx, params)
	}
}

// decode reads params. A handler can return its error as it is.
func decode[P any](log *slog.Logger, req *jsonrpc.Request) (p P, err error) {
	if _, none := any(p).(protocol.None); none {
		return p, nil
	}
	repeated, err := protocol.Decode(req.Params, &p)
	if repeated != "" {
		log.Warn("a member of the params is there twice; the last one counts", "method", req.Method, "member", repeated)
	}
	if err != nil {
		return p, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", req.Method, err)
	}
	return p, nil
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
