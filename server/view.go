package server

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
)

// view shows one chat to the client. It reads the chat's log from the point where the client
// joined, and sends the notifications for each event. If the client does not read, the view waits,
// but the chat does not.
type view struct {
	views   *views
	chatID  string
	session *chat.Session
	done    chan struct{}
	phase   time.Duration // the view's moment in the period; see awaitPhase
	// The position of reader; read by Monitor.
	position atomic.Uint64

	// Owned by the view's goroutine.
	reader    *eventlog.Reader
	renderer  *renderer
	title     string            // the title that the client shows
	lastStart event.TurnStarted // the start of the last turn
	// The request that started the turn being shown, until the response to it is queued.
	pendingRequest *promptRequest
	// The subagents being shown, by the id of the call that started them.
	children map[string]*childView

	hasDeferred  atomic.Bool   // deferred is not empty
	questionSlot chan struct{} // holds one element while a question to the user is open

	mu       sync.Mutex                // guards the fields below
	requests map[string]*promptRequest // by turn id
	deferred []deferredAction
	wake     context.CancelFunc // ends the wait for the next event
	pause    *pause             // nil unless a following client (follow.go) has paused the view
}

// deferredAction is a function that the view runs between two events, once it has shown everything
// before the event at.
type deferredAction struct {
	at  event.Seq
	run func(ctx context.Context)
}

// promptRequest is a chat/prompt request without a response yet. After the view has shown that the
// prompt was accepted, it pauses until the response is queued.
type promptRequest struct {
	promptShown  chan struct{} // closed when the accepted prompt has been shown
	responded    <-chan struct{}
	respondAtEnd bool // respond only after the end of the turn
}

func (v *view) hasEnded() bool {
	select {
	case <-v.done:
		return true
	default:
		return false
	}
}

// expectRequest registers the request that a turn belongs to. It must be called before the prompt is
// submitted.
func (v *view) expectRequest(id string, responded <-chan struct{}, respondAtEnd bool) *promptRequest {
	t := &promptRequest{promptShown: make(chan struct{}), responded: responded, respondAtEnd: respondAtEnd}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.requests[id] = t
	return t
}

// takeRequest returns the request that a turn belongs to, and removes it.
func (v *view) takeRequest(id string) *promptRequest {
	v.mu.Lock()
	defer v.mu.Unlock()
	t := v.requests[id]
	delete(v.requests, id)
	return t
}

