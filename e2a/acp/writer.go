package acp

import (
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// updateWriter is a turn.Viewer that converts items to session updates (acp-a2a.md C2), for one
// turn or for the history of a session.
type updateWriter struct {
	session *session
	dialog  *dialog // asks the user; nil for the history
	// endedWithQuestion means that the turn was stopped to ask a question as text. Later notices would
	// only report that it was stopped.
	endedWithQuestion bool

	message string // id of the current message; empty means that the next text starts one
	last    string // the last text shown in the turn
	notice  string // held back until the next item, because it may repeat the error that ends the turn
	calls   map[string]*shownCall
}

func newWriter(s *session, d *dialog) *updateWriter {
	return &updateWriter{session: s, dialog: d, calls: map[string]*shownCall{}}
}

// Show implements turn.Viewer.
func (w *updateWriter) Show(c transcript.Change) error {
	switch item := c.Item.(type) {
	case transcript.Reasoning:
		if item.Piece == "" {
			return nil
		}
	case transcript.Turn:
		switch {
		case item.End == nil:
		case w.dialog == nil && item.End.Reason == event.FinishedInterrupted: // the history shows that it was cut off
			if err := w.flushNotice(); err != nil {
				return err
			}
			w.notice = transcript.InterruptedText
			return w.flushNotice()
		default:
			return nil // the answer to the prompt contains it
		}
	case transcript.Report, transcript.Hook, transcript.Flag:
		return nil // not part of the protocol
	default:
	}
	if err := w.flushNotice(); err != nil {
		return err
	}
	s := w.session
	switch item := c.Item.(type) {
	case transcript.Prompt:
		w.message, w.last = "", ""
		return s.update(messageChunk("user_message_chunk", item.Text, item.ContentID))
	case transcript.Answer:
		return w.text(item.Piece)
	case transcript.Reasoning:
		w.message = ""
		return s.update(messageChunk("agent_thought_chunk", item.Piece, item.ID))
	case transcript.Call:
		w.message = ""
		return w.showCall(item)
	case transcript.Usage:
		return w.usage(item)
	case transcript.Title:
		return s.showTitle(item.Title)
	case transcript.Notice:
		return w.showNotice(item.Text)
	case transcript.Compaction:
		if s.agent.clientCapabilities().Session.Value.Compaction == nil {
			return nil
		}
		return s.update(update{Kind: "compaction_update", CompactionID: s.agent.opts.NewID(), Status: "completed"})
	case transcript.NoTasks:
		return s.update(update{Kind: "plan", Entries: []planEntry{}})
	case transcript.Turn, transcript.Progress, transcript.Report, transcript.Hook, transcript.Flag:
		// the client shows that a turn is running
	}
	return nil
}

// Ask implements turn.Viewer.
func (w *updateWriter) Ask(q turn.Question) error {
	if err := w.flushNotice(); err != nil {
		return err
	}
	ends, err := w.dialog.question(q, w.separator())
	w.endedWithQuestion = w.endedWithQuestion || ends
	return err
}

// text shows a piece of the model's message.
func (w *updateWriter) text(text string) error {
	if w.message == "" {
		w.message = w.session.agent.opts.NewID()
	}
	if text != "" {
		w.last = text
	}
	return w.session.update(messageChunk(agentMessage, text, w.message))
}

// showNotice shows a message from eca itself.
func (w *updateWriter) showNotice(text string) error {
	if text = strings.TrimSpace(text); text == "" || w.endedWithQuestion {
		return nil
	}
	if w.session.agent.clientCapabilities().Session.Value.Notices != nil {
		if w.dialog == nil {
			return nil // notices are not part of a session's history
		}
		return w.session.update(update{Kind: "notice", Severity: "info", Title: text})
	}
	w.notice = text
	if w.dialog == nil {
		return w.flushNotice()
	}
	return nil
}

// flushNotice shows the pending notice.
func (w *updateWriter) flushNotice() error {
	text := w.notice
	if text == "" {
		return nil
	}
	w.notice, w.message = "", ""
	text = w.separator() + text
	w.last = text
	return w.session.update(messageChunk(agentMessage, text, w.session.agent.opts.NewID()))
}

// end shows the pending notice when the turn has ended, with or without an error. Clients show the
// error themselves, some of them directly after the text, in a Markdown fence that must start on a
// new line. A user who cancelled the turn needs no notice about that.
func (w *updateWriter) end(failed error, cancelled bool) error {
	if cancelled {
		w.notice = ""
		return nil
	}
	if failed != nil && w.notice != "" && strings.Contains(failed.Error(), w.notice) {
		w.notice = ""
	}
	if err := w.flushNotice(); err != nil || failed == nil || w.last == "" || strings.HasSuffix(w.last, "\n") {
		return err
	}
	return w.text("\n\n")
}

// separator returns the separator before eca's own text, because some clients join all messages of a turn.
func (w *updateWriter) separator() string {
	if w.last != "" {
		return "\n\n"
	}
	return ""
}

// usage shows how full the context is. It ignores side requests, which have a context of their own,
// and models whose context limit is unknown.
func (w *updateWriter) usage(u transcript.Usage) error {
	if u.Purpose != "" || u.ContextLimit <= 0 {
		return nil
	}
	used := max(0, u.InputTokens+u.OutputTokens+u.CacheReadTokens+u.CacheWriteTokens)
	shown := update{Kind: "usage_update", Size: u.ContextLimit, Used: &used}
	if u.TotalCost != nil {
		shown.Cost = &cost{*u.TotalCost, "USD"}
	}
	return w.session.update(shown)
}
