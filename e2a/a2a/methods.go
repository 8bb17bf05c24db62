package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/e2a"
)

// channelName is the channel of A2A's envelopes.
const channelName = "a2a"

// send takes a message: a new task, or what a task waits for. The subscription begins with
// the task and must be closed.
func (s *Server) send(ctx context.Context, p *sendParams, stream, legacy bool) (*subscription, error) {
	if err := check(p, legacy); err != nil {
		return nil, err
	}
	if push := cmp.Or(p.Configuration.Push, p.Configuration.LegacyPush); push != nil {
		if !s.pushes() {
			return nil, failure(codeNoPush, "push notifications are not supported")
		}
		if err := s.checkPush(push); err != nil {
			return nil, err
		}
	}
	if p.Message.TaskID != "" {
		return s.goOn(ctx, p, legacy)
	}
	return s.begin(p, stream, legacy)
}

// hookUp has a task's changes told as its message wants it.
func (s *Server) hookUp(j *job, p *sendParams, legacy bool) error {
	push := cmp.Or(p.Configuration.Push, p.Configuration.LegacyPush)
	if push == nil {
		return nil
	}
	_, err := s.notify(j, *push, legacy)
	return err
}

// check refuses messages that say nothing, or that ask for or bring what no turn could use.
func check(p *sendParams, legacy bool) error {
	m := p.Message
	if m == nil {
		return failure(codeParams, "params.message is missing")
	}
	if legacy {
		fromLegacy(m)
	}
	switch {
	case m.MessageID == "":
		return failure(codeParams, "params.message.messageId is missing")
	case m.Role != roleUser:
		return failure(codeParams, "params.message.role must be %s, not %q", roleUser, m.Role)
	case len(m.Parts) == 0:
		return failure(codeParams, "params.message.parts is empty")
	case m.ContextID != "" && !chat.ValidID(m.ContextID):
		return failure(codeParams, "params.message.contextId %q can not be one", m.ContextID)
	case p.Configuration.HistoryLength != nil && *p.Configuration.HistoryLength < 0:
		return failure(codeParams, "params.configuration.historyLength must not be negative")
	}
	for i, part := range m.Parts {
		if err := checkPart(part); err != nil {
			return failure(err.Code, "params.message.parts[%d]: %s", i, err.Message)
		}
	}
	modes := p.Configuration.AcceptedOutputModes
	if len(modes) > 0 && !slices.ContainsFunc(modes, isText) {
		return failure(codeContentType, "answers are text/plain, which acceptedOutputModes does not accept: %s", strings.Join(modes, ", "))
	}
	return nil
}

func isText(mode string) bool {
	kind, _, err := mime.ParseMediaType(mode)
	return mode == "text" || err == nil && slices.Contains([]string{"text/plain", "text/markdown", "text/*", "*/*"}, kind)
}

