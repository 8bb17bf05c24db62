package a2a

import (
	"context"
	"slices"
	"strings"
	"sync"
)

// subscription is what a reader of a task has not read yet.
type subscription struct {
	job   *job
	ready chan struct{} // has one when there may be something new

	mu    sync.Mutex // guards what follows
	queue []event
	text  *strings.Builder // of the last of them, if it is of several pieces
	ended bool
}

// subscribe shows the task as it is, and then whatever happens. Both under the lock: the
// reader misses nothing and hears nothing twice.
func (j *job) subscribe(history *int) *subscription {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.subscribeLocked(history)
}

func (j *job) subscribeLocked(history *int) *subscription {
	sub := &subscription{job: j, ready: make(chan struct{}, 1)}
	sub.add(event{Task: j.shown(history)})
	if j.task.Status.State.ended() {
		sub.end()
	} else {
		j.heard = append(j.heard, sub)
	}
	return sub
}

// close has nothing collected any more.
func (sub *subscription) close() {
	j := sub.job
	j.mu.Lock()
	defer j.mu.Unlock()
	j.heard = slices.DeleteFunc(j.heard, func(other *subscription) bool { return other == sub })
}

// publish tells all who listen, under the job's lock.
func (j *job) publish(e event) {
	for _, sub := range j.heard {
		sub.add(e)
	}
}

// add keeps an event for the reader. Text that was not read yet becomes one piece, so that
// a slow reader holds no more than the text.
func (sub *subscription) add(e event) {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	defer sub.wake()
	if n := len(sub.queue); n > 0 && e.Artifact != nil && e.Artifact.Append && sub.queue[n-1].Artifact != nil {
		last := *sub.queue[n-1].Artifact
		if sub.text == nil {
			sub.text = &strings.Builder{}
			sub.text.WriteString(last.text())
		}
		sub.text.WriteString(e.Artifact.text())
		last.Artifact.Parts = []part{{"text": sub.text.String()}}
		last.LastChunk = e.Artifact.LastChunk
		sub.queue[n-1].Artifact = &last
		return
	}
	sub.queue, sub.text = append(sub.queue, e), nil
}

// text is that of a piece of the answer.
func (a *artifactUpdate) text() string {
	text, _ := a.Artifact.Parts[0]["text"].(string)
	return text
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

// next returns what came next; false is the end of the task.
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

// pauses says whether a message's stream ends with an event: the caller's turn has come.
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
