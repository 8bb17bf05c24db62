package acp

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/seed-dec29ce4/eca/e2a"
)

// session is one that is open. Its id is that of its chat.
type session struct {
	id    string
	place *place
	turn  *turn // the last one; touched by take alone

	mu      sync.Mutex // guards what follows, and that changes are told in order
	told    told
	refused map[string]bool // calls that the user rejected for the session, by kindOfCall
}

// refuse has calls like one refused from now on.
func (s *session) refuse(kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.refused = map[string]bool{}
	}
	s.refused[kind] = true
}

func (s *session) refuses(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[kind]
}

// told is what the client was told last of a session.
type told struct {
	title   string
	choices choices
}

// named finds the session of a request.
func (a *agent) named(params json.RawMessage) (*session, error) {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	if p.SessionID == "" {
		return nil, failure(codeParams, "sessionId is missing")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.sessions[p.SessionID]
	if !ok {
		return nil, failure(codeNotFound, "no session %q is open", p.SessionID)
	}
	return s, nil
}

// update tells something of a session.
func (a *agent) update(s *session, kind string, what object) error {
	what["sessionUpdate"] = kind
	return a.peer.notify("session/update", object{"sessionId": s.id, "update": what})
}

// begin makes a session one that is open, with what the client will know of it.
func (a *agent) begin(ctx context.Context, c *call, p *place, id string) (*session, error) {
	s := &session{id: id, place: p}
	a.mu.Lock()
	was := a.sessions[id]
	p.users++
	a.sessions[id] = s
	a.mu.Unlock()
	if was != nil {
		a.stop(was)
		a.leave(was.place)
	}
	now, err := a.known(ctx, c, s)
	if err != nil {
		a.forget(s)
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = now
	return s, nil
}

// known reads how a session is set.
func (a *agent) known(ctx context.Context, c *call, s *session) (told, error) {
	result, err := s.place.do(ctx, a.envelope(c, e2a.MethodConfigGet, object{"sessionId": s.id}), nil)
	if err != nil {
		return told{}, err
	}
	title, _ := result["title"].(string)
	return told{title: title, choices: readChoices(result)}, nil
}

// shown is what the client was told of how the session is set.
func (s *session) shown() choices {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told.choices
}

// named tells a title that is new.
func (s *session) named(title string, tell func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if title == "" || title == s.told.title {
		return nil
	}
	s.told.title = title
	return tell()
}

func (a *agent) sessionNew(c *call) (any, error) {
	var w where
	if err := decode(c.Params, &w); err != nil {
		return nil, err
	}
	if err := checkFolder("cwd", w.Cwd); err != nil {
		return nil, err
	}
	if err := w.checkAdditional(); err != nil {
		return nil, err
	}
	p, err := a.open(w)
	if err != nil {
		return nil, err
	}
	defer a.leave(p)
	made, err := p.do(c.ctx, a.envelope(c, e2a.MethodSessionCreate, nil), nil)
	if err != nil {
		return nil, err
	}
	id, _ := made["session_id"].(string)
	s, err := a.begin(c.ctx, c, p, id)
	if err != nil {
		return nil, err
	}
	c.after = func() { a.settle(c, s) }
	result := a.settings(s)
	result["sessionId"] = id
	return result, nil
}

// sessionLoad opens a session again; replay has it told from its beginning first.
func (a *agent) sessionLoad(c *call, replay bool) (any, error) {
	var w struct {
		where
		SessionID string `json:"sessionId"`
	}
	if err := decode(c.Params, &w); err != nil {
		return nil, err
	}
	if w.SessionID == "" {
		return nil, failure(codeParams, "sessionId is missing")
	}
	if err := w.checkAdditional(); err != nil {
		return nil, err
	}
	p, err := a.open(w.where)
	if err != nil {
		return nil, err
	}
	defer a.leave(p)
	if _, err := p.do(c.ctx, a.envelope(c, e2a.MethodSessionLoad, nil), nil); err != nil {
		return nil, err
	}
	if err := checkFolder("cwd", w.Cwd); err != nil { // a session that does not exist is the first thing to say
		return nil, err
	}
	s, err := a.begin(c.ctx, c, p, w.SessionID)
	if err != nil {
		return nil, err
	}
	if replay {
		t := a.teller(s)
		t.replay = true
		if _, err := p.do(c.ctx, a.envelope(c, e2a.MethodHistory, nil), t.tell); err != nil {
			a.forget(s)
			return nil, err
		}
	}
	c.after = func() { a.settle(c, s) }
	return a.settings(s), nil
}

// listed is how many sessions one answer lists.
const listed = 100

// sessionList lists the sessions of a folder, newest first; without one, those of the
// folder that eca was started in.
func (a *agent) sessionList(c *call) (any, error) {
	var q struct {
		Cwd    lenient[string] `json:"cwd"`
		Cursor lenient[string] `json:"cursor"`
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
			return nil, failure(codeParams, "the cursor %.40q is none of ours", q.Cursor.Value)
		}
		from = n
	}
	p, err := a.listing(cwd)
	if err != nil {
		return nil, err
	}
	defer a.leave(p)
	result, err := p.do(c.ctx, a.envelope(c, e2a.MethodSessionList, object{"limit": json.Number(strconv.Itoa(from + listed + 1))}), nil)
	if err != nil {
		return nil, err
	}
	list, _ := result["sessions"].([]any)
	out := object{"sessions": []any{}}
	for i, item := range list[min(from, len(list)):] {
		if i == listed {
			out["nextCursor"] = strconv.Itoa(from + listed)
			break
		}
		known, _ := item.(object)
		entry := object{"sessionId": known["session_id"], "cwd": filepath.Clean(cwd), "updatedAt": known["updated_at"]}
		if title, _ := known["title"].(string); title != "" {
			entry["title"] = title
		}
		if len(p.Folders) > 1 {
			entry["additionalDirectories"] = p.Folders[1:]
		}
		out["sessions"] = append(out["sessions"].([]any), entry)
	}
	return out, nil
}

// listing returns a place of a folder, which must be left: one that is open, whatever else
// it has, or one of its own.
func (a *agent) listing(cwd string) (*place, error) {
	cwd = filepath.Clean(cwd)
	p := a.use(func(_ string, p *place) bool { return len(p.Folders) == 1 && p.Folders[0] == cwd })
	if p != nil {
		return p, nil
	}
	if err := checkFolder("cwd", cwd); err != nil {
		return nil, err
	}
	return a.open(where{Cwd: cwd})
}

// sessionDelete deletes a session. One that is not there is deleted already.
func (a *agent) sessionDelete(c *call) (any, error) {
	s, err := a.named(c.Params)
	if err != nil {
		var p struct {
			SessionID string `json:"sessionId"`
		}
		if decode(c.Params, &p) != nil || p.SessionID == "" {
			return nil, err
		}
		place, err := a.listing(a.opts.Cwd)
		if err != nil {
			return nil, err
		}
		defer a.leave(place)
		return a.erase(c, place)
	}
	a.stop(s)
	result, err := a.erase(c, s.place)
	if err == nil {
		a.forget(s)
	}
	return result, err
}

func (a *agent) erase(c *call, p *place) (any, error) {
	_, err := p.do(c.ctx, a.envelope(c, e2a.MethodSessionDelete, nil), nil)
	if e := asError(err); err != nil && e.Code != codeNotFound {
		return nil, err
	}
	return object{}, nil
}

// sessionClose stops what a session does and lets go of it. It can be loaded again.
func (a *agent) sessionClose(c *call) (any, error) {
	s, err := a.named(c.Params)
	if err != nil {
		return nil, err
	}
	a.stop(s)
	a.forget(s)
	return object{}, nil
}

func (a *agent) forget(s *session) {
	a.mu.Lock()
	delete(a.sessions, s.id)
	a.mu.Unlock()
	a.leave(s.place)
}

// settle tells what may be known only after a session was opened: the commands, and the
// models that providers have.
func (a *agent) settle(c *call, s *session) {
	c = &call{message: message{Method: c.Method, ID: c.ID}, ctx: a.ctx} // the request is answered
	a.tellCommands(c, s)
	a.mu.Lock()
	first := !s.place.synced
	s.place.synced = true
	a.mu.Unlock()
	if !first {
		return
	}
	a.work.Go(func() {
		_, err := s.place.do(a.ctx, a.envelope(c, e2a.MethodModelSync, nil), nil)
		if err == nil {
			err = a.tellChanges(c, s)
		}
		if err != nil && a.ctx.Err() == nil {
			a.log.Warn("the models of providers are not known", "err", err)
		}
	})
}

// tellCommands says which slash commands prompts may begin with.
func (a *agent) tellCommands(c *call, s *session) {
	result, err := s.place.do(a.ctx, a.envelope(c, e2a.MethodCommands, nil), nil)
	if err != nil {
		return // a client without a menu can still write them
	}
	commands := []any{}
	list, _ := result["commands"].([]any)
	for _, item := range list {
		known, _ := item.(object)
		description, _ := known["description"].(string)
		name, _ := known["name"].(string)
		command := object{"name": name, "description": description}
		if hint := hintOf(known["arguments"]); hint != "" {
			command["input"] = object{"hint": hint}
		}
		commands = append(commands, command)
	}
	_ = a.update(s, "available_commands_update", object{"availableCommands": commands})
}

// hintOf names the arguments of a command; those that may be left out are in brackets.
func hintOf(args any) string {
	hint := ""
	list, _ := args.([]any)
	for _, item := range list {
		arg, _ := item.(object)
		name, _ := arg["name"].(string)
		if arg["required"] != true {
			name = "[" + name + "]"
		}
		if hint != "" {
			hint += " "
		}
		hint += name
	}
	return hint
}
