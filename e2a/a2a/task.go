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
	server        *Server
	ctx           context.Context // of its turn
	cancel        context.CancelFunc
	done          chan struct{} // closed when the task has ended

	mu            sync.Mutex // guards the fields below
	task          task
	pending       []inputRequest // the calls and questions that wait for the caller, in order
	subscriptions []*subscription
	hooks         []*hook
	hasChat       bool // a turn has started, so the chat contextID exists
	removed       bool // dropped from the store, so its record must not be written again

	answer strings.Builder // the text of the artifact
	images []part          // the model's images, which follow the text in the artifact

	size int // bytes of the task as JSON; set before done is closed
}

// snapshot returns a copy of the task with the last messages of its history; nil means all of them.
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

// set changes the state, with a message of the agent unless text is empty, and publishes it. It
// does nothing once the task has ended.
func (j *job) set(to state, text string, parts ...part) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.setLocked(to, text, parts...)
}

func (j *job) setLocked(to state, text string, parts ...part) {
	if j.task.Status.State.ended() {
		return
	}
	j.task.Status = status{State: to, Timestamp: formatTime(j.server.opts.Now())}
	if text != "" {
		m := j.agentMessage(append([]part{textPart(text)}, parts...))
		j.task.Status.Message = &m
	}
	j.queueNotifications()
	j.save()
	j.publish(event{Status: &statusUpdate{TaskID: j.id, ContextID: j.contextID, Status: j.task.Status, Metadata: j.task.Metadata}})
	if to.ended() {
		j.pending = nil
		for _, sub := range j.subscriptions {
			sub.end()
		}
		j.subscriptions = nil
		j.size = jsonSize(j.task)
		close(j.done)
	}
}

// agentMessage builds a message of the agent.
func (j *job) agentMessage(parts []part) message {
	return message{MessageID: j.server.opts.NewID(), ContextID: j.contextID, TaskID: j.id, Role: roleAgent, Parts: parts}
}

// addText appends text to the answer and publishes it.
func (j *job) addText(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State.ended() || text == "" {
		return
	}
	j.answer.WriteString(text)
	j.publishPart(textPart(text))
}

// addImage appends an image that the model made to the answer and publishes it.
func (j *job) addImage(i chatevent.Image) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State.ended() {
		return
	}
	raw := base64.StdEncoding.EncodeToString(i.Data)
	p := part{Raw: &raw, MediaType: i.MediaType}
	j.images = append(j.images, p)
	j.publishPart(p)
}

// publishPart rebuilds the artifact from the answer and publishes its new part. The caller holds
// the lock.
func (j *job) publishPart(p part) {
	more := len(j.task.Artifacts) > 0
	if !more {
		j.task.Artifacts = []artifact{{ArtifactID: responseArtifact, Name: "response"}}
	}
	var parts []part
	if j.answer.Len() > 0 {
		parts = append(parts, textPart(j.answer.String()))
	}
	j.task.Artifacts[0].Parts = append(parts, j.images...)
	j.publish(j.artifactEvent(p, more, false))
}

// artifactEvent returns the event for a part of the artifact; more means that it follows earlier
// parts.
func (j *job) artifactEvent(p part, more, last bool) event {
	return event{Artifact: &artifactUpdate{
		TaskID: j.id, ContextID: j.contextID, Append: more, LastChunk: last,
		Artifact: artifact{ArtifactID: responseArtifact, Name: "response", Parts: []part{p}},
	}}
}

// thoughtMetadata marks reasoning among the messages of the agent.
var thoughtMetadata = json.RawMessage(`{"thought":true}`)

// publishThought publishes a piece of the model's reasoning. Reasoning is not stored in the task.
func (j *job) publishThought(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State != working || text == "" {
		return
	}
	p := textPart(text)
	p.Metadata = thoughtMetadata
	m := j.agentMessage([]part{p})
	j.publish(event{Status: &statusUpdate{
		TaskID: j.id, ContextID: j.contextID, Status: status{State: working, Message: &m, Timestamp: formatTime(j.server.opts.Now())},
		Metadata: thoughtMetadata,
	}})
}

// requestInput adds a pending call or question, and sets the state to input-required.
func (j *job) requestInput(a inputRequest) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.task.Status.State.ended() {
		j.pending = append(j.pending, a)
		j.setLocked(inputRequired, a.text, part{Data: a.data, MediaType: "application/json"})
		j.addToHistory(*j.task.Status.Message)
	}
}

// addToHistory adds a message to the history. A full history keeps its first message and drops the
// oldest one after it. The caller holds the lock.
func (j *job) addToHistory(m message) {
	j.task.History = append(j.task.History, m)
	if len(j.task.History) > maxHistory {
		j.task.History = slices.Delete(j.task.History, 1, 2)
	}
}

// removePending removes a call that was decided or has ended, together with the question that it
// asked. The task resumes when nothing is pending any more. The decision may have come from a
// client other than the task's caller.
func (j *job) removePending(call string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.pending)
	j.pending = slices.DeleteFunc(j.pending, func(a inputRequest) bool { return a.id == call || a.call == call })
	if len(j.pending) < n && len(j.pending) == 0 && j.task.Status.State == inputRequired {
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
		j.publish(j.artifactEvent(textPart(""), true, true))
	}
	j.setLocked(to, text)
}

// Show implements turn.Viewer.
func (j *job) Show(c transcript.Change) error {
	switch item := c.Item.(type) {
	case transcript.Answer:
		j.addText(item.Piece)
	case transcript.Reasoning:
		j.publishThought(item.Piece)
	case transcript.Call:
		//exhaustive:enforce
		switch item.Stage {
		case transcript.Announced:
		case transcript.Judged:
			if item.Judgment.Manual {
				j.requestInput(callRequest(item))
			}
		case transcript.Running:
			if !j.isQuestion(item.CallID) { // a call that asks a question is running while it waits
				j.removePending(item.CallID)
			}
		case transcript.Finished, transcript.Rejected:
			j.removePending(item.CallID)
			if item.Origin == tools.OriginServer {
				for _, i := range item.Result.Images {
					j.addImage(i)
				}
			}
		}
	default: // callers get only the answer, reasoning, and pending calls and questions
	}
	return nil
}

// Ask implements turn.Viewer.
func (j *job) Ask(q turn.Question) error {
	j.requestInput(questionRequest(q))
	return nil
}

// result is the metadata of a task whose turn completed or was stopped.
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

// failedTurn is the metadata of a task whose turn failed.
type failedTurn struct {
	Code turn.Code `json:"code"`
}

// end ends the task with the outcome of its turn.
func (j *job) end(o turn.Outcome, err error) {
	if err == nil {
		metadata := encode(result{o.Reason, usage(o.Usage)})
		if o.Reason == turn.Cancelled {
			j.finish(canceled, "The turn was stopped.", metadata)
			return
		}
		if o.Content != "" {
			o.Notice = ""
		}
		j.finish(completed, o.Notice, metadata)
		return
	}
	var known *turn.Error
	if j.ctx.Err() != nil && !errors.As(err, &known) {
		why := "The task was canceled."
		if j.server.ctx.Err() != nil {
			why = serverEnded
		}
		j.finish(canceled, why, nil)
		return
	}
	known = j.server.opts.Turns.Explain(j.ctx, err)
	j.finish(failed, known.Message, encode(failedTurn{known.Code}))
}

// isQuestion reports whether a question of the call is pending.
func (j *job) isQuestion(call string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.pending, func(a inputRequest) bool { return a.question && a.call == call })
}
