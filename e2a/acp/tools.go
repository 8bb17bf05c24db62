package acp

import (
	"encoding/json"
	"path/filepath"
	"strconv"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/ask"
	"github.com/seed-dec29ce4/eca/workspace"
)

// shownCall is the state of a call that the client was shown.
type shownCall struct {
	title string
	diffs []diff
}

// setDiffs stores the file change of a call, if it has one.
func (s *shownCall) setDiffs(d *event.Details) {
	if d != nil && d.FileChange != nil {
		s.diffs = diffs(d.FileChange.Path, d.FileChange.Diff)
	}
}

// asContent converts diffs into content of a call.
func asContent(diffs []diff) []any {
	var out []any
	for _, d := range diffs {
		out = append(out, d)
	}
	return out
}

// kindOf returns ACP's kind for a tool of eca or of the model's provider. Tools of MCP servers and of
// the user are "other" (acp-a2a.md A4).
func kindOf(c transcript.Call) string {
	if c.Server != "eca" && c.Origin != tools.OriginServer {
		return "other"
	}
	switch c.Name {
	case "read_file", "directory_tree", "preview_file_change", "fetch_rule", "skill", "editor_diagnostics":
		return "read"
	case "write_file", "edit_file", "multi_edit":
		return "edit"
	case "move_file":
		return "move"
	case "grep", "glob", "repo_map", "editor_definition", "editor_references", "symbols", "web_search":
		return "search"
	case "shell_command", "git", "bg_job":
		return "execute"
	case "web_fetch":
		return "fetch"
	case "task", "spawn_agent", "compact_chat":
		return "think"
	}
	return "other"
}

// summaryOf returns the summary of a call, or "" if it is not known yet.
func summaryOf(c transcript.Call) string {
	if c.Judgment.CallID != "" {
		return c.Judgment.Summary
	}
	return c.Summary
}

// showCall shows the current stage of a call. Arguments are shown when they are complete.
func (w *updateWriter) showCall(c transcript.Call) error {
	shown := w.calls[c.CallID]
	if shown == nil {
		shown = &shownCall{title: oneLine(c.Name)}
		if summary := summaryOf(c); summary != "" {
			shown.title = oneLine(summary)
		}
		w.calls[c.CallID] = shown
		first := update{CallID: c.CallID, Kind: "tool_call", Title: shown.title, Name: toolName(c), CallKind: kindOf(c), Status: "pending"}
		if err := w.session.update(first); err != nil {
			return err
		}
	}
	next := update{CallID: c.CallID, Kind: "tool_call_update"}
	//exhaustive:enforce
	switch c.Stage {
	case transcript.Announced:
	case transcript.Judged:
		return w.showJudged(c, shown, next)
	case transcript.Running:
		next.Status = "in_progress"
		if d := c.Updated; d != nil && d.Subagent != nil {
			next.Content = []any{contentOf(textBlock(subagentLine(d.Subagent)))}
		}
		if err := w.session.update(next); err != nil {
			return err
		}
		return w.plan(c.Updated)
	case transcript.Finished:
		return w.showFinished(c.Result, shown, next)
	case transcript.Rejected:
		next.Status = "failed"
		next.Content = append(asContent(shown.diffs), contentOf(textBlock(refusal(c.Rejection))))
		return w.session.update(next)
	}
	return nil
}

func toolName(c transcript.Call) string {
	if c.Server == "" {
		return c.Name
	}
	return c.Server + "__" + c.Name
}

// showJudged shows a complete call, and asks for permission if necessary. That request repeats all known
// information, because some clients show only the request.
func (w *updateWriter) showJudged(c transcript.Call, shown *shownCall, next update) error {
	shown.title = titleOf(c, shown.title)
	shown.setDiffs(c.Judgment.Details)
	next.Title, next.CallKind, next.RawInput = shown.title, kindOf(c), c.Judgment.Arguments
	if len(shown.diffs) > 0 {
		next.Content = asContent(shown.diffs)
	}
	roots := w.session.instance.Folders
	next.Locations = locations(c, roots)
	if err := w.session.update(next); err != nil {
		return err
	}
	if c.Judgment.Manual && w.dialog != nil {
		next.Kind, next.Status = "", "pending"
		next.Title = permissionTitle(c, shown.title, len(shown.diffs) > 0, roots)
		if len(shown.diffs) > 0 {
			next.Content = asContent(joinHunks(shown.diffs))
		}
		w.dialog.permission(next, c)
	}
	return w.replayQuestion(c)
}

