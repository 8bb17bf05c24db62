package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// recoveryPause is how long a view waits before it tries to read its chat again, after the engine's
// own retries (eventlog.Reader) did not help.
const recoveryPause = 250 * time.Millisecond

// resumeReading continues after the chat could not be read. It notifies the user, sets the client's chat
// to idle, and replays the chat as soon as it can be read. It returns false if that will never be
// possible.
func (v *view) resumeReading(ctx context.Context, cause error) (ok bool) {
	v.views.log.Error("cannot show a chat", "chat", v.chatID, "err", cause)
	v.endWaits(ctx, cause)
	for {
		select {
		case <-time.After(recoveryPause):
		case <-v.session.Done(): // the chat was deleted, or the engine ends
			return false
		case <-ctx.Done():
			return false
		}
		if err := v.clearAndReplay(ctx); err != nil {
			continue
		}
		if v.followsTurn() {
			v.send(ctx, v.renderer.status("running"))
		}
		v.views.log.Info("chat can be shown again", "chat", v.chatID)
		return true
	}
}

// pauseBeforeRetry waits for recoveryPause. It returns false if ctx ends first.
func pauseBeforeRetry(ctx context.Context) bool {
	select {
	case <-time.After(recoveryPause):
		return true
	case <-ctx.Done():
		return false
	}
}

// endWaits answers every request and ends every turn that the client waits for.
func (v *view) endWaits(ctx context.Context, cause error) {
	v.mu.Lock()
	expected := slices.Collect(maps.Values(v.requests))
	ids := slices.Collect(maps.Keys(v.requests))
	clear(v.requests)
	v.mu.Unlock()
	v.awaitResponse(ctx)
	for _, t := range expected {
		v.pendingRequest = t
		v.awaitResponse(ctx)
	}
	v.stopChildren()
	if len(ids) > 0 { // the client has not seen the beginning of these turns, so show it before their end
		v.send(ctx, v.renderer.status("running"))
	}
	for _, id := range ids {
		v.renderer.turns[id] = true
	}
	text := "\n\nThis chat cannot be shown at the moment: " + cause.Error() + "\nNothing of it is lost. It appears here again as soon as it can be read.\n"
	v.send(ctx, v.renderer.text(text))
	if v.followsTurn() {
		v.send(ctx, v.renderer.endTurn(event.TurnFinished{Reason: event.FinishedFailed}))
	}
	v.renderer = newRenderer(v.chatID, v.views.host.Config())
	v.renderer.statusSent = true
}

// followsTurn reports whether the view is in a turn whose end it has not shown yet.
func (v *view) followsTurn() bool { return v.renderer.inTurn() }

// clearAndReplay clears the chat at the client and shows it again, for example after an edit
// (eca-protocol.md 8).
func (v *view) clearAndReplay(ctx context.Context) error {
	span, err := v.session.Window(ctx, chat.Window{})
	if err != nil {
		return err
	}
	v.views.notify(ctx, "chat/cleared", protocol.ChatCleared{ChatID: v.chatID, Messages: true})
	if err := v.replay(ctx, span); err != nil {
		return err
	}
	if meta := v.session.Meta(); meta.Title != v.title {
		v.showTitle(ctx, meta)
	}
	v.sendPosition(ctx)
	return nil
}
