// Package event defines what can happen in a chat: a closed set of events with a
// stable, versioned JSON form.
//
// The log of a chat (package chat, stored by chat/store) is a sequence of these
// events and the only truth about it: what a client is shown, what is replayed
// after a restart, and what the model is sent as history are all read from it.
//
// The package holds data and its JSON rules, no behaviour. It guarantees that
// decoding an encoded event yields the same event, and that an event of a kind this
// version does not know survives decoding and encoding unchanged (Unknown), so
// that daemons of different versions can share a store.
package event

import (
	"encoding/json"
	"time"
)

// Seq numbers the events of one chat from 1 upward. Volatile events have numbers too
// but are not stored, so a stored log may have gaps.
type Seq uint64

// Event is one entry of a chat's log.
type Event struct {
	Seq  Seq
	Turn string    // id of the turn it belongs to; empty outside of turns
	Time time.Time // when it was appended; UTC, millisecond precision
	Body Body

	// Begins says that a message begins here (see Begins). It is set on events that are
	// appended and kept by the store's index, not with the event.
	Begins bool
}

// Body is one of the event types of this package.
//
//sumtype:decl
type Body interface{ row() row }

// Kind names an event type in JSON.
type Kind string

// TurnStarted says that a turn, which began with its UserMessage, is being answered.
type TurnStarted struct {
	Model   string `json:"model"`             // full id, provider/model
	Agent   string `json:"agent"`             //
	Variant string `json:"variant,omitempty"` // reasoning variant, if any
	Trust   bool   `json:"trust,omitempty"`   // auto-approve was on when it started
	// Rights are those of the agent at that time (config.Rights); nil if they are not known.
	Rights *int `json:"rights,omitempty"`
}

// UserMessage is what the user said.
type UserMessage struct {
	ContentID string  `json:"contentId"`         // names the message for rollback and flags
	Text      string  `json:"text"`              // trimmed
	Context   []Block `json:"blocks,omitempty"`  // resolved contexts, as the model sees them
	Steer     bool    `json:"steer,omitempty"`   // said while the turn ran
	Command   bool    `json:"command,omitempty"` // a slash command: the model never sees it
	// Prompt is what the model is sent in place of Text, for commands that become a prompt.
	Prompt string `json:"prompt,omitempty"`
	// Dialog says that the message begins a dialog with eca or answers one.
	Dialog bool `json:"dialog,omitempty"`
}

// Block is a piece of context that travels with a user message: text, and an image if
// Data is set.
type Block struct {
	Label     string `json:"label"`
	Text      string `json:"text"`
	MediaType string `json:"mediaType,omitempty"` // of Data, e.g. image/png
	Data      []byte `json:"data,omitempty"`
}

// SystemPrompt is what the model is sent as its system prompt from here on, until the
// next one; without parts, the next request generates it again. It is kept so that a chat that
// goes on later sends the same bytes, which providers have in their caches.
type SystemPrompt struct {
	Agent string       `json:"agent,omitempty"` // it was made for
	Model string       `json:"model,omitempty"` // full id
	Parts []SystemPart `json:"parts,omitempty"`
}

