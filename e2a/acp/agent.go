package acp

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a"
)

// client is what the client said of itself in initialize.
type client struct {
	Info         lenient[named]   `json:"clientInfo"`
	Capabilities lenient[offered] `json:"clientCapabilities"`
}

type named struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// offered is what the client can be asked for (A3). Of what is a pointer, being there is
// what counts.
type offered struct {
	FS lenient[struct {
		Read  lenient[bool] `json:"readTextFile"`
		Write lenient[bool] `json:"writeTextFile"`
	}] `json:"fs"`
	Auth lenient[struct {
		Terminal lenient[bool] `json:"terminal"`
	}] `json:"auth"`
	Elicitation lenient[struct {
		Form *json.RawMessage `json:"form"`
	}] `json:"elicitation"`
	Session lenient[struct {
		Notices    *json.RawMessage `json:"notices"`
		Compaction *json.RawMessage `json:"compaction"`
		Options    lenient[struct {
			Boolean *json.RawMessage `json:"boolean"`
		}] `json:"configOptions"`
	}] `json:"session"`
}

type object = map[string]any

// protocolVersion is the version of ACP.
const protocolVersion = 1

// loginMethod is the id of the way to log in: `eca login` in a terminal of the client's.
const loginMethod = "eca-login"

// call is a request that is being answered.
type call struct {
	message
	ctx context.Context
	// after is done when the answer is on its way.
	after func()
}

// register makes it possible to cancel a request from now on.
func (a *agent) register(m *message) {
	ctx, cancel := context.WithCancel(a.ctx)
	m.ctx = ctx
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancels[string(m.ID)] = cancel
}