// replayQuestion shows a question of the session's history as text. It does nothing for clients with
// forms, where the question was not part of the conversation.
func (w *updateWriter) replayQuestion(c transcript.Call) error {
	var args struct {
		Question string       `json:"question"`
		Options  []ask.Option `json:"options"`
	}
	if w.dialog != nil || w.session.agent.hasForms() || toolName(c) != "eca__ask_user" {
		return nil
	}
	_ = json.Unmarshal(c.Arguments(), &args) // a malformed call was not a question
	if args.Question == "" {
		return nil
	}
	w.message = ""
	return w.text(questionText(w.separator()+args.Question, args.Options))
}

// showFinished shows the result of a call: the file change of a successful call, otherwise the output.
func (w *updateWriter) showFinished(r event.ToolFinished, shown *shownCall, next update) error {
	shown.setDiffs(r.Details)
	next.Status, next.RawOutput = "completed", &rawOutput{r.Failed, []string{}}
	list := []any{}
	if r.Failed {
		next.Status = "failed"
	} else {
		list = append(list, asContent(shown.diffs)...)
	}
	for _, text := range r.Outputs {
		if text == "" {
			continue
		}
		next.RawOutput.Outputs = append(next.RawOutput.Outputs, text)
		if r.Failed || len(shown.diffs) == 0 {
			list = append(list, contentOf(textBlock(text)))
		}
	}
	for _, i := range r.Images {
		list = append(list, contentOf(content{Data: i.Data, MIMEType: i.MediaType, Type: "image"}))
	}
	next.Content = list
	if err := w.session.update(next); err != nil {
		return err
	}
	return w.plan(r.Details)
}

func refusal(r event.ToolRejected) string {
	if r.Message != "" {
		return r.Message
	}
	switch r.Reason {
	case event.RejectedByUser:
		return "Rejected."
	case event.RejectedByConfig:
		return "Denied by the configuration."
	case event.RejectedByStop:
		return "Stopped."
	case event.RejectedByHook, event.StoppedByHook:
		return "Rejected by a hook."
	case event.Interrupted:
		return "Interrupted."
	default:
		return "Rejected: " + string(r.Reason)
	}
}

func subagentLine(s *event.Subagent) string {
	line := "Subagent " + s.Agent
	if s.Step > 0 {
		line += ", step " + strconv.Itoa(s.Step)
	}
	return line
}

// plan shows the list of tasks in the details of a call, if there is one.
func (w *updateWriter) plan(d *event.Details) error {
	if d == nil || d.Tasks == nil {
		return nil
	}
	entries := []planEntry{}
	for _, task := range d.Tasks.Tasks {
		e := planEntry{task.Subject, task.Priority, "pending"}
		switch task.Status {
		case event.TaskInProgress:
			e.Status = "in_progress"
		case event.TaskDone:
			e.Status = "completed"
		default:
		}
		if e.Priority != "high" && e.Priority != "low" {
			e.Priority = "medium"
		}
		entries = append(entries, e)
	}
	return w.session.update(update{Kind: "plan", Entries: entries})
}

// pathsOf returns the files that a call names, resolved in the same way as by the tools. It returns
// nil for tools other than eca's, whose path argument may mean something else.
func pathsOf(c transcript.Call, roots []string) []string {
	var args struct {
		Path        e2a.Optional[string] `json:"path"`
		Source      e2a.Optional[string] `json:"source"`
		Destination e2a.Optional[string] `json:"destination"`
	}
	if c.Server != "eca" || json.Unmarshal(c.Arguments(), &args) != nil {
		return nil
	}
	var out []string
	for _, path := range []string{args.Path.Value, args.Source.Value, args.Destination.Value} {
		if path != "" && (filepath.IsAbs(path) || kindOf(c) != "other") {
			out = append(out, workspace.Abs(roots, path))
		}
	}
	return out
}

// locations returns the files that a call names, with the line that it concerns.
func locations(c transcript.Call, roots []string) []location {
	var args struct {
		Offset e2a.Optional[int64] `json:"line_offset"`
		Line   e2a.Optional[int64] `json:"line"`
	}
	_ = json.Unmarshal(c.Arguments(), &args) // malformed arguments have no paths either
	line := args.Line.Value
	if args.Offset.Value > 0 {
		line = args.Offset.Value + 1
	}
	if d := c.Judgment.Details; d != nil && d.FileChange != nil {
		line = firstLine(d.FileChange.Diff)
	}
	if line < 0 || line >= 1<<31 {
		line = 0
	}
	var out []location
	for _, path := range pathsOf(c, roots) {
		out = append(out, location{line, path})
	}
	return out
}
