package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/tools"
)

// params are the parameters of all methods. Parameters of a wrong type count as missing.
type params struct {
	SessionID  text                      `json:"session_id"`
	ToolCallID text                      `json:"tool_call_id"`
	Save       text                      `json:"save"`
	GoOn       e2a.Optional[bool]        `json:"go_on"`
	QuestionID text                      `json:"question_id"`
	Answer     text                      `json:"answer"`
	Model      text                      `json:"model"`
	Agent      text                      `json:"agent"`
	Variant    e2a.Optional[*string]     `json:"variant"`
	Trust      e2a.Optional[*bool]       `json:"trust"`
	Limit      e2a.Optional[json.Number] `json:"limit"`
	Text       text                      `json:"text"`
	Content    text                      `json:"content"`
	Query      text                      `json:"query"`
}

type text = e2a.Optional[string]

func (p params) settings() turn.Settings {
	return turn.Settings{Model: p.Model.Value, Agent: p.Agent.Value, Variant: p.Variant.Value, Trust: p.Trust.Value}
}

// run executes the method of an envelope (docs/contracts/e2a.md, section 10). session/prompt is a
// synonym of chat.send; session/cancel and session.close are synonyms of chat.interrupt, so
// session.close only stops the running turn.
func (x *exchange) run(ctx context.Context) error {
	x.params = paramsOf(x.envelope)
	p, turns := x.params, x.g.opts.Turns
	method := ""
	if x.envelope.Method != nil {
		method = *x.envelope.Method
	}
	switch method {
	case "": // a heartbeat
		return x.emptyResult(nil)
	case e2a.MethodSend, e2a.MethodPrompt:
		return x.chatSend(ctx)
	case e2a.MethodInterrupt, e2a.MethodCancel, e2a.MethodSessionClose:
		running, err := turns.Cancel(x.session())
		return x.result(interrupted{running}, err)
	case e2a.MethodApprove, e2a.MethodReject:
		return x.emptyResult(x.decide(method == e2a.MethodApprove))
	case e2a.MethodAnswer:
		if p.QuestionID.Value == "" {
			return turn.Errorf(turn.BadParams, "params.question_id is missing")
		}
		return x.emptyResult(turns.Answer(p.QuestionID.Value, p.Answer.Value))
	case e2a.MethodSessionCreate:
		s, err := turns.Create(ctx, x.session())
		return x.result(infoOf(s), err)
	case e2a.MethodSessionLoad:
		s, err := turns.Load(ctx, x.session())
		return x.result(infoOf(s), err)
	case e2a.MethodSessionList:
		return x.sessionList(ctx)
	case e2a.MethodSessionDelete:
		return x.emptyResult(turns.Delete(ctx, x.session()))
	case e2a.MethodHistory:
		s, err := turns.History(ctx, x.session(), x)
		return x.result(infoOf(s), err)
	case e2a.MethodConfigGet:
		return x.configGet(ctx)
	case e2a.MethodConfigSet:
		s, err := turns.Set(ctx, x.session(), p.settings())
		return x.result(infoOf(s), err)
	case e2a.MethodModelSync:
		turns.SyncModels(ctx)
		return x.emptyResult(nil)
	case e2a.MethodCommands:
		return x.commandList()
	}
	return turn.Errorf(codeUnknownMethod, "unknown method %q", method)
}

// result sends the final frame, unless there is an error.
func (x *exchange) result(result any, err error) error {
	if err != nil {
		return err
	}
	return x.sendFrame(x.Complete(result))
}

// emptyResult sends an empty object as the result, unless there is an error.
func (x *exchange) emptyResult(err error) error { return x.result(struct{}{}, err) }

// session returns the session id of the envelope, or otherwise the one in params.
func (x *exchange) session() string {
	if s := x.envelope.SessionID; s != nil && *s != "" {
		return *s
	}
	return x.params.SessionID.Value
}

// chatSend runs a turn and sends a frame for each item of its transcript.
func (x *exchange) chatSend(ctx context.Context) error {
	p := x.params
	prompt := ""
	for _, s := range []text{p.Text, p.Content, p.Query} {
		if strings.TrimSpace(prompt) == "" {
			prompt = s.Value
		}
	}
	t, err := x.g.opts.Turns.Start(ctx, turn.Request{Session: x.session(), Blocks: blocksOf(x.envelope), Text: prompt, Settings: p.settings()})
	if err != nil {
		return err
	}
	if x.session() == "" {
		x.SetSession(t.Session)
	}
	x.accepted()
	outcome, err := t.Follow(x)
	return x.result(turnResult{outcome.Content, outcome.Reason, outcome.Usage}, err)
}

// turnResult is the result of a turn.
type turnResult struct {
	Content    string          `json:"content"`
	StopReason turn.StopReason `json:"stop_reason"`
	Usage      turn.Usage      `json:"usage"`
}

type interrupted struct {
	Interrupted bool `json:"interrupted"`
}

