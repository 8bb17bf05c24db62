package protocol

// FoldersChanged is workspace/didChangeWorkspaceFolders (eca-protocol.md 3).
type FoldersChanged struct {
	Event struct {
		Added   List[WorkspaceFolder] `json:"added"`
		Removed List[WorkspaceFolder] `json:"removed"`
	} `json:"event"`
}

// QueryParams of the chat/query requests (eca-protocol.md 4.7).
type QueryParams struct {
	ChatID ID   `json:"chatId"`
	Query  Text `json:"query"`
}

// QueryContextParams (eca-protocol.md 4.7). Contexts are those the user has chosen already.
type QueryContextParams struct {
	ChatID   ID                `json:"chatId"`
	Query    Text              `json:"query"`
	Contexts List[ChatContext] `json:"contexts"`
}

// QueryContextResult (eca-protocol.md 4.7).
type QueryContextResult struct {
	ChatID   *string       `json:"chatId"` // null if the request names none
	Contexts []ContextItem `json:"contexts"`
}

// QueryFilesResult (eca-protocol.md 4.7).
type QueryFilesResult struct {
	ChatID *string       `json:"chatId"` // null if the request names none
	Files  []ContextItem `json:"files"`
}

// ContextItem is a context that is offered (eca-protocol.md 2.4).
type ContextItem struct {
	Type        string `json:"type"`
	Path        string `json:"path,omitempty"`
	URI         string `json:"uri,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MimeType    string `json:"mimeType,omitempty"`
	Server      string `json:"server,omitempty"`
}

// QueryCommandsResult (eca-protocol.md 4.7).
type QueryCommandsResult struct {
	ChatID   *string       `json:"chatId"` // null if the request names none
	Commands []ChatCommand `json:"commands"`
}

// ChatCommand is one slash command. Arguments is null for skills without any, as in the reference
// server.
type ChatCommand struct {
	Name        string            `json:"name"`
	Description string            `json:"description,omitempty"`
	Type        string            `json:"type"` // native, mcpPrompt, customPrompt or skill
	Arguments   []CommandArgument `json:"arguments"`
}

// CommandArgument is one argument of a command.
type CommandArgument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required"`
}
