// Package task has the native tool task, with which a model keeps a list of its tasks that
// the user sees (eca-features.md, section 17).
//
// The list is stored in the chat's events: the details of each successful call contain the
// whole list, and the next call gets it (tools.Call.Tasks). It survives restarts, rollbacks
// and forks with the chat. The package has no state of its own.
package task

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed task.md
var doc string

// maxTasks limits a list, since it is sent with each call.
const maxTasks = 200

// fields are the fields of a task in the model's arguments; nil fields were omitted.
type fields struct {
	Subject     *string `json:"subject,omitempty" jsonschema:"The task, in one line."`
	Description *string `json:"description,omitempty" jsonschema:"Everything needed to do it, and when it is done."`
	Priority    *string `json:"priority,omitempty" jsonschema:"high, medium (default) or low."`
	BlockedBy   *[]int  `json:"blocked_by,omitempty" jsonschema:"Ids of tasks that have to be done before."`
}

type args struct {
	Op            string   `json:"op" jsonschema:"The operation."`
	ID            int      `json:"id,omitempty" jsonschema:"The task to update."`
	IDs           []int    `json:"ids,omitempty" jsonschema:"The tasks to start, complete or delete."`
	ActiveSummary string   `json:"active_summary,omitempty" jsonschema:"With start: what is being done, in a few words."`
	Task          *fields  `json:"task,omitempty" jsonschema:"With add and update: the task."`
	Tasks         []fields `json:"tasks,omitempty" jsonschema:"With plan and add: the tasks."`
}

// Tools returns the tools of this package.
func Tools() []tools.Tool {
	ops := []string{"read", "plan", "add", "update", "start", "complete", "delete", "clear"}
	return []tools.Tool{tools.Definition[args]{
		Name: "task", Description: doc, Preparing: "Preparing tasks", OwnChat: true, PrimaryOnly: true,
		Enums: map[string][]string{"op": ops},
		Plan: func(_ context.Context, _ tools.Call, a args) (tools.Plan, error) {
			return tools.Plan{Summary: "Tasks: " + a.Op}, nil
		},
		Run: func(_ context.Context, call tools.Call, a args, _ tools.Sink) (tools.Result, error) {
			l := list{}
			if call.Tasks != nil {
				l = list{lastID: call.Tasks.LastID, activeSummary: call.Tasks.ActiveSummary, tasks: append(l.tasks, call.Tasks.Tasks...)}
			}
			if err := l.apply(a); err != nil {
				return tools.Result{}, err
			}
			return tools.Result{Outputs: []string{l.String()}, Details: &event.Details{Tasks: l.event()}}, nil
		},
	}.Build()}
}

// list is a copy of the list on which an operation works, so that a failed operation changes
// nothing.
type list struct {
	tasks         []event.Task
	lastID        int // of all tasks that the list ever had
	activeSummary string
}

func (l *list) apply(a args) error {
	switch a.Op {
	case "plan":
		*l = list{}
		return l.add(a.Tasks)
	case "add":
		if a.Task != nil {
			a.Tasks = append(a.Tasks, *a.Task)
		}
		return l.add(a.Tasks)
	case "update":
		t, err := l.find(firstOf(a.ID, a.IDs))
		if err != nil {
			return err
		}
		if a.Task == nil {
			return errors.New("INVALID_ARGS: update needs task, with the fields to change")
		}
		if err := l.set(t, *a.Task); err != nil {
			return err
		}
		return l.check()
	case "start", "complete", "delete":
		ids := a.IDs
		if len(ids) == 0 && a.ID != 0 {
			ids = []int{a.ID}
		}
		return l.updateStatus(a.Op, ids, strings.TrimSpace(a.ActiveSummary))
	case "clear":
		*l = list{}
	}
	return nil // read
}

func firstOf(id int, ids []int) int {
	if id == 0 && len(ids) == 1 {
		return ids[0]
	}
	return id
}

func (l *list) add(tasks []fields) error {
	if len(tasks) == 0 {
		return errors.New("INVALID_ARGS: tasks is empty")
	}
	if len(l.tasks)+len(tasks) > maxTasks {
		return fmt.Errorf("a list has at most %d tasks", maxTasks)
	}
	for _, f := range tasks {
		l.lastID++
		l.tasks = append(l.tasks, event.Task{ID: l.lastID, Status: event.TaskPending, Priority: "medium"})
		if err := l.set(&l.tasks[len(l.tasks)-1], f); err != nil {
			return err
		}
	}
	return l.check()
}