// SystemPart is one block of a system prompt. The prompt is the texts of its parts in
// order, with a blank line between them.
type SystemPart struct {
	Name     string `json:"name"`     // for the user: what it is
	Section  string `json:"place"`    // where it comes from; what is reported as changed
	Category string `json:"category"` // of a Share
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

// ReasoningFinished closes a block of reasoning. Opaque is what the provider wants
// to get back with the history; API says which wire format it belongs to.
type ReasoningFinished struct {
	ID        string          `json:"id"`
	ElapsedMS int64           `json:"elapsedMs"`
	API       string          `json:"api,omitempty"`
	Opaque    json.RawMessage `json:"opaque,omitempty"`
}

// Tool identifies a tool call's target as clients see it.
type Tool struct {
	CallID string `json:"callId"` // unique within the chat
	Name   string `json:"name"`   // bare name, e.g. read_file
	Server string `json:"server"` // eca, an MCP server's name, or unknown
	Origin string `json:"origin"` // native, mcp, server or unknown
}

// ToolProposed says that the model has begun to write a tool call.
type ToolProposed struct {
	Tool
	Summary string `json:"summary,omitempty"`
}

// ToolArgsDelta is a piece of a call's JSON arguments as the model writes them.
type ToolArgsDelta struct {
	CallID string `json:"callId"`
	Text   string `json:"text"`
}

// ToolJudged says that a call is complete and whether it waits for the user. What
// follows tells the decision: ToolStarted, ToolRejected, or ToolFinished at once for a
// call that cannot run.
type ToolJudged struct {
	Tool
	Arguments json.RawMessage `json:"arguments"`          // a JSON object
	Manual    bool            `json:"manual,omitempty"`   // waits for the user
	Decision  string          `json:"decision,omitempty"` // of the policy: allow, ask or deny; empty for a call that cannot run
	Rule      string          `json:"rule,omitempty"`     // the rule that decided
	Reason    string          `json:"reason,omitempty"`   // why, for the user
	Offer     bool            `json:"offer,omitempty"`    // with the question: to let commands run in the sandbox of the workspace
	Summary   string          `json:"summary,omitempty"`
	Details   *Details        `json:"details,omitempty"`

	// NotRemembered says why the call would ask again although its approval was remembered.
	NotRemembered string `json:"notRemembered,omitempty"`

	// Opaque is what the provider's API gave with the call and wants back.
	API    string          `json:"api,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// ToolStarted says that a call runs.
type ToolStarted struct {
	CallID string `json:"callId"`
}

// ToolUpdated says how far a call is that runs.
type ToolUpdated struct {
	CallID  string   `json:"callId"`
	Details *Details `json:"details"`
}

// Image is a picture that a tool returned. It is in the log itself, so that the model
// is sent the same after a restart, wherever the file is by then.
type Image struct {
	MediaType string `json:"mediaType"` // image/png, image/jpeg, image/gif or image/webp
	Data      []byte `json:"data"`
}

// ToolFinished carries a call's result.
type ToolFinished struct {
	CallID    string   `json:"callId"`
	Outputs   []string `json:"outputs"`
	Images    []Image  `json:"images,omitempty"`
	Failed    bool     `json:"failed,omitempty"`
	ElapsedMS int64    `json:"elapsedMs"`
	Details   *Details `json:"details,omitempty"` // replaces the details of ToolJudged when set
	Context   []string `json:"context,omitempty"` // what hooks tell the model besides; it is not shown

	// Instructions are what the folders that the call touched want the model to know. They
	// are not shown.
	Instructions []Instructions `json:"instructions,omitempty"`
}

// Instructions are the text of a file for the model, in the frame that the model gets.
type Instructions struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// HookStarted says that an action of a hook runs.
type HookStarted struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"` // its type: shell
}

// HookFinished has the outcome of an action of a hook. Its changes are separate
// events.
type HookFinished struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Action string `json:"action"`
	Status int    `json:"status"`           // exit code
	Output string `json:"output,omitempty"` // what it printed, or its effects
	Error  string `json:"error,omitempty"`
	Failed bool   `json:"failed,omitempty"` // the script did not do its work
	CallID string `json:"callId,omitempty"` // the tool call it was about
}

// PromptAmended changes what the model is sent of the message before it.
type PromptAmended struct {
	Said    []Said   `json:"said,omitempty"`    // in place of it as a whole, but for its context
	Prompt  *string  `json:"prompt,omitempty"`  // in place of its text
	Context []string `json:"context,omitempty"` // added to it
}

// Said is one message of a prompt that somebody else wrote, as an MCP server.
type Said struct {
	Role   SaidBy  `json:"role"`
	Text   string  `json:"text"`
	Images []Image `json:"images,omitempty"`
}

// SaidBy is who says a message.
type SaidBy string

// Roles of messages.
const (
	SaidByUser  SaidBy = "user"
	SaidByModel SaidBy = "assistant"
)

// RejectReason says why a call did not run (eca-protocol 7.1, toolCallRejected).
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

// ToolRejected says that a call did not run, or was stopped while it ran.
type ToolRejected struct {
	CallID string       `json:"callId"`
	Reason RejectReason `json:"reason"`
	// Message is the text that the model gets, if it says more than that it was rejected.
	Message string `json:"message,omitempty"`
}

// UsageReported follows each model response, also those that are not part of the
// conversation.
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
	// Purpose is set for requests besides the conversation: title, compact, or subagent for
	// one in the chat of a subagent. They cost, but say nothing of how full the context is.
	Purpose string `json:"purpose,omitempty"`
}

// Share is an estimate of how many context tokens a category takes.
type Share struct {
	Category string `json:"category"`
	Tokens   int64  `json:"tokens"`
}

// TitleChanged names the chat.
type TitleChanged struct {
	Title string `json:"title"`
}

// Notice is text from eca itself, not from the model. The model never sees it.
type Notice struct {
	Text string `json:"text"`
	// Chat is the id of a chat that was made and is to be shown: a fork.
	Chat string `json:"chat,omitempty"`
	// Markdown says that the text is a document, as commands answer with, and not a line about
	// what goes on.
	Markdown bool `json:"markdown,omitempty"`
	// System names the system prompt that would be sent now in place of the one the chat
	// keeps: the user has seen the difference.
	System string `json:"system,omitempty"`
}

// Progress says what a running turn is doing. It is volatile: shown, not stored.
type Progress struct {
	Retry bool   `json:"retry,omitempty"` // it says that a request is repeated
	Text  string `json:"text"`
}

// FinishReason says how a turn ended.
type FinishReason string

