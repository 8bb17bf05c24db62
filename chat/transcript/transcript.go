// Package transcript turns the events of a chat into the items that a conversation shows: messages,
// reasoning, tool calls with their stages, notices, usage. All user interfaces show these items,
// so this package alone decides what users see of an event.
//
// A Fold turns each event into at most one Change: a new item, or the new state of an item. A Merger
// joins the changes of a text that was streamed, for callers that show a finished part of a chat.
//
// The package guarantees that the same events yield the same changes, that all changes of an item
// have the same ID and ascending revisions, and that an event that shows nothing yields no change.
// It does not read the store and does not depend on any protocol.
package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Change is the state of an item after an event.
type Change struct {
	ID       event.Seq // identifies the item: the sequence number of its first event
	Revision event.Seq // sequence number of the event that made this change
	Time     time.Time // of that event
	Item     Item

	interleaves bool // the event may occur inside a run of text without ending it
}

// Began reports whether the item is new.
func (c Change) Began() bool { return c.ID == c.Revision }

// Item is something that a conversation shows: one of the types of this package.
//
//sumtype:decl
type Item interface{ item() }

// Prompt is a message of the user.
type Prompt struct{ event.UserMessage }

// Answer is a run of the model's text.
type Answer struct {
	Text  string // the text so far
	Piece string // the part of Text that this change added
}

// Reasoning is a block of the model's visible reasoning.
type Reasoning struct {
	ID        string
	Text      string // the text so far
	Piece     string // the part of Text that this change added
	Ended     bool
	ElapsedMS int64 // set once it has ended
}

// Stage is the stage of a tool call. The stage of a call never goes back.
type Stage int

// Stages of tool calls.
const (
	Announced Stage = iota + 1 // the model is writing its arguments
	Judged                     // the policy has decided; the call may wait for the user's approval
	Running
	Finished
	Rejected // it did not run, or was stopped while it ran
)

// Call is a tool call.
type Call struct {
	event.Tool
	Stage     Stage
	Summary   string             // from the announcement
	Written   string             // the arguments that the model has written so far
	Piece     string             // the part of Written that this change added
	Judgment  event.ToolJudged   // zero until the stage is Judged
	Details   *event.Details     // of the last update, or else of the judgment
	Updated   *event.Details     // of the last update; nil if the call was not updated
	Started   bool               // the call has begun to run
	Result    event.ToolFinished // set if the stage is Finished
	Rejection event.ToolRejected // set if the stage is Rejected
}

// Ended reports whether the call has a result or was rejected.
func (c Call) Ended() bool { return c.Stage >= Finished }

// Arguments returns the arguments as a JSON object. It is empty until they are complete.
func (c Call) Arguments() json.RawMessage {
	if c.Judgment.CallID == "" {
		return json.RawMessage("{}")
	}
	return c.Judgment.Arguments
}

// Subagent returns the subagent that works for the call, or nil.
func (c Call) Subagent() *event.Subagent {
	if c.Details == nil {
		return nil
	}
	return c.Details.Subagent
}

// Notice is text from eca itself.
type Notice struct {
	Text     string
	Markdown bool // a Markdown document, not a status line
}

// Report is the result of a background subagent that has ended.
type Report struct{ event.Report }

// Compaction is the summary that has replaced the conversation for the model.
type Compaction struct{ event.Compacted }

// Usage is the usage of a request to a model.
type Usage struct{ event.UsageReported }

// Turn is a turn that is being answered or has ended.
type Turn struct {
	event.TurnStarted
	End *event.TurnFinished // nil until the turn has ended
}

// InterruptedText marks a turn that was cut off when eca exited. Without it, a partial answer would
// look complete.
const InterruptedText = "Interrupted: eca ended before this turn was finished"

// CompactedText says that a summary has replaced the conversation, to callers that see only texts.
const CompactedText = "Chat compacted"

// Title is a new title of the chat.
type Title struct{ Title string }

// Progress is what a running turn is doing.
type Progress struct{ event.Progress }

// Hook is an action of a hook.
type Hook struct {
	event.HookFinished // until it has ended, only ID, Name and Action are set
	Ended              bool
}

// NoTasks means that the list of tasks was removed. The list itself is shown in the calls that
// change it.
type NoTasks struct{}

// Flag is a mark that the user set.
type Flag struct{ event.Flag }

func (Prompt) item()     {}
func (Answer) item()     {}
func (Reasoning) item()  {}
func (Call) item()       {}
func (Notice) item()     {}
func (Report) item()     {}
func (Compaction) item() {}
func (Usage) item()      {}
func (Turn) item()       {}
func (Title) item()      {}
func (Progress) item()   {}
func (Hook) item()       {}
func (NoTasks) item()    {}
func (Flag) item()       {}

// growingText is a text that is being streamed.
type growingText struct {
	id   event.Seq
	text strings.Builder
}

// openItem is an item that later events may change.
type openItem[T any] struct {
	id    event.Seq
	value T
}

