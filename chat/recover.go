package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// llm.WithRetry repeats a request that fails before a part of the answer is shown. Clients cannot
// withdraw text: if an answer breaks off later, its text stays, and eca asks the model to continue it
// (eca-features.md 8).

// recovery counts the attempts to get a complete answer. It is reset after each round of tool calls.
type recovery struct {
	overflows     int    // consecutive requests that were refused as too long
	continuations int    // requests to continue an answer
	pauses        int    // answers that the provider paused
	text          string // text of the answer so far
}

// Prompts that ask a model to continue. They are stored with the chat, so that its history stays the
// same when they change in a later version.
const (
	promptCut  = "Your last message was cut off by a technical fault. Go on exactly where it ends, without repeating any of it."
	promptCall = " A tool call in it was not complete and did not run; make it again."
	promptCode = "Your last message ends inside of a code block. Go on exactly where it ends, without repeating any of it. If nothing is missing, close the code block."
)

// recoverFromError prepares the next request after a failed one. It returns the error that ends the
// turn if the request cannot be repeated.
func (t *turn) recoverFromError(r *recovery, a *answer, err error) error {
	t.images.trial = false // a request without images has failed, too: they were not the cause
	switch {
	case isContextOverflow(err):
		t.rec.emit(t.openCallRejections()...)
		r.overflows++
		recoverErr := t.compactor.recoverOverflow(r.overflows)
		switch {
		case recoverErr == nil, t.fallBack(recoverErr):
			return nil
		case errors.Is(recoverErr, errTooLong): // a proxy may have refused a request that is not long
			return fmt.Errorf("%w The provider's answer was: %w", recoverErr, err)
		}
		return recoverErr
	case isImageRefusal(err) && t.images.withholdAfterRefusal(err):
		return nil
	case !a.hasOutput && t.fallBack(err):
		return nil
	case t.images.startTrial(a, err):
		return nil
	case a.hasOutput:
		return t.continueAnswer(r, err)
	}
	return err
}

// openCallRejections returns events that end the open calls of an answer that broke off.
func (t *turn) openCallRejections() (out []event.Body) {
	for _, id := range read(t.rec, (*history.History).OpenCalls) {
		out = append(out, event.ToolRejected{CallID: id, Reason: event.Interrupted})
	}
	return out
}

// continueAnswer asks for the rest of an answer that failed in the middle.
func (t *turn) continueAnswer(r *recovery, err error) error {
	var e *llm.Error
	if !errors.As(err, &e) || t.ctx.Err() != nil {
		return err
	}
	r.continuations++
	info, ok := t.model.Retry.Continue(r.continuations, e)
	giveUp := !ok || r.continuations > 1 || info.Delay > fallbackPatience // on this model
	switched := giveUp && t.fallBack(err)
	if !ok && !switched {
		return err
	}
	bodies := t.openCallRejections()
	what, prompt := "to go on", promptCut
	if len(bodies) > 0 {
		prompt += promptCall
	}
	text, hasAnswer := t.rec.lastText()
	if !hasAnswer {
		what, prompt = "again", ""
	}
	r.text += text
	if switched {
		r.continuations = 0
		t.rec.emit(append(bodies, event.Continued{Prompt: prompt})...)
		return nil
	}
	t.rec.emit(append(bodies,
		event.Continued{Text: fmt.Sprintf("\n\n%s Asking the model %s (%d/%d).\n\n", sentence(err), what, info.Attempt, info.Max), Prompt: prompt})...)
	if t.budget.warn().Reached != "" {
		return nil // no pause: before the next request, the turn ends or the user is asked
	}
	t.rec.emit(event.Progress{Retry: true, Text: retryText(e, info, t.session.eng.deps.Now())})
	ctx, _, stop := t.budget.withTimeLimit()
	defer stop()
	if llm.Sleep(ctx, info.Delay) != nil && t.ctx.Err() != nil {
		return context.Cause(t.ctx)
	}
	t.rec.showProgress(progressWaiting)
	return nil
}

// maxPauses limits how often paused answers are resumed between two rounds of tool calls.
const maxPauses = 5

// shouldResume reports whether to resume an answer that the provider paused, by sending the history
// again. It counts the pause.
func (r *recovery) shouldResume(stop llm.StopReason) bool {
	if stop != llm.StopPaused || r.pauses == maxPauses {
		return false
	}
	r.pauses++
	return true
}

// continueCodeBlock asks for the rest of an answer that ends inside a code block, and reports whether
// it did. Some providers cut answers off and report that as a normal end.
func (t *turn) continueCodeBlock(r *recovery, a *answer) bool {
	text, hasAnswer := t.rec.lastText()
	if a.stop != llm.StopEnd || !hasAnswer || text == "" {
		return false
	}
	r.text += text
	if r.continuations >= t.model.Retry.MaxContinues || !endsInCodeBlock(r.text) {
		return false
	}
	r.continuations++
	t.rec.emit(event.Continued{Prompt: promptCode})
	t.rec.showProgress(progressWaiting)
	return true
}

// lastText is History.LastText for the history of the turn.
func (r *turnRecord) lastText() (text string, ok bool) {
	r.withHistory(func(h *history.History) { text, ok = h.LastText() })
	return text, ok
}

// endsInCodeBlock reports whether a Markdown text ends inside a fenced code block.
func endsInCodeBlock(text string) bool {
	open := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		body := strings.TrimLeft(line, " \t") // in lists, fences are indented by more than three spaces
		fence := body[:len(body)-len(strings.TrimLeft(body, "`"))]
		if fence == "" {
			fence = body[:len(body)-len(strings.TrimLeft(body, "~"))]
		}
		switch {
		case len(fence) < 3:
		case open == "":
			if fence[0] != '`' || !strings.Contains(body[len(fence):], "`") {
				open = fence
			}
		case strings.HasPrefix(fence, open) && fence == body:
			open = ""
		}
	}
	return open != ""
}

// sentence returns the text of an error as a sentence.
func sentence(err error) string { return strings.TrimRight(err.Error(), ". ") + "." }
