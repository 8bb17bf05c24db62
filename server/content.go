package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// notification is one outgoing message.
type notification struct {
	Method string
	Params any
}

// mapper turns a chat's events into notifications (eca-protocol, sections 7 and 8).
// It does nothing but that: its state is what later stages of a tool call repeat.
type mapper struct {
	chatID string
	parent string // of a subagent's chat
	client client
	cfg    *config.Loaded
	turns  map[string]bool // turns that began in front of this client
	calls  map[string]*callState
	tasks  *protocol.TaskDetails // the list of tasks as it was last shown; nil if that is not known
	told   bool                  // a status: the client knows whether the chat runs

	lastUsage  event.UsageReported // of the conversation
	afterTurns []notification      // shown when the turn is over; for test suites
}

type callState struct {
	protocol.ToolCall
	arguments json.RawMessage
	sub       *event.Subagent // that it starts; nil for all other calls
	running   bool
	judged    event.ToolJudged // empty if nothing was said of what it would do
}

// isTask says whether it is a call of the tool task.
func (c *callState) isTask() bool { return c.Server == tools.Native && c.Name == "task" }

// tasksAre shows a list of tasks without a call.
func (m *mapper) tasksAre(list protocol.TaskDetails) []notification {
	if m.client.details(list) == nil {
		return nil
	}
	return m.content(protocol.RoleAssistant, protocol.TaskList{Type: "toolCalled", Server: tools.Native, Name: "task", Details: list})
}

func newMapper(chatID string, cfg *config.Loaded) *mapper {
	return &mapper{chatID: chatID, cfg: cfg, turns: map[string]bool{}, calls: map[string]*callState{}, tasks: new(taskDetails(&event.Tasks{}))}
}

// newMapper returns a mapper for the connected client.
func (s *Server) newMapper(chatID string) *mapper {
	m := newMapper(chatID, s.host.Config())
	m.client = s.client()
	return m
}

// notifications returns what an event shows. Events of a turn that began before the
// mapper did show nothing: the client knows nothing of it.
func (m *mapper) notifications(e event.Event) []notification {
	if _, ok := e.Body.(event.UserMessage); ok || e.Turn == "" {
		m.turns[e.Turn] = true
	}
	// Contexts are parsed before the user's message is recorded.
	if _, ok := e.Body.(event.Progress); !ok && !m.turns[e.Turn] {
		return nil
	}
	if m.parent != "" && !ofChild(e.Body) {
		return nil
	}
	switch b := e.Body.(type) {
	case event.Report:
		return m.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: reportText(b)})
	case event.UserMessage:
		return m.content(protocol.RoleUser, protocol.TextContent{Type: "text", ContentID: b.ContentID, Text: b.Text + "\n"})
	case event.TurnStarted:
		return m.status("running")
	case event.Progress:
		return m.content(protocol.RoleSystem, protocol.ProgressContent{Type: "progress", State: "running", Text: b.Text})
	case event.TextDelta:
		return m.content(protocol.RoleAssistant, protocol.TextContent{Type: "text", Text: b.Text})
	case event.ReasoningStarted:
		return m.content(protocol.RoleAssistant, protocol.ReasonContent{Type: "reasonStarted", ID: b.ID})
	case event.ReasoningDelta:
		return m.content(protocol.RoleAssistant, protocol.ReasonContent{Type: "reasonText", ID: b.ID, Text: b.Text})
	case event.ReasoningFinished:
		return m.content(protocol.RoleAssistant, protocol.ReasonContent{Type: "reasonFinished", ID: b.ID, TotalTimeMs: new(took(b.ElapsedMS))})
	case event.ToolProposed, event.ToolArgsDelta, event.ToolJudged, event.ToolStarted, event.ToolUpdated, event.ToolFinished, event.ToolRejected:
		return m.tool(b)
	case event.Compacted:
		text := "\n── Chat compacted ──\n"
		if b.Auto {
			text = "\n── Chat auto-compacted ──\n"
		}
		if m.cfg != nil && m.cfg.Env == config.EnvTest { // there, a compaction is told as the reference server does
			m.afterTurns = append(m.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: "Compacted chat"}), m.content(protocol.RoleSystem, m.usage(afterCompaction(m.lastUsage, b.Summary)))...)
			return nil
		}
		return m.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: text})
	case event.UsageReported:
		if b.Purpose != "" {
			return nil
		}
		m.lastUsage = b
		return m.content(protocol.RoleSystem, m.usage(b))
	case event.TitleChanged:
		return m.content(protocol.RoleSystem, protocol.MetadataContent{Type: "metadata", Title: b.Title})
	case event.Notice:
		return m.content(m.noticeRole(b), protocol.TextContent{Type: "text", Text: b.Text})
	case event.Continued:
		if b.Text == "" {
			return nil
		}
		return m.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: b.Text})
	case event.ImagesRefused:
		return m.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: b.Text})
	case event.HookStarted:
		return m.content(protocol.RoleSystem, protocol.HookStarted{Type: "hookActionStarted", ID: b.ID, Name: b.Name, ActionType: b.Action})
	case event.HookFinished:
		return m.content(protocol.RoleSystem, protocol.HookFinished{
			Type: "hookActionFinished", ID: b.ID, Name: b.Name, ActionType: b.Action,
			Status: b.Status, Output: b.Output, Error: b.Error, ToolCallID: b.CallID,
		})
	case event.TasksCleared:
		m.tasks = new(taskDetails(&event.Tasks{}))
		return m.tasksAre(*m.tasks)
	case event.TurnFinished:
		delete(m.turns, e.Turn)
		out := append(m.finished(b), m.afterTurns...)
		m.afterTurns = nil
		return out
	}
	return nil
}

// finished ends a turn. A superseded one ends in silence: the newer turn's end is
// the only one (4.1).
func (m *mapper) finished(b event.TurnFinished) []notification {
	clear(m.calls)
	var out []notification
	switch b.Reason {
	case event.FinishedSuperseded:
		return nil
	case event.FinishedStopped:
		out = m.status("stopping")
	case event.FinishedInterrupted:
		out = m.interrupted()
	}
	status := "idle"
	if b.Dialog {
		status = "login" // the only dialog there is (8.8)
	}
	out = append(out, m.status(status)...)
	return append(out, m.content(protocol.RoleSystem, protocol.ProgressContent{Type: "progress", State: "finished", Reason: string(b.Reason)})...)
}

// interrupted marks a turn that eca did not live to finish: without it, half an answer looks
// like a whole one.
func (m *mapper) interrupted() []notification {
	return m.content(protocol.RoleSystem, protocol.TextContent{Type: "text", Text: "\nInterrupted: eca ended before this turn was finished\n"})
}

// tool maps the stages of a tool call.
func (m *mapper) tool(body event.Body) []notification {
	switch b := body.(type) {
	case event.ToolProposed:
		c := &callState{arguments: json.RawMessage("{}"), ToolCall: protocol.ToolCall{
			ID: b.CallID, Name: b.Name, Server: b.Server, Origin: b.Origin, Summary: b.Summary,
		}}
		c.Summary = c.words(c.Summary)
		m.calls[b.CallID] = c
		return m.content(protocol.RoleAssistant, protocol.ToolPrepare{Type: "toolCallPrepare", ToolCall: c.ToolCall})
	case event.ToolArgsDelta:
		c := m.call(b.CallID)
		return m.content(protocol.RoleAssistant, protocol.ToolPrepare{Type: "toolCallPrepare", ToolCall: c.ToolCall, ArgumentsText: b.Text})
	case event.ToolJudged:
		c := m.call(b.CallID)
		c.arguments, c.Details = b.Arguments, m.client.details(details(b.Details))
		if b.Details != nil {
			c.sub = b.Details.Subagent
		}
		if b.Summary != "" {
			c.judged = b
			c.Summary = m.summary(c, announced)
		}
		return m.content(protocol.RoleAssistant, protocol.ToolRun{
			Type: "toolCallRun", ToolCall: c.ToolCall, Arguments: c.arguments, ManualApproval: b.Manual, SandboxOffer: b.Offer && b.Manual, Permission: permission(b),
		})
	case event.ToolStarted:
		c := m.call(b.CallID)
		c.running, c.Summary = true, m.summary(c, running)
		return m.content(protocol.RoleAssistant, protocol.ToolRunning{Type: "toolCallRunning", ToolCall: c.ToolCall, Arguments: c.arguments})
	case event.ToolUpdated:
		c := m.call(b.CallID)
		c.Details = m.client.details(details(b.Details))
		return m.content(protocol.RoleAssistant, protocol.ToolRunning{Type: "toolCallRunning", ToolCall: c.ToolCall, Arguments: c.arguments})
	case event.ToolFinished:
		c := m.call(b.CallID)
		c.running, c.Summary = false, m.summary(c, finished)
		if d := details(b.Details); d != nil {
			c.Details = d
		} else if c.isTask() && m.tasks != nil { // it failed: clients show a list in the making until they get one
			c.Details = *m.tasks
		} else if c.Details == nil {
			c.Details = jsonDetails(b.Outputs)
		}
		if b.Details != nil && b.Details.Tasks != nil {
			m.tasks = new(taskDetails(b.Details.Tasks))
		}
		c.Details = m.client.details(c.Details)
		called := protocol.ToolCalled{
			Type: "toolCalled", ToolCall: c.ToolCall, Arguments: c.arguments,
			Outputs: []protocol.ToolOutput{}, TotalTimeMs: took(b.ElapsedMS),
		}
		if b.Failed || c.Origin != tools.OriginMCP {
			called.Error = &b.Failed
		}
		shown := map[string]bool{} // as pictures; their names are for models that do not take them
		for _, i := range b.Images {
			shown[fmt.Sprintf("[image %s, %d bytes]", i.MediaType, len(i.Data))] = true
		}
		for _, o := range b.Outputs {
			if shown[o] {
				continue
			}
			called.Outputs = append(called.Outputs, protocol.ToolOutput{Type: "text", Text: o})
		}
		out := m.content(protocol.RoleAssistant, called)
		for _, i := range b.Images {
			out = append(out, m.content(protocol.RoleAssistant, protocol.ImageContent{Type: "image", MediaType: i.MediaType, Base64: i.Data})...)
		}
		return out
	case event.ToolRejected:
		c := m.call(b.CallID)
		c.running, c.Summary = false, m.summary(c, rejected)
		if b.Reason == event.RejectedByConfig && c.judged.Reason != "" {
			c.Summary += ": " + c.judged.Reason
		}
		out := m.content(protocol.RoleAssistant, protocol.ToolRejected{
			Type: "toolCallRejected", ToolCall: c.ToolCall, Arguments: c.arguments, Reason: rejectReason(b.Reason),
		})
		if c.isTask() && m.tasks != nil {
			out = append(out, m.tasksAre(*m.tasks)...)
		}
		return out
	}
	return nil
}

// afterCompaction estimates what a conversation takes that a summary has replaced.
func afterCompaction(last event.UsageReported, summary string) event.UsageReported {
	const bytesPerToken = 4
	last.InputTokens, last.OutputTokens, last.CacheReadTokens, last.CacheWriteTokens = int64(len(summary)/bytesPerToken), 0, 0, 0
	return last
}

// noticeRole is who says a notice. Clients show what the system says as it is written, in the
// colour of a warning; what a command answers has headings and tables, which they render
// when the assistant says it. Suites that compare traffic know the system alone.
func (m *mapper) noticeRole(n event.Notice) string {
	if n.Markdown && m.cfg.Env != config.EnvTest {
		return protocol.RoleAssistant
	}
	return protocol.RoleSystem
}

// took is a time in milliseconds as clients are told it: at least one. The chat that VS Code,
// the desktop client and IntelliJ share shows a bare 0 behind the name of what took none.
func took(ms int64) int64 { return max(1, ms) }

// permission says what decided about a call. A call that can not run was not judged, and
// so was one of a chat from before verdicts were kept.
func permission(b event.ToolJudged) protocol.Permission {
	p := protocol.Permission{Verdict: b.Decision, Rule: b.Rule, Reason: b.Reason}
	if p.Verdict == "" {
		p.Verdict = "deny"
		if b.Manual {
			p.Verdict = "ask"
		} else if b.Rule != "" {
			p.Verdict = "allow"
		}
		if p.Reason == "" {
			p.Reason = "the decision is not on record"
		}
	}
	return p
}

// rejectReason maps a reason to one of those the protocol lists (7.1).
func rejectReason(r event.RejectReason) string {
	switch r {
	case event.Interrupted:
		return "userStop"
	case event.StoppedByHook:
		return string(event.RejectedByHook)
	}
	return string(r)
}

// call returns the state of a call; one that was never announced gets an empty one.
func (m *mapper) call(id string) *callState {
	c, ok := m.calls[id]
	if !ok {
		c = &callState{arguments: json.RawMessage("{}"), ToolCall: protocol.ToolCall{ID: id, Server: "unknown", Origin: "unknown"}}
		m.calls[id] = c
	}
	return c
}

func (m *mapper) content(role string, c protocol.Content) []notification {
	return []notification{{"chat/contentReceived", protocol.ContentReceived{ChatID: m.chatID, ParentChatID: m.parent, Role: role, Content: c}}}
}

func (m *mapper) status(status string) []notification {
	m.told = true
	return []notification{{"chat/statusChanged", protocol.ChatStatusChanged{ChatID: m.chatID, Status: status}}}
}

func details(d *event.Details) protocol.Details {
	switch {
	case d == nil:
		return nil
	case d.FileChange != nil:
		f := d.FileChange
		return protocol.FileChangeDetails{Type: "fileChange", Path: f.Path, Diff: f.Diff, LinesAdded: f.LinesAdded, LinesRemoved: f.LinesRemoved}
	case d.ShellCommand != nil:
		out := protocol.ShellCommandDetails{Type: "shellCommand", Commands: []protocol.ShellCommand{}, Background: d.ShellCommand.Background, Sandbox: (*protocol.Sandbox)(d.ShellCommand.Sandbox)}
		for _, c := range d.ShellCommand.Commands {
			args := c.Args
			if args == nil {
				args = []string{}
			}
			out.Commands = append(out.Commands, protocol.ShellCommand{Command: c.Name, Args: args, ApprovalKey: c.Key, Remembered: c.Remembered})
		}
		for _, e := range d.ShellCommand.Effects {
			out.Effects = append(out.Effects, protocol.Effect(e))
		}
		return out
	case d.Tasks != nil:
		return taskDetails(d.Tasks)
	case d.Subagent != nil:
		s := d.Subagent
		return protocol.SubagentDetails{
			Type: "subagent", SubagentChatID: s.ChatID, Model: s.Model, AgentName: s.Agent, Step: s.Step, MaxSteps: s.MaxSteps, Variant: s.Variant,
		}
	}
	return nil
}

// taskDetails shows a list of tasks (7.4).
func taskDetails(l *event.Tasks) protocol.TaskDetails {
	out := protocol.TaskDetails{Type: "task", Tasks: []protocol.Task{}, InProgress: []int{}, ActiveSummary: l.ActiveSummary}
	for _, t := range l.Tasks {
		out.Tasks = append(out.Tasks, protocol.Task{
			ID: t.ID, Subject: t.Subject, Description: t.Description, Status: string(t.Status), Priority: t.Priority,
			IsBlocked: t.Blocked, BlockedBy: t.BlockedBy,
		})
		switch t.Status {
		case event.TaskDone:
			out.Summary.Done++
		case event.TaskInProgress:
			out.Summary.InProgress++
			out.InProgress = append(out.InProgress, t.ID)
		default:
			out.Summary.Pending++
		}
	}
	out.Summary.Total = len(l.Tasks)
	return out
}

// jsonDetails shows outputs that are JSON objects or lists (7.4).
func jsonDetails(outputs []string) protocol.Details {
	var jsons []string
	for _, o := range outputs {
		raw := bytes.TrimSpace([]byte(o))
		if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' || !json.Valid(raw) {
			continue
		}
		var pretty bytes.Buffer
		if json.Indent(&pretty, raw, "", "  ") == nil {
			jsons = append(jsons, pretty.String())
		}
	}
	if jsons == nil {
		return nil
	}
	return protocol.JSONOutputsDetails{Type: "jsonOutputs", JSONs: jsons}
}

// usage maps usage (7.2). sessionTokens is what the context holds now.
func (m *mapper) usage(u event.UsageReported) protocol.UsageContent {
	used := u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
	out := protocol.UsageContent{Type: "usage", SessionTokens: used}
	if u.Cost != nil {
		out.LastMessageCost = fmt.Sprintf("%.2f", *u.Cost)
		out.MessageCost = out.LastMessageCost
	}
	if u.TotalCost != nil {
		out.SessionCost = fmt.Sprintf("%.2f", *u.TotalCost)
	}
	if u.ContextLimit > 0 && u.OutputLimit > 0 {
		out.Limit = &protocol.UsageLimit{Context: u.ContextLimit, Output: u.OutputLimit}
	}
	breakdown := &protocol.ContextBreakdown{
		Categories: []protocol.ContextCategory{}, UsedTokens: used, ContextLimit: u.ContextLimit, FreeColor: "#5c6370", FreeEmoji: "⬜",
	}
	if u.ContextLimit > 0 {
		out.AutoCompactPercentage = m.cfg.AutoCompactPercentage // of a limit that is known: clients draw it
		free := max(u.ContextLimit-used, 0)
		breakdown.FreeTokens = &free
	}
	for _, s := range u.Share {
		color, emoji := categoryLook(s.Category)
		breakdown.Categories = append(breakdown.Categories, protocol.ContextCategory{Name: s.Category, Tokens: s.Tokens, Color: color, Emoji: emoji})
	}
	out.ContextBreakdown = breakdown
	return out
}

// categoryLook returns the canonical look of a category (7.2).
func categoryLook(name string) (color, emoji string) {
	switch name {
	case "System prompt":
		return "#61afef", "🟦"
	case "Rules":
		return "#c678dd", "🟪"
	case "Skills":
		return "#e5c07b", "🟨"
	case "AGENTS.md":
		return "#d19a66", "🟫"
	case "Tool definitions":
		return "#e8924a", "🟧"
	case "Tool calls":
		return "#e06c75", "🟥"
	}
	return "#98c379", "🟩"
}
