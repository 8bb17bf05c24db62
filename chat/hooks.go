package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/tools"
)

// A turn waits for the hooks in this file. They run on its goroutine, or on that of the tool call that
// they are for. The hooks that no turn waits for are in hookqueue.go.

const progressHooks = "Running hooks"

// Errors for a turn that a hook has ended.
var (
	errStoppedByHook = errors.New("stopped by a hook")
	errBlocked       = errors.New("stopped by a hook before the model was asked")
)

// maxFollowUps is how many times hooks may continue a turn. A script that ignores follow_up_active
// would continue it forever.
const maxFollowUps = 50

// turnHooks runs the hooks of a turn.
type turnHooks struct {
	*turnContext
	resumed bool // the chat had events before the turn
}

// chatFields returns the fields about the chat in the input of its hooks (eca-features.md 18.1),
// together with the fields in more.
func chatFields(m Meta, more map[string]any) map[string]any {
	out := map[string]any{"chat_id": m.ID, "agent": m.Agent, "behavior": m.Agent, "full_model": m.Model, "variant": m.Variant}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// run runs the hooks of an event in the turn. It returns an error if the turn was cancelled meanwhile.
func (t *turnHooks) run(c hooks.Call) (hooks.Outcome, error) {
	c.Roots = t.Roots
	c.Fields = chatFields(t.session.log.Meta(), c.Fields)
	if t.parent != "" {
		switch c.Event {
		case hooks.SubagentStart, hooks.SubagentPostRequest:
			c.Fields["parent_chat_id"] = t.parent
		}
	}
	out := t.Hooks.Run(t.ctx, c, hookObserver{t.rec})
	if t.ctx.Err() != nil {
		return hooks.Outcome{}, context.Cause(t.ctx)
	}
	return out, nil
}

// hookObserver shows hooks in the turn.
type hookObserver struct{ rec *turnRecord }

var _ hooks.Observer = hookObserver{}

// Started implements hooks.Observer.
func (o hookObserver) Started(a hooks.Action) {
	o.rec.emit(event.HookStarted{ID: a.ID, Name: a.Name, Action: a.Type})
}

// Finished implements hooks.Observer.
func (o hookObserver) Finished(a hooks.Action, r hooks.Report) {
	o.rec.emit(event.HookFinished{ID: a.ID, Name: a.Name, Action: a.Type, Status: r.Status, Output: r.Output, Error: r.Error, Failed: r.Failed, CallID: a.CallID})
}

// Said implements hooks.Observer.
func (o hookObserver) Said(text string) { o.rec.showNotice(text) }

// startEvent returns the hook event of a chat's first turn in this process.
func (t *turnHooks) startEvent() hooks.Event {
	if t.parent != "" {
		return hooks.SubagentStart
	}
	return hooks.ChatStart
}

// hasPreRequestHooks reports whether any hook runs before the first request.
func (t *turnHooks) hasPreRequestHooks() bool {
	return t.Hooks.Any(hooks.PreRequest) || !t.session.startHooksRan && t.Hooks.Any(t.startEvent())
}

// runPreRequestHooks runs the hooks that precede the first request. plain means that the prompt is the
// user's own text, which hooks may replace. An error ends the turn.
func (t *turnHooks) runPreRequestHooks(prompt string, plain bool) error {
	if !t.hasPreRequestHooks() {
		t.session.startHooksRan = true
		return nil
	}
	t.rec.showProgress(progressHooks)
	if err := t.runStartHooks(); err != nil {
		return err
	}
	out, err := t.run(hooks.Call{Event: hooks.PreRequest, Fields: map[string]any{"prompt": strings.TrimSpace(prompt)}})
	switch {
	case err != nil:
		return err
	case out.Stop != nil:
		t.rec.showNotice(out.Stop.Notice())
		return errBlocked
	case len(out.Blocked) > 0:
		// Repeat the reason as a notice: not every client shows the outcome of hooks.
		for _, b := range out.Blocked {
			t.rec.showNotice(strings.TrimSuffix("Request blocked by hook '"+b.Hook+"': "+b.Text, ": "))
		}
		return errBlocked
	}
	switch {
	case !plain:
		out.Prompt = nil
	case out.Prompt != nil && strings.TrimSpace(*out.Prompt) == "" && len(out.Context) == 0:
		// The script may have removed a secret, so the original prompt is not sent instead.
		t.rec.showNotice("Request blocked by hook '" + out.PromptBy + "': it replaced the prompt with an empty text")
		return errBlocked
	}
	if out.Prompt != nil || len(out.Context) > 0 {
		t.rec.emit(event.PromptAmended{Prompt: out.Prompt, Context: out.Context})
	}
	return nil
}

// runStartHooks runs the chatStart or subagentStart hooks in the first turn after a chat was opened.
// Their texts for the model are part of the system prompt as long as the chat is open.
func (t *turnHooks) runStartHooks() error {
	if t.session.startHooksRan {
		return nil
	}
	if err := t.session.eng.awaitStartHooks(t.ctx); err != nil {
		return err
	}
	e, fields := t.startEvent(), map[string]any{}
	if e == hooks.ChatStart {
		fields["resumed"] = t.resumed
	}
	out, err := t.run(hooks.Call{Event: e, Fields: fields})
	if err != nil {
		return err
	}
	if out.Stop != nil {
		t.rec.showNotice(out.Stop.Notice())
		return errBlocked
	}
	t.session.startHooksRan = true
	if text := history.FromHooks(out.Context); text != "" {
		t.session.instructions.Store(&text)
	}
	return nil
}

// runPostRequestHooks runs the hooks that follow an answer. It returns a follow-up message for the
// model, or "".
func (t *turnHooks) runPostRequestHooks(followUp bool) (next string, err error) {
	e := hooks.PostRequest
	if t.parent != "" {
		e = hooks.SubagentPostRequest
	}
	if !t.Hooks.Any(e) {
		return "", nil
	}
	response, _ := t.rec.lastText()
	out, err := t.run(hooks.Call{Event: e, Fields: map[string]any{"response": response, "follow_up_active": followUp}})
	if err != nil {
		return "", err
	}
	if out.Stop != nil {
		t.rec.showNotice(out.Stop.Notice())
		return "", errStoppedByHook
	}
	return strings.Join(out.FollowUps, "\n\n"), nil
}

// hookedCall is a tool call after its hooks have run.
type hookedCall struct {
	plannedCall
	mustAsk   bool                // a hook requires the user's approval
	rejected  *event.ToolRejected // set if a hook rejected the call
	stopsTurn bool                // a hook ends the turn
}

// runPreToolCallHooks runs the hooks that precede a tool call. They can reject the call, or change its
// arguments, which the policy then judges again. They cannot allow a call that the policy denies.
func (t *turnHooks) runPreToolCallHooks(p plannedCall) (hookedCall, error) {
	h := hookedCall{plannedCall: p}
	if !t.Hooks.Any(hooks.PreToolCall) {
		return h, nil
	}
	spec := p.tool.Spec()
	out, err := t.run(hooks.Call{
		Event:  hooks.PreToolCall,
		Fields: map[string]any{"approval": string(t.decisionWithoutHooks(p))},
		Tool:   &hooks.Tool{CallID: p.call.ID, Server: spec.Server, Name: spec.Name, Arguments: p.call.Arguments},
	})
	if err != nil {
		return h, err
	}
	if out.Input != nil {
		p.call.Arguments = out.Input
		h.plannedCall, err = t.plan(p.tool, p.call)
		if err != nil {
			h.plannedCall = p
		}
	}
	switch {
	case out.Stop != nil:
		h.stopsTurn, h.rejected = true, &event.ToolRejected{CallID: p.call.ID, Reason: event.StoppedByHook}
		t.rec.showNotice(out.Stop.Notice())
	case err != nil:
		message := "Hook '" + out.InputBy + "' changed this call so that it cannot run: " + err.Error()
		h.rejected = &event.ToolRejected{CallID: p.call.ID, Reason: event.RejectedByHook, Message: message}
		t.rec.showNotice(message)
	case len(out.Blocked) > 0 || out.Approval == string(tools.Deny):
		why := slices.Clone(out.Context)
		for _, b := range out.Blocked {
			why = append(why, b.Text)
		}
		message := strings.TrimSpace("A hook rejected this call. It did not run.\n" + strings.Join(why, "\n"))
		h.rejected = &event.ToolRejected{CallID: p.call.ID, Reason: event.RejectedByHook, Message: message}
	case out.Approval == string(tools.Ask):
		h.mustAsk = true
		h.verdict = askForHook(h.verdict, out.Approver)
	}
	return h, nil
}

// askForHook returns the verdict about a call if a hook requires the user's approval. Verdicts with
// AlwaysAsk keep their rule, which clients treat differently.
func askForHook(v tools.Verdict, hook string) tools.Verdict {
	reason := "the hook '" + hook + "' requires your approval"
	switch {
	case v.Decision == tools.Allow:
		v.Decision, v.Rule, v.Reason = tools.Ask, tools.RuleHook, reason
	case v.Decision == tools.Ask && !v.AlwaysAsk:
		v.Rule, v.Reason = tools.RuleHook, strings.TrimPrefix(v.Reason+"; "+reason, "; ")
	}
	return v
}

// decisionWithoutHooks returns the decision about a call if no hook intervenes.
func (t *turnHooks) decisionWithoutHooks(p plannedCall) tools.Decision {
	spec := p.tool.Spec()
	switch {
	case spec.Server == tools.Native && spec.Name == "ask_user" && p.verdict.Decision != tools.Deny:
		return tools.Ask // it always waits for the user
	case p.verdict.Decision == tools.Ask && (spec.OwnChat || t.autoApproves() && !p.verdict.AlwaysAsk):
		return tools.Allow
	}
	return p.verdict.Decision
}

// runPostToolCallHooks runs the hooks that follow a tool call, before its result is shown or sent to
// the model. They can change the result. extra is additional text for the model only; stop is set if a
// hook ends the turn.
func (t *turnHooks) runPostToolCallHooks(tool tools.Tool, tc tools.Call, res *tools.Result) (extra []string, stop *hooks.Stop) {
	if !t.Hooks.Any(hooks.PostToolCall) {
		return nil, nil
	}
	var response strings.Builder
	for _, o := range res.Outputs {
		response.WriteString(o + "\n")
	}
	for _, i := range res.Images {
		response.WriteString("[Image: " + i.MediaType + "]\n")
	}
	out, err := t.run(hooks.Call{
		Event:  hooks.PostToolCall,
		Fields: map[string]any{"tool_response": response.String(), "error": res.Failed},
		Tool:   &hooks.Tool{CallID: tc.ID, Server: tool.Spec().Server, Name: tool.Spec().Name, Arguments: tc.Arguments, Failed: res.Failed},
	})
	if err != nil {
		return nil, nil // turn.finish emits the outcome of the call
	}
	if out.Output != nil {
		res.Outputs, res.Images = []string{*out.Output}, nil // the replaced text is not shown in any form
	}
	return out.Context, out.Stop
}

// errCompactBlocked is returned if a hook forbids a compaction.
var errCompactBlocked = errors.New("a hook blocked the compaction")

// runPreCompactHooks runs the hooks that precede a compaction.
func (t *turnHooks) runPreCompactHooks(trigger, instructions string) error {
	if !t.Hooks.Any(hooks.PreCompact) {
		return nil
	}
	out, err := t.run(hooks.Call{
		Event: hooks.PreCompact, Trigger: trigger,
		Fields: map[string]any{"triggered": trigger, "custom_instructions": instructions},
	})
	switch {
	case err != nil:
		return err
	case out.Stop != nil:
		t.rec.showNotice(out.Stop.Notice())
		return errStoppedByHook
	case len(out.Blocked) > 0:
		t.rec.showNotice("Compaction blocked by hook '" + out.Blocked[0].Hook + "'.")
		return errCompactBlocked
	}
	return nil
}

// runPostCompactHooks runs the hooks that follow a compaction, which can extend the summary. stop is
// set if a hook ends the turn.
func (t *turnHooks) runPostCompactHooks(trigger string, summary *string) (stop *hooks.Stop, err error) {
	if !t.Hooks.Any(hooks.PostCompact) {
		return nil, nil
	}
	out, err := t.run(hooks.Call{
		Event: hooks.PostCompact, Trigger: trigger,
		Fields: map[string]any{"triggered": trigger, "compact_summary": *summary},
	})
	if err != nil {
		return nil, err
	}
	if len(out.Context) > 0 {
		*summary = strings.TrimRight(*summary, "\n") + "\n\n" + strings.Join(out.Context, "\n\n")
	}
	return out.Stop, nil
}
