package chat

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/bug"
	"github.com/seed-dec29ce4/eca/tools"
)

// state of a session.
type state int

// States of a session.
const (
	idle state = iota
	running
	closed
)

func (s state) String() string { return [...]string{"idle", "running", "closed"}[s] }

// canBecome reports whether a transition is legal.
func (s state) canBecome(next state) bool {
	switch s {
	case idle:
		return next == running || next == closed
	case running:
		return next == idle
	}
	return false
}

// Session is one chat that is open in this process. Its goroutine runs all operations: prompts and
// decisions (this file) and edits (edit.go). A running turn and title requests also append events.
// Reads do not wait for the goroutine (chatReader). It has more than 40 methods because each
// operation of clients on a chat is a method.
type Session struct {
	chatReader
	mail *mailbox

	ctx        context.Context // ends when the session is closed
	cancel     context.CancelCauseFunc
	background sync.WaitGroup                // title requests and syncs of the store
	titleDone  atomic.Pointer[chan struct{}] // closed when the last title request has ended
	loopDone   chan struct{}                 // closed when the session's goroutine has ended

	lease        lease
	startedTurns sync.Map    // ids (the keys) of the turns that began in this process
	busy         atomic.Bool // state is running
	// cancelStarting cancels a turn while the session's goroutine starts it and may, for example, resolve
	// the contexts of the prompt. It is nil while no turn is starting.
	cancelStarting atomic.Pointer[context.CancelCauseFunc]
	lastStop       atomic.Pointer[stopRequest]
	cost           cost

	// instructions are text for the model that hooks returned when the chat was opened.
	instructions atomic.Pointer[string]

	dialogSlot

	// The session's goroutine owns the fields below. While a turn runs, the turn owns history and
	// startHooksRan.
	state         state
	turn          *turn
	history       *history.History
	startHooksRan bool // the chatStart or subagentStart hooks have run
}

