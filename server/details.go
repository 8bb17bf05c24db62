package server

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// details converts the details of a call (eca-protocol.md 7.4).
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

// taskDetails converts a list of tasks (eca-protocol.md 7.4).
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

// jsonDetails returns the outputs that are JSON objects or arrays (eca-protocol.md 7.4).
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

// usage converts token usage (eca-protocol.md 7.2). Its SessionTokens is the number of tokens in the
// context now.
func (r *renderer) usage(u event.UsageReported) protocol.UsageContent {
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
		out.AutoCompactPercentage = r.cfg.AutoCompactPercentage // a percentage of ContextLimit
		free := max(u.ContextLimit-used, 0)
		breakdown.FreeTokens = &free
	}
	for _, s := range u.Share {
		color, emoji := categoryStyle(s.Category)
		breakdown.Categories = append(breakdown.Categories, protocol.ContextCategory{Name: s.Category, Tokens: s.Tokens, Color: color, Emoji: emoji})
	}
	out.ContextBreakdown = breakdown
	return out
}

// categoryStyle returns the color and the emoji of a category (eca-protocol.md 7.2).
func categoryStyle(name string) (color, emoji string) {
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
