package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
)

// Host is the part of eca that operations use.
type Host interface {
	Engine() *chat.Engine
	Config() *config.Loaded
	Tools() *tools.Registry
	Roots() []string
	// CheckModel returns the full id of a model, or an error if the model cannot be used.
	CheckModel(ctx context.Context, name string) (id string, err error)
	// CheckAgent returns an error if a turn cannot use an agent. The name "" means the default
	// agent.
	CheckAgent(name string) error
	// Unattended decides about a call without asking a user.
	Unattended(call tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict
	SyncPlugins(ctx context.Context)
	StartMCPServers(ctx context.Context)
	// Clean removes secrets from a text.
	Clean(text string) string
}

// Evaluate runs a YAML manifest of the Evaluation Context Protocol and returns the report in JSON.
// An error in the manifest is a *Failure.
type Evaluate func(ctx context.Context, manifest []byte, progress func(Progress)) (report []byte, err error)

// Engine provides the operations {eca, chat.send}, {tool, NAME} and {ecp, run}. It never trusts a
// folder, and refuses calls that need approval.
type Engine struct {
	host     Host
	evaluate Evaluate
	ready    func() // the first call waits for plugins and MCP servers
}

var _ Operations = (*Engine)(nil)

// NewEngine returns the operations of a configured host.
func NewEngine(host Host, evaluate Evaluate) *Engine {
	const patience = 10 * time.Second
	return &Engine{host: host, evaluate: evaluate, ready: sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		host.SyncPlugins(ctx)
		host.StartMCPServers(ctx)
	})}
}

// The names of services, operations and their inputs.
const (
	chatService, chatOperation = "eca", "chat.send"
	toolService                = "tool"
	ecpService, ecpOperation   = "ecp", "run"

	promptInput    = "prompt"
	argumentsInput = "arguments"
	manifestInput  = "manifest"
)

// List implements Operations.
func (e *Engine) List() []Operation {
	out := []Operation{
		{chatService, chatOperation, "Send a prompt (text/plain) and get the answer; params: model, agent, variant, chat_id", false},
		{ecpService, ecpOperation, "Run an evaluation manifest (application/yaml) and get the report", false},
	}
	for _, t := range e.host.Tools().All() {
		if spec := t.Spec(); !spec.OwnChat {
			text, _, _ := strings.Cut(strings.TrimSpace(spec.Description), "\n")
			out = append(out, Operation{toolService, spec.FullName(), text, spec.ReadOnly})
		}
	}
	return out
}

// Check implements Operations.
func (e *Engine) Check(r esrp.Request) error {
	var input string
	switch t := r.Target; {
	case t.Service == chatService && t.Operation == chatOperation:
		input = promptInput
	case t.Service == ecpService && t.Operation == ecpOperation:
		input = manifestInput
	case t.Service == toolService:
		if _, err := e.tool(t.Operation); err != nil {
			return err
		}
		input = argumentsInput
	default:
		return semanticError("unknown operation %s of %s; GET /v1/capabilities lists the operations", t.Operation, t.Service)
	}
	for _, in := range r.Inputs {
		if in.Name != input {
			return semanticError("unknown input %q; the only input of %s of %s is %s", in.Name, r.Target.Operation, r.Target.Service, input)
		}
	}
	if len(r.Inputs) > 1 {
		return semanticError("there are %d inputs %s; only one is allowed", len(r.Inputs), input)
	}
	if err := checkParams(r); err != nil {
		return err
	}
	if in := r.Inputs[0]; in.Encoding == esrp.Base64 {
		return semanticError("the input %s must be text, not base64", in.Name)
	} else if in.Encoding == esrp.UTF8 && strings.TrimSpace(in.Data) == "" {
		return semanticError("the input %s is empty", in.Name)
	}
	return nil
}

// chatParams are the parameters of chat.send. Other operations have none.
var chatParams = []string{"model", "agent", "variant", "chat_id"}

