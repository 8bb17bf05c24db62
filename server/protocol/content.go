package protocol

import "encoding/json"

// Roles of content (eca-protocol.md 7).
const (
	RoleUser      = "user"
	RoleSystem    = "system"
	RoleAssistant = "assistant"
)

// ContentReceived is chat/contentReceived (eca-protocol.md 7). Content is one of the types below.
type ContentReceived struct {
	ChatID  string  `json:"chatId"`
	Role    string  `json:"role"`
	Content Content `json:"content"`
	// ParentChatID is set only for the chats of subagents.
	ParentChatID string `json:"parentChatId,omitempty"`
}

// Content is a type of chat content.
type Content interface{ isContent() }

// TextContent is text of any role. ContentID is set for the user's.
type TextContent struct {
	Type      string `json:"type"`
	ContentID string `json:"contentId,omitempty"`
	Text      string `json:"text"`
}

// ImageContent is an image of a tool's result; it follows the toolCalled.
type ImageContent struct {
	Type      string `json:"type"`
	MediaType string `json:"mediaType"`
	Base64    []byte `json:"base64"` // encoded as plain base64
}

// ProgressContent reports what a turn is doing. State is running or finished. Text is sent even if
// it is empty: the first published protocol requires it. Reason is an extension: how a finished turn ended
// (done, stopped, rejected, failed).
type ProgressContent struct {
	Type   string `json:"type"`
	State  string `json:"state"`
	Text   string `json:"text"`
	Reason string `json:"reason,omitempty"`
	// Incomplete is the reason why the last answer of a finished turn may not be complete.
	Incomplete string `json:"incomplete,omitempty"`
}

// ReasonContent is reasonStarted, reasonText or reasonFinished.
type ReasonContent struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Text        string `json:"text,omitempty"`
	TotalTimeMs *int64 `json:"totalTimeMs,omitempty"`
}

// ToolPrepare is toolCallPrepare; ArgumentsText is a delta.
type ToolPrepare struct {
	Type string `json:"type"`
	ToolCall
	ArgumentsText string `json:"argumentsText"`
}

// ToolCall has the fields all tool call contents share. Clients do not merge Summary
// and Details between stages, so every stage repeats them (eca-protocol.md 7.1).
type ToolCall struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Server  string  `json:"server"`
	Origin  string  `json:"origin"`
	Summary string  `json:"summary,omitempty"`
	Details Details `json:"details,omitempty"`
}

// ToolRun is toolCallRun.
type ToolRun struct {
	Type string `json:"type"`
	ToolCall
	Arguments      json.RawMessage `json:"arguments"`
	ManualApproval bool            `json:"manualApproval"`
	SandboxOffer   bool            `json:"sandboxOffer,omitempty"`
	Permission     Permission      `json:"permission"`
}

// Permission describes how a call was approved or rejected. Verdict is allow, ask or deny; with
// auto-approve, a call with the verdict ask runs without a question. NotRemembered is the reason
// why the call needs approval again although an approval was remembered.
type Permission struct {
	Verdict       string `json:"verdict"`
	Rule          string `json:"rule"`
	Reason        string `json:"reason"`
	NotRemembered string `json:"notRemembered,omitempty"`
}

// ToolRunning is toolCallRunning.
type ToolRunning struct {
	Type string `json:"type"`
	ToolCall
	Arguments json.RawMessage `json:"arguments"`
}

// ToolCalled is toolCalled.
type ToolCalled struct {
	Type string `json:"type"`
	ToolCall
	Arguments   json.RawMessage `json:"arguments"`
	Error       *bool           `json:"error"` // null if the tool of an MCP server succeeded
	Outputs     []ToolOutput    `json:"outputs"`
	TotalTimeMs int64           `json:"totalTimeMs"`
	// SandboxStops is what the sandbox refused the command; an extension of eca.
	SandboxStops []SandboxStop `json:"sandboxStops,omitempty"`
}

// SandboxStop is what the sandbox refused a command. The hosts, the port of a server of this machine
// and the folder are set if it could not connect to or write in them. Rerun is set if the user let
// the command run again.
type SandboxStop struct {
	Text    string   `json:"text"`
	Hosts   []string `json:"hosts,omitempty"`
	Port    string   `json:"port,omitempty"`
	Folder  string   `json:"folder,omitempty"`
	Decided bool     `json:"decided,omitempty"` // by the user
	Rerun   bool     `json:"again,omitempty"`
}

// ToolOutput is one output of a call.
type ToolOutput struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// ToolRejected is toolCallRejected.
type ToolRejected struct {
	Type string `json:"type"`
	ToolCall
	Arguments json.RawMessage `json:"arguments"`
	Reason    string          `json:"reason"`
}

// UsageContent (eca-protocol.md 7.2). Costs are decimal strings without a currency sign.
// MessageCost repeats LastMessageCost under the name Emacs reads.
type UsageContent struct {
	Type                  string            `json:"type"`
	SessionTokens         int64             `json:"sessionTokens"`
	LastMessageCost       string            `json:"lastMessageCost,omitempty"`
	MessageCost           string            `json:"messageCost,omitempty"`
	SessionCost           string            `json:"sessionCost,omitempty"`
	Limit                 *UsageLimit       `json:"limit,omitempty"`
	AutoCompactPercentage int               `json:"autoCompactPercentage,omitempty"`
	ContextBreakdown      *ContextBreakdown `json:"contextBreakdown,omitempty"`
}

// UsageLimit is in tokens.
type UsageLimit struct {
	Context int64 `json:"context"`
	Output  int64 `json:"output"`
}

