package a2a

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/e2a"
)

// responseArtifact is the id of the artifact that holds the model's answer.
const responseArtifact = "response"

// job is a task with what is behind it.
type job struct {
	id, contextID string
	s             *Server
	ctx           context.Context // of its turn
	cancel        context.CancelFunc
	done          chan struct{} // closed when nothing follows

	mu    sync.Mutex // guards what follows
	task  task
	open  []ask // what waits for the caller, in the order in which it was asked
	heard []*subscription
	hooks []*hook
	chat  bool // a turn has begun
	gone  bool // nobody can ask for it any more, and no record of it is kept

	answer strings.Builder // text of the artifact

	size int // of the task as JSON; set before done is closed
}

// ask is a call that waits for a decision, or a question that waits for an answer.
type ask struct {
	id       string
	question bool
	call     string // the call that a question is of
	data     map[string]any
	text     string
}

// snapshot returns the task as it is now, with at most so many messages of its history.
func (j *job) snapshot(history *int) *task {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.shown(history)
}

// shown is snapshot under the lock.
func (j *job) shown(history *int) *task {
	t := j.task
	t.Artifacts = slices.Clone(t.Artifacts)
	for i := range t.Artifacts {
		t.Artifacts[i].Parts = slices.Clone(t.Artifacts[i].Parts)
	}
	t.History = slices.Clone(t.History)
	if history != nil && *history < len(t.History) {
		t.History = t.History[len(t.History)-*history:]
	}
	return &t
}

// set changes the state and says so. Nothing follows an end.
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
		m := j.says(append([]part{{"text": text}}, parts...))
		j.task.Status.Message = &m
	}
	j.tellHooks() // which waits for the lock
	j.keep()
	j.publish(event{Status: &statusUpdate{TaskID: j.id, ContextID: j.contextID, Status: j.task.Status, Metadata: j.task.Metadata}})
	if to.ended() {
		j.open = nil
		for _, sub := range j.heard {
			sub.end()
		}
		j.heard = nil
		j.size = jsonSize(j.task)
		close(j.done)
	}
}

// says makes a message of the agent.
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
	more := len(j.task.Artifacts) > 0
	if !more {
		j.task.Artifacts = []artifact{{ArtifactID: responseArtifact, Name: "response"}}
	}
	j.answer.WriteString(text)
	j.task.Artifacts[0].Parts = []part{{"text": j.answer.String()}}
	j.publish(j.piece(text, more, false))
}

func (j *job) piece(text string, more, last bool) event {
	return event{Artifact: &artifactUpdate{
		TaskID: j.id, ContextID: j.contextID, Append: more, LastChunk: last,
		Artifact: artifact{ArtifactID: responseArtifact, Name: "response", Parts: []part{{"text": text}}},
	}}
}

// thought shows what the model thinks. It is told, but not kept.
func (j *job) thought(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State != working || text == "" {
		return
	}
	m := j.says([]part{{"text": text, "metadata": map[string]any{"thought": true}}})
	j.publish(event{Status: &statusUpdate{
		TaskID: j.id, ContextID: j.contextID, Status: status{State: working, Message: &m, Timestamp: stamp(j.s.now())},
		Metadata: map[string]any{"thought": true},
	}})
}

// asks has the task wait for its caller.
func (j *job) asks(a ask) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.task.Status.State.ended() {
		j.open = append(j.open, a)
		j.setLocked(inputRequired, a.text, part{"data": a.data, "mediaType": "application/json"})
		j.remember(*j.task.Status.Message)
	}
}

// remember adds to what was said, under the lock.
func (j *job) remember(m message) {
	j.task.History = append(j.task.History, m)
	if len(j.task.History) > maxHistory {
		j.task.History = slices.Delete(j.task.History, 1, 2)
	}
}

// settled drops a call that waits no more, whoever decided about it, and its question.
func (j *job) settled(call string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.open)
	j.open = slices.DeleteFunc(j.open, func(a ask) bool { return a.id == call || a.call == call })
	if len(j.open) < n && len(j.open) == 0 && j.task.Status.State == inputRequired {
		j.setLocked(working, "")
	}
}

// finish ends the task with the turn's result.
func (j *job) finish(to state, text string, metadata map[string]any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.task.Status.State.ended() {
		return
	}
	if metadata != nil {
		j.task.Metadata = metadata
	}
	if len(j.task.Artifacts) > 0 {
		j.publish(j.piece("", true, true))
	}
	j.setLocked(to, text)
}

// frame takes what the turn tells.
func (j *job) frame(r e2a.Response) {
	switch r.Kind {
	case e2a.KindChunk:
		j.mu.Lock()
		j.chat = true
		j.mu.Unlock()
		j.chunk(r.Body)
	case e2a.KindComplete:
		result, _ := r.Body["result"].(map[string]any)
		metadata := map[string]any{"stopReason": result["stop_reason"], "usage": camel(result["usage"])}
		if result["stop_reason"] == "cancelled" {
			j.finish(canceled, "The turn was stopped.", metadata)
			return
		}
		j.finish(completed, "", metadata)
	case e2a.KindError:
		text, _ := r.Body["message"].(string)
		j.finish(failed, text, map[string]any{"code": r.Body["code"]})
	}
}

func (j *job) chunk(body map[string]any) {
	switch body["delta_kind"] {
	case string(e2a.DeltaText):
		text, _ := body["delta"].(string)
		j.text(text)
	case string(e2a.DeltaReasoning):
		text, _ := body["delta"].(string)
		j.thought(text)
	case string(e2a.DeltaTool):
		delta, _ := body["delta"].(map[string]any)
		id, _ := delta["id"].(string)
		switch phase := delta["phase"]; {
		case phase == "run" && delta["manual_approval"] == true:
			j.asks(callAsk(id, delta))
		case phase == "running" && j.isQuestion(id): // it runs for as long as it waits
		case phase == "running", phase == "called", phase == "rejected":
			j.settled(id)
		}
	case string(e2a.DeltaCustom):
		if delta, ok := body["delta"].(map[string]any); ok && body["event_type"] == "question" {
			j.asks(questionAsk(delta))
		}
	}
}

func (j *job) isQuestion(call string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.open, func(a ask) bool { return a.question && a.call == call })
}

// camel writes the keys of an object as A2A does: input_tokens is inputTokens.
func camel(v any) any {
	object, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := make(map[string]any, len(object))
	for key, value := range object {
		out[camelName(key)] = value
	}
	return out
}
