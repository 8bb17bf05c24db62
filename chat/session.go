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
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/bug"
	"github.com/seed-dec29ce4/eca/tools"
)

// state of a session.
type state int

// A session is idle or runs a turn, until it is closed.
const (
	idle state = iota
	running
	closed
)

func (s state) String() string { return [...]string{"idle", "running", "closed"}[s] }

// canBecome lists the legal transitions.
func (s state) canBecome(next state) bool {
	switch s {
	case idle:
		return next == running || next == closed
	case running:
		return next == idle
	}
	return false
}

// Session is one chat that is open in this process. Its goroutine makes all changes of the chat:
// prompts and decisions are in this file, edits in edit.go. Reading does not wait for it (chatReader).
type Session struct {
	chatReader
	mail *mailbox

	ctx        context.Context // ends when the session is closed
	cancel     context.CancelCauseFunc
	background sync.WaitGroup                // title requests and syncs of the store
	titled     atomic.Pointer[chan struct{}] // closed when the last title request is over
	gone       chan struct{}                 // the session's goroutine has ended

	lease lease
	began sync.Map    // the ids of the turns that began here, as keys
	busy  atomic.Bool // state is running
	// Ends the turn that the session's goroutine begins, which may have to wait for its
	// contexts: what cancels it must not wait for that. Nil while none begins.
	beginning atomic.Pointer[context.CancelCauseFunc]
	lastStop  atomic.Pointer[stopRequest] // the last one
	cost      cost

	// The hooks' text for the model's instructions, from when the chat began.
	instructions atomic.Pointer[string]

	dialogue

	// Owned by the session's goroutine; the history is lent to the running turn.
	state   state
	turn    *turn
	history *history.History
	begun   bool // the hooks of a chat's start have run; lent like history
}

