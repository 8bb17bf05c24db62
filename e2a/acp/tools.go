package acp

import (
	"encoding/json"
	"maps"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/workspace"
)

// stage is a chunk about a tool call, as the gateway makes it.
type stage struct {
	Phase     string          `json:"phase"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Server    string          `json:"server"`
	Origin    string          `json:"origin"`
	Manual    bool            `json:"manual_approval"`
	Summary   string          `json:"summary"`
	Arguments json.RawMessage `json:"arguments"`
	Outputs   []output        `json:"outputs"`
	Error     bool            `json:"error"`
	Reason    string          `json:"reason"`
	Message   string          `json:"message"`
	Details   *details        `json:"details"`
}

type output struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	MIMEType string `json:"mime_type"`
	Data     string `json:"data"`
}

// details are those of the log that a client can show.
type details struct {
	FileChange *struct {
		Path string `json:"path"`
		Diff string `json:"diff"`
	} `json:"fileChange"`
	Tasks *struct {
		Tasks []struct {
			Subject  string `json:"subject"`
			Status   string `json:"status"`
			Priority string `json:"priority"`
		} `json:"tasks"`
	} `json:"tasks"`
	Subagent *struct {
		Agent string `json:"agent"`
		Step  int    `json:"step"`
	} `json:"subagent"`
}

// shownCall is a call that the client knows.
type shownCall struct {
	title string
	diffs []any // what it changes, as it was told
}

// kinds of the tools of ours; others are other (A4).
func kindOf(s stage) string {
	if s.Server != "eca" {
		return "other"
	}
	switch s.Name {
	case "read_file", "directory_tree", "preview_file_change", "fetch_rule", "skill", "editor_diagnostics":
		return "read"
	case "write_file", "edit_file", "multi_edit":
		return "edit"
	case "move_file":
		return "move"
	case "grep", "glob", "repo_map", "editor_definition", "editor_references", "web_search":
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

// tool tells a stage of a call. Arguments are told when they are complete.
func (t *teller) tool(s stage) error {
	shown := t.calls[s.ID]
	if shown == nil {
		shown = &shownCall{title: oneLine(s.Name)}
		if s.Summary != "" {
			shown.title = oneLine(s.Summary)
		}
		t.calls[s.ID] = shown
		err := t.update("tool_call", object{
			"toolCallId": s.ID, "title": shown.title, "name": toolName(s), "kind": kindOf(s), "status": "pending",
		})
		if err != nil {
			return err
		}
	}
	what := object{"toolCallId": s.ID}
	switch s.Phase {
	case "run":
		return t.judged(s, shown, what)
	case "running":
		what["status"] = "in_progress"
		if d := s.Details; d != nil && d.Subagent != nil {
			what["content"] = []any{contentOf(textBlock(subagentLine(d)))}
		}
		if err := t.update("tool_call_update", what); err != nil {
			return err
		}
		return t.plan(s.Details)
	case "called":
		return t.called(s, shown, what)
	case "rejected":
		what["status"] = "failed"
		what["content"] = append(shown.diffs, contentOf(textBlock(refusal(s))))
		return t.update("tool_call_update", what)
	}
	return nil
}

func toolName(s stage) string {
	if s.Server == "" {
		return s.Name
	}
	return s.Server + "__" + s.Name
}

func contentOf(block object) object { return object{"type": "content", "content": block} }

// judged tells a call that is complete, and asks about it if need be. The request repeats
// all that is known: several clients show only that.
func (t *teller) judged(s stage, shown *shownCall, what object) error {
	shown.title = titleOf(s, shown.title)
	what["title"], what["kind"] = shown.title, kindOf(s)
	if len(s.Arguments) > 0 {
		what["rawInput"] = s.Arguments
	}
	if d := s.Details; d != nil && d.FileChange != nil {
		shown.diffs = diffs(d.FileChange.Path, d.FileChange.Diff)
	}
	if len(shown.diffs) > 0 {
		what["content"] = shown.diffs
	}
	roots := t.session.place.Folders
	if l := locations(s, roots); len(l) > 0 {
		what["locations"] = l
	}
	if err := t.update("tool_call_update", maps.Clone(what)); err != nil {
		return err
	}
	if s.Manual && !t.replay && t.ask != nil {
		delete(what, "sessionUpdate")
		what["status"] = "pending"
		what["title"] = askedTitle(s, shown.title, len(shown.diffs) > 0, roots)
		if len(shown.diffs) > 0 {
			what["content"] = asOne(shown.diffs)
		}
		t.ask(what, s)
	}
	return t.asked(s)
}

// called tells what a call brought: of one that changed a file the change, of others what
// it said.
func (t *teller) called(s stage, shown *shownCall, what object) error {
	what["status"] = "completed"
	if s.Error {
		what["status"] = "failed"
	}
	if d := s.Details; d != nil && d.FileChange != nil {
		shown.diffs = diffs(d.FileChange.Path, d.FileChange.Diff)
	}
	content, texts := []any{}, []any{}
	if !s.Error {
		content = append(content, shown.diffs...)
	}
	showText := s.Error || len(shown.diffs) == 0
	for _, o := range s.Outputs {
		switch {
		case o.Type == "image":
			content = append(content, contentOf(object{"type": "image", "mimeType": o.MIMEType, "data": o.Data}))
		case o.Text != "":
			texts = append(texts, o.Text)
			if showText {
				content = append(content, contentOf(textBlock(o.Text)))
			}
		}
	}
	what["content"] = content
	what["rawOutput"] = object{"outputs": texts, "error": s.Error}
	if err := t.update("tool_call_update", what); err != nil {
		return err
	}
	return t.plan(s.Details)
}

func refusal(s stage) string {
	if s.Message != "" {
		return s.Message
	}
	switch s.Reason {
	case "userChoiceDeny":
		return "Rejected."
	case "userConfigDeny":
		return "Denied by the configuration."
	case "userPromptStop":
		return "Stopped."
	case "hookRejected", "hookStopped":
		return "Rejected by a hook."
	case "interrupted":
		return "Interrupted."
	}
	return "Rejected: " + s.Reason
}

func subagentLine(d *details) string {
	line := "Subagent " + d.Subagent.Agent
	if d.Subagent.Step > 0 {
		line += ", step " + itoa(d.Subagent.Step)
	}
	return line
}

// plan tells the list of tasks, as a whole.
func (t *teller) plan(d *details) error {
	if d == nil || d.Tasks == nil {
		return nil
	}
	entries := []any{}
	for _, task := range d.Tasks.Tasks {
		status := map[string]string{"in-progress": "in_progress", "done": "completed"}[task.Status]
		if status == "" {
			status = "pending"
		}
		priority := task.Priority
		if priority != "high" && priority != "low" {
			priority = "medium"
		}
		entries = append(entries, object{"content": task.Subject, "priority": priority, "status": status})
	}
	return t.update("plan", object{"entries": entries})
}

// pathsOf are the files that a call is about, as the tools find them: absolute, below the
// home folder or the first of roots. What a tool of the user's own calls a path may be none.
func pathsOf(s stage, roots []string) []string {
	var args struct {
		Path        lenient[string] `json:"path"`
		Source      lenient[string] `json:"source"`
		Destination lenient[string] `json:"destination"`
	}
	if s.Server != "eca" || json.Unmarshal(s.Arguments, &args) != nil {
		return nil
	}
	var out []string
	for _, path := range []string{args.Path.Value, args.Source.Value, args.Destination.Value} {
		if path != "" && (filepath.IsAbs(path) || kindOf(s) != "other") {
			out = append(out, workspace.Abs(roots, path))
		}
	}
	return out
}

// locations are the files that a call is about, with the line.
func locations(s stage, roots []string) []any {
	var args struct {
		Offset lenient[int64] `json:"line_offset"`
		Line   lenient[int64] `json:"line"`
	}
	_ = json.Unmarshal(s.Arguments, &args) // what is malformed has no paths either
	var out []any
	for _, path := range pathsOf(s, roots) {
		l := object{"path": path}
		line := args.Line.Value
		if args.Offset.Value > 0 {
			line = args.Offset.Value + 1
		}
		if d := s.Details; d != nil && d.FileChange != nil {
			line = firstLine(d.FileChange.Diff)
		}
		if line > 0 && line < 1<<31 {
			l["line"] = line
		}
		out = append(out, l)
	}
	return out
}
