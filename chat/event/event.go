// Package event defines the events of a chat: a closed set of types with a stable,
// versioned JSON form.
//
// The log of a chat (chat/eventlog, stored by chat/store) is a sequence of these
// events and the only source of truth: what clients show, what is replayed after a
// restart, and the history that the model gets are all derived from it.
//
// The package contains data types and their JSON encoding, no behaviour. It guarantees
// that decoding an encoded event yields the same event, and that an event of an unknown
// kind survives decoding and encoding unchanged (Unknown), so that daemons of different
// versions can share a store.
package event

import (
	"encoding/json"
	"time"
)

// Seq is the sequence number of an event in its chat, from 1 upward. Volatile events have
// sequence numbers too, but are not stored, so a stored log may have gaps.
type Seq uint64

// Event is one entry of a chat's log.
type Event struct {
	Seq  Seq
	Turn string    // id of the turn that the event belongs to; empty outside turns
	Time time.Time // when it was appended; UTC, millisecond precision
	Body Body

	// Begins is set on an event that is being appended if it begins a message (see the function
	// Begins). The store keeps that in its index of messages, not with the event.
	Begins bool
}

// Body is one of the event types of this package. The method row returns the properties of the
// type; those of most types are in table.go.
//
//sumtype:decl
type Body interface{ row() properties }

// Kind names an event type in JSON.
type Kind string

// TurnStarted follows the UserMessage of a turn: eca begins to answer it.
type TurnStarted struct {
	Model   string `json:"model"`             // full id, provider/model
	Agent   string `json:"agent"`             // name of the agent
	Variant string `json:"variant,omitempty"` // reasoning variant, if any
	Trust   bool   `json:"trust,omitempty"`   // auto-approve was on when the turn started
	// Rights are the agent's rights when the turn started (config.Rights); nil if unknown.
	Rights *int `json:"rights,omitempty"`
}

// UserMessage is a message of the user.
type UserMessage struct {
	ContentID string  `json:"contentId"`         // id of the message, for rollback and flags
	Text      string  `json:"text"`              // trimmed
	Context   []Block `json:"blocks,omitempty"`  // resolved contexts, as the model sees them
	Steer     bool    `json:"steer,omitempty"`   // written while the turn ran
	Command   bool    `json:"command,omitempty"` // a slash command: the model does not see Text
	// Prompt replaces Text for the model, for commands that become a prompt.
	Prompt string `json:"prompt,omitempty"`
	// Dialog is set if the message begins a dialog with eca or answers its question.
	Dialog bool `json:"dialog,omitempty"`
}

// Block is a piece of context of a user message: text, and an image if Data is set.
type Block struct {
	Label     string `json:"label"`
	Text      string `json:"text"`
	MediaType string `json:"mediaType,omitempty"` // of Data, e.g. image/png
	Data      []byte `json:"data,omitempty"`
}

// SystemPrompt pins the system prompt from here on, until the next event of this type. A chat that
// is continued later sends the same bytes, which providers may still have in their caches. Without
// parts, the next request generates the system prompt again.
type SystemPrompt struct {
	Agent string       `json:"agent,omitempty"` // the agent that it was generated for
	Model string       `json:"model,omitempty"` // full id of the model that it was generated for
	Parts []SystemPart `json:"parts,omitempty"`
}

// SystemPart is one block of a system prompt. The prompt consists of the texts of its parts in
// order, with a blank line between them.
type SystemPart struct {
	Name     string `json:"name"`     // a path or a description, for the user
	Section  string `json:"place"`    // name of the section, as notices about changes report it
	Category string `json:"category"` // the Share that it counts for
	Text     string `json:"text"`
}

// TextDelta is a piece of the model's answer.
type TextDelta struct {
	Text string `json:"text"`
}

// ReasoningStarted opens a block of reasoning.
type ReasoningStarted struct {
	ID string `json:"id"`
}

// ReasoningDelta is a piece of visible reasoning.
type ReasoningDelta struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// ReasoningFinished closes a block of reasoning. Opaque is provider data that must be sent
// back with the history; API is the wire format that it belongs to.
type ReasoningFinished struct {
	ID        string          `json:"id"`
	ElapsedMS int64           `json:"elapsedMs"`
	API       string          `json:"api,omitempty"`
	Opaque    json.RawMessage `json:"opaque,omitempty"`
}