func newSession(e *Engine, meta Meta, last event.Seq) *Session {
	s := &Session{
		chatReader: chatReader{meta.ID, e, eventlog.New(e.deps.Store, meta, last, e.deps.Current().Config.Env == config.EnvTest, e.deps.Now, e.deps.Log)},
		mail:       newMailbox(),
		gone:       make(chan struct{}),
	}
	if last > 0 {
		s.dialogState.Store(int32(unknownDialog))
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	go s.loop()
	return s
}

// loop is the session's goroutine: it runs commands one after the other.
func (s *Session) loop() {
	defer close(s.gone)
	for s.state != closed {
		var done <-chan struct{}
		if s.turn != nil {
			done = s.turn.done
		}
		select {
		case <-s.mail.ready:
			for _, command := range s.mail.take() {
				if s.state != closed {
					command()
				}
			}
		case <-done:
			s.reap()
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

// reap takes the session back from a turn that has ended.
func (s *Session) reap() {
	s.turn = nil
	s.become(idle)
	s.lease.release()
	s.keepHistory()
	s.syncLater()
}

// syncLater makes what was appended survive a crash, off the path: no caller waits
// for the disk.
func (s *Session) syncLater() {
	s.background.Go(func() {
		if err := s.eng.deps.Store.Sync(context.WithoutCancel(s.ctx)); err != nil {
			s.eng.deps.Log.Warn("chat store could not be synced", "err", err)
		}
	})
}

// Done is closed when the chat has been closed.
func (s *Session) Done() <-chan struct{} { return s.gone }

// Prompt is what the user asks for.
type Prompt struct {
	Parent   string // the chat that a subagent's chat works for
	TurnID   string // names the turn; empty: the session names it
	Text     string
	Model    string // full or bare id; empty: the chat's last model, then the default
	Agent    string // empty: the chat's last agent, then the default
	Variant  string
	Trust    *bool // nil leaves auto-approve as it is
	Contexts []contexts.Ref

	work *assignment // of a subagent

	issuedAfter *stopRequest // a later stop request ends the turn
}

// Accepted is the outcome of a prompt.
type Accepted struct {
	TurnID string
	Model  string          // full id; may be empty
	Dialog bool            // it answered a dialog
	Failed bool            // the turn ended before it reached a model; the log says why
	Done   <-chan struct{} // closed when the turn has ended

	turn *turn
}

// Submission is a prompt on its way into the session. Its outcome is
// known as soon as the session has taken it; it does not wait for a model.
type Submission = Pending[Accepted]

// Submit hands a prompt to the session and returns at once. A turn that runs is
// superseded: it is cancelled and shows nothing more.
func (s *Session) Submit(p Prompt) *Submission {
	p.issuedAfter = s.requestStop(errSuperseded)
	return command(s, func() (Accepted, error) { return s.acceptSafely(p) })
}

// Decision is the user's answer about a tool call.
type Decision struct {
	Approve  bool
	Remember tools.Scope // allow calls like this one from now on
	// Auto says that nobody looked at the call: it was approved as all are. It runs within
	// the bounds of auto-approve.
	Auto bool
	// GoOn lets the turn go on after a rejection: the model gets the reason and may try
	// something else. Otherwise the turn ends and the user is asked.
	GoOn bool
	// Unasked says that the call is rejected because nobody could be asked about it. The
	// model gets that reason instead of a rejection by the user.
	Unasked bool
}

// Decide answers a call that waits for the user. It is accepted from the moment the
// call is announced, also for calls of the turn's subagents; for anything else it does
// nothing. The first decision about a call counts: the result says whether this one did.
func (s *Session) Decide(callID string, d Decision) *Pending[bool] {
	p := &Pending[bool]{done: make(chan struct{})}
	finish := func(counts bool, err error) {
		p.value, p.err = counts, err
		close(p.done)
	}
	ok := s.mail.put(func() {
		if s.turn == nil {
			finish(false, nil)
			return
		}
		counts, children := s.turn.decide(callID, d)
		if len(children) == 0 {
			finish(counts, nil)
			return
		}
		go func() { // their goroutines may wait for this one
			for _, child := range children {
				decided, err := child.Wait(s.ctx)
				counts = counts || err == nil && decided
			}
			finish(counts, nil)
		}()
	})
	if !ok {
		finish(false, ErrClosed)
	}
	return p
}

// PendingApprovals counts the calls that wait for the user.
func (s *Session) PendingApprovals() *Pending[int] {
	return command(s, func() (int, error) {
		if s.turn == nil {
			return 0, nil
		}
		return s.turn.calls.approvals.count(), nil
	})
}

// Steer says something to the model while a turn runs: the next request contains it.
// . Without a turn, and at its end, it is dropped.
func (s *Session) Steer(text string) {
	s.mail.put(func() {
		if s.turn != nil {
			s.turn.steers.add(text)
			s.turn.children.wake()
		}
	})
}

// Unsteer takes back what Steer said and the model was not told yet.
func (s *Session) Unsteer() {
	s.mail.put(func() {
		if s.turn != nil {
			s.turn.steers.take()
		}
	})
}

// IdleState says whether no turn runs and no dialog waits, and where the log ended then. All
// orders that were given before count.
type IdleState struct {
	Rests bool
	At    event.Seq
}

// IdleState asks the session whether it rests.
func (s *Session) IdleState() *Pending[IdleState] {
	return command(s, func() (IdleState, error) {
		return IdleState{Rests: s.turn == nil && s.openDialog == nil, At: s.log.Next()}, nil
	})
}

// Running says whether a turn runs.
func (s *Session) Running() bool { return s.busy.Load() }

// BeganHere reports whether a turn began in this process since the chat was opened.
func (s *Session) BeganHere(turn string) bool {
	_, here := s.began.Load(turn)
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

// stopRequest stops the turns of all prompts that were submitted before it.
type stopRequest struct{ cause error }

// requestStop stops a turn that is about to begin, whatever it waits for.
func (s *Session) requestStop(cause error) *stopRequest {
	h := &stopRequest{cause}
	s.lastStop.Store(h)
	if cancel := s.beginning.Load(); cancel != nil {
		(*cancel)(cause)
	}
	return h
}

// close ends the session: the running turn ends with the cause, readers end.
func (s *Session) close(cause error) {
	s.cancel(cause)
	s.mail.putLast(func() {
		s.endTurn(cause)
		s.closeDialog()
		s.become(closed)
	})
	<-s.gone
	s.eng.histories.take(s)
	s.background.Wait()
	s.log.Close()
	s.lease.drop()
}

// endTurn ends the running turn and waits for it. It returns the turn's id, or nothing if none ran.
func (s *Session) endTurn(cause error) (id string) {
	if s.turn == nil {
		return ""
	}
	id = s.turn.id
	s.turn.cancel(cause)
	<-s.turn.done
	s.reap()
	return id
}

// acceptSafely keeps the session alive if something below panics before the turn has
// a goroutine of its own.
func (s *Session) acceptSafely(p Prompt) (acc Accepted, err error) {
	defer func() {
		if p := recover(); p != nil {
			s.eng.deps.Log.Error("prompt panicked", "chat", s.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
			if s.turn != nil {
				s.turn.finish(err)
				s.turn.cancel(nil)
				s.reap()
			}
		}
	}()
	return s.accept(p)
}

// acquire takes the right to append to the chat.
func (s *Session) acquire() error {
	return s.lease.acquire(func() (func(), bool, error) { return s.eng.lock(s.ctx, s.id) })
}

// accept turns a prompt into a running turn.
func (s *Session) accept(p Prompt) (Accepted, error) {
	if p.work != nil && p.work.parentTurn.ctx.Err() != nil {
		return Accepted{}, context.Cause(p.work.parentTurn.ctx)
	}
	s.endTurn(errSuperseded)
	if err := s.acquire(); err != nil {
		return Accepted{}, err
	}
	begun := false
	defer func() {
		if !begun {
			s.lease.release()
		}
	}()
	if err := s.load(); err != nil {
		return Accepted{}, err
	}
	s.eng.histories.take(s)
	t := newTurn(s, p)
	s.began.Store(t.id, nil)
	begun = true
	s.turn = t
	s.become(running)
	s.beginning.Store(&t.cancel)
	defer s.beginning.Store(nil)
	if h := s.lastStop.Load(); p.issuedAfter != nil && h != p.issuedAfter { // while no client could see the turn
		t.cancel(h.cause)
	}
	acc := t.start()
	acc.turn = t
	return acc, nil
}

// Causes for a turn to be cancelled.
var (
	errStopped    = errors.New("stopped by the user")
	errSuperseded = errors.New("superseded by a newer prompt")
	errShutdown   = errors.New("eca is shutting down")
)

// oneLine makes a title of at most limit runes.
func oneLine(s string, limit int) string {
	s = strings.Trim(strings.Join(strings.Fields(s), " "), "\"'`*# ")
	if r := []rune(s); len(r) > limit {
		s = strings.TrimSpace(string(r[:limit]))
	}
	return s
}