// decide approves or rejects a call. params.save is the scope in which an approval is remembered
// (session, workspace or global). With params.go_on, the turn continues after a rejection.
func (x *exchange) decide(approve bool) error {
	p := x.params
	if p.ToolCallID.Value == "" {
		return turn.Errorf(turn.BadParams, "params.tool_call_id is missing")
	}
	d := chat.Decision{Approve: approve, GoOn: !approve && p.GoOn.Value}
	if save := tools.Scope(p.Save.Value); approve && save != "" {
		scopes := []tools.Scope{tools.ForSession, tools.ForWorkspace, tools.Everywhere}
		if !slices.Contains(scopes, save) {
			return turn.Errorf(turn.BadParams, "params.save must be one of %v, not %q", scopes, save)
		}
		d.Remember = save
	}
	return x.g.opts.Turns.Decide(x.session(), p.ToolCallID.Value, d)
}

// sessionInfo describes a session, with the possible values of its settings in config.get.
type sessionInfo struct {
	Agent     string       `json:"agent"`
	Agents    []turn.Agent `json:"agents,omitzero"`
	Model     string       `json:"model"`
	Models    []string     `json:"models,omitzero"`
	Running   *bool        `json:"running,omitempty"`
	SessionID string       `json:"session_id,omitempty"`
	Title     *string      `json:"title,omitempty"`
	Trust     bool         `json:"trust"`
	Variant   string       `json:"variant"`
	Variants  []string     `json:"variants,omitzero"`
}

func infoOf(s turn.Session) sessionInfo {
	return sessionInfo{Agent: s.Agent, Model: s.Model, Running: &s.Running, SessionID: s.ID, Title: &s.Title, Trust: s.Trust, Variant: s.Variant}
}

// configGet sends the settings of a session and their possible values. Without a session id, it sends
// the settings that a new session would have.
func (x *exchange) configGet(ctx context.Context) error {
	s, c, err := x.g.opts.Turns.Choices(ctx, x.session())
	var info sessionInfo
	if s.ID != "" {
		info = infoOf(s)
	}
	info.Agent, info.Agents, info.Model, info.Models = c.Agent, c.Agents, c.Model, c.Models
	info.Trust, info.Variant, info.Variants = c.Trust, c.Variant, c.Variants
	return x.result(info, err)
}

type sessionList struct {
	Sessions []listedSession `json:"sessions"`
}

type listedSession struct {
	Created   string `json:"created_at"`
	Messages  int    `json:"messages"`
	Model     string `json:"model"`
	Running   bool   `json:"running"`
	SessionID string `json:"session_id"`
	Title     string `json:"title"`
	Updated   string `json:"updated_at"`
}

func (x *exchange) sessionList(ctx context.Context) error {
	limit := 0
	if n := x.params.Limit.Value; n != "" {
		i, err := n.Int64()
		if err != nil || i < 0 || i > 1<<20 {
			return turn.Errorf(turn.BadParams, "params.limit: %s is not a valid number of sessions", n)
		}
		limit = int(i)
	}
	list, err := x.g.opts.Turns.List(ctx, limit)
	out := sessionList{make([]listedSession, len(list))}
	for i, s := range list {
		out.Sessions[i] = listedSession{formatTime(s.Created), s.Messages, s.Model, s.Running, s.ID, s.Title, formatTime(s.Updated)}
	}
	return x.result(out, err)
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

type commandList struct {
	Commands []listedCommand `json:"commands"`
}

type listedCommand struct {
	Arguments   []commandArgument `json:"arguments"`
	Description string            `json:"description"`
	Name        string            `json:"name"`
	Type        string            `json:"type"`
}

type commandArgument struct {
	Description string `json:"description"`
	Name        string `json:"name"`
	Required    bool   `json:"required"`
}

func (x *exchange) commandList() error {
	out := commandList{[]listedCommand{}}
	for _, c := range x.g.opts.Turns.Commands() {
		listed := listedCommand{[]commandArgument{}, c.Description, c.Name, c.Type}
		for _, arg := range c.Arguments {
			listed.Arguments = append(listed.Arguments, commandArgument{arg.Description, arg.Name, arg.Required})
		}
		out.Commands = append(out.Commands, listed)
	}
	return x.result(out, nil)
}

// paramsOf reads the parameters of an envelope.
func paramsOf(e e2a.Envelope) (p params) {
	raw, err := json.Marshal(e.Params)
	if err == nil {
		_ = json.Unmarshal(raw, &p)
	}
	return p
}

// blocksOf reads the content blocks of an envelope. chat.send has the same members as session/prompt.
// A prompt that is a string becomes one block.
func blocksOf(e e2a.Envelope) []e2a.Block {
	method := e2a.MethodPrompt
	e.Method = &method
	raw := e2a.ACPPromptParams(e)["prompt"]
	var blocks []e2a.Block
	var text string
	if json.Unmarshal(raw, &blocks) != nil && json.Unmarshal(raw, &text) == nil {
		blocks = []e2a.Block{e2a.TextBlock(text)}
	}
	return blocks
}