// checkParams refuses parameters that the operation would ignore. Unlike the members of a record, they
// are defined by the operation.
func checkParams(r esrp.Request) error {
	for _, m := range r.Params.Members {
		switch {
		case r.Target.Service != chatService:
			return semanticError("unknown parameter %q; %s of %s has no parameters", m.Key, r.Target.Operation, r.Target.Service)
		case !slices.Contains(chatParams, m.Key):
			return semanticError("unknown parameter %q; the parameters of chat.send are %s%s", m.Key, strings.Join(chatParams, ", "), suggest.DidYouMean(m.Key, chatParams))
		}
	}
	return nil
}

func semanticError(format string, args ...any) error {
	return &Failure{Code: esrp.InvalidInputSemantic, Message: fmt.Sprintf(format, args...)}
}

// Repeatable implements Operations: calls that only read are repeatable.
func (e *Engine) Repeatable(r esrp.Request) bool {
	if r.Target.Service != toolService {
		return false
	}
	t, err := e.tool(r.Target.Operation)
	return err == nil && t.Spec().ReadOnly
}

// tool finds a tool by its full name.
func (e *Engine) tool(name string) (tools.Tool, error) {
	e.ready()
	t, ok := e.host.Tools().Lookup(name)
	if !ok || t.Spec().FullName() != name || t.Spec().OwnChat {
		return nil, semanticError("unknown tool %s", name)
	}
	return t, nil
}

// Run implements Operations.
func (e *Engine) Run(ctx context.Context, c Call) (Result, error) {
	e.ready()
	data := c.Request.Inputs[0].Data
	var out Result
	var err error
	switch c.Request.Target.Service {
	case chatService:
		out, err = e.send(ctx, c, data)
	case ecpService:
		var doc []byte
		doc, err = e.evaluate(ctx, []byte(data), c.Progress)
		out.Outputs = []Output{{"report", "application/json", doc}}
	default:
		out, err = e.call(ctx, c, data)
	}
	var f *Failure
	if err != nil && !errors.As(err, &f) {
		err = &Failure{Code: esrp.Unknown, Message: e.host.Clean(err.Error())}
	}
	return out, err
}

// call runs a tool if that needs no approval.
func (e *Engine) call(ctx context.Context, c Call, arguments string) (Result, error) {
	tool, err := e.tool(c.Request.Target.Operation)
	if err != nil {
		return Result{}, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &object); err != nil || object == nil {
		return Result{}, semanticError("the arguments are not a JSON object")
	}
	call := tools.Call{
		ID: c.Job, ChatID: "esrp-" + c.Job, Agent: e.host.Config().AgentOrDefault(""), Roots: e.host.Roots(), Arguments: json.RawMessage(arguments),
		Files: discardChanges{},
	}
	plan, err := tool.Plan(ctx, call)
	if err != nil {
		return Result{}, semanticError("%s", e.host.Clean(err.Error()))
	}
	v := e.host.Unattended(call, tool.Spec(), plan)
	if v.Decision != tools.Allow {
		return Result{}, semanticError("refused: %s; the policy says %s, and there is no user to ask (%s)",
			plan.Summary, v.Decision, cmp.Or(v.Reason, v.Rule, "no rule allows it"))
	}
	call.Authorization, call.Places, call.Printed = tools.Authorization{Rule: v.Rule}, v.Places, v.Printed
	res, err := tool.Run(ctx, call, func(string) {})
	if err != nil {
		return Result{}, err
	}
	text := strings.ToValidUTF8(strings.Join(res.Outputs, "\n"), "�")
	if res.Failed {
		return Result{}, &Failure{Code: esrp.Unknown, Message: text}
	}
	out := Result{[]Output{{"result", "text/plain", []byte(text)}}}
	for i, image := range res.Images {
		out.Outputs = append(out.Outputs, Output{fmt.Sprintf("image_%d", i+1), image.MediaType, image.Data})
	}
	return out, nil
}

