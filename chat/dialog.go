package chat

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// Dialog is an interactive command, such as /login, that asks the user questions in the chat. While
// it is open, the user's prompts are its input instead of being sent to a model (eca-protocol.md
// 8.8). Its methods are called by one turn at a time.
type Dialog interface {
	// Next handles an input of the user; the first one is the text after the command. It shows
	// texts with say. It may wait; ctx is done if meanwhile the user sends another prompt, which is the
	// next input, or stops the turn. open reports whether the dialog continues.
	Next(ctx context.Context, s *Session, text string, say func(string)) (open bool, err error)
	// Secret reports whether the next input is secret: it is neither stored nor shown.
	Secret() bool
	// Close ends an open dialog.
	Close()
}

// Masked is stored in place of a secret input.
const Masked = "*****"

// progressDialog is shown while a dialog works or waits. The only dialog is /login.
const progressDialog = "Logging in"

// dialogState is the part of a dialog's state that any goroutine may read.
type dialogState int32

const (
	noDialog dialogState = iota
	inDialog
	awaitsSecret
	unknownDialog // the chat's events have not been read yet
)

// dialogSlot holds the open dialog of a chat, if any.
type dialogSlot struct {
	openDialog Dialog       // nil if no dialog is open; owned by the running turn, or else by the session's goroutine
	shownState atomic.Int32 // a dialogState, for other goroutines
}

// InDialog reports whether the next prompt is the input of a dialog.
func (d *dialogSlot) InDialog() bool {
	state := dialogState(d.shownState.Load())
	return state == inDialog || state == awaitsSecret
}

// AwaitsSecret reports whether the next prompt is secret, so that it must not be shown or logged.
func (d *dialogSlot) AwaitsSecret() bool { return dialogState(d.shownState.Load()) == awaitsSecret }

// MayAwaitSecret reports whether the next prompt may be secret. It is true also while the chat's
// events have not been read, for example after a restart.
func (d *dialogSlot) MayAwaitSecret() bool {
	return d.AwaitsSecret() || dialogState(d.shownState.Load()) == unknownDialog
}

// setDialog sets the open dialog; nil means that no dialog is open.
func (d *dialogSlot) setDialog(next Dialog) {
	d.openDialog = next
	state := noDialog
	switch {
	case next == nil:
	case next.Secret():
		state = awaitsSecret
	default:
		state = inDialog
	}
	d.shownState.Store(int32(state))
}

// closeDialog closes the open dialog, if any.
func (d *dialogSlot) closeDialog() {
	if d.openDialog != nil {
		d.openDialog.Close()
		d.setDialog(nil)
	}
}

// continueDialog passes the user's input to the dialog. Before it shows a text of the dialog, it records
// whether the next input is secret.
func (t *turn) continueDialog(d Dialog, text string) error {
	t.session.setDialog(d)
	t.rec.showProgress(progressDialog) // Next may take long
	say := func(text string) {
		t.session.setDialog(d)
		t.rec.emit(event.Notice{Text: text, Markdown: true})
	}
	open, err := d.Next(t.ctx, t.session, text, say)
	switch {
	case errors.Is(context.Cause(t.ctx), errStopped), errors.Is(context.Cause(t.ctx), errShutdown):
		open = false
	case t.ctx.Err() != nil && err != nil: // a new prompt interrupted the dialog
		open = true
	}
	if open {
		t.session.setDialog(d)
	} else {
		t.session.closeDialog()
	}
	return err
}

// lostDialog replaces a dialog that was open when its process ended. Its state is lost, but the user
// may still answer its last question, perhaps with a key.
type lostDialog struct{}

// Next implements Dialog.
func (lostDialog) Next(_ context.Context, _ *Session, _ string, say func(string)) (open bool, err error) {
	say("\nThe login that was open in this chat ended when eca was restarted. Your message may have been a key, so it was neither sent to a model nor kept. Enter `/login` to begin again, or send the message again if it was not meant for the login.\n")
	return false, nil
}

// Secret implements Dialog.
func (lostDialog) Secret() bool { return true }

// Close implements Dialog.
func (lostDialog) Close() {}

// restoreState sets the state for other goroutines once the chat's events have been read. awaitsInput
// reports whether a dialog was open at the last event; its next input counts as secret.
func (d *dialogSlot) restoreState(awaitsInput bool) {
	switch {
	case d.openDialog != nil:
	case awaitsInput:
		d.shownState.Store(int32(awaitsSecret))
	default:
		d.shownState.Store(int32(noDialog))
	}
}

// restoreLostDialog passes the prompt to a lostDialog if a dialog was open when the chat's last process
// ended. If the prompt is a command, that dialog counts as closed.
func (t *turn) restoreLostDialog(isCommand bool) {
	if t.session.openDialog != nil || !read(t.rec, (*history.History).AwaitsDialog) {
		return
	}
	if isCommand {
		t.session.setDialog(nil)
		return
	}
	t.session.setDialog(lostDialog{})
}