func newSession(e *Engine, meta Meta, last event.Seq) *Session {
	s := &Session{
		chatReader: chatReader{meta.ID, e, eventlog.New(e.deps.Store, meta, last, e.deps.Current().Config.Conformance().UnmergedDeltas, e.deps.Now, e.deps.Log)},
		mail:       newMailbox(),
		loopDone:   make(chan struct{}),
	}
	if last > 0 {
		s.shownState.Store(int32(unknownDialog))
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	go s.loop()
	return s
}

// loop is the session's goroutine. It runs operations one after the other.
func (s *Session) loop() {
	defer close(s.loopDone)
	for s.state != closed {
		var done <-chan struct{}
		if s.turn != nil {
			done = s.turn.done
		}
		select {
		case <-s.mail.ready:
			for _, operation := range s.mail.take() {
				if s.state != closed {
					operation()
				}
			}
		case <-done:
			s.turnEnded()
		}
	}
}

func (s *Session) become(next state) {
	if !s.state.canBecome(next) {
		bug.Reportf("session %s: illegal transition from %s to %s", s.id, s.state, next)
		return
	}
	s.state = next
	s.busy.Store(next == running)
}

// turnEnded makes the session idle after its turn has ended.
func (s *Session) turnEnded() {
	s.turn = nil
	s.become(idle)
	s.lease.release()
	s.cacheHistory()
	s.syncLater()
}

// syncLater syncs the store in the background. The appended events then survive a crash of the
// machine, and no caller waits for the disk.
func (s *Session) syncLater() {
	s.background.Go(func() {
		if err := s.eng.deps.Store.Sync(context.WithoutCancel(s.ctx)); err != nil {
			s.eng.deps.Log.Warn("chat store could not be synced", "err", err)
		}
	})
}

// Done is closed when the chat has been closed.
func (s *Session) Done() <-chan struct{} { return s.loopDone }

// Prompt is a message of the user, with the settings to answer it.
type Prompt struct {
	Parent   string // id of the parent chat; set only in the chat of a subagent
	TurnID   string // id of the turn; empty: a new one is generated
	Text     string
	Model    string // full or bare id; empty: the chat's last model, then the default
	Agent    string // empty: the chat's last agent, then the default
	Variant  string
	Trust    *bool // nil leaves auto-approve as it is
	Contexts []contexts.Ref
	// Limited is set if the sender may only change chats. If the prompt calls a command that may
	// change more, or answers a question of such a command, it fails with ErrLimited.
	Limited bool
	// NoDialog is set if the sender cannot answer the questions of a dialog, or stores what it sends, so
	// that a key would be stored too. A prompt that begins or continues a dialog then fails with
	// ErrNoDialog.
	NoDialog bool

	// MayBeEmpty allows a prompt without text and contexts. Without MayBeEmpty, Submit returns
	// ErrEmptyPrompt for such a prompt.
	MayBeEmpty bool

	assignment *assignment // set only for a subagent

	issuedAfter *stopRequest // the stop request that Submit made for this prompt; a later one ends its turn
}

// Accepted is the outcome of a prompt.
type Accepted struct {
	TurnID string
	Model  string          // full id; may be empty
	Dialog bool            // the prompt was the input of an open dialog (see Dialog)
	Failed bool            // the turn ended before it reached a model; the log has the reason
	Done   <-chan struct{} // closed when the turn has ended

	turn *turn
}

// Submission is the pending outcome of a prompt. The outcome is available as soon as the session has
// started a turn, before the model answers.
type Submission = Pending[Accepted]

// Submit hands a prompt to the session and returns immediately. When the session accepts the prompt, it
// cancels a running turn, which ends as superseded.
func (s *Session) Submit(p Prompt) *Submission {
	if s.isEmpty(p) {
		return enqueue(s, func() (Accepted, error) { return Accepted{}, ErrEmptyPrompt })
	}
	p.issuedAfter = s.requestStop(errSuperseded)
	return enqueue(s, func() (Accepted, error) { return s.acceptSafely(p) })
}

// isEmpty reports whether a prompt is refused because it has no text and no contexts, and no dialog
// waits for input. Until the session has read the chat's events, isEmpty returns false.
func (s *Session) isEmpty(p Prompt) bool {
	return !p.MayBeEmpty && strings.TrimSpace(p.Text) == "" && len(p.Contexts) == 0 && dialogState(s.shownState.Load()) == noDialog
}

// Decision approves or rejects a tool call.
type Decision struct {
	Approve  bool
	Remember tools.Scope // allow similar calls from now on
	// Auto is set if a program approves all calls, without the user. The call runs within the
	// bounds of auto-approve.
	Auto bool
	// GoOn continues the turn after a rejection: the model gets the reason and may try something
	// else. Otherwise the turn ends and the user is asked what to do.
	GoOn bool
	// Unasked is set if the call is rejected because there was no user to ask. The model gets this
	// reason, and not a rejection by the user.
	Unasked bool
}

// Decide approves or rejects a call of the running turn, or of its subagents, that waits for the
// user. Calls accept decisions from the moment they are announced. The result reports whether this
// decision was the first about a waiting call; otherwise it has no effect.
func (s *Session) Decide(callID string, d Decision) *Pending[bool] {
	p := &Pending[bool]{done: make(chan struct{})}
	finish := func(accepted bool, err error) {
		p.value, p.err = accepted, err
		close(p.done)
	}
	ok := s.mail.put(func() {
		if s.turn == nil {
			finish(false, nil)
			return
		}
		accepted, children := s.turn.decide(callID, d)
		if len(children) == 0 {
			finish(accepted, nil)
			return
		}
		go func() { // the subagents' goroutines may wait for this session's goroutine
			for _, child := range children {
				decided, err := child.Wait(s.ctx)
				accepted = accepted || err == nil && decided
			}
			finish(accepted, nil)
		}()
	})
	if !ok {
		finish(false, ErrClosed)
	}
	return p
}

// PendingApprovals returns the number of calls that wait for the user.
func (s *Session) PendingApprovals() *Pending[int] {
	return enqueue(s, func() (int, error) {
		if s.turn == nil {
			return 0, nil
		}
		return s.turn.calls.approvals.count(), nil
	})
}

// Steer adds a message of the user to the next request of the running turn. It is dropped if no turn
// runs, or if the turn ends before its next request.
func (s *Session) Steer(text string) {
	s.mail.put(func() {
		if s.turn != nil {
			s.turn.steers.add(text)
			s.turn.children.wake()
		}
	})
}

// Unsteer drops the texts of Steer that have not been sent to the model yet.
func (s *Session) Unsteer() {
	s.mail.put(func() {
		if s.turn != nil {
			s.turn.steers.take()
		}
	})
}

// IdleState is the state of a session after all earlier operations.
type IdleState struct {
	Idle bool      // no turn runs and no dialog is open
	Next event.Seq // sequence number of the next event
}

// IdleState returns the session's state once it has run all earlier operations.
func (s *Session) IdleState() *Pending[IdleState] {
	return enqueue(s, func() (IdleState, error) {
		return IdleState{Idle: s.turn == nil && s.openDialog == nil, Next: s.log.Next()}, nil
	})
}

// Running reports whether a turn runs.
func (s *Session) Running() bool { return s.busy.Load() }

// BeganHere reports whether the turn with this id began in this process since the chat was opened.
func (s *Session) BeganHere(turn string) bool {
	_, here := s.startedTurns.Load(turn)
	return here
}

// RunsElsewhere reports whether another process runs a turn of the chat, or edits it.
func (s *Session) RunsElsewhere() bool {
	return s.lease.heldElsewhere(func() (func(), bool, error) { return s.eng.deps.Store.Lock(s.id) })
}

// Cancel stops the running turn, if there is one.
func (s *Session) Cancel() {
	s.requestStop(errStopped)
	s.mail.put(func() {
		if s.turn != nil {
			s.turn.cancel(errStopped)
		}
	})
}

// stopRequest stops the turns of all prompts that were submitted before it. Requests are compared
// by identity.
type stopRequest struct{ cause error }

// requestStop cancels a turn that is starting, and all submitted turns that have not started yet.
func (s *Session) requestStop(cause error) *stopRequest {
	r := &stopRequest{cause}
	s.lastStop.Store(r)
	if cancel := s.cancelStarting.Load(); cancel != nil {
		(*cancel)(cause)
	}
	return r
}

// close ends the running turn with the given cause, ends all readers and stops the session's goroutine.
func (s *Session) close(cause error) {
	s.cancel(cause)
	s.mail.putLast(func() {
		s.endTurn(cause)
		s.closeDialog()
		s.become(closed)
	})
	<-s.loopDone
	s.eng.histories.take(s)
	s.background.Wait()
	s.log.Close()
	s.lease.drop()
}

// endTurn cancels the running turn, if any, and waits until it has ended. It returns the turn's id, or "".
func (s *Session) endTurn(cause error) (id string) {
	if s.turn == nil {
		return ""
	}
	id = s.turn.id
	s.turn.cancel(cause)
	<-s.turn.done
	s.turnEnded()
	return id
}

// acceptSafely calls accept and recovers from panics, which are possible before the turn has its
// own goroutine.
func (s *Session) acceptSafely(p Prompt) (acc Accepted, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.eng.deps.Log.Error("prompt panicked", "chat", s.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
			if s.turn != nil {
				s.turn.finish(err)
				s.turn.cancel(nil)
				s.turnEnded()
			}
		}
	}()
	return s.accept(p)
}

