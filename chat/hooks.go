package chat

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// The hooks of a turn run where it waits for them, on its own goroutine or on that of the
// tool call they are about. Those that nobody waits for are in hookqueue.go.

const progressHooks = "Running hooks"

// Ways for a hook to end a turn.
var (
	errByHook  = errors.New("ended by a hook")
	errBlocked = errors.New("ended by a hook before the model was asked")
)

// maxFollowUps bounds how often hooks send a turn on; a script that forgets to look at
// follow_up_active would go on for ever.
const maxFollowUps = 50

// hookSet returns the current hooks; nil if there are none.
func (e *Engine) hookSet() *hooks.Set {
	if e.deps.Hooks == nil {
		return nil
	}
	return e.deps.Hooks()
}

// chatFields is what the hooks of a chat are told of it (eca-features 18.1).
func chatFields(m Meta, more map[string]any) map[string]any {
	out := map[string]any{"chat_id": m.ID, "agent": m.Agent, "behavior": m.Agent, "full_model": m.Model, "variant": m.Variant}
	for k, v := range more {
		out[k] = v
	}
	return out
}

// hook runs the hooks of something that happens in the turn. An error says that the turn
// was cancelled meanwhile.
func (t *turn) hook(c hooks.Call) (hooks.Outcome, error) {
	c.Roots = t.roots
	c.Fields = chatFields(t.s.log.Meta(), c.Fields)
	if t.prompt.Parent != "" {
		switch c.Event {
		case hooks.SubagentStart, hooks.SubagentPostRequest:
			c.Fields["parent_chat_id"] = t.prompt.Parent
		}
	}
	out := t.hooks.Run(t.ctx, c, hookObserver{t})
	if t.ctx.Err() != nil {
		return hooks.Outcome{}, context.Cause(t.ctx)
	}
	return out, nil
}

// hookObserver shows hooks in the turn.
type hookObserver struct{ t *turn }

var _ hooks.Observer = hookObserver{}

// Started implements hooks.Observer.
func (o hookObserver) Started(a hooks.Action) {
	o.t.emit(event.HookStarted{ID: a.ID, Name: a.Name, Action: a.Type})
}

// Finished implements hooks.Observer.
func (o hookObserver) Finished(a hooks.Action, r hooks.Report) {
	o.t.emit(event.HookFinished{ID: a.ID, Name: a.Name, Action: a.Type, Status: r.Status, Output: r.Output, Error: r.Error, CallID: a.CallID})
}

// Said implements hooks.Observer.
func (o hookObserver) Said(text string) { o.t.say(text) }

// say tells the user something that stands by itself.
func (t *turn) say(text string) { t.emit(event.Notice{Text: text}) }

// startEvent is the event of a chat's first turn in this process.
func (t *turn) startEvent() hooks.Event {
	if t.prompt.Parent != "" {
		return hooks.SubagentStart
	}
	return hooks.ChatStart
}

// hooked says whether hooks run before the model is asked.
func (t *turn) hooked() bool {
	return t.hooks.Any(hooks.PreRequest) || !t.s.begun && t.hooks.Any(t.startEvent())
}

// before runs the hooks in front of the first request. plain says that the prompt is the
// user's own words, which hooks may replace. An error ends the turn.
func (t *turn) before(plain bool) error {
	if !t.hooked() {
		t.s.begun = true
		return nil
	}
	t.enter(progressHooks)
	if err := t.beginChat(); err != nil {
		return err
	}
	out, err := t.hook(hooks.Call{Event: hooks.PreRequest, Fields: map[string]any{"prompt": strings.TrimSpace(t.prompt.Text)}})
	switch {
	case err != nil:
		return err
	case out.Stop != nil:
		t.say(out.Stop.Notice())
		return errBlocked
	case len(out.Blocked) > 0:
		// As text too: not every client shows what becomes of hooks.
		for _, b := range out.Blocked {
			t.say(strings.TrimSuffix("Request blocked by hook '"+b.Hook+"': "+b.Text, ": "))
		}
		return errBlocked
	}
	if !plain {
		out.Prompt = nil
	}
	if out.Prompt != nil || len(out.Context) > 0 {
		t.emit(event.PromptAmended{Prompt: out.Prompt, Context: out.Context})
	}
	return nil
}

