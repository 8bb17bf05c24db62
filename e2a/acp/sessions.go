package acp

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// session is an open session. Its id is that of its chat.
type session struct {
	agent    *agent
	id       string
	instance *instance
	prompt   *prompt // the latest one; used only by handlers in the queue

	rejectedKinds sync.Map // keys (kindOfCall) of the calls that the user rejected for the session

	mu    sync.Mutex // guards shown, and the order in which changes are sent to the client
	shown shownState
}

// update sends a session update to the client.
func (s *session) update(u update) error {
	return s.agent.conn.Notify(s.agent.ctx, "session/update", sessionUpdate{s.id, u})
}

// interrupt stops the running turn of the session.
func (s *session) interrupt() {
	if _, err := s.instance.turns.Cancel(s.id); err != nil {
		s.agent.log.Warn("cannot stop a turn", "session", s.id, "err", err)
	}
}

// stop stops the running turn of the session and waits for its end.
func (s *session) stop() {
	if s.prompt != nil {
		s.prompt.cancel(s.interrupt)
		<-s.prompt.done
	}
}

// idOf reads the session id of a request.
func idOf(params json.RawMessage) (string, error) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if err := decode(params, &p); err != nil {
		return "", err
	}
	if p.SessionID == "" {
		return "", failure(codeParams, "sessionId is missing")
	}
	return p.SessionID, nil
}

// sessionOf finds the session of a request.
func (a *agent) sessionOf(params json.RawMessage) (*session, error) {
	id, err := idOf(params)
	if err != nil {
		return nil, err
	}
	s := a.session(id)
	if s == nil {
		return nil, failure(codeNotFound, "no session %q is open", id)
	}
	return s, nil
}

// decodeForSession reads the parameters of a request and finds its session.
func (a *agent) decodeForSession(c *call, params any) (*session, error) {
	if err := decode(c.Params, params); err != nil {
		return nil, err
	}
	return a.sessionOf(c.Params)
}

// session returns an open session, or nil.
func (a *agent) session(id string) *session {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[id]
}

