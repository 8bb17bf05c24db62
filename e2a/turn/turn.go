package turn

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
)

// Request is a prompt with the settings for its answer.
type Request struct {
	Session string // id; empty starts a new session
	Blocks  []e2a.Block
	Text    string // used if no block contains text
	Settings

	// NoDialog refuses /login, whose next prompts may be keys: see chat.Prompt.NoDialog.
	NoDialog bool
}

// Viewer shows the items of a chat.
type Viewer interface {
	// Show shows the current state of an item. Prompts are shown only by Service.History.
	Show(c transcript.Change) error
	// Ask shows a question of a running turn.
	Ask(q Question) error
}

// Turn is a turn that was started. Follow must be called.
type Turn struct {
	Session string // id

	s         *Service
	session   *chat.Session
	id        string
	from      event.Seq
	notice    string // lists the parts of the prompt that were left out
	questions chan Question
	ctx       context.Context
	cancel    context.CancelFunc
}

// Outcome is the outcome of a turn.
type Outcome struct {
	Reason  StopReason
	Content string // the text of the answer
	Notice  string // the last message of eca itself; if Content is empty, it explains why
	Usage   Usage
}

// StopReason is why a turn stopped. The values are those of ACP, and three that eca adds: rejected,
// loop and budget.
type StopReason string

// The reasons why a turn stopped.
const (
	EndTurn   StopReason = "end_turn"
	Cancelled StopReason = "cancelled"
	Rejected  StopReason = "rejected"   // the user refused a call
	Loop      StopReason = "loop"       // the model repeated itself
	Budget    StopReason = "budget"     // a limit of the user's budget was reached
	MaxTokens StopReason = "max_tokens" // the answer was cut at the model's output limit
	Refusal   StopReason = "refusal"    // the model refused to continue, or its provider filtered the answer
)

// Usage is the usage of all requests of a turn, in the form of E2A.
type Usage struct {
	CacheReadTokens  int64    `json:"cache_read_tokens"`
	CacheWriteTokens int64    `json:"cache_write_tokens"`
	Cost             *float64 `json:"cost_usd"` // nil when a price is unknown
	InputTokens      int64    `json:"input_tokens"`
	OutputTokens     int64    `json:"output_tokens"`
}