// set changes the fields of a task that f sets.
func (l *list) set(t *event.Task, f fields) error {
	if f.Subject != nil {
		t.Subject = strings.Join(strings.Fields(*f.Subject), " ")
	}
	if f.Description != nil {
		t.Description = strings.TrimSpace(*f.Description)
	}
	if f.BlockedBy != nil {
		t.BlockedBy = append([]int(nil), *f.BlockedBy...)
	}
	if f.Priority != nil && *f.Priority != "" {
		switch p := strings.ToLower(*f.Priority); p {
		case "high", "medium", "low":
			t.Priority = p
		default:
			return fmt.Errorf("INVALID_ARGS: priority is high, medium or low, not %q", *f.Priority)
		}
	}
	if t.Subject == "" {
		return fmt.Errorf("INVALID_ARGS: task %d has no subject", t.ID)
	}
	return nil
}

// check returns an error for lists that can never be finished, because a task waits for a missing
// task or, directly or indirectly, for itself.
func (l *list) check() error {
	const visiting, visited = 1, 2
	state := map[int]int{}
	var visit func(id int) error
	visit = func(id int) error {
		switch state[id] {
		case visiting:
			return fmt.Errorf("INVALID_ARGS: task %d would wait for itself", id)
		case visited:
			return nil
		}
		state[id] = visiting
		t, err := l.find(id)
		if err != nil {
			return err
		}
		for _, b := range t.BlockedBy {
			if err := visit(b); err != nil {
				return err
			}
		}
		state[id] = visited
		return nil
	}
	for _, t := range l.tasks {
		if err := visit(t.ID); err != nil {
			return err
		}
	}
	return nil
}

// updateStatus starts, completes or deletes tasks, in the order of ids.
func (l *list) updateStatus(op string, ids []int, activeSummary string) error {
	if len(ids) == 0 {
		return fmt.Errorf("INVALID_ARGS: %s needs ids", op)
	}
	for _, id := range ids {
		t, err := l.find(id)
		if err != nil {
			return err
		}
		blockers := l.blockers(*t)
		switch {
		case op == "delete":
			l.remove(id)
		case len(blockers) > 0:
			return fmt.Errorf("task %d is blocked by %s", id, numbers(blockers))
		case op == "start" && t.Status == event.TaskDone:
			return fmt.Errorf("task %d is done already", id)
		case op == "start":
			t.Status, l.activeSummary = event.TaskInProgress, activeSummary
		default:
			t.Status = event.TaskDone
		}
	}
	if len(l.withStatus(event.TaskInProgress)) == 0 {
		l.activeSummary = ""
	}
	return nil
}

func (l *list) remove(id int) {
	remaining := make([]event.Task, 0, len(l.tasks))
	for _, t := range l.tasks {
		if t.ID == id {
			continue
		}
		var blocked []int
		for _, b := range t.BlockedBy {
			if b != id {
				blocked = append(blocked, b)
			}
		}
		t.BlockedBy = blocked
		remaining = append(remaining, t)
	}
	l.tasks = remaining
}

func (l *list) find(id int) (*event.Task, error) {
	for i := range l.tasks {
		if l.tasks[i].ID == id {
			return &l.tasks[i], nil
		}
	}
	return nil, fmt.Errorf("there is no task %d", id)
}

// blockers returns the ids of unfinished tasks that t waits for.
func (l *list) blockers(t event.Task) []int {
	var blockers []int
	for _, id := range t.BlockedBy {
		if b, err := l.find(id); err == nil && b.Status != event.TaskDone {
			blockers = append(blockers, id)
		}
	}
	return blockers
}

func (l *list) withStatus(status event.TaskStatus) []int {
	ids := []int{}
	for _, t := range l.tasks {
		if t.Status == status {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

func (l *list) event() *event.Tasks {
	for i, t := range l.tasks {
		l.tasks[i].Blocked = t.Status != event.TaskDone && len(l.blockers(t)) > 0
	}
	return &event.Tasks{Tasks: append([]event.Task{}, l.tasks...), LastID: l.lastID, ActiveSummary: l.activeSummary}
}

// String returns the list for the model.
func (l *list) String() string {
	if len(l.tasks) == 0 {
		return "There are no tasks."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d tasks done.\n", len(l.withStatus(event.TaskDone)), len(l.tasks))
	for _, t := range l.tasks {
		fmt.Fprintf(&b, "%d. [%s] %s (%s)", t.ID, t.Status, t.Subject, t.Priority)
		if open := l.blockers(t); len(open) > 0 {
			b.WriteString(", blocked by " + numbers(open))
		}
		if t.Description != "" && t.Status != event.TaskDone {
			raw, _ := json.Marshal(t.Description) // on one line; a string always encodes
			b.WriteString(": " + string(raw))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func numbers(ids []int) string {
	var out []string
	for _, id := range ids {
		out = append(out, strconv.Itoa(id))
	}
	return strings.Join(out, ", ")
}