// openSession opens a session and stores the state that the client is about to be shown. It replaces
// an open session with the same id.
func (a *agent) openSession(ctx context.Context, p *instance, id string) (*session, error) {
	s := &session{agent: a, id: id, instance: p}
	p.retain()
	a.mu.Lock()
	replaced := a.sessions[id]
	a.sessions[id] = s
	a.mu.Unlock()
	if replaced != nil {
		replaced.stop()
		replaced.instance.release()
	}
	now, err := s.current(ctx)
	if err != nil {
		a.removeSession(s)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = now
	return s, nil
}

func (a *agent) removeSession(s *session) {
	a.mu.Lock()
	delete(a.sessions, s.id)
	a.mu.Unlock()
	s.instance.release()
}

func (a *agent) sessionNew(c *call) (any, error) {
	var w setupParams
	if err := decode(c.Params, &w); err != nil {
		return nil, err
	}
	if err := checkFolder("cwd", w.Cwd); err != nil {
		return nil, err
	}
	p, err := a.open(w)
	if err != nil {
		return nil, err
	}
	defer p.release()
	created, err := p.turns.Create(c.ctx, "")
	if err != nil {
		return nil, p.errorFor(c.ctx, err)
	}
	s, err := a.openSession(c.ctx, p, created.ID)
	if err != nil {
		return nil, err
	}
	c.afterAnswer = s.showLateInfo
	result := s.settings()
	result.SessionID = s.id
	return result, nil
}

// sessionLoad opens an existing session; replay first shows it from its beginning.
func (a *agent) sessionLoad(c *call, replay bool) (any, error) {
	var w setupParams
	id, err := idOf(c.Params)
	if err == nil {
		err = decode(c.Params, &w)
	}
	if err != nil {
		return nil, err
	}
	p, err := a.open(w)
	if err != nil {
		return nil, err
	}
	defer p.release()
	if _, err := p.turns.Load(c.ctx, id); err != nil {
		return nil, p.errorFor(c.ctx, err)
	}
	if err := checkFolder("cwd", w.Cwd); err != nil { // a missing session is reported first
		return nil, err
	}
	s, err := a.openSession(c.ctx, p, id)
	if err != nil {
		return nil, err
	}
	if replay {
		if _, err := p.turns.History(c.ctx, id, newWriter(s, nil)); err != nil {
			a.removeSession(s)
			return nil, p.errorFor(c.ctx, err)
		}
	}
	c.afterAnswer = s.showLateInfo
	return s.settings(), nil
}

// maxListed is how many sessions one answer lists.
const maxListed = 100

type sessionList struct {
	Next     string          `json:"nextCursor,omitempty"`
	Sessions []listedSession `json:"sessions"`
}

type listedSession struct {
	Folders   []string `json:"additionalDirectories,omitempty"`
	Cwd       string   `json:"cwd"`
	SessionID string   `json:"sessionId"`
	Title     string   `json:"title,omitempty"`
	Updated   string   `json:"updatedAt"`
}

// sessionList lists the sessions of a folder, newest first. The default is the folder that eca was
// started in.
func (a *agent) sessionList(c *call) (any, error) {
	var q struct {
		Cwd    e2a.Optional[string] `json:"cwd"`
		Cursor e2a.Optional[string] `json:"cursor"`
	}
	if err := decode(c.Params, &q); err != nil {
		return nil, err
	}
	cwd := q.Cwd.Value
	if cwd == "" {
		cwd = a.opts.Cwd
	}
	from := 0
	if q.Cursor.Value != "" {
		n, err := strconv.Atoi(q.Cursor.Value)
		if err != nil || n < 0 || n > 1<<20 {
			return nil, failure(codeParams, "the cursor %.40q is not valid", q.Cursor.Value)
		}
		from = n
	}
	p, err := a.instanceFor(cwd)
	if err != nil {
		return nil, err
	}
	defer p.release()
	list, err := p.turns.List(c.ctx, from+maxListed+1)
	if err != nil {
		return nil, p.errorFor(c.ctx, err)
	}
	out := sessionList{Sessions: []listedSession{}}
	for i, s := range list[min(from, len(list)):] {
		if i == maxListed {
			out.Next = strconv.Itoa(from + maxListed)
			break
		}
		updated := s.Updated.UTC().Format("2006-01-02T15:04:05.000Z07:00")
		out.Sessions = append(out.Sessions, listedSession{p.Folders[1:], filepath.Clean(cwd), s.ID, s.Title, updated})
	}
	return out, nil
}

// instanceFor returns an instance for a folder: an open one with only that folder, whatever its
// configuration, or a new one. The caller must release it.
func (a *agent) instanceFor(cwd string) (*instance, error) {
	cwd = filepath.Clean(cwd)
	p := a.instances.find(func(p *instance) bool { return len(p.Folders) == 1 && p.Folders[0] == cwd })
	if p != nil {
		return p, nil
	}
	if err := checkFolder("cwd", cwd); err != nil {
		return nil, err
	}
	return a.open(setupParams{Cwd: cwd})
}

// sessionDelete deletes a session. A missing session counts as deleted.
func (a *agent) sessionDelete(c *call) (any, error) {
	id, err := idOf(c.Params)
	if err != nil {
		return nil, err
	}
	s, p := a.session(id), (*instance)(nil)
	if s != nil {
		s.stop()
		p = s.instance
	} else if p, err = a.instanceFor(a.opts.Cwd); err != nil {
		return nil, err
	} else {
		defer p.release()
	}
	err = p.errorFor(c.ctx, p.turns.Delete(c.ctx, id))
	var known *jsonrpc.Error
	if err != nil && (!errors.As(err, &known) || known.Code != codeNotFound) {
		return nil, err
	}
	if s != nil {
		a.removeSession(s)
	}
	return empty, nil
}

// sessionClose stops the running turn of a session and closes the session. It can be loaded again.
func (a *agent) sessionClose(c *call) (any, error) {
	s, err := a.sessionOf(c.Params)
	if err != nil {
		return nil, err
	}
	s.stop()
	a.removeSession(s)
	return empty, nil
}

// showLateInfo shows the commands and, once they have been fetched, the models of the providers. It
// is called after the answer that opens a session.
func (s *session) showLateInfo() {
	a := s.agent
	commands := []slashCommand{}
	for _, c := range s.instance.turns.Commands() {
		listed := slashCommand{Description: c.Description, Name: c.Name}
		if hint := hintOf(c.Arguments); hint != "" {
			listed.Input = &commandInput{hint}
		}
		commands = append(commands, listed)
	}
	_ = s.update(update{Kind: "available_commands_update", Commands: commands}) // if it fails, the user can still type them
	if s.instance.synced.Swap(true) {
		return
	}
	a.work.Go(func() {
		s.instance.turns.SyncModels(a.ctx)
		if err := s.showChanges(a.ctx); err != nil && a.ctx.Err() == nil {
			a.log.Warn("cannot show the models of the providers", "err", err)
		}
	})
}

// hintOf lists the arguments of a command, with optional ones in brackets.
func hintOf(args []command.Argument) string {
	var names []string
	for _, arg := range args {
		if arg.Required {
			names = append(names, arg.Name)
		} else {
			names = append(names, "["+arg.Name+"]")
		}
	}
	return strings.Join(names, " ")
}
