package a2a

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	chatevent "github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/tools"
)

// responseArtifact is the id of the artifact with the model's answer.
const responseArtifact = "response"

// job is a task with its turn and its subscribers.
type job struct {
	id, contextID string
	s             *Server
	ctx           context.Context // of its turn
	cancel        context.CancelFunc
	done          chan struct{} // closed when no event follows

	mu            sync.Mutex // guards the fields below
	task          task
	open          []ask // the calls and questions that wait for the caller, in order
	subscriptions []*subscription
	hooks         []*hook
	chat          bool // a turn has begun
	removed       bool // callers can no longer request it, and its record is deleted

	answer strings.Builder // text of the artifact
	images []part          // of the artifact, that the model made

	size int // of the task as JSON; set before done is closed
}

// snapshot returns the current task, with a limited number of messages of its history.
func (j *job) snapshot(history *int) *task {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.snapshotLocked(history)
}

// snapshotLocked is snapshot under the lock.
func (j *job) snapshotLocked(history *int) *task {
	t := j.task
	t.Artifacts = slices.Clone(t.Artifacts)
	for i := range t.Artifacts {
		t.Artifacts[i].Parts = slices.Clone(t.Artifacts[i].Parts)
	}
	t.History = slices.Clone(t.History)
	t.shorten(history)
	return &t
}

// shorten keeps the last messages of the history; nil keeps all.
func (t *task) shorten(history *int) {
	if history != nil && *history < len(t.History) {
		t.History = t.History[len(t.History)-*history:]
	}
	if len(t.History) == 0 {
		t.History = nil
	}
}

func textPart(text string) part { return part{Text: &text} }

// set changes the state and publishes it. An ended task no longer changes.
func (j *job) set(to state, text string, parts ...part) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.setLocked(to, text, parts...)
}

func (j *job) setLocked(to state, text string, parts ...part) {
	if j.task.Status.State.ended() {
		return
	}
	j.task.Status = status{State: to, Timestamp: stamp(j.s.now())}
	if text != "" {
		m := j.says(append([]part{textPart(text)}, parts...))
		j.task.Status.Message = &m
	}
	j.tellHooks() // the delivery waits for the lock
	j.save()
	j.publish(event{Status: &statusUpdate{TaskID: j.id, ContextID: j.contextID, Status: j.task.Status, Metadata: j.task.Metadata}})
	if to.ended() {
		j.open = nil
		for _, sub := range j.subscriptions {
			sub.end()
		}
		j.subscriptions = nil
		j.size = jsonSize(j.task)
		close(j.done)
	}
}

// says returns a message of the agent.
func (j *job) says(parts []part) message {
	return message{MessageID: j.s.newID(), ContextID: j.contextID, TaskID: j.id, Role: roleAgent, Parts: parts}
}

// text adds to the answer.
func (j *job) text(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State.ended() || text == "" {
		return
	}
	j.answer.WriteString(text)
	j.addLocked(textPart(text))
}

// image adds an image that the model has made to the answer.
func (j *job) image(i chatevent.Image) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State.ended() {
		return
	}
	raw := base64.StdEncoding.EncodeToString(i.Data)
	p := part{Raw: &raw, MediaType: i.MediaType}
	j.images = append(j.images, p)
	j.addLocked(p)
}

// addLocked publishes a piece of the answer.
func (j *job) addLocked(p part) {
	more := len(j.task.Artifacts) > 0
	if !more {
		j.task.Artifacts = []artifact{{ArtifactID: responseArtifact, Name: "response"}}
	}
	var parts []part
	if j.answer.Len() > 0 {
		parts = append(parts, textPart(j.answer.String()))
	}
	j.task.Artifacts[0].Parts = append(parts, j.images...)
	j.publish(j.piece(p, more, false))
}

func (j *job) piece(p part, more, last bool) event {
	return event{Artifact: &artifactUpdate{
		TaskID: j.id, ContextID: j.contextID, Append: more, LastChunk: last,
		Artifact: artifact{ArtifactID: responseArtifact, Name: "response", Parts: []part{p}},
	}}
}

// isThought is the metadata of the model's reasoning.
var isThought = json.RawMessage(`{"thought":true}`)