// Tool identifies a tool call and its tool, as clients see them.
type Tool struct {
	CallID string `json:"callId"` // unique within the chat
	Name   string `json:"name"`   // bare name, e.g. read_file
	Server string `json:"server"` // eca, an MCP server's name, or unknown
	Origin string `json:"origin"` // native, mcp, server or unknown
}

// ToolProposed is the first event of a tool call: the model has begun to write it.
type ToolProposed struct {
	Tool
	Summary string `json:"summary,omitempty"`
}

// ToolArgsDelta is a piece of a call's JSON arguments as the model writes them.
type ToolArgsDelta struct {
	CallID string `json:"callId"`
	Text   string `json:"text"`
}

// ToolJudged follows the complete arguments of a call: the policy has decided about it. ToolStarted
// or ToolRejected follows; for a call that cannot run, ToolFinished follows immediately.
type ToolJudged struct {
	Tool
	Arguments json.RawMessage `json:"arguments"`          // a JSON object
	Manual    bool            `json:"manual,omitempty"`   // the call waits for the user's approval
	Decision  string          `json:"decision,omitempty"` // of the policy: allow, ask or deny (also for a call that cannot run); empty in imported and older chats
	Rule      string          `json:"rule,omitempty"`     // the rule that decided
	Reason    string          `json:"reason,omitempty"`   // the reason for the decision, for the user
	Offer     bool            `json:"offer,omitempty"`    // the question also offers to run commands in the workspace sandbox without asking
	Summary   string          `json:"summary,omitempty"`
	Details   *Details        `json:"details,omitempty"`

	// NotRemembered is the reason why the same call would ask again even if the user chose to
	// remember the approval; empty if it would not.
	NotRemembered string `json:"notRemembered,omitempty"`

	// Opaque is provider data that must be sent back with the call; API is its wire format.
	API    string          `json:"api,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// ToolStarted is emitted when a call begins to run.
type ToolStarted struct {
	CallID string `json:"callId"`
}

// ToolUpdated updates the details of a running call.
type ToolUpdated struct {
	CallID  string   `json:"callId"`
	Details *Details `json:"details"`
}

// Image is an image that a tool returned or the model generated. The log contains its data, so that
// the model gets the same image after a restart, even if the file is gone.
type Image struct {
	MediaType string `json:"mediaType"` // image/png, image/jpeg, image/gif or image/webp
	Data      []byte `json:"data"`
}

// ToolFinished is the result of a call.
type ToolFinished struct {
	CallID    string   `json:"callId"`
	Outputs   []string `json:"outputs"`
	Images    []Image  `json:"images,omitempty"`
	Failed    bool     `json:"failed,omitempty"`
	ElapsedMS int64    `json:"elapsedMs"`
	Details   *Details `json:"details,omitempty"` // replaces the details of ToolJudged when set
	Context   []string `json:"context,omitempty"` // additional texts of hooks for the model; not shown

	// Opaque is provider data that must be sent back, for a call that the provider ran itself; see
	// ToolJudged.
	Opaque json.RawMessage `json:"opaque,omitempty"`

	Stops []SandboxStop `json:"stops,omitempty"` // accesses that the sandbox denied to the command

	// Instructions are the instruction files (AGENTS.md) of the folders that the call touched, for
	// the model. They are not shown.
	Instructions []Instructions `json:"instructions,omitempty"`
}

// SandboxStop is an access that the sandbox denied to a command.
type SandboxStop struct {
	Text    string   `json:"text"`              // such as "connection to a.example"
	Hosts   []string `json:"hosts,omitempty"`   // that the command could not connect to
	Port    string   `json:"port,omitempty"`    // on this machine that it could not connect to
	Folder  string   `json:"folder,omitempty"`  // in which it could not write a file
	Decided bool     `json:"decided,omitempty"` // the user has decided about it
	Rerun   bool     `json:"again,omitempty"`   // the user let the command run again
}

// Instructions is an instruction file. Text is what the model gets, including the enclosing tags.
type Instructions struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// HookStarted is emitted when an action of a hook begins to run.
type HookStarted struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"` // type of the action: shell
}

// HookFinished is the outcome of an action of a hook. If the hook changes the turn, separate events
// for that follow.
type HookFinished struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"`
	Status int    `json:"status"`           // exit code
	Output string `json:"output,omitempty"` // its standard output, or a description of its effects
	Error  string `json:"error,omitempty"`
	Failed bool   `json:"failed,omitempty"` // the script failed
	CallID string `json:"callId,omitempty"` // the tool call that the hook ran for
}

