package tools

import (
	"fmt"
	"time"
)

// JobStatus is the state of a background job. The values are those of eca-protocol.md 4.12.
type JobStatus string

// States of a job. A running job changes once, to one of the others.
const (
	JobRunning   JobStatus = "running"
	JobCompleted JobStatus = "completed" // ended with exit code 0
	JobFailed    JobStatus = "failed"    // ended with another exit code, or could not continue
	JobKilled    JobStatus = "killed"
)

// Job is a command that outlives the turn that started it.
type Job struct {
	ID       string // job-<n>
	Label    string // chosen by the model
	Summary  string // the command on one line, shortened
	Command  string // the command on one line
	ChatID   string
	CallID   string // of the tool call that started it
	Status   JobStatus
	ExitCode int // only if it was not killed; see Exit
	Started  time.Time
	Ended    time.Time // zero while it runs
}

// Elapsed returns how long the job has run, in whole seconds.
func (j Job) Elapsed(now time.Time) time.Duration {
	if !j.Ended.IsZero() {
		now = j.Ended
	}
	return max(now.Sub(j.Started), 0).Truncate(time.Second)
}

// Exit returns the exit code. A job that is running or was killed has none.
func (j Job) Exit() (code int, ok bool) {
	return j.ExitCode, j.Status != JobRunning && j.Status != JobKilled && j.ExitCode >= 0
}

// Outcome describes the state of a job in the text that the model gets.
func (j Job) Outcome() string {
	if code, ok := j.Exit(); ok {
		return fmt.Sprintf("%s, exit code %d", j.Status, code)
	}
	return string(j.Status)
}

// JobLine is one line of a job's output.
type JobLine struct {
	Text   string
	Stderr bool
}
