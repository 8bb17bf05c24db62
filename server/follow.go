package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// A following client (Options.Follow) is a program in this process that forwards the content of
// every chat, and that can resume at any position in a chat's log. The protocol has these additions
// for it:
//
//	$/began       a chat that the client does not follow gets a prompt: the chat's id, title, and position
//	$/positioned  wraps a notification and adds the position in the log after it. Without a method, it
//	              contains only the position; without a seq, the chat has no position from now on
//	chat/follow   shows a chat from a position on
//	chat/hold     pauses a chat that is followed
//	chat/advance  shows a paused chat up to an event
//	chat/release  ends the pause

// followParams are the parameters of the requests chat/follow, chat/hold, chat/advance and chat/release.
type followParams struct {
	ChatID string    `json:"chatId"`
	Seq    event.Seq `json:"seq"` // the next event to show
	Offset int       `json:"offset"`
	// Subagents are the positions in the chats of subagents, by chat, up to which the client was shown them.
	Subagents map[string]position `json:"subagents"`
	// Remind requests the state that is not part of loaded messages; see view.remind.
	Remind bool `json:"remind"`
}

type position struct {
	Seq    event.Seq `json:"seq"`
	Offset int       `json:"offset"`
}

// followResult reports whether the request had an effect.
type followResult struct {
	Done bool `json:"done"`
}

type positionedParams struct {
	ChatID string `json:"chatId"`
	position
	Method string `json:"method"`
	Params any    `json:"params"`
}

type beganParams struct {
	ChatID string    `json:"chatId"`
	Title  string    `json:"title"`
	Seq    event.Seq `json:"seq"`
}

// foldedMessages is how many messages before a position the view reads to find out which turns and
// calls are running at the position.
const foldedMessages = 200

// maxPause limits a pause, in case the client never ends it.
const maxPause = 10 * time.Second

func (s *Server) addFollowMethods() {
	for name, method := range map[string]func(context.Context, followParams) (bool, error){
		"chat/follow": s.followChat, "chat/hold": s.pauseChat, "chat/advance": s.advanceChat, "chat/release": s.releaseChat,
	} {
		s.methods[name] = func(_ context.Context, _ *slog.Logger, req *jsonrpc.Request) (any, error) {
			var p followParams
			if err := json.Unmarshal(req.Params, &p); err != nil {
				return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s: %v", req.Method, err)
			}
			return jsonrpc.Later(func(ctx context.Context) (any, error) {
				done, err := method(ctx, p)
				return followResult{done}, err
			}), nil
		}
	}
}

// handleNews handles a change that another client made. It does not block.
func (s *Server) handleNews(n chat.News) {
	if chat.IsSubagent(n.ChatID) {
		return
	}
	s.mu.Lock()
	ready := s.lifecycle == initialized || s.followPeriod != nil
	s.mu.Unlock()
	v, known := s.views.viewOf(n.ChatID)
	shown := known && !v.hasEnded()
	session, open := s.host.Engine().Lookup(n.ChatID)
	switch {
	case !ready:
	case n.Kind == chat.ChatDeleted:
		if !known && s.followPeriod == nil {
			return
		}
		ended := s.views.beginDelete(n.ChatID)
		s.background(func() {
			defer s.views.endDelete(n.ChatID)
			if ended != nil {
				<-ended
			}
			s.notify(s.ctx, "chat/deleted", protocol.ChatDeleted{ChatID: n.ChatID})
		})
	case !open:
	case n.Kind == chat.ChatChanged && shown:
		s.background(func() {
			_ = v.runAfter(s.ctx, 0, func(ctx context.Context) error {
				v.showSelection(ctx, session.Meta())
				return nil
			})
		})
	case n.Kind == chat.ChatChanged && s.followPeriod != nil:
		s.post("chat/opened", protocol.ChatOpened{ChatID: n.ChatID, Title: session.Meta().Title})
	case n.Kind == chat.ChatChanged, shown:
	case s.followPeriod != nil:
		s.postBegan(beganParams{n.ChatID, session.Meta().Title, session.Next()})
	case n.Kind == chat.ChatBegun:
		s.post("chat/opened", protocol.ChatOpened{ChatID: n.ChatID})
		s.views.get(session)
	}
}