// runAfter runs fn on the view's goroutine after everything before an event has been shown, and returns
// fn's error. It does nothing if the view ends first. If ctx ends first, fn may still run, so fn
// must not write anything that its caller reads.
func (v *view) runAfter(ctx context.Context, at event.Seq, fn func(ctx context.Context) error) error {
	done := make(chan error, 1)
	v.mu.Lock()
	v.deferred = append(v.deferred, deferredAction{at, func(ctx context.Context) { done <- fn(ctx) }})
	v.hasDeferred.Store(true)
	v.wake()
	v.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-v.done:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// showUntil waits until everything before an event has been sent.
func (v *view) showUntil(ctx context.Context, at event.Seq) error {
	return v.runAfter(ctx, at, func(context.Context) error { return nil })
}

// runDeferred runs the deferred actions that are due.
func (v *view) runDeferred(ctx context.Context) {
	if !v.hasDeferred.Load() {
		return
	}
	v.mu.Lock()
	var due []deferredAction
	v.deferred = slices.DeleteFunc(v.deferred, func(e deferredAction) bool {
		if e.at > v.reader.Position() {
			return false
		}
		due = append(due, e)
		return true
	})
	v.hasDeferred.Store(len(v.deferred) > 0)
	v.mu.Unlock()
	for _, e := range due {
		e.run(ctx)
	}
}

// wakeable returns a context that also ends when there is a deferred action.
func (v *view) wakeable(ctx context.Context) (context.Context, context.CancelFunc) {
	waiting, wake := context.WithCancel(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.wake = wake
	if slices.ContainsFunc(v.deferred, func(e deferredAction) bool { return e.at <= v.reader.Position() }) {
		wake()
	}
	return waiting, wake
}

// next waits for the next event; ok is false if there will be no more. If there is a deferred
// action, it returns early with an event that has no body.
func (v *view) next(ctx context.Context) (e event.Event, ok bool, err error) {
	waiting, wake := v.wakeable(ctx)
	defer wake()
	if v.views.followPeriod != nil { // a following client: read the next event only at the view's moment
		if _, more, _ := v.session.ReadAt(v.reader.Position(), v.reader.Offset()).Next(waiting); more {
			v.awaitPhase(waiting)
		}
	}
	e, ok, err = v.reader.Next(waiting)
	if !ok && err == nil && waiting.Err() != nil && ctx.Err() == nil {
		return event.Event{}, true, nil
	}
	return e, ok, err
}

func (v *view) run(ctx context.Context) {
	defer close(v.done)
	defer v.stopChildren()
	for {
		v.runDeferred(ctx)
		e, ok, err := v.reader.Try(ctx)
		if !ok && err == nil {
			e, ok, err = v.next(ctx)
		}
		if err == nil && ok {
			if v.views.followPeriod != nil {
				e = joinPieces(ctx, v.reader, e)
			}
			err = v.show(ctx, e)
			v.position.Store(uint64(v.reader.Position()))
			if v.views.followPeriod != nil && isGrowing(v.reader, e) {
				waiting, wake := v.wakeable(ctx)
				v.awaitPhase(waiting)
				wake()
			}
		}
		if err != nil {
			ok = v.resumeReading(ctx, err)
		}
		if !ok {
			return
		}
	}
}

// show shows an event.
func (v *view) show(ctx context.Context, e event.Event) error {
	switch e.Body.(type) {
	case nil:
		return nil
	case event.Truncated, event.Flag:
		return v.clearAndReplay(ctx)
	default:
	}
	if _, ok := e.Body.(event.TurnFinished); ok && v.pendingRequest == nil {
		v.pendingRequest = v.takeRequest(e.Turn) // /resume removed the turn's beginning before it was shown
	}
	v.applySideEffects(ctx, e)
	afterResponse, last := v.pendingRequest.relativeToResponse(e.Body)
	if afterResponse {
		v.awaitResponse(ctx)
	}
	v.endChildrenFor(ctx, e)
	v.sendAt(ctx, v.chatID, v.reader, v.renderer.showLive(e))
	v.startChildFor(ctx, e)
	if _, ok := e.Body.(event.TurnStarted); ok {
		v.pendingRequest = v.takeRequest(e.Turn)
	}
	if last {
		v.awaitResponse(ctx)
	}
	return nil
}

// awaitResponse lets the server respond to the prompt, and waits until the response is queued.
func (v *view) awaitResponse(ctx context.Context) {
	if v.pendingRequest != nil {
		close(v.pendingRequest.promptShown)
		v.pendingRequest.waitResponded(ctx)
		v.pendingRequest = nil
	}
}

func (v *view) send(ctx context.Context, list []notification) {
	for _, n := range list {
		v.views.notify(ctx, n.Method, n.Params)
	}
}

// relativeToResponse reports whether an event is shown after the response to the prompt, and whether
// it is the last event shown before the response.
func (t *promptRequest) relativeToResponse(b event.Body) (afterResponse, last bool) {
	switch b.(type) {
	case event.TurnFinished:
		return false, true
	case event.UserMessage, event.TurnStarted, event.Notice, event.TitleChanged:
		return false, false
	case event.Progress:
		return false, t != nil && !t.respondAtEnd
	default:
	}
	// Other events come after the response. A slow reader gets no Progress events, so the first event
	// may be of this kind.
	return t != nil && !t.respondAtEnd, false
}

// awaitPromptShown waits until the client has been shown that its prompt was accepted. It returns false if
// that will never happen, because the chat was deleted or rolled back to before the prompt.
func (v *view) awaitPromptShown(ctx context.Context, request *promptRequest, ended <-chan struct{}) bool {
	select {
	case <-request.promptShown:
		return true
	case <-v.done:
		return false
	case <-ctx.Done():
		return true
	case <-ended:
	}
	caughtUp := make(chan struct{})
	go func() {
		defer close(caughtUp)
		_ = v.showUntil(ctx, v.session.FlushedSeq())
	}()
	select {
	case <-request.promptShown:
		return true
	case <-caughtUp:
		return false
	}
}

// waitResponded waits until the response to the prompt request is queued, so that the model's output
// is sent after it.
func (t *promptRequest) waitResponded(ctx context.Context) {
	if t.responded == nil {
		return // a notification gets no response
	}
	const maxWait = 5 * time.Second
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-t.responded:
	case <-ctx.Done():
	case <-timer.C:
	}
}