// discardChanges ignores file changes: they cannot be undone, because there is no chat.
type discardChanges struct{}

var _ tools.FileLog = discardChanges{}

// Writing implements tools.FileLog.
func (discardChanges) Writing(context.Context, string, []byte) error { return nil }

// Moving implements tools.FileLog.
func (discardChanges) Moving(context.Context, string, string) error { return nil }

// send runs a turn.
func (e *Engine) send(ctx context.Context, c Call, prompt string) (Result, error) {
	p := chat.Prompt{TurnID: uuid.NewString(), Text: prompt, NoDialog: true}
	id := ""
	for key, to := range map[string]*string{"model": &p.Model, "agent": &p.Agent, "variant": &p.Variant, "chat_id": &id} {
		if v, ok := c.Request.Params.Get(key); ok && v.Kind != esrp.String && v.Kind != esrp.Null {
			return Result{}, semanticError("params.%s must be a string, not %s", key, v.Kind)
		} else if ok {
			*to = v.Text
		}
	}
	if id != "" && !chat.ValidID(id) {
		return Result{}, semanticError("params.chat_id %q is not a valid chat id", id)
	}
	if err := e.host.CheckAgent(p.Agent); err != nil {
		return Result{}, semanticError("%v", err)
	}
	if p.Model != "" {
		full, err := e.host.CheckModel(ctx, p.Model)
		if err != nil {
			return Result{}, semanticError("%v", err)
		}
		p.Model = full
	}
	session, _, err := e.host.Engine().Open(ctx, id)
	if err != nil {
		return Result{}, err
	}
	from := session.Next()
	if _, err := session.Submit(p).Wait(ctx); err != nil {
		if ctx.Err() != nil { // the prompt may still be accepted, but no caller would follow its turn
			session.Cancel()
		}
		if errors.Is(err, chat.ErrNoDialog) {
			err = semanticError("%v", err)
		}
		return Result{}, err
	}
	var answer strings.Builder
	notice := "" // the last message of eca itself
	var end event.TurnFinished
	refused := &refusals{engine: e.host.Engine()}
	err = refused.follow(ctx, session, p.TurnID, from, func(body event.Body) {
		switch b := body.(type) {
		case event.TextDelta:
			answer.WriteString(b.Text)
		case event.Notice:
			if b.Markdown { // the output of a command, or the sources of the answer
				answer.WriteString(b.Text)
			} else {
				notice = cmp.Or(strings.TrimSpace(b.Text), notice)
			}
		case event.Compacted:
			if !b.Auto {
				notice = transcript.CompactedText
			}
		case event.ToolJudged:
			c.Progress(Progress{Message: cmp.Or(b.Summary, b.Name)})
			answer.Reset() // text before calls is not part of the answer
		case event.TurnFinished:
			end = b
		default:
		}
	})
	if err != nil || end.Reason == "" { // ctx has ended, or the chat is closed
		session.Cancel()
		return Result{}, cmp.Or(err, ctx.Err(), errors.New("the chat was closed"))
	}
	text := answer.String()
	if end.Incomplete == "" {
		text = cmp.Or(text, notice)
	}
	return e.turnResult(session, end, text, refused.output())
}

func (e *Engine) turnResult(session *chat.Session, b event.TurnFinished, answer string, refused []Output) (Result, error) {
	if b.Reason != event.FinishedDone {
		return Result{}, &Failure{
			Code: esrp.BackendUnavailable, Final: !b.Retryable && b.Reason != event.FinishedInterrupted, Message: e.host.Clean("the turn is " + string(b.Reason) + ": " + cmp.Or(b.Err, "it has no answer")),
			Details: esrp.ObjectValue(esrp.Member{Key: "chat_id", Value: esrp.StringValue(session.ID())}),
		}
	}
	return Result{append([]Output{{"answer", "text/markdown", []byte(answer)}, {"chat_id", "text/plain", []byte(session.ID())}}, refused...)}, nil
}
