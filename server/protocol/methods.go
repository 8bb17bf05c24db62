package protocol

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// Server has every method that a client may call (eca-protocol.md, sections 3 and 4, and extensions). The code that
// serves the protocol to a client, a face, implements all of them; the compiler checks that.
//
// Handlers run one after the other, in the order in which messages arrive, and must not block. They
// return an AsyncResult for work that may take time.
type Server interface {
	Initialize(context.Context, Request[InitializeParams]) (AsyncResult[InitializeResult], error)
	Initialized(context.Context, None) error
	Shutdown(context.Context, Request[None]) (AsyncResult[Null], error)
	Exit(context.Context, None) error
	WorkspaceDidChangeWorkspaceFolders(context.Context, FoldersChanged) error

	ChatPrompt(context.Context, Request[ChatPromptParams]) (AsyncResult[ChatPromptResult], error)
	ChatPromptStop(context.Context, ChatParams) error
	ChatPromptSteer(context.Context, SteerParams) error
	ChatPromptSteerRemove(context.Context, ChatParams) error
	ChatToolCallApprove(context.Context, ToolCallParams) error
	ChatToolCallReject(context.Context, ToolCallParams) error

	ChatQueryContext(context.Context, Request[QueryContextParams]) (AsyncResult[QueryContextResult], error)
	ChatQueryFiles(context.Context, Request[QueryParams]) (AsyncResult[QueryFilesResult], error)
	ChatQueryCommands(context.Context, Request[QueryParams]) (AsyncResult[QueryCommandsResult], error)

	ChatDelete(context.Context, Request[ChatParams]) (AsyncResult[Empty], error)
	ChatClear(context.Context, Request[ChatClearParams]) (AsyncResult[Empty], error)
	ChatRollback(context.Context, Request[RollbackParams]) (AsyncResult[Empty], error)
	ChatAddFlag(context.Context, Request[FlagParams]) (AsyncResult[Empty], error)
	ChatRemoveFlag(context.Context, Request[FlagParams]) (AsyncResult[Empty], error)
	ChatFork(context.Context, Request[ForkParams]) (AsyncResult[Empty], error)
	ChatUpdate(context.Context, Request[ChatUpdateParams]) (AsyncResult[Empty], error)
	ChatList(context.Context, Request[ChatListParams]) (AsyncResult[ChatListResult], error)
	ChatOpen(context.Context, Request[WindowParams]) (AsyncResult[ChatOpenResult], error)
	ChatHistory(context.Context, Request[WindowParams]) (AsyncResult[ChatHistoryResult], error)
	ChatSearch(context.Context, Request[ChatSearchParams]) (AsyncResult[ChatSearchResult], error)

	ChatSelectedAgentChanged(context.Context, SelectedAgentParams) error
	ChatSelectedBehaviorChanged(context.Context, SelectedAgentParams) error
	ChatSelectedModelChanged(context.Context, SelectedModelParams) error

	MCPStartServer(context.Context, MCPParams) error
	MCPStopServer(context.Context, MCPParams) error
	MCPConnectServer(context.Context, MCPParams) error
	MCPLogoutServer(context.Context, MCPParams) error
	MCPEnableServer(context.Context, MCPParams) error
	MCPDisableServer(context.Context, MCPParams) error
	MCPUpdateServer(context.Context, Request[MCPServerParams]) (AsyncResult[MCPUpdateResult], error)
	MCPAddServer(context.Context, Request[MCPServerParams]) (AsyncResult[MCPAddResult], error)
	MCPRemoveServer(context.Context, Request[MCPParams]) (AsyncResult[MCPRemoveResult], error)

	ProvidersList(context.Context, Request[None]) (AsyncResult[ProvidersListResult], error)
	ProvidersLogin(context.Context, Request[LoginParams]) (AsyncResult[LoginAction], error)
	ProvidersLoginInput(context.Context, Request[LoginInputParams]) (AsyncResult[LoginAction], error)
	ProvidersLogout(context.Context, Request[ProviderParams]) (AsyncResult[Empty], error)

	JobsList(context.Context, Request[None]) (AsyncResult[JobsListResult], error)
	JobsKill(context.Context, Request[JobParams]) (AsyncResult[JobKillResult], error)
	JobsReadOutput(context.Context, Request[JobParams]) (AsyncResult[JobOutputResult], error)

	CompletionInline(context.Context, Request[CompletionParams]) (AsyncResult[CompletionResult], error)
	RewritePrompt(context.Context, Request[RewriteParams]) (AsyncResult[RewriteResult], error)
}

// Request is a call with its parameters.
type Request[P any] struct {
	Params P
	// Answered is closed once the response is queued for writing, so that a handler can order
	// notifications after its own answer. It is nil if there will be no response.
	Answered <-chan struct{}
}