// postBegan sends $/began. If an earlier chat with the same id is being deleted, it first waits for the
// end of the deletion.
func (s *Server) postBegan(b beganParams) {
	deleted := s.views.deletion(b.ChatID)
	if deleted == nil {
		s.post("$/began", b)
		return
	}
	s.background(func() {
		select {
		case <-deleted:
			s.post("$/began", b)
		case <-s.ctx.Done():
		}
	})
}

// sendAt sends the notifications for an event. For a following client, the last one carries the
// position after the event, and the others carry none.
func (v *view) sendAt(ctx context.Context, chatID string, reader *eventlog.Reader, list []notification) {
	last := len(list) - 1
	if v.views.followPeriod == nil || last < 0 {
		v.send(ctx, list)
		return
	}
	for i, n := range list {
		at := position{}
		if i == last {
			at = position{reader.Position(), reader.Offset()}
		}
		v.views.notify(ctx, "$/positioned", positionedParams{chatID, at, n.Method, n.Params})
	}
}

// followQueue is how many bytes may wait for a following client. Text beyond that stays in the log, which
// joins it.
const followQueue = 32 << 10

// joinPieces adds the following pieces of the same text to the piece e, up to the end of the log. Each
// message costs about the same, however long its text is, so a few long messages are cheaper than many
// short ones.
func joinPieces(ctx context.Context, reader *eventlog.Reader, e event.Event) event.Event {
	for {
		d, ok := e.Body.(event.Delta)
		if !ok || len(d.Piece()) >= largePiece {
			return e
		}
		ahead := *reader
		next, more, err := ahead.Try(ctx)
		if err != nil || !more || next.Turn != e.Turn {
			return e // the caller's next read returns the same error
		}
		n, ok := next.Body.(event.Delta)
		if !ok || n.WithPiece("") != d.WithPiece("") {
			return e
		}
		e.Body = d.WithPiece(d.Piece() + n.Piece())
		*reader = ahead
	}
}

// largePiece is the length in bytes from which a piece is sent without joining further ones. A reader
// that gets such a piece has much more to read.
const largePiece = 4 << 10

// isGrowing reports whether e is the last piece so far of a text that may still grow.
func isGrowing(reader *eventlog.Reader, e event.Event) bool {
	d, ok := e.Body.(event.Delta)
	return ok && reader.Offset() > 0 && len(d.Piece()) < largePiece
}

