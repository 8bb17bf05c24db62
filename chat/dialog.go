package chat

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// Dialog is a conversation with eca itself: it begins with a command, and the chat's
// prompts answer it until it is over (eca-protocol 8.8). One turn at a time calls it.
type Dialog interface {
	// Next takes what the user said; the first time, the text after the command. Its
	// answer is shown. It may wait; if ctx ends meanwhile, the user has said something
	// else, which is the next answer. open says that it goes on.
	Next(ctx context.Context, s *Session, text string, say func(string)) (open bool, err error)
	// Secret says that the next answer must be neither recorded nor shown.
	Secret() bool
	// Close ends a dialog that is open.
	Close()
}

// Masked is recorded in place of an answer that is secret.
const Masked = "*****"

// progressDialog is shown while a dialog works or waits; /login is the only one.
const progressDialog = "Logging in"

// dialogState is what others than the session may know of its dialog.
type dialogState int32

const (
	noDialog dialogState = iota
	inDialog
	inSecret
	unknownDialog // the chat's events were not read yet
)

// dialogue is the dialog of a chat, if one is open.
type dialogue struct {
	openDialog  Dialog       // the next prompt answers it; or nil. Lent to the running turn
	dialogState atomic.Int32 // for others than the session, as a dialogState
}

// InDialog says whether the next prompt answers a dialog.
func (d *dialogue) InDialog() bool {
	state := dialogState(d.dialogState.Load())
	return state == inDialog || state == inSecret
}

// AwaitsSecret says whether the next prompt is one that nobody may show or log.
func (d *dialogue) AwaitsSecret() bool { return dialogState(d.dialogState.Load()) == inSecret }

// MayAwaitSecret says whether the next prompt can be one that nobody may log. It is true
// until the chat's events were read, as after a restart.
func (d *dialogue) MayAwaitSecret() bool {
	return d.AwaitsSecret() || dialogState(d.dialogState.Load()) == unknownDialog
}

// setDialog keeps a dialog for the next prompt; nil ends it.
func (d *dialogue) setDialog(next Dialog) {
	d.openDialog = next
	state := noDialog
	switch {
	case next == nil:
	case next.Secret():
		state = inSecret
	default:
		state = inDialog
	}
	d.dialogState.Store(int32(state))
}

// closeDialog ends the dialog, if there is one.
func (d *dialogue) closeDialog() {
	if d.openDialog != nil {
		d.openDialog.Close()
		d.setDialog(nil)
	}
}

// continueDialog gives the dialog the user's answer. The session knows whether the next answer is
// secret before the dialog says anything.
func (t *turn) continueDialog(d Dialog, text string) error {
	t.s.setDialog(d)
	t.rec.enter(progressDialog) // the prompt counts as accepted: this may take long
	say := func(text string) {
		t.s.setDialog(d)
		t.rec.emit(event.Notice{Text: text, Markdown: true})
	}
	open, err := d.Next(t.ctx, t.s, text, say)
	switch {
	case errors.Is(context.Cause(t.ctx), errStopped), errors.Is(context.Cause(t.ctx), errShutdown):
		open = false
	case t.ctx.Err() != nil && err != nil: // it had not come to its end
		open = true
	}
	if open {
		t.s.setDialog(d)
	} else {
		t.s.closeDialog()
	}
	return err
}

// lostDialog stands for a dialog whose process has ended: its state is gone, but the user
// may still answer its last question, which can be the one for a key.
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

// know tells others than the session what the chat's events say of its dialog.
func (d *dialogue) know(awaits bool) {
	switch {
	case d.openDialog != nil:
	case awaits:
		d.dialogState.Store(int32(inSecret))
	default:
		d.dialogState.Store(int32(noDialog))
	}
}

// recallDialog has a prompt that is not a command answer the dialog that was pending when
// the chat's last process ended.
func (t *turn) recallDialog(isCommand bool) {
	if t.s.openDialog != nil || !read(t.rec, (*history.History).AwaitsDialog) {
		return
	}
	if isCommand {
		t.s.setDialog(nil)
		return
	}
	t.s.setDialog(lostDialog{})
}