// beginChat runs the hooks of a chat that this process has not met before. What they
// tell the model belongs to its instructions as long as the chat is open.
func (t *turn) beginChat() error {
	if t.s.begun {
		return nil
	}
	if err := t.s.eng.awaitBegin(t.ctx); err != nil {
		return err
	}
	e, fields := t.startEvent(), map[string]any{}
	if e == hooks.ChatStart {
		fields["resumed"] = t.first > 1
	}
	out, err := t.hook(hooks.Call{Event: e, Fields: fields})
	if err != nil {
		return err
	}
	if out.Stop != nil {
		t.say(out.Stop.Notice())
		return errBlocked
	}
	t.s.begun = true
	if text := wrapped(out.Context); text != "" {
		t.s.instructions.Store(&text)
	}
	return nil
}

// wrapped marks what hooks tell the model as such.
func wrapped(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("<additionalContext>\n" + strings.TrimRight(text, "\n") + "\n</additionalContext>\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// converse answers the prompt, and goes on as long as hooks say how.
func (t *turn) converse() error {
	for followed := 0; ; followed++ {
		if err := t.answer(); err != nil {
			return err
		}
		next, err := t.after(followed > 0)
		if err != nil || next == "" {
			return err
		}
		if followed == maxFollowUps {
			t.say("Hooks have sent this turn on too often; it ends here.")
			return nil
		}
		t.emit(event.UserMessage{ContentID: t.s.eng.deps.NewID(), Text: next, Steer: true})
		t.enter(progressWaiting)
	}
}

// after runs the hooks behind an answer and returns what they want the model to be told.
func (t *turn) after(followUp bool) (next string, err error) {
	e := hooks.PostRequest
	if t.prompt.Parent != "" {
		e = hooks.SubagentPostRequest
	}
	if !t.hooks.Any(e) {
		return "", nil
	}
	t.mu.Lock()
	response := t.history.lastText()
	t.mu.Unlock()
	out, err := t.hook(hooks.Call{Event: e, Fields: map[string]any{"response": response, "follow_up_active": followUp}})
	if err != nil {
		return "", err
	}
	if out.Stop != nil {
		t.say(out.Stop.Notice())
		return "", errByHook
	}
	return strings.Join(out.FollowUps, "\n\n"), nil
}

// lastText returns what the model said last.
func (h *history) lastText() string {
	messages := h.messages()
	if len(messages) == 0 || messages[len(messages)-1].Role != llm.Assistant {
		return ""
	}
	var b strings.Builder
	for _, p := range messages[len(messages)-1].Parts {
		if text, ok := p.(llm.Text); ok {
			b.WriteString(text.Text)
		}
	}
	return b.String()
}

// amend changes the last prompt.
func (h *history) amend(a event.PromptAmended) {
	last := len(h.done) - 1
	if last < h.before || len(h.done[last].Parts) == 0 { // the prompt was for eca only
		return
	}
	parts := slices.Clone(h.done[last].Parts)
	words, ok := parts[0].(llm.Text)
	if !ok {
		return
	}
	if len(a.Said) > 0 {
		h.done = append(h.done[:last:last], replies(a.Said, words.Text, parts[1:])...)
		return
	}
	if a.Prompt != nil {
		words.Text = *a.Prompt
	}
	if more := wrapped(a.Context); more != "" {
		words.Text += "\n\n" + more
	}
	parts[0] = words
	h.done = append(h.done[:last:last], llm.Message{Role: h.done[last].Role, Parts: parts})
}

// forget takes back the last prompt.
func (h *history) forget() {
	h.done = h.done[:h.before:h.before]
	if h.counted {
		h.turns, h.counted = h.turns-1, false
	}
}

// hookedCall is what hooks made of a tool call.
type hookedCall struct {
	planned
	mustAsk  bool                // a hook wants the user to be asked
	rejected *event.ToolRejected // it must not run
	stop     bool                // nor anything else in this turn
}

// beforeCall runs the hooks in front of a tool call. They can change what it does, which
// is then judged anew, and forbid it; they can not allow what the policy does not.
func (t *turn) beforeCall(p planned) (hookedCall, error) {
	h := hookedCall{planned: p}
	if !t.hooks.Any(hooks.PreToolCall) {
		return h, nil
	}
	spec := p.tool.Spec()
	out, err := t.hook(hooks.Call{
		Event:  hooks.PreToolCall,
		Fields: map[string]any{"approval": string(t.approval(p))},
		Tool:   &hooks.Tool{CallID: p.call.ID, Server: spec.Server, Name: spec.Name, Arguments: p.call.Arguments},
	})
	if err != nil {
		return h, err
	}
	if out.Input != nil {
		p.call.Arguments = out.Input
		h.planned, err = t.plan(p.tool, p.call)
		if err != nil {
			h.planned = p
		}
	}
	switch {
	case out.Stop != nil:
		h.stop, h.rejected = true, &event.ToolRejected{CallID: p.call.ID, Reason: event.StoppedByHook}
		t.say(out.Stop.Notice())
	case err != nil:
		h.rejected = &event.ToolRejected{CallID: p.call.ID, Reason: event.RejectedByHook, Message: "A hook changed this call so that it can not run: " + err.Error()}
	case len(out.Blocked) > 0 || out.Approval == string(tools.Deny):
		why := slices.Clone(out.Context)
		for _, b := range out.Blocked {
			why = append(why, b.Text)
		}
		message := strings.TrimSpace("A hook rejected this call. It did not run.\n" + strings.Join(why, "\n"))
		h.rejected = &event.ToolRejected{CallID: p.call.ID, Reason: event.RejectedByHook, Message: message}
	case out.Approval == string(tools.Ask) && h.verdict.Decision == tools.Allow:
		h.verdict.Decision, h.verdict.Rule, h.verdict.Reason = tools.Ask, "hook", "a hook wants the user to be asked"
		h.mustAsk = true
	case out.Approval == string(tools.Ask):
		h.mustAsk = true
	}
	return h, nil
}

// approval is what would become of a call without hooks.
func (t *turn) approval(p planned) tools.Decision {
	spec := p.tool.Spec()
	switch {
	case spec.Server == tools.Native && spec.Name == "ask_user" && p.verdict.Decision != tools.Deny:
		return tools.Ask // it waits for the user in any case
	case p.verdict.Decision == tools.Ask && (spec.OwnChat || t.trusted() && !p.verdict.Insist):
		return tools.Allow
	}
	return p.verdict.Decision
}

// afterCall runs the hooks behind a tool call, on its result before anybody sees it.
// extra is for the model only.
func (t *turn) afterCall(tool tools.Tool, tc tools.Call, res *tools.Result) (extra []string, stop *hooks.Stop) {
	if !t.hooks.Any(hooks.PostToolCall) {
		return nil, nil
	}
	var response strings.Builder
	for _, o := range res.Outputs {
		response.WriteString(o + "\n")
	}
	for _, i := range res.Images {
		response.WriteString("[Image: " + i.MediaType + "]\n")
	}
	out, err := t.hook(hooks.Call{
		Event:  hooks.PostToolCall,
		Fields: map[string]any{"tool_response": response.String(), "error": res.Failed},
		Tool:   &hooks.Tool{CallID: tc.ID, Server: tool.Spec().Server, Name: tool.Spec().Name, Arguments: tc.Arguments, Failed: res.Failed},
	})
	if err != nil {
		return nil, nil // the end of the turn says what became of the call
	}
	if out.Output != nil {
		res.Outputs, res.Images = []string{*out.Output}, nil // what is replaced is not shown in any form
	}
	return out.Context, out.Stop
}

// errCompactBlocked says that a hook forbids to compact.
var errCompactBlocked = errors.New("a hook forbids to make the conversation shorter")

// beforeCompact runs the hooks in front of a compaction.
func (t *turn) beforeCompact(trigger, instructions string) error {
	if !t.hooks.Any(hooks.PreCompact) {
		return nil
	}
	out, err := t.hook(hooks.Call{
		Event: hooks.PreCompact, Trigger: trigger,
		Fields: map[string]any{"triggered": trigger, "custom_instructions": instructions},
	})
	switch {
	case err != nil:
		return err
	case out.Stop != nil:
		t.say(out.Stop.Notice())
		return errByHook
	case len(out.Blocked) > 0:
		t.say("Compaction blocked by hook '" + out.Blocked[0].Hook + "'.")
		return errCompactBlocked
	}
	return nil
}

// afterCompact runs the hooks behind a compaction. They can add to the summary; stop says
// that the turn must end.
func (t *turn) afterCompact(trigger string, summary *string) (stop *hooks.Stop, err error) {
	if !t.hooks.Any(hooks.PostCompact) {
		return nil, nil
	}
	out, err := t.hook(hooks.Call{
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