// Ways for a turn to end.
const (
	FinishedDone        FinishReason = "done"
	FinishedStopped     FinishReason = "stopped"     // by the user
	FinishedRejected    FinishReason = "rejected"    // the user refused a tool call
	FinishedLoop        FinishReason = "loop"        // the model did the same again and again; the user is asked
	FinishedBudget      FinishReason = "budget"      // a limit of the budget is reached; the user is asked. See Err
	FinishedByHook      FinishReason = "hook"        // a hook ended it
	FinishedBlocked     FinishReason = "blocked"     // a hook ended it before the model was asked: it never sees the prompt
	FinishedFailed      FinishReason = "failed"      // see Err
	FinishedSuperseded  FinishReason = "superseded"  // a newer prompt took over; nothing is shown
	FinishedInterrupted FinishReason = "interrupted" // the daemon ended; if it was killed, written at the next load
)

// Incomplete says in which way the last answer of a turn that is done may not be what was asked for.
type Incomplete string

// Ways for an answer to be incomplete. The zero value is a complete answer.
const (
	IncompleteLength   Incomplete = "length"   // it was cut at the model's output limit
	IncompleteRefusal  Incomplete = "refusal"  // the model, or a filter of the provider, stopped it
	IncompleteEmpty    Incomplete = "empty"    // it has neither text nor calls
	IncompleteUnmarked Incomplete = "unmarked" // the provider did not say that this is all
)

// TurnFinished is the last event of its turn; there is exactly one.
type TurnFinished struct {
	Reason     FinishReason `json:"reason"`
	Incomplete Incomplete   `json:"incomplete,omitempty"`
	Err        string       `json:"err,omitempty"`
	// Retryable says that the model could not be reached or was busy: the same prompt may succeed later.
	Retryable bool `json:"retryable,omitempty"`
	Dialog    bool `json:"dialog,omitempty"` // eca has asked the user something; prompts answer it
}

// FileChanged says that a tool call is about to change a file. It is stored before the
// change is made.
type FileChanged struct {
	CallID string       `json:"callId"`
	Path   string       `json:"path"`             // absolute
	Before *FileVersion `json:"before,omitempty"` // nil: there was no file
	After  *FileVersion `json:"after,omitempty"`  // nil: the file is removed
	// MovedTo is set when the file or folder is renamed; Before and After are not.
	MovedTo string `json:"movedTo,omitempty"`
}

// FileVersion is a content that a file had. Hash names it in esrp/artifact; an empty
// Hash means that the content was not kept.
type FileVersion struct {
	Hash string `json:"hash,omitempty"`
	Mode uint32 `json:"mode,omitempty"` // permission bits; 0 keeps them
}

// UndoPoint says that the files of workspace folders were recorded before a tool call runs
// a command, so that what the command does to them can be undone. chat/undo has the
// record, also if the process dies before the command has ended.
type UndoPoint struct {
	CallID string       `json:"callId"`
	Roots  []UndoFolder `json:"roots"`
	// Ended is set in a second one, when the command has ended. It is missing if the turn
	// had ended before.
	Ended bool `json:"ended,omitempty"`
}

// UndoFolder is a workspace folder of an UndoPoint. Record names what chat/undo knows.
type UndoFolder struct {
	Path   string `json:"path"` // absolute, links resolved
	Record string `json:"record"`
}

// Flag is a mark that the user set after a message. The model never sees it.
type Flag struct {
	ContentID string `json:"contentId"`
	Text      string `json:"text"`
	After     Seq    `json:"after"` // the event that begins the message before it
}

// Compacted says that from here on the model is sent Summary in place of what was said
// before. The messages stay in the log.
type Compacted struct {
	Summary string `json:"summary"`
	Auto    bool   `json:"auto,omitempty"` // because the context was full; else the user asked
}

// Pruned says that from here on the model is not sent the results of some old calls any
// more, because the context was full.
type Pruned struct {
	CallIDs []string `json:"callIds"`
}

// Continued says that an answer broke off and the model is asked to go on with it.
type Continued struct {
	Text   string `json:"text,omitempty"`   // the notice for the user
	Prompt string `json:"prompt,omitempty"` // what the model is sent; empty if it said nothing that stays
}

// ImagesRefused says that from here on the images before it are not sent to a model any
// more, because its provider refused one of them.
type ImagesRefused struct {
	Model string `json:"model"` // full id
	Text  string `json:"text"`  // the notice for the user
}

// Truncated says that the messages from one on, or all, were removed. Their events are
// gone from the log.
type Truncated struct {
	ContentID string `json:"contentId,omitempty"` // empty: all messages
}

// TasksCleared says that the chat's list of tasks, all of them done, is gone: the user has
// asked for something new.
type TasksCleared struct{}

// Report is what a subagent that ran in the background has to say, for the model.
type Report struct {
	CallID string `json:"callId"` // that started it
	ChatID string `json:"chatId"` // its chat
	Agent  string `json:"agent"`
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
}

// Unknown is an event of a kind or version this program does not know.
type Unknown struct {
	Name Kind
	Raw  json.RawMessage
}
