package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// A task is a call whose result eca fetches later. There are two kinds of tasks. In version 2025-11-25,
// the client requests a task, for tools that require it. In the extension (tasksExtension), the server
// decides that a call becomes a task. For the model, the call simply ends when its task ends.

// tasksExtension is the name of the extension.
const tasksExtension = "io.modelcontextprotocol/tasks"

// relatedTask is the key under which a server's request names the task that caused it.
const relatedTask = "io.modelcontextprotocol/related-task"

const (
	defaultPoll = time.Second
	minPoll     = 50 * time.Millisecond
	maxPoll     = 30 * time.Second
	// maxPollErrors is the number of failed polls in a row, all without an answer of the server, after
	// which the call ends.
	maxPollErrors = 3
)

// task is a server's description of a task, with the fields of both kinds.
type task struct {
	ID       string  `json:"taskId"`
	Status   string  `json:"status"`
	Message  string  `json:"statusMessage"`
	Poll     float64 `json:"pollInterval"` // milliseconds
	PollMs   float64 `json:"pollIntervalMs"`
	Result   json.RawMessage
	Error    *jsonrpc.Error
	Requests json.RawMessage `json:"inputRequests"`

	extension bool
}

// parseTask returns the task that a call has become.
func parseTask(result json.RawMessage) (task, bool) {
	var r struct {
		Type string `json:"resultType"`
		Task *task  `json:"task"`
		task
	}
	if json.Unmarshal(result, &r) != nil {
		return task{}, false
	}
	switch {
	case r.Type == "task" && r.ID != "":
		r.extension = true
		return r.task, true
	case r.Task != nil && r.Task.ID != "" && r.Task.Status != "":
		return *r.Task, true
	}
	return task{}, false
}

// interval returns the delay before the next poll.
func (t task) interval() time.Duration {
	d := time.Duration(cmp.Or(t.PollMs, t.Poll) * float64(time.Millisecond))
	if d <= 0 {
		return defaultPoll
	}
	return min(max(d, minPoll), maxPoll)
}

// errTaskCancelled is the error of a task that the server cancelled.
var errTaskCancelled = errors.New("the server cancelled the task")

// awaitTask waits for the end of a task and returns the result of its call. If it returns before the
// task has ended, because of ctx or an error, it cancels the task at the server. say receives the
// server's status messages.
func (c *connection) awaitTask(ctx context.Context, t task, running *activeCall, report func(string)) (json.RawMessage, error) {
	running.setTaskID(t.ID)
	ended := false
	defer func() {
		if !ended {
			c.cancelTask(ctx, t)
		}
	}()
	f := &taskPoller{c: c, answered: map[string]bool{}}
	for lastMessage := ""; ; {
		if t.Message != lastMessage {
			lastMessage = t.Message
			report(lastMessage)
		}
		result, over, err := f.advance(ctx, t)
		if over || err != nil {
			ended = over
			return result, err
		}
		next, err := f.poll(ctx, t)
		if f.result != nil {
			ended = true
			return f.result.raw, f.result.err
		}
		if err != nil {
			ended = answered(err) // the server answered with an error: it no longer knows the task
			return nil, err
		}
		running.restartTimer()
		next.extension = t.extension
		t = next
	}
}

// taskPoller is the state of a running task.
type taskPoller struct {
	c        *connection
	answered map[string]bool   // the requests of the server that were answered, by key
	waiting  <-chan taskResult // receives the answer to tasks/result; nil if it is not requested
	result   *taskResult
	failures int // in a row
}

type taskResult struct {
	raw json.RawMessage
	err error
}

// advance takes the action that the status of a task requires. over reports whether the task has
// ended.
func (f *taskPoller) advance(ctx context.Context, t task) (result json.RawMessage, over bool, err error) {
	switch wire.TaskStatus(t.Status) {
	case wire.TaskStatusCompleted, wire.TaskStatusFailed:
		if !t.extension {
			if f.waiting == nil {
				f.requestResult(ctx, t)
			}
			select {
			case r := <-f.waiting:
				return r.raw, answered(r.err) || r.err == nil, r.err
			case <-ctx.Done():
				return nil, false, context.Cause(ctx)
			}
		}
		if t.Error != nil {
			return nil, true, &answerError{t.Error}
		}
		if len(t.Result) == 0 {
			return nil, true, errors.New("the task ended without a result: " + cmp.Or(t.Message, t.Status))
		}
		return t.Result, true, nil
	case wire.TaskStatusCancelled:
		if t.Message != "" {
			return nil, true, fmt.Errorf("%w: %s", errTaskCancelled, t.Message)
		}
		return nil, true, errTaskCancelled
	case wire.TaskStatusInputRequired:
		if t.extension {
			return nil, false, f.answerInputs(ctx, t)
		}
		if f.waiting == nil { // requests of the server may arrive on the stream of this answer
			f.requestResult(ctx, t)
		}
	}
	return nil, false, nil
}