func (a *agent) done(id json.RawMessage) {
	a.mu.Lock()
	cancel := a.cancels[string(id)]
	delete(a.cancels, string(id))
	a.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// cancelRequest cancels a request of the client's. A prompt is then answered as cancelled.
func (a *agent) cancelRequest(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if decode(params, &p) != nil {
		return
	}
	a.mu.Lock()
	cancel := a.cancels[string(p.RequestID)]
	a.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// take carries out a message. Only prompts go on behind it.
func (a *agent) take(m message) {
	a.log.Debug("acp", "method", m.Method)
	if !m.request() {
		if m.Method == e2a.MethodCancel && a.ready {
			a.cancel(m.Params)
		}
		return // others are none of ours
	}
	c := &call{message: m, ctx: m.ctx}
	if m.Method == e2a.MethodPrompt && a.ready {
		a.prompt(c)
		return
	}
	result, err := a.do(c)
	a.answer(c, result, err)
}

// answer ends a request.
func (a *agent) answer(c *call, result any, err error) {
	if err != nil && c.ctx.Err() != nil {
		err = failure(codeCancelled, "the request was cancelled")
	}
	a.done(c.ID)
	a.peer.answer(c.ID, result, err)
	if c.after != nil && err == nil {
		c.after()
	}
}

// do carries out a request that does not go on.
func (a *agent) do(c *call) (any, error) {
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	if c.Method == "initialize" {
		return a.initialize(c)
	}
	if !a.ready {
		return nil, failure(codeRequest, "initialize comes first")
	}
	switch c.Method {
	case "authenticate":
		return a.authenticate(c)
	case "session/new":
		return a.sessionNew(c)
	case "session/load":
		return a.sessionLoad(c, true)
	case "session/resume":
		return a.sessionLoad(c, false)
	case "session/list":
		return a.sessionList(c)
	case "session/delete":
		return a.sessionDelete(c)
	case "session/close":
		return a.sessionClose(c)
	case "session/set_mode":
		return a.setMode(c)
	case "session/set_config_option":
		return a.setOption(c)
	}
	return nil, failure(codeMethod, "there is no method %q", c.Method)
}

// initialize says what eca can do (A5). The version is ours, whatever the client's is: it
// decides whether it speaks that.
func (a *agent) initialize(c *call) (any, error) {
	var p struct {
		Version json.RawMessage `json:"protocolVersion"`
		client
	}
	if err := decode(c.Params, &p); err != nil {
		return nil, err
	}
	if version, err := strconv.ParseFloat(strings.Trim(string(p.Version), `"`), 64); err != nil || version < 0 {
		return nil, failure(codeParams, "protocolVersion must be a number, such as %d", protocolVersion)
	}
	a.client, a.ready = p.client, true
	a.log.Info("acp client", "name", p.Info.Value.Name, "version", p.Info.Value.Version)
	methods := []any{}
	if a.client.Capabilities.Value.Auth.Value.Terminal.Value {
		methods = append(methods, object{
			"id": loginMethod, "name": "Log in to a provider", "description": "Runs eca login in a terminal.", "type": "terminal", "args": []any{"login"}, "env": object{},
		})
	}
	return object{
		"protocolVersion": protocolVersion,
		"agentInfo":       object{"name": "eca", "title": "ECA", "version": a.opts.Version},
		"agentCapabilities": object{
			"loadSession":         true,
			"promptCapabilities":  object{"image": true, "audio": false, "embeddedContext": true},
			"mcpCapabilities":     object{"http": true, "sse": true},
			"sessionCapabilities": object{"list": object{}, "delete": object{}, "resume": object{}, "close": object{}, "additionalDirectories": object{}},
		},
		"authMethods": methods,
	}, nil
}

// authenticate has nothing left to do: the login was in the client's terminal, and eca
// reads what it left.
func (a *agent) authenticate(c *call) (any, error) {
	var p struct {
		MethodID string `json:"methodId"`
	}
	if err := decode(c.Params, &p); err != nil {
		return nil, err
	}
	if p.MethodID != loginMethod {
		return nil, failure(codeParams, "there is no way to log in called %q; run eca login in a terminal", p.MethodID)
	}
	return object{}, nil
}

// envelope makes an envelope of a request, or of what belongs to one. Parameters are those
// of the request, and over them more.
func (a *agent) envelope(c *call, method string, more object) e2a.Envelope {
	var params object
	var id any
	dec := json.NewDecoder(strings.NewReader(string(c.Params)))
	dec.UseNumber()
	_ = dec.Decode(&params)
	if params == nil {
		params = object{}
	}
	for key, v := range more {
		params[key] = v
	}
	if c.ID != nil {
		dec := json.NewDecoder(strings.NewReader(string(c.ID)))
		dec.UseNumber()
		_ = dec.Decode(&id)
	}
	e := e2a.FromACP(e2a.ACPCall{
		Method: c.Method, Params: params, ID: id, Channel: "acp", RequestID: a.opts.NewID(), Now: a.opts.Now(),
	})
	if method != "" {
		e.Method = &method
	}
	return e
}

// do has the gateway carry out a method and returns its result.
func (p *place) do(ctx context.Context, e e2a.Envelope, send func(e2a.Response) error) (object, error) {
	var last e2a.Response
	err := p.gateway.Run(ctx, e, func(r e2a.Response) error {
		if r.IsFinal {
			last = r
			return nil
		}
		if send != nil {
			return send(r)
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return resultOf(last)
}

// resultOf reads a final frame. Failures have the codes that ACP has for them.
func resultOf(last e2a.Response) (object, error) {
	if last.Kind == e2a.KindComplete {
		result, _ := last.Body["result"].(object)
		return result, nil
	}
	out := &rpcError{Code: codeInternal}
	out.Message, _ = last.Body["message"].(string)
	code, _ := last.Body["code"].(string)
	switch code {
	case "E2A.INVALID_PARAMS":
		out.Code = codeParams
	case "E2A.NOT_FOUND":
		out.Code = codeNotFound
	}
	out.Data = object{"e2a_code": code}
	return nil, out
}