// checkPart demands one content that a prompt can have. A file of text is put in as text.
func checkPart(p part) *rpcError {
	var has []string
	for _, key := range []string{"text", "raw", "url", "data"} {
		if v, ok := p[key]; ok && v != nil {
			has = append(has, key)
			if _, ok := v.(string); !ok && key != "data" {
				return failure(codeParams, "%s must be a string", key)
			}
		}
	}
	if len(has) != 1 {
		return failure(codeParams, "exactly one of text, raw, url and data must be there")
	}
	if has[0] != "raw" {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(p["raw"].(string))
	if err != nil {
		return failure(codeParams, "raw is no base64")
	}
	mediaType, _ := p["mediaType"].(string)
	kind, _, _ := mime.ParseMediaType(mediaType)
	switch {
	case slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/gif"}, kind):
		p["mediaType"] = kind
	case strings.HasPrefix(kind, "text/"), kind == "application/json":
		name, _ := p["filename"].(string)
		delete(p, "raw")
		p["text"] = strings.TrimSpace(name + "\n" + string(raw))
	default:
		return failure(codeContentType, "files of type %q are not understood; images and text are", mediaType)
	}
	return nil
}

// begin starts a task.
func (s *Server) begin(p *sendParams, stream, legacy bool) (*subscription, error) {
	m := *p.Message
	m.TaskID = s.newID()
	if m.ContextID == "" {
		m.ContextID = s.newID()
	}
	j := &job{id: m.TaskID, contextID: m.ContextID, s: s, done: make(chan struct{})}
	j.task = task{
		ID: j.id, ContextID: j.contextID, Status: status{State: submitted, Timestamp: stamp(s.now())}, History: []message{m}, Metadata: map[string]any{},
	}
	e, err := s.envelope(p, &m, stream)
	if err != nil {
		return nil, err
	}
	if err := s.hookUp(j, p, legacy); err != nil {
		return nil, err
	}
	j.ctx, j.cancel = context.WithCancel(s.ctx)
	sub := j.subscribe(p.Configuration.HistoryLength) // from its beginning
	gone, err := s.tasks.add(j, func() { s.work.Go(func() { j.run(e) }) })
	if err != nil {
		j.forget()
		return nil, err
	}
	s.drop(gone)
	return sub, nil
}

// envelope makes the prompt of a message (acp-a2a.md C1). model, agent and variant may
// stand in the metadata; trust may not, since that is the user's to give.
func (s *Server) envelope(p *sendParams, m *message, stream bool) (e2a.Envelope, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return e2a.Envelope{}, err
	}
	var object, config map[string]any
	if err := json.Unmarshal(raw, &object); err != nil {
		return e2a.Envelope{}, err
	}
	if modes := p.Configuration.AcceptedOutputModes; len(modes) > 0 {
		list := make([]any, len(modes))
		for i, mode := range modes {
			list[i] = mode
		}
		config = map[string]any{"acceptedOutputModes": list}
	}
	e := e2a.FromA2A(e2a.A2AMessage{
		TaskID: m.TaskID, ContextID: m.ContextID, Message: object, Metadata: p.Metadata, Configuration: config,
		Channel: channelName, Origin: e2a.OriginAgent, RequestID: m.TaskID, Stream: stream, Now: s.now(),
	})
	for _, key := range []string{"model", "agent", "variant"} {
		if v, ok := p.Metadata[key].(string); ok {
			e.Params[key] = v
		}
	}
	return e, nil
}

// run is the turn behind a task.
func (j *job) run(e e2a.Envelope) {
	defer j.cancel()
	j.set(working, "")
	err := j.s.runner.Run(j.ctx, e, func(r e2a.Response) error {
		j.frame(r)
		return nil
	}, nil)
	if j.over() {
		return
	}
	if j.ctx.Err() != nil {
		why := "The task was cancelled."
		if j.s.ctx.Err() != nil {
			why = cutShort
		}
		j.finish(canceled, why, nil)
		return
	}
	j.s.log.Warn("a turn ended without saying so", "task", j.id, "err", err)
	j.finish(failed, "The turn ended unexpectedly.", nil)
}

// goOn takes what a task waits for.
func (s *Server) goOn(ctx context.Context, p *sendParams, legacy bool) (*subscription, error) {
	m := *p.Message
	j, err := s.tasks.find(m.TaskID)
	if err != nil {
		return nil, err
	}
	if m.ContextID != "" && m.ContextID != j.contextID {
		return nil, failure(codeParams, "task %q is of context %q, not %q", j.id, j.contextID, m.ContextID)
	}
	m.ContextID = j.contextID
	if err := s.hookUp(j, p, legacy); err != nil {
		return nil, err
	}
	j.mu.Lock()
	if len(j.open) == 0 {
		now := j.task.Status.State
		j.mu.Unlock()
		return nil, failure(codeUnsupported, "task %q is %s and takes no messages; without a taskId, a message begins another one", j.id, now)
	}
	replies, err := read(&m, j.open)
	if err != nil {
		j.mu.Unlock()
		return nil, err
	}
	for _, r := range replies {
		j.open = slices.DeleteFunc(j.open, func(a ask) bool { return a.id == r.to.id })
	}
	j.remember(m)
	if len(j.open) == 0 {
		j.setLocked(working, "")
	} else {
		j.keep()
	}
	sub := j.subscribeLocked(p.Configuration.HistoryLength)
	j.mu.Unlock()
	if err := j.carryOut(ctx, replies); err != nil {
		sub.close()
		return nil, err
	}
	return sub, nil
}