// ContextBreakdown lists what takes up the context.
type ContextBreakdown struct {
	Categories   []ContextCategory `json:"categories"`
	UsedTokens   int64             `json:"usedTokens"`
	FreeTokens   *int64            `json:"freeTokens,omitempty"`
	ContextLimit int64             `json:"contextLimit,omitempty"`
	FreeColor    string            `json:"freeColor"`
	FreeEmoji    string            `json:"freeEmoji"`
}

// ContextCategory is one category of ContextBreakdown.
type ContextCategory struct {
	Name   string `json:"name"`
	Tokens int64  `json:"tokens"`
	Color  string `json:"color"`
	Emoji  string `json:"emoji"`
}

// MetadataContent carries the title.
type MetadataContent struct {
	Type  string `json:"type"`
	Title string `json:"title"`
}

// FlagContent is a flag. It is sent only in replays.
type FlagContent struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	ContentID string `json:"contentId"`
}

// HookStarted is hookActionStarted.
type HookStarted struct {
	Type       string `json:"type"`
	ID         string `json:"id"`
	Name       string `json:"name"`
	ActionType string `json:"actionType"`
}

// HookFinished is hookActionFinished. Status is an exit code.
type HookFinished struct {
	Type       string `json:"type"`
	ID         string `json:"id"`
	Name       string `json:"name"`
	ActionType string `json:"actionType"`
	Status     int    `json:"status"`
	Output     string `json:"output,omitempty"`
	Error      string `json:"error,omitempty"`
	Failed     bool   `json:"failed,omitempty"` // the hook failed
	ToolCallID string `json:"toolCallId,omitempty"`
}

func (HookStarted) isContent()     {}
func (HookFinished) isContent()    {}
func (FlagContent) isContent()     {}
func (TextContent) isContent()     {}
func (ImageContent) isContent()    {}
func (ProgressContent) isContent() {}
func (ReasonContent) isContent()   {}
func (ToolPrepare) isContent()     {}
func (ToolRun) isContent()         {}
func (ToolRunning) isContent()     {}
func (ToolCalled) isContent()      {}
func (TaskList) isContent()        {}
func (ToolRejected) isContent()    {}
func (UsageContent) isContent()    {}
func (MetadataContent) isContent() {}

// Details is a variant of a tool call's details (eca-protocol.md 7.4).
type Details interface{ isDetails() }

// FileChangeDetails has a diff without a file header.
type FileChangeDetails struct {
	Type         string `json:"type"`
	Path         string `json:"path"`
	Diff         string `json:"diff"`
	LinesAdded   int    `json:"linesAdded"`
	LinesRemoved int    `json:"linesRemoved"`
}

// ShellCommandDetails lists the commands of a shell line.
type ShellCommandDetails struct {
	Type       string         `json:"type"`
	Commands   []ShellCommand `json:"commands"`
	Background bool           `json:"background,omitempty"`
	Effects    []Effect       `json:"effects,omitempty"` // with a question: what the parts of the line would do
	Sandbox    *Sandbox       `json:"sandbox,omitempty"` // the sandbox in which it runs without a question
}

// Effect is what a part of a shell line would do: effect is reads, writes, runs or unknown.
type Effect struct {
	Command string `json:"command"` // empty: the line as a whole
	Effect  string `json:"effect"`
	Target  string `json:"target,omitempty"` // what it writes or runs
	Reason  string `json:"reason,omitempty"`
}

// Sandbox is how a command is confined: level is read-only or workspace, network none or all.
type Sandbox struct {
	Level   string `json:"level"`
	Network string `json:"network"`
}

// ShellCommand is one simple command.
type ShellCommand struct {
	Command     string   `json:"command"`
	Args        []string `json:"args"`
	ApprovalKey string   `json:"approvalKey,omitempty"`
	Remembered  bool     `json:"remembered"`
}

// TaskDetails is a chat's list of tasks; an empty list removes it from view.
type TaskDetails struct {
	Type       string `json:"type"`
	Tasks      []Task `json:"tasks"`
	InProgress []int  `json:"inProgressTaskIds"`
	Summary    struct {
		Done       int `json:"done"`
		InProgress int `json:"inProgress"`
		Pending    int `json:"pending"`
		Total      int `json:"total"`
	} `json:"summary"`
	ActiveSummary string `json:"activeSummary,omitempty"`
}

// Task is one thing to do.
type Task struct {
	ID          int    `json:"id"`
	Subject     string `json:"subject"`
	Description string `json:"description"`
	Status      string `json:"status"` // pending, in-progress or done
	Priority    string `json:"priority"`
	IsBlocked   bool   `json:"isBlocked"`
	BlockedBy   []int  `json:"blockedBy,omitempty"`
}

// TaskList shows the list of tasks without a call. It has the form of the end of a call.
type TaskList struct {
	Type    string      `json:"type"` // toolCalled
	Server  string      `json:"server"`
	Name    string      `json:"name"`
	Details TaskDetails `json:"details"`
}

// SubagentDetails names the chat of a subagent and its progress.
type SubagentDetails struct {
	Type           string `json:"type"`
	SubagentChatID string `json:"subagentChatId"`
	Model          string `json:"model"`
	AgentName      string `json:"agentName"`
	Step           int    `json:"step"`
	MaxSteps       int    `json:"maxSteps,omitempty"`
	Variant        string `json:"variant,omitempty"`
}

// JSONOutputsDetails has outputs that are JSON, pretty-printed.
type JSONOutputsDetails struct {
	Type  string   `json:"type"`
	JSONs []string `json:"jsons"`
}

func (FileChangeDetails) isDetails()   {}
func (ShellCommandDetails) isDetails() {}
func (JSONOutputsDetails) isDetails()  {}
func (TaskDetails) isDetails()         {}
func (SubagentDetails) isDetails()     {}