// Start submits a prompt. It returns when the session has accepted the prompt, so that the turns of
// later prompts follow this one. If ctx ends, the turn is stopped.
func (s *Service) Start(ctx context.Context, r Request) (*Turn, error) {
	in, err := readPrompt(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := checkID(r.Session); r.Session != "" && err != nil {
		return nil, err
	}
	var meta chat.Meta
	change, err := s.change(ctx, r.Settings)
	if err != nil {
		return nil, err
	}
	change(&meta)
	s.ready()
	session, _, err := s.host.Engine().Open(ctx, r.Session)
	if err != nil {
		return nil, err
	}
	t := &Turn{
		Session: session.ID(), s: s, session: session, id: s.newID(), from: session.Next(), notice: in.notice(), questions: make(chan Question),
	}
	t.ctx, t.cancel = s.Bind(ctx)
	s.pending.add(t)
	accepted, err := session.Submit(chat.Prompt{
		TurnID: t.id, Text: in.text, Contexts: in.refs, Model: meta.Model, Agent: meta.Agent, Variant: meta.Variant, Trust: r.Trust, NoDialog: r.NoDialog,
	}).Wait(t.ctx)
	if err != nil {
		if t.ctx.Err() != nil { // the prompt may still be accepted, but no caller would follow its turn
			session.Cancel()
		}
		t.end()
		return nil, err
	}
	t.id = accepted.TurnID
	return t, nil
}

func (t *Turn) end() {
	t.cancel()
	t.s.pending.remove(t)
}

// Follow shows the turn until it ends. If the viewer returns an error, the turn is stopped.
func (t *Turn) Follow(v Viewer) (Outcome, error) {
	f := &follower{Turn: t, viewer: v, fold: transcript.New(), earlyQuestions: map[string][]Question{}}
	f.outcome.Usage.Cost = new(float64)
	events, failed := make(chan event.Event), make(chan error, 1)
	read := make(chan struct{})
	go func() { // ends with t.ctx
		defer close(read)
		f.read(events, failed)
	}()
	err := f.follow(events, failed)
	var ended *Error
	if err != nil && !errors.As(err, &ended) {
		t.session.Cancel()
	}
	t.end()
	<-read
	return f.outcome, err
}

// errClosed is the error of a turn whose chat was closed while the turn was running.
var errClosed = Errorf(Disconnected, "the session was closed")

// follower shows a turn to a viewer.
type follower struct {
	*Turn
	viewer         Viewer
	fold           *transcript.Fold
	earlyQuestions map[string][]Question // by call id: questions of calls that have not been shown as started
	content        strings.Builder
	outcome        Outcome
}

// read sends the events of the turn to the channel.
func (f *follower) read(events chan<- event.Event, failed chan<- error) {
	for e, err := range f.session.Events(f.ctx, f.from) {
		if err != nil {
			failed <- err
			return
		}
		if _, notice := e.Body.(event.Notice); e.Turn != f.id && (e.Turn != "" || !notice) { // notices about the chat have no turn
			continue
		}
		select {
		case events <- e:
		case <-f.ctx.Done():
			return
		}
	}
	if f.ctx.Err() == nil { // otherwise Follow has returned already
		failed <- errClosed
	}
}

// follow shows events and questions until the turn has ended.
func (f *follower) follow(events <-chan event.Event, failed <-chan error) error {
	if f.notice != "" {
		if err := f.viewer.Show(transcript.Change{Item: transcript.Notice{Text: f.notice}}); err != nil {
			return err
		}
	}
	for {
		select {
		case e := <-events:
			c, ok := f.fold.Add(e)
			if !ok {
				continue
			}
			if err := f.show(c); err != nil {
				return err
			}
			if t, ok := c.Item.(transcript.Turn); ok && t.End != nil {
				return f.finish(*t.End)
			}
		case q := <-f.questions:
			if err := f.ask(q); err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-f.ctx.Done():
			return f.ctx.Err()
		}
	}
}

// show shows an item and updates the outcome.
func (f *follower) show(c transcript.Change) error {
	c = noticeAsAnswer(c)
	switch item := c.Item.(type) {
	case transcript.Prompt:
		return nil // the caller knows its own prompt
	case transcript.Answer:
		f.content.WriteString(item.Piece)
	case transcript.Notice:
		f.outcome.Notice = cmp.Or(strings.TrimSpace(item.Text), f.outcome.Notice)
	case transcript.Compaction:
		if !item.Auto {
			f.outcome.Notice = transcript.CompactedText
		}
	case transcript.Usage:
		f.outcome.Usage.add(item.UsageReported)
	case transcript.Call:
		if item.Stage == transcript.Judged && item.Judgment.Manual {
			f.s.pending.addCall(f.Turn, item.CallID)
		}
		if err := f.viewer.Show(c); err != nil || !item.Started {
			return err
		}
		early := f.earlyQuestions[item.CallID]
		delete(f.earlyQuestions, item.CallID)
		for _, q := range early {
			if err := f.viewer.Ask(q); err != nil {
				return err
			}
		}
		return nil
	default:
	}
	return f.viewer.Show(c)
}

// noticeAsAnswer turns a document of eca itself, such as the output of a command, into a part of the
// answer, as editors show it. Otherwise callers that read only the answer would lose it.
func noticeAsAnswer(c transcript.Change) transcript.Change {
	if n, ok := c.Item.(transcript.Notice); ok && n.Markdown {
		c.Item = transcript.Answer{Text: n.Text, Piece: n.Text}
	}
	return c
}

// ask shows a question. The question of a call is held back until the call was shown as started, so
// that it follows all earlier output of the model.
func (f *follower) ask(q Question) error {
	if c, _ := f.fold.Call(q.CallID); q.CallID != "" && !c.Started {
		f.earlyQuestions[q.CallID] = append(f.earlyQuestions[q.CallID], q)
		return nil
	}
	return f.viewer.Ask(q)
}

// finish completes the outcome. A turn that the user stopped has not failed.
func (f *follower) finish(end event.TurnFinished) error {
	f.outcome.Content, f.outcome.Reason = f.content.String(), EndTurn
	switch end.Incomplete {
	case event.IncompleteLength:
		f.outcome.Reason = MaxTokens
	case event.IncompleteRefusal:
		f.outcome.Reason = Refusal
	case event.IncompleteEmpty, event.IncompleteUnmarked: // the user gets a notice about it
	}
	switch end.Reason {
	case event.FinishedFailed:
		return Errorf(Failed, "%s", strings.TrimPrefix(end.Err, "Error: "))
	case event.FinishedStopped, event.FinishedSuperseded, event.FinishedInterrupted:
		f.outcome.Reason = Cancelled
	case event.FinishedRejected:
		f.outcome.Reason = Rejected
	case event.FinishedLoop:
		f.outcome.Reason = Loop
	case event.FinishedBudget:
		f.outcome.Reason = Budget
	}
	return nil
}

func (u *Usage) add(b event.UsageReported) {
	u.InputTokens += b.InputTokens
	u.OutputTokens += b.OutputTokens
	u.CacheReadTokens += b.CacheReadTokens
	u.CacheWriteTokens += b.CacheWriteTokens
	switch {
	case b.Cost == nil:
		u.Cost = nil
	case u.Cost != nil:
		*u.Cost += *b.Cost
	}
}
