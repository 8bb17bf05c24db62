package tools

import "time"

// JobStatus is how far a background job is. The values are those of eca-protocol 4.12.
type JobStatus string

// States of a job. The first is left once, for one of the others.
const (
	JobRunning   JobStatus = "running"
	JobCompleted JobStatus = "completed" // ended with exit code 0
	JobFailed    JobStatus = "failed"    // ended with another, or could not go on
	JobKilled    JobStatus = "killed"
)

// Job is a command that outlives the turn that started it.
type Job struct {
	ID       string // job-<n>
	Label    string // the model's words
	Summary  string // the command on one line, shortened
	Command  string // the command on one line
	ChatID   string
	CallID   string // of the tool call that started it
	Status   JobStatus
	ExitCode int // once it has ended; -1 if it was killed
	Started  time.Time
	Ended    time.Time // zero while it runs
}

// Elapsed is how long the job has run, in whole seconds.
func (j Job) Elapsed(now time.Time) time.Duration {
	if !j.Ended.IsZero() {
		now = j.Ended
	}
	return max(now.Sub(j.Started), 0).Truncate(time.Second)
}

// JobLine is one line of a job's output.
type JobLine struct {
	Text   string
	Stderr bool
}
