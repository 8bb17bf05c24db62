package server

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// notification is one outgoing message.
type notification struct {
	Method string
	Params any
}

// renderer turns the items of a chat's transcript into notifications (eca-protocol.md, sections 7 and
// 8). Its state is the transcript so far and the stages of calls that the client was sent.
type renderer struct {
	chatID     string
	parent     string // set for a subagent's chat
	client     client
	cfg        *config.Loaded
	fold       *transcript.Fold
	turns      map[string]bool             // turns that began while the client followed the chat
	stages     map[string]transcript.Stage // of the calls, as last sent to the client
	tasks      *protocol.TaskDetails       // the list of tasks as last shown; nil if unknown
	statusSent bool                        // the client knows whether the chat is running
	// startedElsewhere reports whether a turn was started by another process. The content of such a turn
	// is shown, but not its beginning and end, because clients would take these for those of their
	// own prompt. Nil means no turn.
	startedElsewhere func(turn string) bool

	// beforeEnd returns the notifications to send before the end of a call: those of its subagent.
	// It is nil in views, which show subagents live.
	beforeEnd func(transcript.Call) []notification

	lastUsage  event.UsageReported // of the conversation
	afterTurns []notification      // sent after the end of the turn
}

func newRenderer(chatID string, cfg *config.Loaded) *renderer {
	return &renderer{
		chatID: chatID, cfg: cfg, fold: transcript.NewPieces(), turns: map[string]bool{}, stages: map[string]transcript.Stage{},
		tasks: new(taskDetails(&event.Tasks{})),
	}
}

// showLive returns the notifications for an event. Events of a turn that began before the renderer was
// created produce no notifications, because the client does not know the turn.
func (r *renderer) showLive(e event.Event) []notification {
	if _, ok := e.Body.(event.UserMessage); ok || e.Turn == "" {
		r.turns[e.Turn] = true
	}
	// Contexts are parsed before the user's message is recorded.
	if _, ok := e.Body.(event.Progress); !ok && !r.turns[e.Turn] {
		return nil
	}
	c, ok := r.fold.Add(e)
	if !ok || r.parent != "" && !visibleInChild(c.Item) {
		return nil
	}
	if t, ok := c.Item.(transcript.Turn); ok && t.End != nil {
		delete(r.turns, e.Turn)
	}
	if t, ok := c.Item.(transcript.Turn); ok && r.startedElsewhere != nil && r.startedElsewhere(e.Turn) {
		return r.showOtherProcessTurn(t)
	}
	return r.render(c)
}

// inTurn reports whether the end of a turn has not been seen yet.
func (r *renderer) inTurn() bool {
	for id := range r.turns {
		if id != "" {
			return true
		}
	}
	return false
}

// render shows a change of an item.
func (r *renderer) render(c transcript.Change) []notification {
	switch item := c.Item.(type) {
	case transcript.Prompt:
		return r.content(protocol.RoleUser, protocol.TextContent{Type: "text", ContentID: item.ContentID, Text: item.Text + "\n"})
	case transcript.Answer:
		return r.content(protocol.RoleAssistant, protocol.TextContent{Type: "text", Text: item.Piece})
	case transcript.Reasoning:
		content := protocol.ReasonContent{Type: "reasonText", ID: item.ID, Text: item.Piece}
		switch {
		case item.Ended:
			content.Type, content.TotalTimeMs = "reasonFinished", new(displayMillis(item.ElapsedMS))
		case c.Began() && item.Piece == "":
			content.Type = "reasonStarted"
		}
		return r.content(protocol.RoleAssistant, content)
	case transcript.Call:
		return r.showCall(item)
	case transcript.Notice:
		return r.content(r.noticeRole(item), protocol.TextContent{Type: "text", Text: item.Text})
	case transcript.Report:
		return r.text(reportText(item))
	case transcript.Compaction:
		return r.compaction(item)
	case transcript.Usage:
		if item.Purpose != "" {
			return nil
		}
		r.lastUsage = item.UsageReported
		return r.content(protocol.RoleSystem, r.usage(item.UsageReported))
	case transcript.Turn:
		if item.End == nil {
			return r.status("running")
		}
		out := append(r.endTurn(*item.End), r.afterTurns...)
		r.afterTurns = nil
		return out
	case transcript.Title:
		return r.content(protocol.RoleSystem, protocol.MetadataContent{Type: "metadata", Title: item.Title})
	case transcript.Progress:
		return r.content(protocol.RoleSystem, protocol.ProgressContent{Type: "progress", State: "running", Text: item.Text})
	case transcript.Hook:
		if !item.Ended {
			return r.content(protocol.RoleSystem, protocol.HookStarted{Type: "hookActionStarted", ID: item.ID, Name: item.Name, ActionType: item.Action})
		}
		return r.content(protocol.RoleSystem, protocol.HookFinished{
			Type: "hookActionFinished", ID: item.ID, Name: item.Name, ActionType: item.Action,
			Status: item.Status, Output: item.Output, Error: item.Error, Failed: item.Failed, ToolCallID: item.CallID,
		})
	case transcript.NoTasks:
		r.tasks = new(taskDetails(&event.Tasks{}))
		return r.showTasks(*r.tasks)
	case transcript.Flag:
		return r.content(protocol.RoleSystem, protocol.FlagContent{Type: "flag", Text: item.Text, ContentID: item.ContentID})
	}
	return nil
}

