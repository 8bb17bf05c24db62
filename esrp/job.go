package esrp

import "fmt"

// JobState is where a job stands (contract 9).
type JobState string

// States of a job. The last three are final.
const (
	JobQueued    JobState = "queued"
	JobStarted   JobState = "started"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

var jobStates = []JobState{JobQueued, JobStarted, JobSucceeded, JobFailed, JobCancelled}

// Final says whether nothing leaves the state.
func (s JobState) Final() bool {
	return s == JobSucceeded || s == JobFailed || s == JobCancelled
}

// TransitionError is a step that a job may not take.
type TransitionError struct{ From, To JobState }

func (e *TransitionError) Error() string {
	return fmt.Sprintf("a job that is %s can not become %s", e.From, e.To)
}

// To returns the next state, or a *TransitionError: a job starts before it ends, is
// cancelled before or after that, and ends once.
func (s JobState) To(next JobState) (JobState, error) {
	legal := false
	switch s {
	case JobQueued:
		legal = next == JobStarted || next == JobCancelled
	case JobStarted:
		legal = next.Final()
	}
	if !legal {
		return s, &TransitionError{s, next}
	}
	return next, nil
}

// Event is what is told when a job reaches a state.
func (s JobState) Event() JobEventType {
	switch s {
	case JobQueued:
		return JobQueuedEvent
	case JobStarted:
		return JobStartedEvent
	case JobSucceeded:
		return JobCompletedEvent
	case JobFailed:
		return JobFailedEvent
	}
	return JobCancelledEvent
}