// requestResult requests the result of a task, which arrives when the task has ended.
func (f *taskPoller) requestResult(ctx context.Context, t task) {
	ch := make(chan taskResult, 1)
	f.waiting = ch
	if !f.c.session.background(func() {
		raw, err := f.c.session.ask(ctx, request{method: string(wire.MethodTasksResult), params: map[string]any{"taskId": t.ID}})
		ch <- taskResult{raw, err}
	}) {
		ch <- taskResult{err: context.Cause(f.c.session.ctx)}
	}
}

// answerInputs answers the requests that a task depends on, each of them once.
func (f *taskPoller) answerInputs(ctx context.Context, t task) error {
	var w inputRequest
	if err := decode(t.Requests, &w.Requests); err != nil && len(t.Requests) > 0 {
		return fmt.Errorf("the task's requests: %w", err)
	}
	for key := range w.Requests {
		if f.answered[key] {
			delete(w.Requests, key)
		}
	}
	if len(w.Requests) == 0 {
		return nil
	}
	if len(f.answered)+len(w.Requests) > maxRounds*maxIncoming {
		return fmt.Errorf("the task sent more than %d requests", maxRounds*maxIncoming)
	}
	inputs, err := f.c.session.answerInputRequests(ctx, w)
	if err != nil {
		return err
	}
	for key := range w.Requests {
		f.answered[key] = true
	}
	params := map[string]any{"taskId": t.ID, "inputResponses": inputs["inputResponses"]}
	_, err = f.c.session.ask(ctx, request{method: "tasks/update", params: params, header: t.header()})
	return err
}

// poll waits and then gets the status of a task. An answer to tasks/result also ends the wait.
func (f *taskPoller) poll(ctx context.Context, t task) (task, error) {
	wait := time.NewTimer(t.interval())
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return t, context.Cause(ctx)
		case r := <-f.waiting:
			f.waiting = nil
			if r.err == nil || answered(r.err) {
				f.result = &r
				return t, nil
			}
		case <-wait.C:
			raw, err := f.c.session.ask(ctx, request{method: string(wire.MethodTasksGet), params: map[string]any{"taskId": t.ID}, header: t.header()})
			next := task{}
			if err == nil {
				err = decode(raw, &next)
			}
			switch {
			case err == nil:
				f.failures = 0
				return next, nil
			case errors.Is(err, errSessionLost): // do not wrap errSessionLost: the caller would repeat the call, which has already begun
				return t, errors.New("the server ended the session, so the outcome of the task is unknown")
			case answered(err) || ctx.Err() != nil || errors.Is(err, errUnauthorized):
				return t, err
			}
			if f.failures++; f.failures == maxPollErrors {
				return t, fmt.Errorf("cannot get the status of the task: %w", err)
			}
			wait.Reset(t.interval())
		}
	}
}

// header returns headers that route requests to the server that has the task.
func (t task) header() map[string]string {
	if !t.extension {
		return nil
	}
	if name, ok := wire.EncodeHeaderValue(t.ID); ok {
		return map[string]string{wire.HeaderName: name}
	}
	return nil
}

// cancelTask notifies the server in the background that a task was abandoned.
func (c *connection) cancelTask(ctx context.Context, t task) {
	if !t.extension && (c.capabilities.Tasks == nil || c.capabilities.Tasks.Cancel == nil) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	c.session.background(func() {
		ctx, cancel := context.WithTimeout(ctx, pingTimeout)
		defer cancel()
		if _, err := c.session.ask(ctx, request{method: string(wire.MethodTasksCancel), params: map[string]any{"taskId": t.ID}, header: t.header()}); err != nil {
			c.session.log.Debug("cannot cancel a task of an MCP server", "err", err)
		}
	})
}

// mustBeTask reports whether a tool has to be called as a task.
func (c *connection) mustBeTask(support string) bool {
	caps := c.capabilities.Tasks
	return support == "required" && caps != nil && caps.Requests != nil && caps.Requests.Tools != nil && caps.Requests.Tools.Call != nil
}

// setTaskID records that a call has become a task.
func (a *activeCall) setTaskID(id string) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.taskID = id
}

// relatedCallLast returns the running calls. If the server's request names a task, the call of this
// task is moved to the end, because handlers use the last call.
func relatedCallLast(calls []ActiveCall, params json.RawMessage) []ActiveCall {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	var related struct {
		ID string `json:"taskId"`
	}
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p.Meta[relatedTask], &related) != nil || related.ID == "" {
		return calls
	}
	for i, call := range calls {
		if call.taskID == related.ID {
			return append(append(calls[:i:i], calls[i+1:]...), call)
		}
	}
	return calls
}
