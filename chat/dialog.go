package chat

import (
	"context"
	"errors"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Dialog is a conversation with eca itself: it begins with a command, and the chat's
// prompts answer it until it is over (eca-protocol 8.8). One turn at a time calls it.
type Dialog interface {
	// Next takes what the user said; the first time, what stands behind the command. What
	// it says is shown. It may wait; if ctx ends meanwhile, the user has said something
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

// InDialog says whether the next prompt answers a dialog.
func (s *Session) InDialog() bool {
	state := dialogState(s.talk.Load())
	return state == inDialog || state == inSecret
}

// AwaitsSecret says whether the next prompt is one that nobody may show or log.
func (s *Session) AwaitsSecret() bool { return dialogState(s.talk.Load()) == inSecret }

// MayAwaitSecret says whether the next prompt can be one that nobody may log. It is true
// until the chat's events were read, as after a restart.
func (s *Session) MayAwaitSecret() bool {
	return s.AwaitsSecret() || dialogState(s.talk.Load()) == unknownDialog
}

// setDialog keeps a dialog for the next prompt; nil ends it.
func (s *Session) setDialog(d Dialog) {
	s.dialog = d
	state := noDialog
	switch {
	case d == nil:
	case d.Secret():
		state = inSecret
	default:
		state = inDialog
	}
	s.talk.Store(int32(state))
}

// closeDialog ends the dialog, if there is one.
func (s *Session) closeDialog() {
	if s.dialog != nil {
		s.dialog.Close()
		s.setDialog(nil)
	}
}

// talkOn lets a dialog go on. Before anything is said, it is known whether the answer to
// it is secret.
func (t *turn) talkOn(d Dialog, text string) error {
	t.s.setDialog(d)
	t.enter(progressDialog) // the prompt counts as accepted: this may take long
	say := func(text string) {
		t.s.setDialog(d)
		t.emit(event.Notice{Text: text, Markdown: true})
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

// pendingDialog follows whether the next prompt answers a dialog, as the events tell it.
type pendingDialog struct{ open bool }

// add folds one event.
func (p *pendingDialog) add(b event.Body) {
	switch b := b.(type) {
	case event.UserMessage:
		if !b.Steer {
			p.open = b.Dialog
		}
	case event.TurnFinished:
		p.open = b.Dialog || p.open && b.Reason == event.FinishedInterrupted
	}
}

// lostDialog stands for a dialog whose process has ended: what it knew is gone, but the user
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

// knowDialog tells others than the session what the events say of its dialog.
func (s *Session) knowDialog() {
	switch {
	case s.dialog != nil:
	case s.history.pendingDialog.open:
		s.talk.Store(int32(inSecret))
	default:
		s.talk.Store(int32(noDialog))
	}
}

// recallDialog has a prompt that is not a command answer the dialog that was pending when
// the chat's last process ended.
func (t *turn) recallDialog(isCommand bool) {
	if t.s.dialog != nil || !t.history.pendingDialog.open {
		return
	}
	if isCommand {
		t.s.setDialog(nil)
		return
	}
	t.s.setDialog(lostDialog{})
}