// Fold turns events into items. It is not safe for concurrent use.
type Fold struct {
	answer    *growingText            // the current run of text; nil outside one
	reasoning map[string]*growingText // unfinished blocks, by id
	calls     map[string]*openCall
	order     []string // ids of calls, in the order in which they began
	turns     map[string]*openItem[Turn]
	hooks     map[string]*openItem[Hook]
	pieces    bool // see NewPieces
}

// New returns a Fold without items.
func New() *Fold {
	return &Fold{
		reasoning: map[string]*growingText{}, calls: map[string]*openCall{}, turns: map[string]*openItem[Turn]{}, hooks: map[string]*openItem[Hook]{},
	}
}

// NewPieces returns a Fold whose answers and reasoning have only a Piece, and no Text: it needs no memory
// for a text that grows.
func NewPieces() *Fold {
	f := New()
	f.pieces = true
	return f
}

// grow adds a piece to a text.
func (f *Fold) grow(g *growingText, piece string) {
	if !f.pieces {
		g.text.WriteString(piece)
	}
}

// Add returns the change that an event makes; ok is false if the event shows nothing.
func (f *Fold) Add(e event.Event) (c Change, ok bool) {
	c = Change{ID: e.Seq, Revision: e.Seq, Time: e.Time, interleaves: event.InterleavesText(e.Body)}
	if _, text := e.Body.(event.TextDelta); !text && !c.interleaves {
		f.answer = nil
	}
	switch b := e.Body.(type) {
	case event.UserMessage:
		c.Item = Prompt{b}
	case event.TextDelta:
		if f.answer == nil {
			f.answer = &growingText{id: e.Seq}
		}
		f.grow(f.answer, b.Text)
		c.ID, c.Item = f.answer.id, Answer{Text: f.answer.text.String(), Piece: b.Text}
	case event.ReasoningStarted, event.ReasoningDelta, event.ReasoningFinished:
		c.ID, c.Item = f.addReasoning(e)
	case event.ToolProposed, event.ToolArgsDelta, event.ToolJudged, event.ToolStarted, event.ToolUpdated, event.ToolFinished, event.ToolRejected:
		c.ID, c.Item = f.addCallEvent(e)
	case event.Notice:
		c.Item = Notice{Text: b.Text, Markdown: b.Markdown}
	case event.Continued:
		if b.Text != "" {
			c.Item = Notice{Text: b.Text}
		}
	case event.ImagesRefused:
		c.Item = Notice{Text: b.Text}
	case event.Report:
		c.Item = Report{b}
	case event.Compacted:
		c.Item = Compaction{b}
	case event.UsageReported:
		c.Item = Usage{b}
	case event.TurnStarted:
		f.turns[e.Turn] = &openItem[Turn]{e.Seq, Turn{TurnStarted: b}}
		c.Item = Turn{TurnStarted: b}
	case event.TurnFinished:
		t := openItem[Turn]{id: e.Seq}
		if known := f.turns[e.Turn]; known != nil {
			t = *known
		}
		t.value.End = &b
		c.ID, c.Item = t.id, t.value
		f.endTurn(e.Turn)
	case event.TitleChanged:
		c.Item = Title{b.Title}
	case event.Progress:
		c.Item = Progress{b}
	case event.HookStarted:
		h := Hook{HookFinished: event.HookFinished{ID: b.ID, Name: b.Name, Action: b.Action}}
		f.hooks[b.ID] = &openItem[Hook]{e.Seq, h}
		c.Item = h
	case event.HookFinished:
		if known := f.hooks[b.ID]; known != nil {
			c.ID = known.id
			delete(f.hooks, b.ID)
		}
		c.Item = Hook{HookFinished: b, Ended: true}
	case event.TasksCleared:
		c.Item = NoTasks{}
	case event.Flag:
		c.Item = Flag{b}
	case event.FileChanged, event.UndoPoint, event.Pruned, event.SystemPrompt, event.PromptAmended, event.Truncated, event.Unknown:
		// not shown: for the model, for undo, or for the store
	}
	return c, c.Item != nil
}

// endTurn drops the items that cannot change after the end of a turn.
func (f *Fold) endTurn(turn string) {
	delete(f.turns, turn)
	clear(f.reasoning)
	clear(f.calls)
	clear(f.hooks)
	f.order = nil
}

// addReasoning adds an event of a block of reasoning.
func (f *Fold) addReasoning(e event.Event) (event.Seq, Item) {
	block := func(id string) *growingText {
		if f.reasoning[id] == nil {
			f.reasoning[id] = &growingText{id: e.Seq}
		}
		return f.reasoning[id]
	}
	switch b := e.Body.(type) {
	case event.ReasoningStarted:
		delete(f.reasoning, b.ID) // discard an unfinished block with the same id
		return block(b.ID).id, Reasoning{ID: b.ID}
	case event.ReasoningDelta:
		g := block(b.ID)
		f.grow(g, b.Text)
		return g.id, Reasoning{ID: b.ID, Text: g.text.String(), Piece: b.Text}
	case event.ReasoningFinished:
		g := block(b.ID)
		delete(f.reasoning, b.ID)
		return g.id, Reasoning{ID: b.ID, Text: g.text.String(), Ended: true, ElapsedMS: b.ElapsedMS}
	default:
		return 0, nil
	}
}