// cancelTask stops a task and waits for its end.
func (s *Server) cancelTask(ctx context.Context, id string) (*task, error) {
	j, err := s.tasks.find(id)
	if err != nil {
		return nil, err
	}
	if j.over() {
		return nil, failure(codeNotCancelable, "task %q has ended: %s", id, j.snapshot(nil).Status.State)
	}
	j.cancel()
	select {
	case <-j.done:
		return j.snapshot(nil), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// listParams are those of ListTasks.
type listParams struct {
	ContextID            string `json:"contextId"`
	Status               state  `json:"status"`
	PageSize             *int   `json:"pageSize"`
	PageToken            string `json:"pageToken"`
	HistoryLength        *int   `json:"historyLength"`
	StatusTimestampAfter string `json:"statusTimestampAfter"`
	IncludeArtifacts     bool   `json:"includeArtifacts"`
}

const maxPage, usualPage = 100, 50

func (s *Server) listTasks(p listParams) (any, error) {
	size := usualPage
	if p.PageSize != nil {
		size = *p.PageSize
	}
	after, err := time.Parse(time.RFC3339Nano, p.StatusTimestampAfter)
	const unspecified = "TASK_STATE_UNSPECIFIED"
	switch {
	case size < 1 || size > maxPage:
		return nil, failure(codeParams, "pageSize must be 1 to %d, not %d", maxPage, size)
	case p.HistoryLength != nil && *p.HistoryLength < 0:
		return nil, failure(codeParams, "historyLength must not be negative")
	case p.StatusTimestampAfter != "" && err != nil:
		return nil, failure(codeParams, "statusTimestampAfter is no RFC 3339 time")
	case !slices.Contains(append(states(), "", unspecified), p.Status):
		return nil, failure(codeParams, "status %q is none", p.Status)
	}
	all := slices.DeleteFunc(s.tasks.list(), func(t *task) bool {
		at, _ := time.Parse(time.RFC3339Nano, t.Status.Timestamp)
		return p.ContextID != "" && t.ContextID != p.ContextID || p.Status != "" && p.Status != unspecified && t.Status.State != p.Status ||
			p.StatusTimestampAfter != "" && at.Before(after)
	})
	total := len(all)
	if p.PageToken != "" {
		// The token names the last of the page before, and when it had changed: what has
		// changed since stands before it.
		when, id, err := splitToken(p.PageToken)
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(t *task) bool {
			return t.Status.Timestamp > when || t.Status.Timestamp == when && t.ID <= id
		})
	}
	next := ""
	if len(all) > size {
		all = all[:size]
		last := all[size-1]
		next = base64.RawURLEncoding.EncodeToString([]byte(last.Status.Timestamp + " " + last.ID))
	}
	for _, t := range all {
		if !p.IncludeArtifacts {
			t.Artifacts = nil
		}
		if n := p.HistoryLength; n != nil && *n < len(t.History) {
			t.History = t.History[len(t.History)-*n:]
		}
	}
	return map[string]any{"tasks": all, "nextPageToken": next, "pageSize": size, "totalSize": total}, nil
}

func splitToken(token string) (when, id string, err error) {
	text, bad := base64.RawURLEncoding.DecodeString(token)
	when, id, ok := strings.Cut(string(text), " ")
	if _, wrong := time.Parse(time.RFC3339Nano, when); errors.Join(bad, wrong) != nil || !ok {
		return "", "", failure(codeParams, "pageToken %q is none of ours", token)
	}
	return when, id, nil
}