// AsyncResult is the part of a handler that may block; its result is the response. ctx ends when
// the client cancels the request or disconnects.
type AsyncResult[R any] func(ctx context.Context) (R, error)

// Immediate returns an AsyncResult that does not block.
func Immediate[R any](r R) AsyncResult[R] {
	return func(context.Context) (R, error) { return r, nil }
}

// None stands for missing parameters.
type None struct{}

// Empty is the result {}.
type Empty struct{}

// Null is the result null.
type Null struct{}

// MarshalJSON implements json.Marshaler.
func (Null) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Direction of a method.
type Direction string

// Directions.
const (
	ToServer Direction = "client → server"
	ToClient Direction = "server → client"
)

// Rights say what a device of the remote server may do. Higher rights include the lower ones.
type Rights int

// The rights.
const (
	Watch   Rights = iota + 1 // read chats
	Control                   // prompt, stop, approve, answer and edit
	Trust                     // everything else, such as auto-approve, remembered approvals, logins and MCP servers
)

func (r Rights) String() string {
	switch r {
	case Watch:
		return "watch"
	case Trust:
		return "trust"
	}
	return "control"
}

// MarshalText implements encoding.TextMarshaler.
func (r Rights) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Rights) UnmarshalText(text []byte) error {
	for known := Watch; known <= Trust; known++ {
		if known.String() == string(text) {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("%q is not one of watch, control and trust", text)
}

// Method describes one method of the protocol.
type Method struct {
	Name           string // on the wire
	Direction      Direction
	Request        bool // a request; else a notification
	InFirstVersion bool // also in the first published protocol
	Section        string
	Needs          Rights // that a remote device needs to call it; more if its params grant something
	Handle         Handler
}

// Handler decodes the params of a message and calls a method of a face. It is nil for methods that
// the client implements.
type Handler func(ctx context.Context, face Server, log *slog.Logger, req *jsonrpc.Request) (any, error)

// request returns the row of a method with an answer.
func request[P, R any](name string, method func(Server, context.Context, Request[P]) (AsyncResult[R], error), section string, inFirstVersion bool, needs Rights) Method {
	return Method{name, ToServer, true, inFirstVersion, section, needs, func(ctx context.Context, face Server, log *slog.Logger, req *jsonrpc.Request) (any, error) {
		params, err := decodeParams[P](log, req)
		if err != nil {
			return nil, err
		}
		run, err := method(face, ctx, Request[P]{Params: params, Answered: req.Answered()})
		if err != nil {
			return nil, err
		}
		return jsonrpc.Later(func(ctx context.Context) (any, error) {
			res, err := run(ctx)
			if err != nil {
				return nil, err
			}
			return res, nil
		}), nil
	}}
}

// notification returns the row of a method without an answer.
func notification[P any](name string, method func(Server, context.Context, P) error, section string, inFirstVersion bool, needs Rights) Method {
	return Method{name, ToServer, false, inFirstVersion, section, needs, func(ctx context.Context, face Server, log *slog.Logger, req *jsonrpc.Request) (any, error) {
		params, err := decodeParams[P](log, req)
		if err != nil {
			return nil, err
		}
		return nil, method(face, ctx, params)
	}}
}

// decodeParams reads params. A handler can return its error as it is.
func decodeParams[P any](log *slog.Logger, req *jsonrpc.Request) (p P, err error) {
	if _, none := any(p).(None); none {
		return p, nil
	}
	repeated, err := Decode(req.Params, &p)
	if repeated != "" {
		log.Warn("a member of the params is there twice; the last one counts", "method", req.Method, "member", repeated)
	}
	if err != nil {
		return p, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", req.Method, err)
	}
	return p, nil
}

// Methods lists all methods of the protocol, in the order of the contract, with extensions beside related
// methods. Only the client's $/cancelRequest is missing: package jsonrpc handles it. A row states the section,
// whether the method is in the first published version of the protocol (firstVersion) or only in a later one
// (laterVersion), and the rights of remote devices.
func Methods() []Method {
	const firstVersion, laterVersion = true, false
	notify := func(name string, inFirstVersion bool) Method {
		return Method{Name: name, Direction: ToClient, InFirstVersion: inFirstVersion, Section: "5"}
	}
	call := func(name string, inFirstVersion bool) Method {
		return Method{Name: name, Direction: ToClient, Request: true, InFirstVersion: inFirstVersion, Section: "6"}
	}
	return []Method{
		request("initialize", Server.Initialize, "3.1", firstVersion, Trust),
		notification("initialized", Server.Initialized, "3.2", firstVersion, Trust),
		request("shutdown", Server.Shutdown, "3.3", firstVersion, Trust),
		notification("exit", Server.Exit, "3.3", firstVersion, Trust),
		notification("workspace/didChangeWorkspaceFolders", Server.WorkspaceDidChangeWorkspaceFolders, "3.4", laterVersion, Trust),
		request("chat/prompt", Server.ChatPrompt, "4.1", firstVersion, Control),
		notification("chat/toolCallApprove", Server.ChatToolCallApprove, "4.2", firstVersion, Control),
		notification("chat/toolCallReject", Server.ChatToolCallReject, "4.3", firstVersion, Control),
		notification("chat/promptStop", Server.ChatPromptStop, "4.4", firstVersion, Control),
		notification("chat/promptSteer", Server.ChatPromptSteer, "4.5", laterVersion, Control),
		notification("chat/promptSteerRemove", Server.ChatPromptSteerRemove, "4.6", laterVersion, Control),
		request("chat/queryContext", Server.ChatQueryContext, "4.7", firstVersion, Watch),
		request("chat/queryFiles", Server.ChatQueryFiles, "4.7", laterVersion, Watch),
		request("chat/queryCommands", Server.ChatQueryCommands, "4.7", firstVersion, Watch),
		request("chat/delete", Server.ChatDelete, "4.8", firstVersion, Control),
		request("chat/clear", Server.ChatClear, "4.8", laterVersion, Control),
		request("chat/rollback", Server.ChatRollback, "4.8", laterVersion, Control),
		request("chat/addFlag", Server.ChatAddFlag, "4.8", laterVersion, Control),
		request("chat/removeFlag", Server.ChatRemoveFlag, "4.8", laterVersion, Control),
		request("chat/fork", Server.ChatFork, "4.8", laterVersion, Control),
		request("chat/update", Server.ChatUpdate, "4.8", laterVersion, Control),
		request("chat/list", Server.ChatList, "4.8", laterVersion, Watch),
		request("chat/open", Server.ChatOpen, "4.8", laterVersion, Watch),
		request("chat/history", Server.ChatHistory, "4.8", laterVersion, Watch),
		request("chat/search", Server.ChatSearch, "extension", laterVersion, Watch),
		notification("chat/selectedAgentChanged", Server.ChatSelectedAgentChanged, "4.9", laterVersion, Control),
		notification("chat/selectedBehaviorChanged", Server.ChatSelectedBehaviorChanged, "4.9", firstVersion, Control),
		notification("chat/selectedModelChanged", Server.ChatSelectedModelChanged, "4.9", laterVersion, Control),
		notification("mcp/startServer", Server.MCPStartServer, "4.10", firstVersion, Trust),
		notification("mcp/stopServer", Server.MCPStopServer, "4.10", firstVersion, Trust),
		notification("mcp/connectServer", Server.MCPConnectServer, "4.10", laterVersion, Trust),
		notification("mcp/logoutServer", Server.MCPLogoutServer, "4.10", laterVersion, Trust),
		notification("mcp/enableServer", Server.MCPEnableServer, "4.10", laterVersion, Trust),
		notification("mcp/disableServer", Server.MCPDisableServer, "4.10", laterVersion, Trust),
		request("mcp/updateServer", Server.MCPUpdateServer, "4.10", laterVersion, Trust),
		request("mcp/addServer", Server.MCPAddServer, "4.10", laterVersion, Trust),
		request("mcp/removeServer", Server.MCPRemoveServer, "4.10", laterVersion, Trust),
		request("providers/list", Server.ProvidersList, "4.11", laterVersion, Watch),
		request("providers/login", Server.ProvidersLogin, "4.11", laterVersion, Trust),
		request("providers/loginInput", Server.ProvidersLoginInput, "4.11", laterVersion, Trust),
		request("providers/logout", Server.ProvidersLogout, "4.11", laterVersion, Trust),
		request("jobs/list", Server.JobsList, "4.12", laterVersion, Watch),
		request("jobs/kill", Server.JobsKill, "4.12", laterVersion, Control),
		request("jobs/readOutput", Server.JobsReadOutput, "4.12", laterVersion, Watch),
		request("completion/inline", Server.CompletionInline, "4.13", laterVersion, Trust),
		request("rewrite/prompt", Server.RewritePrompt, "4.14", laterVersion, Trust),

		notify("chat/contentReceived", firstVersion),
		notify("chat/cleared", laterVersion),
		notify("chat/opened", laterVersion),
		notify("chat/statusChanged", laterVersion),
		notify("chat/deleted", laterVersion),
		notify("config/updated", firstVersion),
		notify("tool/serverUpdated", firstVersion),
		notify("tool/serverRemoved", laterVersion),
		notify("providers/updated", laterVersion),
		notify("jobs/updated", laterVersion),
		notify("rewrite/contentReceived", laterVersion),
		notify("$/progress", laterVersion),
		notify("$/showMessage", firstVersion),
		notify("$/cancelRequest", laterVersion),
		call("editor/getDiagnostics", firstVersion),
		call("editor/getDefinition", laterVersion),
		call("editor/getReferences", laterVersion),
		call("chat/askQuestion", laterVersion),
	}
}
