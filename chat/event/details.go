package event

import (
	"slices"
)

// Details describe a tool call for clients that can show more than text. Exactly one field is set.
type Details struct {
	FileChange   *FileChange   `json:"fileChange,omitempty"`
	ShellCommand *ShellCommand `json:"shellCommand,omitempty"`
	Tasks        *Tasks        `json:"tasks,omitempty"`
	Rule         *Rule         `json:"rule,omitempty"`
	Subagent     *Subagent     `json:"subagent,omitempty"`
}

// Subagent describes the subagent of a call. In its chat, the turn for the call has the call's id.
type Subagent struct {
	ChatID     string `json:"chatId"`
	Agent      string `json:"agent"`
	Model      string `json:"model"` // full id
	Variant    string `json:"variant,omitempty"`
	Step       int    `json:"step"`                 // batches of tool calls so far
	MaxSteps   int    `json:"maxSteps,omitempty"`   // 0: no limit
	Background bool   `json:"background,omitempty"` // the call does not wait for the subagent; see Report
}

// Rule is a path-scoped rule that the model has read.
type Rule struct {
	ID string `json:"id"`
}

// FileChange is the effect of a call on one file.
type FileChange struct {
	Path         string `json:"path"` // absolute
	Diff         string `json:"diff"` // hunks only, no file header
	LinesAdded   int    `json:"linesAdded"`
	LinesRemoved int    `json:"linesRemoved"`
}

// ShellCommand lists the commands of a shell line that could be parsed.
type ShellCommand struct {
	Commands   []Command `json:"commands"`
	Background bool      `json:"background,omitempty"`
	Effects    []Effect  `json:"effects,omitempty"` // of each part of the line, for the approval question
	Sandbox    *Sandbox  `json:"sandbox,omitempty"` // set if the line runs without approval in this sandbox
}

// Effect is what one part of a shell line does.
type Effect struct {
	Command string `json:"command"` // as written, shortened; empty: the whole line
	Effect  string `json:"effect"`
	Target  string `json:"target,omitempty"` // the file that the part writes, or the command that it runs
	Reason  string `json:"reason,omitempty"` // why it is not read-only
}

// Kinds of effects.
const (
	EffectReads   = "reads"
	EffectWrites  = "writes"
	EffectRuns    = "runs"
	EffectUnknown = "unknown"
)

// Sandbox describes the restrictions of a command.
type Sandbox struct {
	Level   string `json:"level"`   // read-only or workspace
	Network string `json:"network"` // none or all
}

// Command is one simple command of a shell line. Key is the key under which an approval is
// remembered; empty if it must not be remembered.
type Command struct {
	Name       string   `json:"name"`
	Args       []string `json:"args"`
	Key        string   `json:"key,omitempty"`
	Remembered bool     `json:"remembered,omitempty"`
}

// Tasks is a chat's list of tasks after a call that read or changed it.
type Tasks struct {
	Tasks         []Task `json:"tasks"`
	LastID        int    `json:"lastId"` // the highest id assigned so far
	ActiveSummary string `json:"activeSummary,omitempty"`
}

// TaskStatus is the status of a task. The values are those of eca-protocol.md 7.4.
type TaskStatus string

// Statuses of tasks.
const (
	TaskPending    TaskStatus = "pending"
	TaskInProgress TaskStatus = "in-progress"
	TaskDone       TaskStatus = "done"
)

// Task is one thing to do.
type Task struct {
	ID          int        `json:"id"`
	Subject     string     `json:"subject"`
	Description string     `json:"description,omitempty"`
	Status      TaskStatus `json:"status"`
	Priority    string     `json:"priority"` // high, medium or low
	BlockedBy   []int      `json:"blockedBy,omitempty"`
	Blocked     bool       `json:"blocked,omitempty"` // by a task that is not done
}

// Done reports whether there are tasks and all of them are done.
func (t *Tasks) Done() bool {
	return t != nil && len(t.Tasks) > 0 && !slices.ContainsFunc(t.Tasks, func(t Task) bool { return t.Status != TaskDone })
}