// compaction shows that a summary has replaced the conversation.
func (r *renderer) compaction(c transcript.Compaction) []notification {
	if r.cfg != nil && r.cfg.Conformance().ReferenceContent {
		r.afterTurns = append(r.text("Compacted chat"), r.content(protocol.RoleSystem, r.usage(afterCompaction(r.lastUsage, c.Summary)))...)
		return nil
	}
	if c.Auto {
		return r.text("\n── Chat auto-compacted ──\n")
	}
	return r.text("\n── Chat compacted ──\n")
}

// endTurn ends a turn. A superseded turn ends silently: only the end of the newer turn is shown
// (eca-protocol.md 4.1).
func (r *renderer) endTurn(b event.TurnFinished) []notification {
	clear(r.stages)
	var out []notification
	switch b.Reason {
	case event.FinishedSuperseded:
		return nil
	case event.FinishedStopped:
		out = r.status("stopping")
	case event.FinishedInterrupted:
		out = r.showInterrupted()
	}
	status := "idle"
	if b.Dialog {
		status = "login" // the only kind of dialog (eca-protocol.md 8.8)
	}
	out = append(out, r.status(status)...)
	return append(out, r.content(protocol.RoleSystem, protocol.ProgressContent{Type: "progress", State: "finished", Reason: string(b.Reason), Incomplete: string(b.Incomplete)})...)
}

// showOtherProcessTurn returns what is shown instead of the beginning and end of another process's turn.
func (r *renderer) showOtherProcessTurn(t transcript.Turn) []notification {
	if t.End == nil {
		return nil
	}
	clear(r.stages)
	out := r.afterTurns
	r.afterTurns = nil
	if t.End.Reason == event.FinishedInterrupted {
		out = append(r.showInterrupted(), out...)
	}
	return out
}

// showInterrupted marks a turn that was cut off when eca exited. Without the mark, a partial answer
// looks complete.
func (r *renderer) showInterrupted() []notification {
	return r.text("\n" + transcript.InterruptedText + "\n")
}

// text shows a text that comes from eca itself.
func (r *renderer) text(text string) []notification {
	return r.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: text})
}

func (r *renderer) content(role string, c protocol.Content) []notification {
	return []notification{{"chat/contentReceived", protocol.ContentReceived{ChatID: r.chatID, ParentChatID: r.parent, Role: role, Content: c}}}
}

func (r *renderer) status(status string) []notification {
	r.statusSent = true
	return []notification{{"chat/statusChanged", protocol.ChatStatusChanged{ChatID: r.chatID, Status: status}}}
}

// afterCompaction estimates the usage of a conversation that a summary has replaced.
func afterCompaction(last event.UsageReported, summary string) event.UsageReported {
	const bytesPerToken = 4
	last.InputTokens, last.OutputTokens, last.CacheReadTokens, last.CacheWriteTokens = int64(len(summary)/bytesPerToken), 0, 0, 0
	return last
}

// noticeRole is the role under which a notice is shown. Clients show system text as it is, in the
// colour of a warning. Answers of commands have headings and tables, which clients render only for
// the assistant.
func (r *renderer) noticeRole(n transcript.Notice) string {
	if n.Markdown && !r.cfg.Conformance().ReferenceContent {
		return protocol.RoleAssistant
	}
	return protocol.RoleSystem
}

// displayMillis returns a duration for clients, at least 1 ms. The chat view that VS Code, the
// desktop client and IntelliJ share shows a bare 0 after the name of a call whose duration is 0.
func displayMillis(ms int64) int64 { return max(1, ms) }
