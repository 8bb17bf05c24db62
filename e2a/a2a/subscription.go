package a2a

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// subscription contains the events of a task that a reader has not read yet.
type subscription struct {
	job   *job
	ready chan struct{} // has one element if there may be unread events

	mu    sync.Mutex // guards the fields below
	queue []event
	text  *strings.Builder // the last part of the last event, if it is text that was joined from several pieces
	ended bool
}

// subscribe returns a subscription that begins with the current task, followed by all later events
// exactly once.
func (j *job) subscribe(history *int) *subscription {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.subscribeLocked(history)
}

func (j *job) subscribeLocked(history *int) *subscription {
	sub := &subscription{job: j, ready: make(chan struct{}, 1)}
	sub.add(event{Task: j.snapshotLocked(history)})
	if j.task.Status.State.ended() {
		sub.end()
	} else {
		j.subscriptions = append(j.subscriptions, sub)
	}
	return sub
}

// close stops collecting events.
func (sub *subscription) close() {
	j := sub.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.subscriptions = slices.DeleteFunc(j.subscriptions, func(other *subscription) bool { return other == sub })
}

// publish sends an event to all subscribers. The caller holds the job's lock.
func (j *job) publish(e event) {
	for _, sub := range j.subscriptions {
		sub.add(e)
	}
}

// add queues an event for the reader. It joins unread pieces of the answer, so that a slow reader
// needs no more memory than the answer.
func (sub *subscription) add(e event) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	defer sub.wake()
	if n := len(sub.queue); n > 0 && e.Artifact != nil && e.Artifact.Append && sub.queue[n-1].Artifact != nil {
		last := *sub.queue[n-1].Artifact
		last.Artifact.Parts = sub.join(last.Artifact.Parts, e.Artifact.Artifact.Parts)
		last.LastChunk = e.Artifact.LastChunk
		sub.queue[n-1].Artifact = &last
		return
	}
	sub.queue, sub.text = append(sub.queue, e), nil
}

// join returns the parts of the last event followed by more parts. Text continues text, and an empty
// text adds nothing.
func (sub *subscription) join(parts, more []part) []part {
	parts = slices.Clone(parts) // other readers have them too
	for _, p := range more {
		last := len(parts) - 1
		switch {
		case p.Text == nil || parts[last].Text == nil && *p.Text != "":
			parts, sub.text = append(parts, p), nil
		case *p.Text != "":
			if sub.text == nil {
				sub.text = &strings.Builder{}
				sub.text.WriteString(*parts[last].Text)
			}
			sub.text.WriteString(*p.Text)
			parts[last] = textPart(sub.text.String())
		}
	}
	return parts
}

func (sub *subscription) end() {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	sub.ended = true
	sub.wake()
}

func (sub *subscription) wake() {
	select {
	case sub.ready <- struct{}{}:
	default:
	}
}

// next returns the next event; false means the end of the task.
func (sub *subscription) next(ctx context.Context) (event, bool, error) {
	for {
		sub.mu.Lock()
		if len(sub.queue) > 0 {
			e := sub.queue[0]
			if sub.queue = sub.queue[1:]; len(sub.queue) == 0 {
				sub.queue, sub.text = nil, nil
			}
			sub.mu.Unlock()
			return e, true, nil
		}
		ended := sub.ended
		sub.mu.Unlock()
		if ended {
			return event{}, false, nil
		}
		select {
		case <-sub.ready:
		case <-ctx.Done():
			return event{}, false, ctx.Err()
		}
	}
}

// pauses reports whether the stream of a message ends with this event, because the task has ended or
// waits for its caller.
func (e event) pauses() bool {
	s := state("")
	switch {
	case e.Status != nil:
		s = e.Status.Status.State
	case e.Task != nil:
		s = e.Task.Status.State
	}
	return s.ended() || s == inputRequired || s == authRequired
}