// thought publishes the model's reasoning. It is not stored.
func (j *job) thought(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State != working || text == "" {
		return
	}
	p := textPart(text)
	p.Metadata = isThought
	m := j.says([]part{p})
	j.publish(event{Status: &statusUpdate{
		TaskID: j.id, ContextID: j.contextID, Status: status{State: working, Message: &m, Timestamp: stamp(j.s.now())},
		Metadata: isThought,
	}})
}

// asks makes the task wait for its caller.
func (j *job) asks(a ask) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.task.Status.State.ended() {
		j.open = append(j.open, a)
		j.setLocked(inputRequired, a.text, part{Data: a.data, MediaType: "application/json"})
		j.remember(*j.task.Status.Message)
	}
}

// remember adds a message to the history. The caller holds the lock.
func (j *job) remember(m message) {
	j.task.History = append(j.task.History, m)
	if len(j.task.History) > maxHistory {
		j.task.History = slices.Delete(j.task.History, 1, 2)
	}
}

// removePending removes a call that no longer waits, whether the caller or another client decided about it, and its question.
func (j *job) removePending(call string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.open)
	j.open = slices.DeleteFunc(j.open, func(a ask) bool { return a.id == call || a.call == call })
	if len(j.open) < n && len(j.open) == 0 && j.task.Status.State == inputRequired {
		j.setLocked(working, "")
	}
}

// finish ends the task with the turn's result.
func (j *job) finish(to state, text string, metadata json.RawMessage) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State.ended() {
		return
	}
	if metadata != nil {
		j.task.Metadata = metadata
	}
	if len(j.task.Artifacts) > 0 {
		j.publish(j.piece(textPart(""), true, true))
	}
	j.setLocked(to, text)
}

// Show implements turn.Viewer.
func (j *job) Show(c transcript.Change) error {
	switch item := c.Item.(type) {
	case transcript.Answer:
		j.text(item.Piece)
	case transcript.Reasoning:
		j.thought(item.Piece)
	case transcript.Call:
		//exhaustive:enforce
		switch item.Stage {
		case transcript.Announced:
		case transcript.Judged:
			if item.Judgment.Manual {
				j.asks(callAsk(item))
			}
		case transcript.Running:
			if !j.isQuestion(item.CallID) { // which runs while it waits
				j.removePending(item.CallID)
			}
		case transcript.Finished, transcript.Rejected:
			j.removePending(item.CallID)
			if item.Origin == tools.OriginServer {
				for _, i := range item.Result.Images {
					j.image(i)
				}
			}
		}
	default: // callers want the answer, and the calls and questions that wait for them
	}
	return nil
}

// Ask implements turn.Viewer.
func (j *job) Ask(q turn.Question) error {
	j.asks(questionAsk(q))
	return nil
}

// result is the metadata of a task about its turn.
type result struct {
	StopReason turn.StopReason `json:"stopReason"`
	Usage      usage           `json:"usage"`
}

type usage struct {
	CacheReadTokens  int64    `json:"cacheReadTokens"`
	CacheWriteTokens int64    `json:"cacheWriteTokens"`
	Cost             *float64 `json:"costUsd"`
	InputTokens      int64    `json:"inputTokens"`
	OutputTokens     int64    `json:"outputTokens"`
}

// failedTurn is the metadata of a task about the error that ended its turn.
type failedTurn struct {
	Code turn.Code `json:"code"`
}

// end ends the task with its turn.
func (j *job) end(o turn.Outcome, err error) {
	if err == nil {
		metadata := encode(result{o.Reason, usage(o.Usage)})
		if o.Reason == turn.Cancelled {
			j.finish(canceled, "The turn was stopped.", metadata)
			return
		}
		j.finish(completed, "", metadata)
		return
	}
	var known *turn.Error
	if j.ctx.Err() != nil && !errors.As(err, &known) {
		why := "The task was cancelled."
		if j.s.ctx.Err() != nil {
			why = cutShort
		}
		j.finish(canceled, why, nil)
		return
	}
	known = j.s.turns.Explain(j.ctx, err)
	j.finish(failed, known.Message, encode(failedTurn{known.Code}))
}

func (j *job) isQuestion(call string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.open, func(a ask) bool { return a.question && a.call == call })
}
