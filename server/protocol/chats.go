package protocol

// ChatParams are the parameters of methods that only name a chat.
type ChatParams struct {
	ChatID ID `json:"chatId"`
}

// SteerParams of chat/promptSteer (eca-protocol.md 4).
type SteerParams struct {
	ChatID  ID   `json:"chatId"`
	Message Text `json:"message"`
}

// ChatClearParams (eca-protocol.md 4.8).
type ChatClearParams struct {
	ChatID   ID   `json:"chatId"`
	Messages Flag `json:"messages"`
}

// RollbackParams (eca-protocol.md 4.8). Include holds "messages" and "tools"; empty means both.
type RollbackParams struct {
	ChatID    ID           `json:"chatId"`
	ContentID ID           `json:"contentId"`
	Include   List[string] `json:"include"`
}

// FlagParams of chat/addFlag and chat/removeFlag (eca-protocol.md 4.8). ContentID names the message
// that a flag is added after, or the flag that is removed.
type FlagParams struct {
	ChatID    ID   `json:"chatId"`
	ContentID ID   `json:"contentId"`
	Text      Text `json:"text"`
}

// ForkParams (eca-protocol.md 4.8).
type ForkParams struct {
	ChatID    ID `json:"chatId"`
	ContentID ID `json:"contentId"`
}

// ChatUpdateParams (eca-protocol.md 4.8).
type ChatUpdateParams struct {
	ChatID ID   `json:"chatId"`
	Title  Text `json:"title"`
	Trust  Flag `json:"trust"`
	Pinned Flag `json:"pinned"` // an extension: the chat is never deleted because of its age
}

// ChatListParams (eca-protocol.md 4.8).
type ChatListParams struct {
	Limit  Number `json:"limit"`
	SortBy Text   `json:"sortBy"` // updatedAt (the default) or createdAt
}

// ChatListResult (eca-protocol.md 4.8). Chats is never null.
type ChatListResult struct {
	Chats []ChatSummary `json:"chats"`
}

// ChatSummary is one chat in a list. Times are milliseconds since 1970.
type ChatSummary struct {
	ID           string `json:"id"`
	Title        string `json:"title,omitempty"`
	Status       string `json:"status"` // idle or running
	CreatedAt    int64  `json:"createdAt"`
	UpdatedAt    int64  `json:"updatedAt"`
	Model        string `json:"model,omitempty"`
	MessageCount int    `json:"messageCount"`
}

// WindowParams of chat/open and chat/history (eca-protocol.md 4.8). Before and After are cursors,
// both exclusive; LastCompaction is a cursor too.
type WindowParams struct {
	ChatID ID     `json:"chatId"`
	Limit  Number `json:"limit"`
	Before Text   `json:"before"`
	After  Text   `json:"after"`
}

// Windowed reports whether the client requests a part of the chat.
func (p WindowParams) Windowed() bool { return p.Limit > 0 || p.Before != "" || p.After != "" }

// LastCompaction is the cursor of the last compaction.
const LastCompaction = "lastCompaction"

// WindowMeta describes a window (eca-protocol.md 4.8). Counts are messages. A cursor is null if
// there are no more messages on its side.
type WindowMeta struct {
	Total            int     `json:"total"`
	Returned         int     `json:"returned"`
	BeforeCursor     *string `json:"beforeCursor"`
	AfterCursor      *string `json:"afterCursor"`
	CompactionCursor *string `json:"compactionCursor"`
}

// WindowError is an error inside a result (eca-protocol.md 13.1).
type WindowError struct {
	Code    string `json:"code"` // chat_not_found, cursor_expired or invalid_request
	Message string `json:"message"`
}

// ChatOpenResult (eca-protocol.md 4.8, 8.6).
type ChatOpenResult struct {
	Found     bool         `json:"found"`
	ChatID    string       `json:"chatId,omitempty"`
	Title     string       `json:"title,omitempty"`
	Selection *Selection   `json:"selection,omitempty"`
	Meta      *WindowMeta  `json:"meta,omitempty"`
	Error     *WindowError `json:"error,omitempty"`
}

// Selection holds the settings of a chat. Model and Variant may be null (eca-protocol.md 2.1).
type Selection struct {
	Model    *string  `json:"model"`
	Agent    string   `json:"agent"`
	Variant  *string  `json:"variant"`
	Variants []string `json:"variants"`
	Trust    bool     `json:"trust"`
}

// ChatHistoryResult (eca-protocol.md 4.8).
type ChatHistoryResult struct {
	Contents []ContentReceived `json:"contents"`
	Meta     *WindowMeta       `json:"meta,omitempty"`
	Error    *WindowError      `json:"error,omitempty"`
}

// SelectedAgentParams of chat/selectedAgentChanged, which the first published protocol calls
// chat/selectedBehaviorChanged (eca-protocol.md 4).
type SelectedAgentParams struct {
	ChatID   ID   `json:"chatId"`
	Agent    Text `json:"agent"`
	Behavior Text `json:"behavior"`
}

// Name returns the chosen agent in either spelling.
func (p SelectedAgentParams) Name() string {
	if p.Agent != "" {
		return string(p.Agent)
	}
	return string(p.Behavior)
}

// SelectedModelParams of chat/selectedModelChanged (eca-protocol.md 4).
type SelectedModelParams struct {
	ChatID  ID   `json:"chatId"`
	Model   Text `json:"model"`
	Variant Text `json:"variant"`
}

// ChatCleared (eca-protocol.md 5).
type ChatCleared struct {
	ChatID   string `json:"chatId"`
	Messages bool   `json:"messages"`
}

// ChatStatusChanged (eca-protocol.md 5).
type ChatStatusChanged struct {
	ChatID string `json:"chatId"`
	Status string `json:"status"` // running, idle or stopping
}

// ChatOpened (eca-protocol.md 5).
type ChatOpened struct {
	ChatID string `json:"chatId"`
	Title  string `json:"title,omitempty"`
}

// ChatDeleted (eca-protocol.md 5).
type ChatDeleted struct {
	ChatID string `json:"chatId"`
}

// ChatSearchParams of chat/search.
type ChatSearchParams struct {
	Query Text   `json:"query"`
	Limit Number `json:"limit"`
}

// ChatSearchResult of chat/search. Results and Problems are never null.
type ChatSearchResult struct {
	Results    []SearchHit `json:"results"`
	More       bool        `json:"more"`       // there are more than the limit
	Incomplete bool        `json:"incomplete"` // some chats are not in the index yet
	Problems   []string    `json:"problems"`   // the ignored parts of the query, with the reasons
}

// SearchHit is a message that was found.
type SearchHit struct {
	ChatID    string        `json:"chatId"`
	Title     string        `json:"title,omitempty"`
	Workspace []string      `json:"workspace"` // folders
	Role      string        `json:"role"`      // user, assistant, reasoning, tool or summary
	CreatedAt int64         `json:"createdAt"` // milliseconds since 1970
	Snippet   []SnippetPart `json:"snippet"`
	// Before is a cursor for chat/open: with it and a limit, the window ends with the message. It
	// is missing if the message is the last one of the chat.
	Before   string `json:"before,omitempty"`
	Subagent string `json:"subagent,omitempty"` // the id of the subagent's chat that has the message
}

// SnippetPart is a piece of a message.
type SnippetPart struct {
	Text  string `json:"text"`
	Match bool   `json:"match,omitempty"`
}
