// Package llm is what eca knows about language models in general: a request, the
// deltas of an answer, usage, and typed errors. Each wire format lives in a
// package below it (llm/openai, llm/cassette, ...) and implements Model.
//
// What is the same for all of them is here too: the retry policy (retry.go, retryrule.go), the
// time limits of a request (limits.go) and the readers of streams (sse.go, ndjson.go; see internal/sse).
// Providers never retry on their own.
//
// Messages to users about providers are in provider.go. The package knows nothing of
// chats, of what tools do, or of where the configuration comes from.
package llm

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"iter"
	"time"
)

// Model answers requests.
//
// Stream yields deltas in order. It ends after a StopDelta, or with exactly one
// error (an *Error unless ctx ended) as its last element. When ctx ends or the
// consumer stops iterating, the request to the provider is closed at once.
type Model interface {
	Stream(ctx context.Context, req Request) iter.Seq2[Delta, error]
}

// Reader is a Model that knows whose reasoning it can send back: APIs take none that
// another one made.
type Reader interface {
	// Reads says whether reasoning marked with api (Reasoning.API) can be sent to a model.
	Reads(model, api string) bool
}

// Purpose tells scripted models and logs what a request is for.
type Purpose string

// Purposes of requests.
const (
	PurposeTurn       Purpose = "turn"
	PurposeTitle      Purpose = "title"
	PurposeCompact    Purpose = "compact"
	PurposeRewrite    Purpose = "rewrite"
	PurposeCompletion Purpose = "completion"
	PurposeSampling   Purpose = "sampling" // a question of an MCP server
)

// Request is one model call, independent of any wire format.
type Request struct {
	Purpose Purpose
	Model   string // the provider's name for the model
	System  string
	// SystemTail follows System. It may differ from request to request, so it is not part
	// of what caches are asked to keep, where they are asked.
	SystemTail string
	Messages   []Message
	Tools      []ToolSpec
	Server     ServerTools       // what the provider may run besides
	MaxOutput  int64             // tokens; 0 leaves it to the provider
	Context    int64             // tokens the model takes together; 0 is unknown
	Reasoning  bool              // the model can reason and should
	CacheKey   string            // stable per chat; providers may use it for prompt caching
	Retention  Retention         // how long the prompt should stay cached; see WithRetention
	Headers    map[string]string // of this model, beyond its provider's
	Extra      map[string]any    // merged into the body last: extraPayload and variants
	Origin     Origin            // the caller; for records only, never sent to a provider
	Patience   time.Duration     // bounds RetryPolicy.Total for this request; 0 does not
}

// Origin says for whom a request is made. All of it may be empty.
type Origin struct {
	Chat   string
	Parent string // the chat that a subagent's chat works for
	Turn   string // of the chat; a subagent's is named like the call that it works for
	Agent  string
}

// Instructions returns the system prompt as one text, for APIs that take one.
func (r Request) Instructions() string {
	if r.System == "" || r.SystemTail == "" {
		return r.System + r.SystemTail
	}
	return r.System + "\n\n" + r.SystemTail
}

// Role of a message.
type Role string

// Roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one entry of the history. Tool results are parts of a User message
// that follows the Assistant message with the calls.
type Message struct {
	Role  Role
	Parts []Part
}

// Part is Text, Image, Reasoning, ToolCall, ToolResult or ServerCall.
type Part interface{ isPart() }

// Text is plain text of either role.
type Text struct{ Text string }

// Image is a picture from the user, from a tool, or that a model made.
type Image struct {
	MediaType string `json:"mediaType"` // image/png, image/jpeg, image/gif or image/webp
	Data      []byte `json:"data"`
}

// DataURL returns the image as a data: URL.
func (i Image) DataURL() string {
	return "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// ImagesOfResult begins the text before images that follow the result they belong to
// : not every API takes them inside.
const ImagesOfResult = "Images of the result of "

// ImagesLabel is that text for the result of a call.
func ImagesLabel(callID string) string { return ImagesOfResult + callID + ":" }

// Placeholder is the text that a model gets in place of an image it cannot take.
func (i Image) Placeholder() string {
	return "[An image (" + i.MediaType + ") was left out: you cannot see images of this kind.]"
}

// Reasoning is the model's earlier reasoning. Opaque is what the provider gave
// with it and wants back; it is sent only to the API that made it.
type Reasoning struct {
	ID     string
	Text   string
	API    string
	Opaque json.RawMessage
}

// ToolCall is a call the model made. Arguments is a JSON object. Opaque is what the
// provider gave with it and wants back, as in Reasoning.
type ToolCall struct {
	ID        string
	Name      string
	Arguments json.RawMessage
	API       string
	Opaque    json.RawMessage
}

// ToolResult answers the ToolCall with the same id.
type ToolResult struct {
	ID     string
	Text   string
	Failed bool
	Images []Image
}

func (Text) isPart()       {}
func (Image) isPart()      {}
func (Reasoning) isPart()  {}
func (ToolCall) isPart()   {}
func (ToolResult) isPart() {}
func (ServerCall) isPart() {}

// ToolSpec describes a tool to the model. Schema is a JSON Schema object.
type ToolSpec struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// DeltaKind says which fields of a Delta are set.
type DeltaKind uint8

// Kinds of deltas, with the fields they set.
const (
	_              DeltaKind = iota
	TextDelta                // Text
	ReasoningStart           // ID
	ReasoningDelta           // ID, Text
	ReasoningEnd             // ID, API, Opaque
	ToolStart                // ID, Name
	ToolArgs                 // ID, Text
	ToolEnd                  // ID, Text: the whole arguments as the model wrote them; API, Opaque
	UsageDelta               // Usage; at most once
	StopDelta                // Stop
	RetryDelta               // Err, Retry: the request failed and will be repeated
	AgainDelta               // the wait before that is over: the request is made again
	ServerStart              // ID, Name: the provider begins a call of a tool of its own
	ServerRun                // ID, Text: the arguments, a JSON object; API
	ServerEnd                // ID, Opaque, Result; after ServerRun
	SourceDelta              // Text, Name: the address and the title of a page that the answer cites
)

// Delta is one step of an answer. It is a flat value so that streaming does not
// allocate per delta.
type Delta struct {
	Kind   DeltaKind
	ID     string
	Name   string
	Text   string
	API    string
	Opaque json.RawMessage
	Result *ServerResult
	Usage  Usage
	Stop   StopReason
	Retry  RetryInfo
	Err    *Error
}

// StopReason says why the model stopped.
type StopReason string

// Reasons to stop.
const (
	StopEnd       StopReason = "end"
	StopToolCalls StopReason = "tool_calls"
	StopLength    StopReason = "length"
	StopRefusal   StopReason = "refusal"
	StopPaused    StopReason = "paused"   // by the provider, in its own calls: it goes on when the history is sent again
	StopUnmarked  StopReason = "unmarked" // something was said, but not that this is all
)

// Usage counts tokens of one response. Input does not include cached tokens.
type Usage struct {
	Input, Output, CacheRead, CacheWrite int64
	CacheWriteLong                       int64 // of CacheWrite, those that stay for an hour and cost more
	WebSearches                          int64 // by the provider, which cost extra; not tokens
}

// Total is the context the request and its answer occupy.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }
