package server

import (
	"fmt"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// isTask reports whether a call uses the native tool task.
func isTask(c transcript.Call) bool { return c.Server == tools.Native && c.Name == "task" }

// showTasks shows a list of tasks without a tool call.
func (r *renderer) showTasks(list protocol.TaskDetails) []notification {
	if r.client.details(list) == nil {
		return nil
	}
	return r.content(protocol.RoleAssistant, protocol.TaskList{Type: "toolCalled", Server: tools.Native, Name: "task", Details: list})
}

// showCall shows the stages of a call that the client has not been sent yet, up to the current one. If
// the stage is the same as before, it shows only what changed.
func (r *renderer) showCall(c transcript.Call) []notification {
	sent := r.stages[c.CallID]
	r.stages[c.CallID] = c.Stage
	var out []notification
	if c.Stage == transcript.Announced || sent == 0 && c.Name != "" {
		out = r.content(protocol.RoleAssistant, protocol.ToolPrepare{Type: "toolCallPrepare", ToolCall: r.toolCall(c, transcript.Announced), ArgumentsText: c.Piece})
	}
	if sent < transcript.Judged && c.Judgment.CallID != "" {
		out = append(out, r.content(protocol.RoleAssistant, r.toolRun(c))...)
	}
	if c.Started && sent < transcript.Running || c.Stage == transcript.Running {
		out = append(out, r.content(protocol.RoleAssistant, protocol.ToolRunning{
			Type: "toolCallRunning", ToolCall: r.toolCall(c, transcript.Running), Arguments: c.Arguments(),
		})...)
	}
	if c.Ended() && c.Started && r.beforeEnd != nil {
		out = append(out, r.beforeEnd(c)...)
	}
	//exhaustive:enforce
	switch c.Stage {
	case transcript.Announced, transcript.Judged, transcript.Running:
	case transcript.Finished:
		out = append(out, r.showResult(c)...)
	case transcript.Rejected:
		out = append(out, r.showRejection(c)...)
	}
	return out
}

// toolCall returns the fields that every stage of a call repeats.
func (r *renderer) toolCall(c transcript.Call, at transcript.Stage) protocol.ToolCall {
	out := protocol.ToolCall{ID: c.CallID, Name: c.Name, Server: c.Server, Origin: c.Origin, Summary: r.summary(c, at)}
	if at > transcript.Announced {
		out.Details = r.client.details(details(c.Details))
	}
	return out
}

func (r *renderer) toolRun(c transcript.Call) protocol.ToolRun {
	needsApproval := c.Judgment.Manual && c.Stage == transcript.Judged
	return protocol.ToolRun{
		Type: "toolCallRun", ToolCall: r.toolCall(c, transcript.Judged), Arguments: c.Arguments(),
		ManualApproval: needsApproval, SandboxOffer: needsApproval && c.Judgment.Offer, Permission: permission(c.Judgment, needsApproval),
	}
}

// showResult shows the result of a call.
func (r *renderer) showResult(c transcript.Call) []notification {
	b := c.Result
	shown := protocol.ToolCalled{
		Type: "toolCalled", ToolCall: r.toolCall(c, transcript.Finished), Arguments: c.Arguments(),
		Outputs: []protocol.ToolOutput{}, TotalTimeMs: displayMillis(b.ElapsedMS),
	}
	switch d := details(b.Details); {
	case d != nil:
		shown.Details = r.client.details(d)
	case isTask(c) && r.tasks != nil: // failed: clients show the list as being updated until they get one
		shown.Details = r.client.details(*r.tasks)
	case shown.Details == nil:
		shown.Details = r.client.details(jsonDetails(b.Outputs))
	}
	if b.Details != nil && b.Details.Tasks != nil {
		r.tasks = new(taskDetails(b.Details.Tasks))
	}
	if b.Failed || c.Origin != tools.OriginMCP {
		shown.Error = &b.Failed
	}
	for _, stop := range b.Stops {
		shown.SandboxStops = append(shown.SandboxStops, protocol.SandboxStop(stop))
	}
	pictures := map[string]bool{} // placeholders for models that do not accept images
	for _, i := range b.Images {
		pictures[fmt.Sprintf("[image %s, %d bytes]", i.MediaType, len(i.Data))] = true
	}
	for _, o := range b.Outputs {
		if !pictures[o] {
			shown.Outputs = append(shown.Outputs, protocol.ToolOutput{Type: "text", Text: o})
		}
	}
	out := r.content(protocol.RoleAssistant, shown)
	for _, i := range b.Images {
		out = append(out, r.content(protocol.RoleAssistant, protocol.ImageContent{Type: "image", MediaType: i.MediaType, Base64: i.Data})...)
	}
	return out
}

// showRejection shows that a call did not run, or was stopped.
func (r *renderer) showRejection(c transcript.Call) []notification {
	b := c.Rejection
	call := r.toolCall(c, transcript.Rejected)
	if b.Reason == event.RejectedByConfig && c.Judgment.Summary != "" && c.Judgment.Reason != "" {
		call.Summary += ": " + c.Judgment.Reason
	}
	out := r.content(protocol.RoleAssistant, protocol.ToolRejected{
		Type: "toolCallRejected", ToolCall: call, Arguments: c.Arguments(), Reason: rejectReason(b.Reason),
	})
	if isTask(c) && r.tasks != nil {
		out = append(out, r.showTasks(*r.tasks)...)
	}
	return out
}

// permission describes how a call was approved or rejected. Calls of imported chats, and of chats
// that are older than verdicts, have no stored verdict; theirs is derived.
func permission(b event.ToolJudged, needsApproval bool) protocol.Permission {
	p := protocol.Permission{Verdict: b.Decision, Rule: b.Rule, Reason: b.Reason, NotRemembered: b.NotRemembered}
	if p.Verdict == "" {
		p.Verdict = "deny"
		if needsApproval {
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

// rejectReason maps a reason to one that the protocol lists (eca-protocol.md 7.1).
func rejectReason(r event.RejectReason) string {
	switch r {
	case event.Interrupted:
		return "userStop"
	case event.StoppedByHook:
		return string(event.RejectedByHook)
	}
	return string(r)
}
