package esrp

import "fmt"

// JobState is the state of a job (esrp.md 9).
type JobState string

// The states of a job. The last three are final.
const (
	JobQueued    JobState = "queued"
	JobStarted   JobState = "started"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// Final reports whether a job in this state has ended.
func (s JobState) Final() bool {
	return s == JobSucceeded || s == JobFailed || s == JobCancelled
}

// TransitionError is the error for an illegal transition of a job.
type TransitionError struct{ From, To JobState }

func (e *TransitionError) Error() string {
	return fmt.Sprintf("a job that is %s cannot become %s", e.From, e.To)
}

// To returns next, or a *TransitionError if the transition is illegal. A job must start before it can
// succeed or fail, can be cancelled until it ends, and ends only once.
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

// Event returns the type of the event for a transition to the state.
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
