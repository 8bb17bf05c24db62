package acp

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// client is the client's description of itself in initialize.
type client struct {
	Info         e2a.Optional[clientInfo]         `json:"clientInfo"`
	Capabilities e2a.Optional[clientCapabilities] `json:"clientCapabilities"`
}

type clientInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// clientCapabilities are the abilities of the client (acp-a2a.md A3). A pointer that is not nil
// means that the client has the ability.
type clientCapabilities struct {
	FS e2a.Optional[struct {
		Read  e2a.Optional[bool] `json:"readTextFile"`
		Write e2a.Optional[bool] `json:"writeTextFile"`
	}] `json:"fs"`
	Auth e2a.Optional[struct {
		Terminal e2a.Optional[bool] `json:"terminal"`
	}] `json:"auth"`
	Elicitation e2a.Optional[struct {
		Form *json.RawMessage `json:"form"`
	}] `json:"elicitation"`
	Session e2a.Optional[struct {
		Notices    *json.RawMessage `json:"notices"`
		Compaction *json.RawMessage `json:"compaction"`
		Options    e2a.Optional[struct {
			Boolean *json.RawMessage `json:"boolean"`
		}] `json:"configOptions"`
	}] `json:"session"`
}

// protocolVersion is the version of ACP.
const protocolVersion = 1

// loginMethod is the id of eca's only login method: `eca login` in a terminal of the client.
const loginMethod = "eca-login"

// call is a request that is being answered.
type call struct {
	*jsonrpc.Request
	ctx         context.Context
	afterAnswer func() // called after the answer has been sent, unless the request failed; may be nil
}

// handle handles a message. It returns when the message was answered; only prompts continue in the
// background.
func (a *agent) handle(c *call) {
	a.log.Debug("acp", "method", c.Method)
	switch {
	case !c.IsCall:
		if c.Method == "session/cancel" && a.ready {
			a.cancel(c.Params)
		} // other notifications are ignored
		c.Answer(nil, nil)
	case c.Method == "session/prompt" && a.ready:
		a.prompt(c)
	default:
		result, err := a.execute(c)
		a.answer(c, result, err)
	}
}

// answer sends the answer to a request.
func (a *agent) answer(c *call, result any, err error) {
	if err != nil && c.ctx.Err() != nil {
		err = failure(codeCancelled, "the request was cancelled")
	}
	c.Answer(result, err)
	if c.afterAnswer != nil && err == nil {
		c.afterAnswer()
	}
}

// execute executes a request other than session/prompt.
func (a *agent) execute(c *call) (any, error) {
	if c.ctx.Err() != nil {
		return nil, c.ctx.Err()
	}
	if c.Method == "initialize" {
		return a.initialize(c)
	}
	if !a.ready {
		return nil, failure(codeRequest, "the first request must be initialize")
	}
	do, ok := map[string]func(*call) (any, error){
		"authenticate":              a.authenticate,
		"session/new":               a.sessionNew,
		"session/load":              func(c *call) (any, error) { return a.sessionLoad(c, true) },
		"session/resume":            func(c *call) (any, error) { return a.sessionLoad(c, false) },
		"session/list":              a.sessionList,
		"session/delete":            a.sessionDelete,
		"session/close":             a.sessionClose,
		"session/set_mode":          a.setMode,
		"session/set_config_option": a.setOption,
	}[c.Method]
	if ok {
		return do(c)
	}
	return nil, failure(codeMethod, "unknown method %q", c.Method)
}

// initialize answers with the abilities of eca (acp-a2a.md A1). It always returns eca's own
// protocol version; the client decides whether it supports that.
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
	result := initializeResult{json.RawMessage(agentCapabilities), agentInfo{"eca", "ECA", a.opts.Version}, []authMethod{}, protocolVersion}
	if a.clientCapabilities().Auth.Value.Terminal.Value {
		result.AuthMethods = append(result.AuthMethods, authMethod{
			ID: loginMethod, Name: "Log in to a provider", Description: "Runs eca login in a terminal.", Type: "terminal", Args: []string{"login"},
		})
	}
	return result, nil
}

type initializeResult struct {
	Capabilities json.RawMessage `json:"agentCapabilities"`
	Info         agentInfo       `json:"agentInfo"`
	AuthMethods  []authMethod    `json:"authMethods"`
	Version      int             `json:"protocolVersion"`
}

// agentCapabilities are the abilities of eca.
const agentCapabilities = `{
	"loadSession": true,
	"mcpCapabilities": {"http": true, "sse": true},
	"promptCapabilities": {"audio": false, "embeddedContext": true, "image": true},
	"sessionCapabilities": {"additionalDirectories": {}, "close": {}, "delete": {}, "list": {}, "resume": {}}
}`

type agentInfo struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Version string `json:"version"`
}

type authMethod struct {
	Args        []string `json:"args"`
	Description string   `json:"description"`
	Env         struct{} `json:"env"`
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
}

// clientCapabilities returns the abilities of the client.
func (a *agent) clientCapabilities() clientCapabilities { return a.client.Capabilities.Value }

// hasForms reports whether the client can show forms.
func (a *agent) hasForms() bool { return a.clientCapabilities().Elicitation.Value.Form != nil }

// empty is the result of methods without a result.
var empty = struct{}{}

// authenticate does nothing: the user logged in through the client's terminal, and eca reads the
// stored login.
func (a *agent) authenticate(c *call) (any, error) {
	var p struct {
		MethodID string `json:"methodId"`
	}
	if err := decode(c.Params, &p); err != nil {
		return nil, err
	}
	if p.MethodID != loginMethod {
		return nil, failure(codeParams, "unknown login method %q; run eca login in a terminal", p.MethodID)
	}
	return empty, nil
}
