package protocol

import "context"

// Server has every method that a client may call (sections 3 and 4). A face implements all of them;
// the compiler checks that.
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

// Method describes one method of the protocol, for docs/protocol.md.
type Method struct {
	Name      string // on the wire
	Direction Direction
	Request   bool // a request; else a notification
	Seed      bool // also in the first published protocol
	Section   string
}

// Methods lists all methods of the protocol, in the order of the contract.
func Methods() []Method {
	const both, current = true, false
	request := func(name, section string, seed bool) Method { return Method{name, ToServer, true, seed, section} }
	notification := func(name, section string, seed bool) Method { return Method{name, ToServer, false, seed, section} }
	tell := func(name string, seed bool) Method { return Method{name, ToClient, false, seed, "5"} }
	ask := func(name string, seed bool) Method { return Method{name, ToClient, true, seed, "6"} }
	return []Method{
		request("initialize", "3.1", both),
		notification("initialized", "3.2", both),
		request("shutdown", "3.3", both),
		notification("exit", "3.3", both),
		notification("workspace/didChangeWorkspaceFolders", "3.4", current),
		request("chat/prompt", "4.1", both),
		notification("chat/toolCallApprove", "4.2", both),
		notification("chat/toolCallReject", "4.3", both),
		notification("chat/promptStop", "4.4", both),
		notification("chat/promptSteer", "4.5", current),
		notification("chat/promptSteerRemove", "4.6", current),
		request("chat/queryContext", "4.7", both),
		request("chat/queryFiles", "4.7", current),
		request("chat/queryCommands", "4.7", both),
		request("chat/delete", "4.8", both),
		request("chat/clear", "4.8", current),
		request("chat/rollback", "4.8", current),
		request("chat/addFlag", "4.8", current),
		request("chat/removeFlag", "4.8", current),
		request("chat/fork", "4.8", current),
		request("chat/update", "4.8", current),
		request("chat/list", "4.8", current),
		request("chat/open", "4.8", current),
		request("chat/history", "4.8", current),
		request("chat/search", "extension", current),
		notification("chat/selectedAgentChanged", "4.9", current),
		notification("chat/selectedBehaviorChanged", "4.9", both),
		notification("chat/selectedModelChanged", "4.9", current),
		notification("mcp/startServer", "4.10", both),
		notification("mcp/stopServer", "4.10", both),
		notification("mcp/connectServer", "4.10", current),
		notification("mcp/logoutServer", "4.10", current),
		notification("mcp/enableServer", "4.10", current),
		notification("mcp/disableServer", "4.10", current),
		request("mcp/updateServer", "4.10", current),
		request("mcp/addServer", "4.10", current),
		request("mcp/removeServer", "4.10", current),
		request("providers/list", "4.11", current),
		request("providers/login", "4.11", current),
		request("providers/loginInput", "4.11", current),
		request("providers/logout", "4.11", current),
		request("jobs/list", "4.12", current),
		request("jobs/kill", "4.12", current),
		request("jobs/readOutput", "4.12", current),
		request("completion/inline", "4.13", current),
		request("rewrite/prompt", "4.14", current),

		tell("chat/contentReceived", both),
		tell("chat/cleared", current),
		tell("chat/opened", current),
		tell("chat/statusChanged", current),
		tell("chat/deleted", current),
		tell("config/updated", both),
		tell("tool/serverUpdated", both),
		tell("tool/serverRemoved", current),
		tell("providers/updated", current),
		tell("jobs/updated", current),
		tell("rewrite/contentReceived", current),
		tell("$/progress", current),
		tell("$/showMessage", both),
		tell("$/cancelRequest", current),
		ask("editor/getDiagnostics", both),
		ask("editor/getDefinition", current),
		ask("editor/getReferences", current),
		ask("chat/askQuestion", current),
	}
}