// awaitPhase waits for the moment in the current period at which this view reads its chat, or until ctx
// ends. There may be dozens of following clients; if all their views sent each event immediately, they
// would slow down the editor. Therefore, each view reads its chat once in a period, at its own moment.
// The log joins the deltas that arrive in between.
func (v *view) awaitPhase(ctx context.Context) {
	period := v.views.followPeriod()
	wait := period - (time.Duration(time.Now().UnixNano())-v.phase)%period
	if wait < period/4 { // the timer for the current period may have fired a little early
		wait += period
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// sendPosition sends a following client the position after a replay.
func (v *view) sendPosition(ctx context.Context) {
	if v.views.followPeriod != nil {
		v.views.notify(ctx, "$/positioned", positionedParams{ChatID: v.chatID, position: position{v.reader.Position(), v.reader.Offset()}})
	}
}

// errNoPosition means that a position is after the end of a chat.
var errNoPosition = errors.New("the chat does not have this position")

// followChat shows a chat from a position on; without one, from its end.
func (s *Server) followChat(ctx context.Context, p followParams) (bool, error) {
	session, ok, err := s.host.Engine().OpenExisting(ctx, p.ChatID)
	if err != nil || !ok || chat.IsSubagent(p.ChatID) {
		return false, err
	}
	end := session.FlushedSeq()
	switch {
	case p.Seq == 0:
		p.Seq = end
	case p.Seq > end || p.Offset < 0:
		return false, nil
	}
	v := s.views.get(session)
	err = v.runAfter(ctx, 0, func(ctx context.Context) error { return v.moveTo(ctx, p) })
	if errors.Is(err, errNoPosition) {
		return false, nil
	}
	if err == nil {
		s.background(func() { v.endInterrupted() })
	}
	return err == nil, err
}

// moveTo lets the view continue at a position, as if it had shown everything before it.
func (v *view) moveTo(ctx context.Context, p followParams) error {
	span, err := v.session.Window(ctx, chat.Window{Limit: foldedMessages})
	if err != nil {
		return err
	}
	r, reader := v.views.newRenderer(v.session), v.session.Read(min(max(span.From, 1), p.Seq))
	for reader.Position() < p.Seq {
		e, ok, err := reader.Try(ctx)
		if err != nil {
			return err
		}
		if !ok {
			break // the reader may have moved past an event that had no more text
		}
		if _, cut := e.Body.(event.Truncated); cut && e.Seq >= p.Seq {
			break // the event at the position was removed, so the view continues with the removal
		}
		if e.Seq >= p.Seq {
			break
		}
		r.turns[e.Turn] = true
		r.showLive(e)
	}
	if reader.Position() < p.Seq {
		return errNoPosition
	}
	v.stopChildren()
	v.renderer, v.reader = r, v.session.ReadAt(p.Seq, p.Offset)
	v.renderer.statusSent = true
	v.views.notify(ctx, "$/positioned", positionedParams{v.chatID, position{p.Seq, p.Offset}, "chat/opened", protocol.ChatOpened{ChatID: v.chatID, Title: v.session.Meta().Title}})
	if p.Remind {
		v.remind(ctx)
	}
	for _, c := range r.fold.Calls() {
		if sub := c.Subagent(); sub != nil && c.Stage == transcript.Running {
			v.showChildFrom(ctx, c.CallID, *sub, p.Subagents[sub.ChatID])
		}
	}
	return nil
}

// remind sends the pending approvals again, also those of running subagents. If the chat is idle, it also
// sends that status, because a client that missed the end of a turn may still show the chat as running.
func (v *view) remind(ctx context.Context) {
	if !v.followsTurn() {
		v.send(ctx, v.renderer.status("idle"))
	}
	v.sendPending(ctx, v.renderer)
	for _, c := range v.renderer.fold.Calls() {
		sub := c.Subagent()
		if sub == nil || sub.Background || c.Stage != transcript.Running {
			continue
		}
		// Loaded messages do not say which chat is the subagent's, and clients drop the events of others.
		v.send(ctx, v.renderer.showCall(c))
		if v.children[c.CallID] != nil { // otherwise, it is shown from its beginning
			v.remindChild(ctx, c.CallID, *sub)
		}
	}
}

// sendPending sends the approvals that are pending in a renderer's chat.
func (v *view) sendPending(ctx context.Context, r *renderer) {
	for _, c := range r.fold.Calls() {
		if c.Stage == transcript.Judged && c.Judgment.Manual {
			v.send(ctx, r.content(protocol.RoleAssistant, r.toolRun(c)))
		}
	}
}

// errContinued means that the view showed further events before endInterrupted could run its action.
var errContinued = errors.New("the chat continued")

// endInterrupted shows the end of a turn that was cut off when eca exited. It waits until the
// session is idle, because a turn that has just stopped may still be writing its end.
func (v *view) endInterrupted() {
	for err := errContinued; errors.Is(err, errContinued); {
		state, failed := v.session.IdleState().Wait(v.views.ctx)
		if failed != nil || !state.Idle {
			return
		}
		err = v.runAfter(v.views.ctx, state.Next, func(ctx context.Context) error {
			switch {
			case !v.followsTurn(), v.session.RunsElsewhere():
				return nil
			case v.reader.Position() > state.Next:
				return errContinued
			}
			for _, c := range v.renderer.fold.Calls() {
				if !c.Ended() {
					c.Stage, c.Rejection = transcript.Rejected, event.ToolRejected{CallID: c.CallID, Reason: event.Interrupted}
					v.send(ctx, v.renderer.showCall(c))
				}
			}
			clear(v.renderer.turns)
			v.send(ctx, v.renderer.endTurn(event.TurnFinished{Reason: event.FinishedInterrupted}))
			return nil
		})
	}
}

// pause is the state of a paused view. Meanwhile, the view's goroutine only runs the steps that it
// receives.
type pause struct{ steps chan pauseStep }

type pauseStep struct {
	run       func(ctx context.Context) error
	endsPause bool
	err       chan error
}

// pausedView returns the view of a chat and its pause; either may be nil.
func (s *Server) pausedView(chatID string) (v *view, state *pause) {
	v, ok := s.views.viewOf(chatID)
	if !ok || v.hasEnded() {
		return nil, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v, v.pause
}

// pauseChat pauses a chat between two events. It returns false if the client does not follow the chat.
func (s *Server) pauseChat(ctx context.Context, p followParams) (bool, error) {
	v, state := s.pausedView(p.ChatID)
	if v == nil {
		return false, nil
	}
	if state != nil {
		return false, errors.New("the chat is already paused")
	}
	state = &pause{steps: make(chan pauseStep)}
	v.mu.Lock()
	v.pause = state
	v.mu.Unlock()
	paused := make(chan struct{})
	s.background(func() {
		_ = v.runAfter(s.ctx, 0, func(ctx context.Context) error {
			close(paused)
			state.wait(ctx)
			v.mu.Lock()
			defer v.mu.Unlock()
			v.pause = nil
			return nil
		})
	})
	select {
	case <-paused:
		return true, nil
	case <-v.done:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// wait runs the steps of a pause until the last one.
func (p *pause) wait(ctx context.Context) {
	timer := time.NewTimer(maxPause)
	defer timer.Stop()
	for {
		select {
		case step := <-p.steps:
			step.err <- step.run(ctx)
			if step.endsPause {
				return
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// runStep runs a step of a chat's pause; endsPause says that the step ends the pause. ok is false if the
// chat is not paused.
func (s *Server) runStep(ctx context.Context, chatID string, endsPause bool, run func(*view, context.Context) error) (ok bool, err error) {
	v, state := s.pausedView(chatID)
	if state == nil {
		return false, nil
	}
	step := pauseStep{run: func(ctx context.Context) error { return run(v, ctx) }, endsPause: endsPause, err: make(chan error, 1)}
	ctx, cancel := context.WithTimeout(ctx, maxPause)
	defer cancel()
	select {
	case state.steps <- step:
	case <-v.done:
		return false, nil
	case <-ctx.Done():
		return false, nil
	}
	select {
	case err := <-step.err:
		return err == nil, err
	case <-v.done:
		return false, nil
	}
}

// advanceChat shows the events of a paused chat before the event p.Seq.
func (s *Server) advanceChat(ctx context.Context, p followParams) (bool, error) {
	return s.runStep(ctx, p.ChatID, false, func(v *view, ctx context.Context) error {
		for v.reader.Position() < p.Seq {
			e, ok, err := v.reader.Try(ctx)
			if err != nil {
				return err
			}
			if !ok && v.reader.Position() < p.Seq {
				return errNoPosition
			}
			if ok && e.Seq >= p.Seq { // the reader moved past an event that had no more text
				v.reader = v.session.ReadAt(p.Seq, 0)
				return nil
			}
			if err := v.show(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// releaseChat ends the pause of a chat.
func (s *Server) releaseChat(ctx context.Context, p followParams) (bool, error) {
	return s.runStep(ctx, p.ChatID, true, func(v *view, ctx context.Context) error {
		if p.Remind {
			v.remind(ctx)
		}
		return nil
	})
}
