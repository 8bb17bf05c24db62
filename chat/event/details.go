package event

import (
	"slices"
)

// Details enriches a tool call for clients that can show more than text. Exactly
// one field is set.
type Details struct {
	FileChange   *FileChange   `json:"fileChange,omitempty"`
	ShellCommand *ShellCommand `json:"shellCommand,omitempty"`
	Tasks        *Tasks        `json:"tasks,omitempty"`
	Rule         *Rule         `json:"rule,omitempty"`
	Subagent     *Subagent     `json:"subagent,omitempty"`
}

// Subagent is a chat that works for a call. Its log has the call's part of it in the turn
// that has the call's id.
type Subagent struct {
	ChatID     string `json:"chatId"`
	Agent      string `json:"agent"`
	Model      string `json:"model"` // full id
	Variant    string `json:"variant,omitempty"`
	Step       int    `json:"step"`                 // batches of tool calls so far
	MaxSteps   int    `json:"maxSteps,omitempty"`   // 0: no limit
	Background bool   `json:"background,omitempty"` // the call does not wait for it; see Report
}

// Rule names a path-scoped rule that the model has read.
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
	Effects    []Effect  `json:"effects,omitempty"` // of the parts, for a question to the user
	Sandbox    *Sandbox  `json:"sandbox,omitempty"` // that it runs in without a question
}

// Effect is what a part of a shell line would do.
type Effect struct {
	Command string `json:"command"` // as written, shortened; empty: of the line as a whole
	Effect  string `json:"effect"`
	Target  string `json:"target,omitempty"` // the file that it writes, the command that it runs
	Reason  string `json:"reason,omitempty"` // why it does not only read
}

// Kinds of effects.
const (
	EffectReads   = "reads"
	EffectWrites  = "writes"
	EffectRuns    = "runs"
	EffectUnknown = "unknown"
)

// Sandbox is how a command is bound.
type Sandbox struct {
	Level   string `json:"level"`   // read-only or workspace
	Network string `json:"network"` // none or all
}

// Command is one simple command of a shell line. Key is what "remember" would
// remember; empty when it must not be remembered.
type Command struct {
	Name       string   `json:"name"`
	Args       []string `json:"args"`
	Key        string   `json:"key,omitempty"`
	Remembered bool     `json:"remembered,omitempty"`
}

// Tasks is a chat's list of tasks after a call that read or changed it.
type Tasks struct {
	Tasks         []Task `json:"tasks"`
	LastID        int    `json:"lastId"` // the highest id that was given out
	ActiveSummary string `json:"activeSummary,omitempty"`
}

// TaskStatus is how far a task is. The values are those of eca-protocol 7.4.
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

// Done says that there are tasks and all of them are done.
func (t *Tasks) Done() bool {
	return t != nil && len(t.Tasks) > 0 && !slices.ContainsFunc(t.Tasks, func(t Task) bool { return t.Status != TaskDone })
}
