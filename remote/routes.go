package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/tools"
)

// failure is an error answer of the API. Its message does not contain the text of other errors, which
// may contain secrets.
type failure struct {
	status  int
	code    string
	message string
}

func (e *failure) Error() string { return e.message }

func (e *failure) write(w http.ResponseWriter) {
	writeJSON(w, e.status, map[string]any{"error": map[string]string{"code": e.code, "message": e.message}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(encode(v))
}

var (
	errNotFound   = &failure{http.StatusNotFound, "not_found", "there is no such route"}
	errNoChat     = &failure{http.StatusNotFound, "chat_not_found", "there is no such chat"}
	errNoCall     = &failure{http.StatusNotFound, "tool_call_not_found", "there is no such tool call"}
	errNoServer   = &failure{http.StatusNotFound, "mcp_server_not_found", "there is no such MCP server"}
	errNoQuestion = &failure{http.StatusNotFound, "question_not_found", "there is no such question"}
	errDecided    = &failure{http.StatusConflict, "already_decided", "this was decided already"}
	errIdle       = &failure{http.StatusConflict, "chat_wrong_status", "the chat does not run"}
	errForbidden  = &failure{http.StatusForbidden, "forbidden", "this device may not do that"}
)

func badRequest(message string) *failure {
	return &failure{http.StatusBadRequest, "invalid_request", message}
}

// call is an authenticated request.
type call struct {
	ctx    context.Context
	device Device
	r      *http.Request
	body   map[string]json.RawMessage
	pause  *loadPause // set by loadChat; resumed after the answer
}

// parseBody parses the body of a request. An empty body counts as an empty object.
func (c *call) parseBody(body []byte) error {
	if len(bytes.TrimSpace(body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, &c.body); err != nil {
		return fmt.Errorf("the body is not a valid JSON object: %w", jsonrpc.Explain(body, err))
	}
	for key, value := range c.body {
		var text string
		var on bool
		switch key {
		case "message", "model", "agent", "variant", "title", "save", "name", "requestId", "answer", "contentId", "text", "endpoint":
			if json.Unmarshal(value, &text) != nil {
				return fmt.Errorf("%s is not a string", key)
			}
		case "trust", "cancelled":
			if json.Unmarshal(value, &on) != nil {
				return fmt.Errorf("%s is not true or false", key)
			}
		}
	}
	return nil
}

// text returns a string of the body; empty without one.
func (c *call) text(key string) string {
	var s string
	_ = json.Unmarshal(c.body[key], &s)
	return s
}

// flag returns a boolean of the body; ok is false without one.
func (c *call) flag(key string) (on, ok bool) {
	err := json.Unmarshal(c.body[key], &on)
	return on, err == nil && string(c.body[key]) != "null"
}

func (c *call) path(name string) string { return c.r.PathValue(name) }

// api answers the requests of devices.
type api struct{ *Face }

// route is the function that answers a request, and the rights that it needs. A nil result means an
// answer without a body.
type route struct {
	rights Rights
	serve  func(f api, c *call) (result any, err error)
}

// maxBody limits the body of a request. A prompt with images must fit.
const maxBody = 16 << 20

// routes are the routes of the API, below /api/v1.
func routes() map[string]route {
	list := map[string]route{
		"GET /session":    {Watch, func(f api, c *call) (any, error) { return f.session(c.ctx, c.device, nil), nil }},
		"GET /chats":      {Watch, func(f api, c *call) (any, error) { return f.summaries(c.ctx), nil }},
		"GET /chats/{id}": {Watch, api.loadChat},
		"GET /jobs":       {Watch, forward("jobs/list", nil)},
		"GET /jobs/{job}/output": {Watch, forward("jobs/readOutput", func(c *call) (map[string]any, error) {
			return map[string]any{"jobId": c.path("job")}, nil
		})},
		"POST /jobs/{job}/kill": {Control, forward("jobs/kill", func(c *call) (map[string]any, error) {
			return map[string]any{"jobId": c.path("job")}, nil
		})},
		"POST /chats/{id}/prompt":           {Watch, api.prompt}, // a refusal is shown in the chat
		"POST /chats/{id}/stop":             {Control, api.stop},
		"POST /chats/{id}/steer":            {Control, api.steer},
		"POST /chats/{id}/approve/{call}":   {Control, api.approve},
		"POST /chats/{id}/reject/{call}":    {Control, api.reject},
		"POST /chats/{id}/update":           {Control, api.update},
		"POST /answer":                      {Control, api.answer},
		"POST /trust":                       {Trust, api.trust},
		"GET /push":                         {Watch, api.pushKey},
		"POST /push":                        {Watch, api.subscribe},
		"DELETE /push":                      {Watch, api.unsubscribe},
		"POST /mcp":                         {Trust, api.addServer},
		"DELETE /mcp/{name}":                {Trust, api.removeServer},
		"DELETE /chats/{id}":                {Control, chatCall("chat/delete")},
		"POST /chats/{id}/clear":            {Control, chatCall("chat/clear", "messages", true)},
		"POST /chats/{id}/rollback":         {Control, chatCall("chat/rollback", "contentId", required)},
		"POST /chats/{id}/fork":             {Control, chatCall("chat/fork", "contentId", required)},
		"POST /chats/{id}/flag":             {Control, chatCall("chat/addFlag", "contentId", required, "text", required)},
		"DELETE /chats/{id}/flag/{content}": {Control, chatCall("chat/removeFlag")},
		"POST /chats/{id}/model":            {Control, api.model},
		"POST /chats/{id}/agent":            {Control, api.agent},
		"POST /chats/{id}/variant":          {Control, api.variant},
	}
	for path, method := range map[string]string{
		"start": "mcp/startServer", "stop": "mcp/stopServer", "connect": "mcp/connectServer", "logout": "mcp/logoutServer",
		"enable": "mcp/enableServer", "disable": "mcp/disableServer",
	} {
		list["POST /mcp/{name}/"+path] = route{Trust, controlServer(method)}
	}
	return list
}

// required stands for the value of a field that chatCall takes from the body.
const required = "\x00required"

// chatCall returns the function of a route that sends a request about an existing chat to the hub's
// server. fields are the names and values of further params; the value required means the string of
// this name in the body.
func chatCall(method string, fields ...any) func(f api, c *call) (any, error) {
	return func(f api, c *call) (any, error) {
		params := map[string]any{"chatId": c.path("id")}
		if content := c.path("content"); content != "" {
			params["contentId"] = content
		}
		for i := 0; i < len(fields); i += 2 {
			name, value := fields[i].(string), fields[i+1]
			if value == required {
				text := c.text(name)
				if text == "" {
					return nil, badRequest(name + " is missing")
				}
				value = text
			}
			params[name] = value
		}
		if _, err := f.existingChat(c); err != nil {
			return nil, err
		}
		return nil, f.hub.conn.Call(c.ctx, method, params, nil)
	}
}

// forward returns the function of a route that sends a request to the hub's server and returns its
// result.
func forward(method string, params func(c *call) (map[string]any, error)) func(f api, c *call) (any, error) {
	return func(f api, c *call) (any, error) {
		given := map[string]any{}
		if params != nil {
			var err error
			if given, err = params(c); err != nil {
				return nil, err
			}
		}
		var result json.RawMessage
		err := f.hub.conn.Call(c.ctx, method, given, &result)
		return result, err
	}
}

// serveRoute serves a request of a device.
func (f api) serveRoute(w http.ResponseWriter, r *http.Request, to route, dev Device) {
	if dev.Rights < to.rights {
		errForbidden.write(w)
		return
	}
	c := &call{ctx: r.Context(), device: dev, r: r, body: map[string]json.RawMessage{}}
	body, err := httpguard.ReadBody(w, r, maxBody)
	switch {
	case errors.Is(err, httpguard.ErrTooLarge):
		(&failure{http.StatusRequestEntityTooLarge, "too_large", "the body has more than 16 MiB"}).write(w)
		return
	case err != nil:
		badRequest("the body is incomplete").write(w)
		return
	}
	if err := c.parseBody(body); err != nil {
		badRequest(err.Error()).write(w)
		return
	}
	result, err := to.serve(f, c)
	if c.pause != nil {
		defer c.pause.resume()
	}
	var refused *failure
	var rpc *jsonrpc.Error
	switch {
	case err == nil && result == nil:
		w.WriteHeader(http.StatusNoContent)
	case err == nil:
		writeJSON(w, http.StatusOK, result)
	case errors.As(err, &refused):
		refused.write(w)
	case errors.Is(err, chat.ErrNoChat): // another process has deleted it
		errNoChat.write(w)
	case errors.Is(err, chat.ErrBusyElsewhere), errors.As(err, &rpc) && rpc.Message == chat.ErrBusyElsewhere.Error():
		(&failure{http.StatusConflict, "chat_busy", chat.ErrBusyElsewhere.Error()}).write(w)
	case errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeInvalidParams:
		badRequest("the request is not valid").write(w)
	default:
		if r.Context().Err() == nil {
			f.opts.Log.Error("remote: a request failed", "path", r.URL.Path, "err", err)
		}
		(&failure{http.StatusInternalServerError, "internal_error", "the request failed; eca's log says why"}).write(w)
	}
}

// existingChat returns the chat that a request is about, or errNoChat.
func (f api) existingChat(c *call) (*chat.Session, error) {
	id := c.path("id")
	if !chat.ValidID(id) {
		return nil, errNoChat
	}
	session, ok, err := f.opts.Engine.OpenExisting(c.ctx, id)
	if err == nil && !ok {
		err = errNoChat
	}
	return session, err
}

// stop ends a chat's turn.
func (f api) stop(c *call) (any, error) {
	session, err := f.existingChat(c)
	if err != nil {
		return nil, err
	}
	if !session.Running() {
		return nil, errIdle
	}
	session.Cancel()
	return nil, nil
}

// steer passes a message to the running turn.
func (f api) steer(c *call) (any, error) {
	message := c.text("message")
	if message == "" {
		return nil, badRequest("message is missing")
	}
	session, err := f.existingChat(c)
	if err != nil {
		return nil, err
	}
	if !session.Running() {
		return nil, errIdle
	}
	session.Steer(message)
	return nil, nil
}

// approve lets a call run.
func (f api) approve(c *call) (any, error) {
	d := chat.Decision{Approve: true}
	switch save := tools.Scope(c.text("save")); save {
	case "":
	case tools.ForSession, tools.ForWorkspace, tools.Everywhere:
		if c.device.Rights < Trust {
			return nil, errForbidden
		}
		d.Remember = save
	default:
		return nil, badRequest("save is not one of the known values")
	}
	return f.decide(c, d)
}

// reject refuses a call.
func (f api) reject(c *call) (any, error) { return f.decide(c, chat.Decision{}) }

// decide decides about a call, also of a subagent. The first decision counts.
func (f api) decide(c *call, d chat.Decision) (any, error) {
	session, ok := f.opts.Engine.Lookup(c.path("id"))
	if !ok {
		var err error
		if session, err = f.existingChat(c); err != nil {
			return nil, err
		}
	}
	id := c.path("call")
	counts, err := session.Decide(id, d).Wait(c.ctx)
	if err != nil || counts {
		f.opts.Log.Info("remote: a decision", "device", c.device.Name, "chat", session.ID(), "call", id, "approve", d.Approve)
		return nil, err
	}
	if _, known, err := session.Call(c.ctx, id); err != nil || !known {
		return nil, errors.Join(err, errNoCall)
	}
	return nil, errDecided
}

// answer answers a question.
func (f api) answer(c *call) (any, error) {
	id := c.text("requestId")
	if id == "" {
		return nil, badRequest("requestId is missing")
	}
	cancelled, _ := c.flag("cancelled")
	a := answer{Answer: c.text("answer"), Cancelled: cancelled}
	if a.Answer == "" && !cancelled {
		return nil, badRequest("answer is missing")
	}
	switch f.questions.answer(id, c.device, a) {
	case answerUnknown:
		return nil, errNoQuestion
	case answerForbidden:
		return nil, errForbidden
	case answerLate:
		if !cancelled { // closing a question that was answered elsewhere is not an error
			return nil, errDecided
		}
	case answerAccepted:
	}
	return nil, nil
}

// update changes a chat's title or its auto-approve.
func (f api) update(c *call) (any, error) {
	if _, err := f.existingChat(c); err != nil {
		return nil, err
	}
	params := map[string]any{"chatId": c.path("id")}
	if title := c.text("title"); title != "" {
		params["title"] = title
	}
	if on, ok := c.flag("trust"); ok {
		if on && c.device.Rights < Trust {
			return nil, errForbidden
		}
		params["trust"] = on
	}
	return nil, f.hub.conn.Call(c.ctx, "chat/update", params, nil)
}

// trust answers POST trust: it sets whether the device's prompts turn on auto-approve.
func (f api) trust(c *call) (any, error) {
	on, ok := c.flag("trust")
	if !ok {
		return nil, badRequest("trust is missing")
	}
	f.setTrust(c.device.ID, on)
	state := map[string]bool{"trust": on}
	f.show(c.ctx, c.device, frame{event: "trust:updated", data: encode(state)})
	return state, nil
}

// handler returns the handler of the API for devices.
func (f api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "version": f.opts.Version})
	})
	for pattern, to := range routes() {
		method, path, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" /api/v1"+path, f.authenticated(func(w http.ResponseWriter, r *http.Request, dev Device) {
			f.serveRoute(w, r, to, dev)
		}))
	}
	mux.Handle("GET /api/v1/events", f.authenticated(f.serveEvents))
	mux.HandleFunc("/api/", func(w http.ResponseWriter, _ *http.Request) { errNotFound.write(w) })
	return mux
}

func (f api) authenticated(serve func(http.ResponseWriter, *http.Request, Device)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dev, refused := f.authenticate(w, r)
		if refused != nil {
			refused.write(w)
			return
		}
		serve(w, r, dev)
	})
}

// addressOf returns a URL with a host and a port.
func addressOf(scheme, host string) string { return (&url.URL{Scheme: scheme, Host: host}).String() }
