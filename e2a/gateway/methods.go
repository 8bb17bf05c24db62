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

// run executes the method of an envelope (e2a.md 10). session/prompt and session/cancel of ACP are
// synonyms of chat.send and chat.interrupt.
func (a *answer) run(ctx context.Context) error {
	a.params = paramsOf(a.envelope)
	p, turns := a.params, a.g.opts.Turns
	method := ""
	if a.envelope.Method != nil {
		method = *a.envelope.Method
	}
	switch method {
	case "": // a heartbeat
		return a.emptyResult(nil)
	case e2a.MethodSend, e2a.MethodPrompt:
		return a.chatSend(ctx)
	case e2a.MethodInterrupt, e2a.MethodCancel, e2a.MethodSessionClose:
		running, err := turns.Cancel(a.session())
		return a.result(interrupted{running}, err)
	case e2a.MethodApprove, e2a.MethodReject:
		return a.emptyResult(a.decide(method == e2a.MethodApprove))
	case e2a.MethodAnswer:
		if p.QuestionID.Value == "" {
			return turn.Errorf(turn.BadParams, "params.question_id is missing")
		}
		return a.emptyResult(turns.Answer(p.QuestionID.Value, p.Answer.Value))
	case e2a.MethodSessionCreate:
		s, err := turns.Create(ctx, a.session())
		return a.result(infoOf(s), err)
	case e2a.MethodSessionLoad:
		s, err := turns.Load(ctx, a.session())
		return a.result(infoOf(s), err)
	case e2a.MethodSessionList:
		return a.sessionList(ctx)
	case e2a.MethodSessionDelete:
		return a.emptyResult(turns.Delete(ctx, a.session()))
	case e2a.MethodHistory:
		s, err := turns.History(ctx, a.session(), a)
		return a.result(infoOf(s), err)
	case e2a.MethodConfigGet:
		return a.configGet(ctx)
	case e2a.MethodConfigSet:
		s, err := turns.Set(ctx, a.session(), p.settings())
		return a.result(infoOf(s), err)
	case e2a.MethodModelSync:
		turns.SyncModels(ctx)
		return a.emptyResult(nil)
	case e2a.MethodCommands:
		return a.commandList()
	}
	return turn.Errorf(codeUnknownMethod, "unknown method %q", method)
}

// result sends the final frame, unless there is an error.
func (a *answer) result(result any, err error) error {
	if err != nil {
		return err
	}
	return a.sendFrame(a.Complete(result))
}

// emptyResult is result for methods without a result.
func (a *answer) emptyResult(err error) error { return a.result(struct{}{}, err) }

// session returns the session id of the envelope, or otherwise the one in params.
func (a *answer) session() string {
	if s := a.envelope.SessionID; s != nil && *s != "" {
		return *s
	}
	return a.params.SessionID.Value
}

// chatSend runs a turn and sends its items.
func (a *answer) chatSend(ctx context.Context) error {
	p := a.params
	prompt := ""
	for _, s := range []text{p.Text, p.Content, p.Query} {
		if strings.TrimSpace(prompt) == "" {
			prompt = s.Value
		}
	}
	t, err := a.g.opts.Turns.Start(ctx, turn.Request{Session: a.session(), Blocks: blocksOf(a.envelope), Text: prompt, Settings: p.settings()})
	if err != nil {
		return err
	}
	if a.session() == "" {
		a.SetSession(t.Session)
	}
	a.accepted()
	outcome, err := t.Follow(a)
	return a.result(turnResult{outcome.Content, outcome.Reason, outcome.Usage}, err)
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

// decide approves or rejects a call. params.save is how long an approval is remembered: session,
// workspace or global.
func (a *answer) decide(approve bool) error {
	p := a.params
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
	return a.g.opts.Turns.Decide(a.session(), p.ToolCallID.Value, d)
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

// configGet sends the settings of a session and their possible values. Without a session it sends
// those of the next new one.
func (a *answer) configGet(ctx context.Context) error {
	s, c, err := a.g.opts.Turns.Choices(ctx, a.session())
	var info sessionInfo
	if s.ID != "" {
		info = infoOf(s)
	}
	info.Agent, info.Agents, info.Model, info.Models = c.Agent, c.Agents, c.Model, c.Models
	info.Trust, info.Variant, info.Variants = c.Trust, c.Variant, c.Variants
	return a.result(info, err)
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

func (a *answer) sessionList(ctx context.Context) error {
	limit := 0
	if n := a.params.Limit.Value; n != "" {
		i, err := n.Int64()
		if err != nil || i < 0 || i > 1<<20 {
			return turn.Errorf(turn.BadParams, "params.limit: %s is not a valid number of sessions", n)
		}
		limit = int(i)
	}
	list, err := a.g.opts.Turns.List(ctx, limit)
	out := sessionList{make([]listedSession, len(list))}
	for i, s := range list {
		out.Sessions[i] = listedSession{stamp(s.Created), s.Messages, s.Model, s.Running, s.ID, s.Title, stamp(s.Updated)}
	}
	return a.result(out, err)
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }

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

func (a *answer) commandList() error {
	out := commandList{[]listedCommand{}}
	for _, c := range a.g.opts.Turns.Commands() {
		listed := listedCommand{[]commandArgument{}, c.Description, c.Name, c.Type}
		for _, arg := range c.Arguments {
			listed.Arguments = append(listed.Arguments, commandArgument{arg.Description, arg.Name, arg.Required})
		}
		out.Commands = append(out.Commands, listed)
	}
	return a.result(out, nil)
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