// PromptAmended changes what the model gets in place of the preceding user message.
type PromptAmended struct {
	Said    []Said   `json:"said,omitempty"`    // messages that replace it, except its context
	Prompt  *string  `json:"prompt,omitempty"`  // replaces its text
	Context []string `json:"context,omitempty"` // texts of hooks that are added to it
}

// Said is one message of a prompt that the user did not write, such as a prompt of an MCP server.
type Said struct {
	Role   SaidBy  `json:"role"`
	Text   string  `json:"text"`
	Images []Image `json:"images,omitempty"`
}

// SaidBy is the role of a message.
type SaidBy string

// Roles of messages.
const (
	SaidByUser  SaidBy = "user"
	SaidByModel SaidBy = "assistant"
)

// RejectReason is the reason why a call did not run or was stopped (eca-protocol.md 7.1, toolCallRejected).
type RejectReason string

// Reasons for a rejection.
const (
	RejectedByUser   RejectReason = "userChoiceDeny"
	RejectedByConfig RejectReason = "userConfigDeny"
	RejectedByStop   RejectReason = "userPromptStop"
	RejectedByHook   RejectReason = "hookRejected"
	StoppedByHook    RejectReason = "hookStopped" // a hook ended the turn
	Interrupted      RejectReason = "interrupted" // the turn failed or the daemon ended while the call was pending
)

// ToolRejected is the end of a call that did not run, or was stopped while it ran.
type ToolRejected struct {
	CallID string       `json:"callId"`
	Reason RejectReason `json:"reason"`
	// Message explains the rejection to the model; empty means a standard text for Reason.
	Message string `json:"message,omitempty"`
	// Unasked is set if the call needed the user's approval, and there was no user to ask.
	Unasked bool `json:"unasked,omitempty"`
}

// UsageReported follows each model response, including responses to side requests, which are not part
// of the conversation.
type UsageReported struct {
	InputTokens      int64    `json:"input"` // without cached tokens
	OutputTokens     int64    `json:"output"`
	CacheReadTokens  int64    `json:"cacheRead,omitempty"`
	CacheWriteTokens int64    `json:"cacheWrite,omitempty"`
	Cost             *float64 `json:"cost,omitempty"`      // of this response; nil when the price is unknown
	TotalCost        *float64 `json:"totalCost,omitempty"` // of the chat so far
	ContextLimit     int64    `json:"contextLimit,omitempty"`
	OutputLimit      int64    `json:"outputLimit,omitempty"`
	Share            []Share  `json:"share,omitempty"` // estimated use of the context by category
	// Purpose is set for side requests (title, compact, ...) and for requests in the chat of a
	// subagent (subagent). They cost money, but do not fill this chat's context.
	Purpose string `json:"purpose,omitempty"`
}

// Share is the estimated number of context tokens that a category takes.
type Share struct {
	Category string `json:"category"`
	Tokens   int64  `json:"tokens"`
}

// TitleChanged sets the title of the chat.
type TitleChanged struct {
	Title string `json:"title"`
}

// Notice is text from eca itself, not from the model. The model never sees it.
type Notice struct {
	Text string `json:"text"`
	// Chat is the id of a new fork of this chat, which clients should show.
	Chat string `json:"chat,omitempty"`
	// Markdown is set if the text is a Markdown document, such as the output of a command, and not
	// a status line.
	Markdown bool `json:"markdown,omitempty"`
	// System is set in a notice that the pinned system prompt is out of date: it is the digest of
	// the prompt that eca would generate now. The user gets one notice for each digest.
	System string `json:"system,omitempty"`
}

// Progress describes what a running turn is doing. It is volatile: shown, not stored.
type Progress struct {
	Retry bool   `json:"retry,omitempty"` // a failed request is being retried
	Text  string `json:"text"`
}

// FinishReason is the reason why a turn ended.
type FinishReason string

// Reasons for the end of a turn.
const (
	FinishedDone        FinishReason = "done"
	FinishedStopped     FinishReason = "stopped"     // by the user
	FinishedRejected    FinishReason = "rejected"    // the user rejected a tool call
	FinishedLoop        FinishReason = "loop"        // the model repeated the same calls; the user is asked what to do
	FinishedBudget      FinishReason = "budget"      // a budget limit was reached; the user is asked what to do. See Err
	FinishedByHook      FinishReason = "hook"        // a hook ended it
	FinishedBlocked     FinishReason = "blocked"     // a hook ended it before the first request; later requests omit the prompt
	FinishedFailed      FinishReason = "failed"      // see Err
	FinishedSuperseded  FinishReason = "superseded"  // by a newer prompt; clients show no reason
	FinishedInterrupted FinishReason = "interrupted" // the daemon exited; if it was killed, this is written when the chat is next loaded
)

