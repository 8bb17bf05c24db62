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
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// send handles a message: it starts a task, or replies to a pending request of one. The caller must
// close the subscription.
func (s *Server) send(ctx context.Context, p *sendParams, legacy bool) (*subscription, error) {
	if err := checkMessage(p, legacy); err != nil {
		return nil, err
	}
	if push := cmp.Or(p.Configuration.Push, p.Configuration.LegacyPush); push != nil {
		if !s.pushEnabled() {
			return nil, failure(codeNoPush, "push notifications are not supported")
		}
		if err := s.checkPush(push); err != nil {
			return nil, err
		}
	}
	if p.Message.TaskID != "" {
		return s.continueTask(ctx, p, legacy)
	}
	return s.startTask(p, legacy)
}

// registerPush adds the push configuration in the parameters of a message, if any, to its task.
func (s *Server) registerPush(j *job, p *sendParams, legacy bool) error {
	push := cmp.Or(p.Configuration.Push, p.Configuration.LegacyPush)
	if push == nil {
		return nil
	}
	_, err := s.registerHook(j, *push, legacy)
	return err
}

// checkMessage refuses messages without content, or with content or settings that a turn cannot use. It
// converts a 0.3 message in place.
func checkMessage(p *sendParams, legacy bool) error {
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
		return failure(codeParams, "params.message.contextId %q is not a valid id", m.ContextID)
	case p.Configuration.HistoryLength != nil && *p.Configuration.HistoryLength < 0:
		return failure(codeParams, "params.configuration.historyLength must not be negative")
	}
	m.Metadata = nonNull(m.Metadata)
	for i := range m.Parts {
		if err := checkPart(&m.Parts[i]); err != nil {
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

// checkPart requires exactly one kind of content, and one that a prompt can have. It converts a text
// file to text.
func checkPart(p *part) *jsonrpc.Error {
	p.Metadata, p.Data = nonNull(p.Metadata), nonNull(p.Data)
	contents := 0
	for _, set := range []bool{p.Text != nil, p.Raw != nil, p.URL != nil, p.Data != nil} {
		if set {
			contents++
		}
	}
	if contents != 1 {
		return failure(codeParams, "exactly one of text, raw, url and data must be set")
	}
	if p.Raw == nil {
		return nil
	}
	raw, err := base64.StdEncoding.DecodeString(*p.Raw)
	if err != nil {
		return failure(codeParams, "raw is not valid base64")
	}
	kind, _, _ := mime.ParseMediaType(p.MediaType)
	switch {
	case slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/gif"}, kind):
		p.MediaType = kind
	case strings.HasPrefix(kind, "text/"), kind == "application/json":
		text := strings.TrimSpace(p.Filename + "\n" + string(raw))
		p.Raw, p.Text = nil, &text
	default:
		return failure(codeContentType, "files of type %q are not supported; only images and text are", p.MediaType)
	}
	return nil
}

// startTask starts a task.
func (s *Server) startTask(p *sendParams, legacy bool) (*subscription, error) {
	m := *p.Message
	m.TaskID = s.opts.NewID()
	if m.ContextID == "" {
		m.ContextID = s.opts.NewID()
	}
	j := &job{id: m.TaskID, contextID: m.ContextID, server: s, done: make(chan struct{})}
	j.task = task{
		ID: j.id, ContextID: j.contextID, Status: status{State: submitted, Timestamp: formatTime(s.opts.Now())}, History: []message{m},
	}
	if err := s.registerPush(j, p, legacy); err != nil {
		return nil, err
	}
	j.ctx, j.cancel = context.WithCancel(s.ctx)
	sub := j.subscribe(p.Configuration.HistoryLength) // before the task runs, to get all of its events
	removed, err := s.tasks.add(j, func() { s.work.Go(func() { j.run(requestOf(p, &m)) }) })
	if err != nil {
		j.discard()
		return nil, err
	}
	s.dropTasks(removed)
	return sub, nil
}

// nonNull returns a value, or nil for null.
func nonNull(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// requestOf returns the prompt of a message (acp-a2a.md C1). model, agent and variant may be in the
// metadata; trust must not, because only the user can grant it.
func requestOf(p *sendParams, m *message) turn.Request {
	r := turn.Request{Session: m.ContextID, NoDialog: true} // records would keep a key
	r.Model, r.Agent, r.Variant = p.Metadata.Model.Value, p.Metadata.Agent.Value, p.Metadata.Variant.Value
	for _, part := range m.Parts {
		if b, ok := part.block(); ok {
			r.Blocks = append(r.Blocks, b)
		}
	}
	return r
}

// run runs the turn of a task.
func (j *job) run(r turn.Request) {
	defer j.cancel()
	j.set(working, "")
	t, err := j.server.opts.Turns.Start(j.ctx, r)
	if err != nil {
		j.end(turn.Outcome{}, err)
		return
	}
	j.mu.Lock()
	j.hasChat = true
	j.mu.Unlock()
	j.end(t.Follow(j))
}

// continueTask handles a message that replies to the pending requests of a task.
func (s *Server) continueTask(ctx context.Context, p *sendParams, legacy bool) (*subscription, error) {
	m := *p.Message
	j, err := s.tasks.find(m.TaskID)
	if err != nil {
		return nil, err
	}
	if m.ContextID != "" && m.ContextID != j.contextID {
		return nil, failure(codeParams, "task %q belongs to context %q, not %q", j.id, j.contextID, m.ContextID)
	}
	m.ContextID = j.contextID
	if err := s.registerPush(j, p, legacy); err != nil {
		return nil, err
	}
	j.mu.Lock()
	if len(j.pending) == 0 {
		now := j.task.Status.State
		j.mu.Unlock()
		return nil, failure(codeUnsupported, "task %q is %s and accepts no messages; send one without a taskId to start another task", j.id, now)
	}
	replies, err := parseReplies(&m, j.pending)
	if err != nil {
		j.mu.Unlock()
		return nil, err
	}
	defer j.mu.Unlock() // the turn shows nothing until the replies are in the task
	undelivered := j.deliverReplies(replies)
	if undelivered == nil {
		j.addToHistory(m)
	}
	if len(j.pending) == 0 {
		j.setLocked(working, "")
	} else {
		j.save()
	}
	if undelivered != nil {
		return nil, failure(codeParams, "%s", j.server.opts.Turns.Explain(ctx, undelivered).Message)
	}
	return j.subscribeLocked(p.Configuration.HistoryLength), nil
}

// cancelTask stops a task and waits for its end.
func (s *Server) cancelTask(ctx context.Context, id string) (*task, error) {
	j, err := s.tasks.find(id)
	if err != nil {
		return nil, err
	}
	if j.isDone() {
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

// listParams are the parameters of ListTasks.
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

func (s *Server) listTasks(p listParams) (*taskList, error) {
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
		return nil, failure(codeParams, "statusTimestampAfter is not an RFC 3339 time")
	case !slices.Contains(append(states(), "", unspecified), p.Status):
		return nil, failure(codeParams, "unknown status %q", p.Status)
	}
	all := slices.DeleteFunc(s.tasks.list(), func(t *task) bool {
		at, _ := time.Parse(time.RFC3339Nano, t.Status.Timestamp)
		return p.ContextID != "" && t.ContextID != p.ContextID || p.Status != "" && p.Status != unspecified && t.Status.State != p.Status ||
			p.StatusTimestampAfter != "" && at.Before(after)
	})
	total := len(all)
	if p.PageToken != "" {
		// The token names the last task of the previous page and the time of its change: tasks that have
		// changed since then come before it.
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
		t.shorten(p.HistoryLength)
	}
	return &taskList{next, size, all, total}, nil
}

type taskList struct {
	Next  string  `json:"nextPageToken"`
	Size  int     `json:"pageSize"`
	Tasks []*task `json:"tasks"`
	Total int     `json:"totalSize"`
}

func splitToken(token string) (when, id string, err error) {
	text, decodeErr := base64.RawURLEncoding.DecodeString(token)
	when, id, ok := strings.Cut(string(text), " ")
	if _, timeErr := time.Parse(time.RFC3339Nano, when); errors.Join(decodeErr, timeErr) != nil || !ok {
		return "", "", failure(codeParams, "pageToken %q is not valid", token)
	}
	return when, id, nil
}
