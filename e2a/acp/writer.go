package acp

import (
	"strings"

	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// updateWriter converts items into session updates (C2), for one turn or for a session's history.
// It keeps the state that later items refer to. It is a turn.Viewer.
type updateWriter struct {
	session *session
	dialog  *dialog // asks the user; nil for the history
	ending  bool    // the turn ends with a question: the user needs no message that it was stopped

	message string // id of the current message; empty means that the next text starts one
	last    string // the last text shown in the turn
	notice  string // shown with the next item: it may be the error that ends the turn
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
		if item.End != nil {
			return nil // the answer to the prompt contains it
		}
	case transcript.Report, transcript.Hook, transcript.Flag:
		return nil // clients of this protocol have no use for them
	default:
	}
	if err := w.release(); err != nil {
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
		return w.call(item)
	case transcript.Usage:
		return w.usage(item)
	case transcript.Title:
		return s.showTitle(item.Title)
	case transcript.Notice:
		return w.inform(item.Text)
	case transcript.Compaction:
		if s.agent.offered().Session.Value.Compaction == nil {
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
	if err := w.release(); err != nil {
		return err
	}
	ends, err := w.dialog.question(q, w.lead())
	w.ending = w.ending || ends
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

// inform shows a message from eca itself.
func (w *updateWriter) inform(text string) error {
	if text = strings.TrimSpace(text); text == "" || w.ending {
		return nil
	}
	if w.session.agent.offered().Session.Value.Notices != nil {
		if w.dialog == nil {
			return nil // notices are only for a user who is present
		}
		return w.session.update(update{Kind: "notice", Severity: "info", Title: text})
	}
	w.notice = text
	if w.dialog == nil {
		return w.release()
	}
	return nil
}

// release shows the pending notice.
func (w *updateWriter) release() error {
	text := w.notice
	if text == "" {
		return nil
	}
	w.notice, w.message = "", ""
	text = w.lead() + text
	w.last = text
	return w.session.update(messageChunk(agentMessage, text, w.session.agent.opts.NewID()))
}

// end shows the remaining text when the turn has ended, with or without an error. Clients show the
// error themselves, some of them directly after the text, in a fence that must start on a new line.
// A user who cancelled a turn knows that it was stopped, and may already be waiting for the next
// one.
func (w *updateWriter) end(failed error, cancelled bool) error {
	if cancelled {
		w.notice = ""
		return nil
	}
	if failed != nil && w.notice != "" && strings.Contains(failed.Error(), w.notice) {
		w.notice = ""
	}
	if err := w.release(); err != nil || failed == nil || w.last == "" || strings.HasSuffix(w.last, "\n") {
		return err
	}
	return w.text("\n\n")
}

// lead precedes eca's own text, because some clients join all messages of a turn.
func (w *updateWriter) lead() string {
	if w.last != "" {
		return "\n\n"
	}
	return ""
}

// usage shows how full the context is. Side requests say nothing about that, and it is unknown
// without a limit.
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