// Incomplete is the reason why the last answer of a finished turn may be incomplete.
type Incomplete string

// Reasons for an incomplete answer. The zero value means a complete answer.
const (
	IncompleteLength   Incomplete = "length"   // cut off at the model's output limit
	IncompleteRefusal  Incomplete = "refusal"  // stopped by the model or by a filter of the provider
	IncompleteEmpty    Incomplete = "empty"    // neither text nor tool calls
	IncompleteUnmarked Incomplete = "unmarked" // the provider did not mark it as complete
)

// TurnFinished is the last event of its turn; there is exactly one.
type TurnFinished struct {
	Reason     FinishReason `json:"reason"`
	Incomplete Incomplete   `json:"incomplete,omitempty"`
	Err        string       `json:"err,omitempty"`
	// Retryable is set if the model could not be reached or was busy: the same prompt may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	Dialog    bool `json:"dialog,omitempty"` // a dialog is open: eca has asked a question, and the next prompt answers it
}

// FileChanged is emitted before a tool call changes a file. It is stored before the change is made.
type FileChanged struct {
	CallID string       `json:"callId"`
	Path   string       `json:"path"`             // absolute
	Before *FileVersion `json:"before,omitempty"` // nil: the file did not exist
	After  *FileVersion `json:"after,omitempty"`  // nil: the file is removed
	// MovedTo is set if the file or folder is renamed; Before and After are nil then.
	MovedTo string `json:"movedTo,omitempty"`
}

// FileVersion is a version of a file's content. Hash is its key in esrp/artifact; an empty
// Hash means that the content was not saved.
type FileVersion struct {
	Hash string `json:"hash,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // permission bits; 0 means unchanged
}

// UndoPoint is emitted before a tool call runs a command, after chat/undo has recorded the files of
// the workspace folders, so that a rollback can undo the command. A second UndoPoint with Ended set
// follows when the command has ended. chat/undo can restore the files without the second one too,
// for example after a crash.
type UndoPoint struct {
	CallID string       `json:"callId"`
	Roots  []UndoFolder `json:"roots"`
	// Ended is set in the UndoPoint after the command. This second UndoPoint is missing if the turn ended
	// first.
	Ended bool `json:"ended,omitempty"`
}

// UndoFolder is a workspace folder of an UndoPoint.
type UndoFolder struct {
	Path  string `json:"path"`   // absolute, symlinks resolved
	Point string `json:"record"` // the name of its point in chat/undo
}

// Flag is a mark that the user set after a message. The model never sees it.
type Flag struct {
	ContentID string `json:"contentId"`
	Text      string `json:"text"`
	After     Seq    `json:"after"` // the event that begins the message before the flag
}

// Compacted replaces all earlier messages with Summary in later requests to the model. The messages
// stay in the log.
type Compacted struct {
	Summary string `json:"summary"`
	Auto    bool   `json:"auto,omitempty"` // eca compacted because the context was full; otherwise the user asked for it
}

// Pruned removes the results of some old calls from later requests to the model, because the context
// was full.
type Pruned struct {
	CallIDs []string `json:"callIds"`
}

// Continued is emitted when an answer broke off and the model is asked to continue it.
type Continued struct {
	Text   string `json:"text,omitempty"`   // the notice for the user
	Prompt string `json:"prompt,omitempty"` // the request to continue; empty if the answer was discarded, so the same prompt is sent again
}

// ImagesRefused removes all earlier images from later requests to one model, because its provider
// refused one of them.
type ImagesRefused struct {
	Model string `json:"model"` // full id
	Text  string `json:"text"`  // the notice for the user
}

// Truncated records that messages were removed from the log, from one message to the end.
type Truncated struct {
	ContentID string `json:"contentId,omitempty"` // id of the first removed message; empty: all messages were removed
}

// TasksCleared removes the chat's task list, because the user sent a new prompt after all tasks were
// done.
type TasksCleared struct{}

// Report is the result of a background subagent, for the model.
type Report struct {
	CallID string `json:"callId"` // the call that started the subagent
	ChatID string `json:"chatId"` // the subagent's chat
	Agent  string `json:"agent"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Unknown is an event of a kind or version that this program does not know.
type Unknown struct {
	Name Kind
	Raw  json.RawMessage
}
