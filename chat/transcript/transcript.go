// Package transcript folds the events of a chat into what a conversation shows: messages,
// reasoning, tool calls with their stages, notices, usage. Every face renders its items; what
// a new event means for users is decided here, once.
//
// A Fold turns each event into at most one Change: an item that began, or how an item is now.
// A Merger joins the changes of texts that grow, for those who show the past.
//
// The package does nothing but that: it reads no store and knows no protocol. It guarantees
// that the same events give the same changes, that the changes of an item have one ID and
// ascending revisions, and that an event of a kind which shows nothing gives no change.
package transcript

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Change is an item as an event has made it.
type Change struct {
	ID       event.Seq // of the item: the number of the event that began it
	Revision event.Seq // the number of the event that changed it last
	Time     time.Time // of the event
	Item     Item
}

// Began says whether the item is new.
func (c Change) Began() bool { return c.ID == c.Revision }

// Item is one of the types of this package that a conversation shows.
//
//sumtype:decl
type Item interface{ item() }

// Prompt is what the user said.
type Prompt struct{ event.UserMessage }

// Answer is a run of the model's text.
type Answer struct {
	Text  string // so far
	Piece string // what was added to it
}

// Reasoning is a block of the model's visible reasoning.
type Reasoning struct {
	ID        string
	Text      string // so far
	Piece     string // what was added to it
	Ended     bool
	ElapsedMS int64 // if it has ended
}

// Stage is how far a tool call is. Stages only ascend.
type Stage int

// Stages of tool calls.
const (
	Announced Stage = iota + 1 // the model is writing its arguments
	Judged                     // it is complete, and perhaps waits for the user
	Running
	Finished
	Rejected // it did not run, or was stopped
)

// Call is a tool call.
type Call struct {
	event.Tool
	Stage     Stage
	Summary   string             // as it was announced
	Written   string             // the arguments so far, as the model writes them
	Piece     string             // what was added to them
	Judgment  event.ToolJudged   // without a CallID if it was not judged
	Details   *event.Details     // of the judgment, or of the last update
	Updated   *event.Details     // of the last update alone; or nil
	Started   bool               // it ran
	Result    event.ToolFinished // if it is Finished
	Rejection event.ToolRejected // if it is Rejected
}

// Ended says whether the call has a result or was rejected.
func (c Call) Ended() bool { return c.Stage >= Finished }

// Arguments returns the arguments as a JSON object; an empty one until they are complete.
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
	Markdown bool // it is a document, not a line about what goes on
}

// Report says that a subagent in the background has ended.
type Report struct{ event.Report }

// Compaction says that a summary has replaced the conversation for the model.
type Compaction struct{ event.Compacted }

// Usage is what a request to a model took.
type Usage struct{ event.UsageReported }

// Turn is a turn, while it is answered and when it has ended.
type Turn struct {
	event.TurnStarted
	End *event.TurnFinished // nil while it is answered
}

// Title is a new title of the chat.
type Title struct{ Title string }

// Progress is what a running turn is doing.
type Progress struct{ event.Progress }

// Hook is an action of a hook.
type Hook struct {
	event.HookFinished // ID, Name and Action only until it has ended
	Ended              bool
}

// NoTasks says that the list of tasks is gone. Lists are shown with the calls that make them.
type NoTasks struct{}

// Flag is a mark of the user's.
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

// growing is a text that more is added to.
type growing struct {
	id   event.Seq
	text strings.Builder
}

// open is an item that later events may change.
type open[T any] struct {
	id    event.Seq
	value T
}

// Fold folds events into items. It is not safe for concurrent use.
type Fold struct {
	answer    *growing            // the run of text that goes on
	reasoning map[string]*growing // blocks that go on, by id
	calls     map[string]*openCall
	order     []string // of the calls
	turns     map[string]*open[Turn]
	hooks     map[string]*open[Hook]
}

// New returns a fold that knows of nothing yet.
func New() *Fold {
	return &Fold{
		reasoning: map[string]*growing{}, calls: map[string]*openCall{}, turns: map[string]*open[Turn]{}, hooks: map[string]*open[Hook]{},
	}
}

// Add returns what an event shows; ok is false if it shows nothing.
func (f *Fold) Add(e event.Event) (c Change, ok bool) {
	c = Change{ID: e.Seq, Revision: e.Seq, Time: e.Time}
	if _, text := e.Body.(event.TextDelta); !text && !event.InterleavesText(e.Body) {
		f.answer = nil
	}
	switch b := e.Body.(type) {
	case event.UserMessage:
		c.Item = Prompt{b}
	case event.TextDelta:
		if f.answer == nil {
			f.answer = &growing{id: e.Seq}
		}
		f.answer.text.WriteString(b.Text)
		c.ID, c.Item = f.answer.id, Answer{Text: f.answer.text.String(), Piece: b.Text}
	case event.ReasoningStarted, event.ReasoningDelta, event.ReasoningFinished:
		c.ID, c.Item = f.reason(e)
	case event.ToolProposed, event.ToolArgsDelta, event.ToolJudged, event.ToolStarted, event.ToolUpdated, event.ToolFinished, event.ToolRejected:
		c.ID, c.Item = f.call(e)
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
		f.turns[e.Turn] = &open[Turn]{e.Seq, Turn{TurnStarted: b}}
		c.Item = Turn{TurnStarted: b}
	case event.TurnFinished:
		t := open[Turn]{id: e.Seq}
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
		f.hooks[b.ID] = &open[Hook]{e.Seq, h}
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
		// for the model, for undoing, or for those who keep the log
	}
	return c, c.Item != nil
}

// endTurn forgets what cannot change any more.
func (f *Fold) endTurn(turn string) {
	delete(f.turns, turn)
	clear(f.reasoning)
	clear(f.calls)
	clear(f.hooks)
	f.order = nil
}

// reason folds an event of a block of reasoning.
func (f *Fold) reason(e event.Event) (event.Seq, Item) {
	block := func(id string) *growing {
		if f.reasoning[id] == nil {
			f.reasoning[id] = &growing{id: e.Seq}
		}
		return f.reasoning[id]
	}
	switch b := e.Body.(type) {
	case event.ReasoningStarted:
		delete(f.reasoning, b.ID) // one of before that has no end
		return block(b.ID).id, Reasoning{ID: b.ID}
	case event.ReasoningDelta:
		g := block(b.ID)
		g.text.WriteString(b.Text)
		return g.id, Reasoning{ID: b.ID, Text: g.text.String(), Piece: b.Text}
	case event.ReasoningFinished:
		g := block(b.ID)
		delete(f.reasoning, b.ID)
		return g.id, Reasoning{ID: b.ID, Text: g.text.String(), Ended: true, ElapsedMS: b.ElapsedMS}
	default:
		return 0, nil
	}
}