// acquire acquires the lease, which is the right to append to the chat.
func (s *Session) acquire() error {
	return s.lease.acquire(func() (func(), bool, error) { return s.eng.lock(s.ctx, s.id) })
}

// accept starts a turn that answers a prompt.
func (s *Session) accept(p Prompt) (Accepted, error) {
	if p.assignment != nil && p.assignment.parentTurn.ctx.Err() != nil {
		return Accepted{}, context.Cause(p.assignment.parentTurn.ctx)
	}
	s.endTurn(errSuperseded)
	if p.Limited && (s.openDialog != nil || s.eng.deps.Commands.ChangesBeyondChats(p.Text)) {
		return Accepted{}, ErrLimited
	}
	if p.NoDialog {
		if c, _ := s.eng.deps.Commands.Find(p.Text); c.Dialog != nil || s.openDialog != nil {
			return Accepted{}, ErrNoDialog
		}
	}
	if err := s.acquire(); err != nil {
		return Accepted{}, err
	}
	started := false
	defer func() {
		if !started {
			s.lease.release()
		}
	}()
	if err := s.load(); err != nil {
		return Accepted{}, err
	}
	if s.isEmpty(p) {
		return Accepted{}, ErrEmptyPrompt
	}
	s.eng.histories.take(s)
	t := newTurn(s, p)
	s.startedTurns.Store(t.id, nil)
	started = true
	s.turn = t
	s.become(running)
	s.cancelStarting.Store(&t.cancel)
	defer s.cancelStarting.Store(nil)
	if last := s.lastStop.Load(); p.issuedAfter != nil && last != p.issuedAfter { // stopped before it started
		t.cancel(last.cause)
	}
	acc := t.start()
	acc.turn = t
	return acc, nil
}

// Causes of the cancellation of a turn.
var (
	errStopped    = errors.New("stopped by the user")
	errSuperseded = errors.New("superseded by a newer prompt")
	errShutdown   = errors.New("eca is shutting down")
)

// oneLine shortens a text to a title of at most limit runes, without quotes and Markdown marks.
func oneLine(s string, limit int) string {
	s = strings.Trim(strings.Join(strings.Fields(s), " "), "\"'`*# ")
	if r := []rune(s); len(r) > limit {
		s = strings.TrimSpace(string(r[:limit]))
	}
	return s
}
