package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
)

// runCalls decides about the calls of one response one after the other, runs those
// that may, concurrently, and waits for them (eca-protocol 8.2).
func (t *turn) runCalls(calls []call) error {
	t.instructed = nil // what earlier calls got is in the history now
	rejected, byHook := false, false
	for i := range calls {
		stop, err := t.runCall(&calls[i])
		if errors.Is(err, errByHook) {
			byHook = true
			break // those that run may end
		}
		if err != nil {
			return err
		}
		rejected = rejected || stop
	}
	done := make(chan struct{})
	go func() {
		t.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	t.mu.Lock()
	byHook = byHook || t.byHook
	t.mu.Unlock()
	switch {
	case byHook:
		return errByHook
	case rejected:
		return errRejected
	}
	return nil
}

// called returns the tool that a call is for, and its arguments, which are an empty object
// if they can not be read.
func (t *turn) called(c *call) (tools.Tool, json.RawMessage, error) {
	args, err := arguments(c.arguments)
	if !c.ended {
		err = errors.New("the model's answer ended before the call was complete; it did not run")
	}
	if err != nil {
		return nil, json.RawMessage("{}"), err
	}
	tool, ok := t.tools.Lookup(modelName(c.Tool))
	if ok && t.disabled(tool.Spec()) {
		return tool, args, fmt.Errorf("Tool '%s' is disabled for agent %s", c.Name, t.agent) //nolint:staticcheck // shown as it is
	}
	if !ok || c.Origin == "unknown" {
		return nil, args, fmt.Errorf("Tool '%s' not found", c.Name) //nolint:staticcheck // shown as it is
	}
	return tool, args, nil
}

// runCall announces a call, gets it decided and starts it. stop says that the user
// rejected it and the turn should end.
func (t *turn) runCall(c *call) (stop bool, err error) {
	tool, args, err := t.called(c)
	judged := event.ToolJudged{Tool: c.Tool, Arguments: args, API: c.api, Opaque: c.opaque}
	if err != nil {
		if tool != nil { // the user is told as well why it did not run
			judged.Summary = err.Error()
		}
		t.failCall(judged, err)
		return false, nil
	}
	tc := tools.Call{ID: c.CallID, ChatID: t.s.id, Agent: t.agent, Model: t.model.ID, Roots: t.roots, Arguments: args, Files: t.files(c.CallID), Tasks: t.taskList(), Rules: t.fetchedRules(), Subagents: subagents{t, c.CallID}}
	p, err := t.plan(tool, tc)
	if err != nil {
		t.failCall(judged, err)
		return false, nil
	}
	h, err := t.beforeCall(p)
	if err != nil {
		return false, err
	}
	judged = h.judged(judged)
	if h.rejected != nil && h.verdict.Decision != tools.Deny {
		t.emit(judged, *h.rejected, event.Progress{Text: progressGenerating})
	}
	switch {
	case h.stop:
		return false, errByHook
	case h.rejected != nil && h.verdict.Decision != tools.Deny:
		return false, nil
	}
	tc, plan, verdict := h.call, h.plan, h.verdict
	tc.Places, tc.Printed = verdict.Places, verdict.Printed
	tc.Grant.Rule = verdict.Rule
	var point *event.UndoPoint
	if verdict.Decision == tools.Allow {
		if point, err = t.undoPoint(tc, plan, &judged); err != nil && verdict.Rule == tools.RuleWorkspace {
			verdict.Decision, judged.Decision = tools.Ask, string(tools.Ask)
		}
	}
	switch verdict.Decision {
	case tools.Deny:
		t.emit(judged, event.ToolRejected{CallID: c.CallID, Reason: event.RejectedByConfig, Message: t.denial(verdict)})
		return false, nil
	case tools.Ask:
		if t.trusted() && !h.mustAsk && !verdict.Insist || tool.Spec().OwnChat {
			tc.Grant.Auto = true
			point, _ = t.undoPoint(tc, plan, &judged)
			break
		}
		if !t.asks() {
			t.emit(judged, event.ToolRejected{CallID: c.CallID, Reason: event.RejectedByConfig, Message: noQuestions})
			return false, nil
		}
		judged.Manual = true
		d, err := t.ask(judged)
		if err != nil {
			return false, err
		}
		if !d.Approve {
			rejected := event.ToolRejected{CallID: c.CallID, Reason: event.RejectedByUser}
			if d.Unasked {
				rejected.Message = nobodyAsked
			}
			t.emit(rejected)
			return !d.GoOn && t.boss == nil, nil
		}
		tc.Grant.Approved, tc.Grant.Auto = !d.Auto, d.Auto
		if d.Remember != tools.Once || !d.Auto {
			if err := t.policy.Remember(tc, tool.Spec(), plan, d.Remember); err != nil {
				t.say("This is not remembered after eca ends: " + err.Error())
			}
		}
	}
	if !judged.Manual {
		t.emit(judged)
	}
	if t.ctx.Err() != nil {
		t.closeUndoPoint(point)
		return false, context.Cause(t.ctx)
	}
	t.emit(event.ToolStarted{CallID: c.CallID}, event.Progress{Text: cmp.Or(tool.Spec().Progress, progressCalling)})
	told := t.instructions(plan.Paths)
	if tool.Spec().OwnChat {
		t.execute(tool, tc, told, nil)
	} else {
		t.calls.Go(func() { t.execute(tool, tc, told, point) })
	}
	return false, nil
}

// undoPoint records the files before a call that runs without a question, if it is one that
// changes files in ways of its own, and says so with the call.
func (t *turn) undoPoint(tc tools.Call, plan tools.Plan, judged *event.ToolJudged) (*event.UndoPoint, error) {
	of := t
	if t.boss != nil { // what a subagent does is undone with the call it works for
		of = t.boss
		tc.ID = t.id
	}
	point, left, err := t.s.eng.deps.Files.Begin(t.ctx, of.s.id, tc, plan)
	switch {
	case err != nil:
		judged.Reason += "; " + err.Error()
		return nil, err
	case point == nil:
		return nil, nil //nolint:nilnil // it needs none
	}
	judged.Reason += "; a rollback can undo it"
	if len(left) > 0 {
		judged.Reason += "; not covered by undo: " + strings.Join(left, ", ")
	}
	of.emit(*point)
	return point, nil
}

// closeUndoPoint records what the call of an undo point has changed.
func (t *turn) closeUndoPoint(point *event.UndoPoint) {
	if point == nil {
		return
	}
	err := t.s.eng.deps.Files.End(*point)
	of := t
	if t.boss != nil {
		of = t.boss
	}
	of.emit(event.UndoPoint{CallID: point.CallID, Roots: point.Roots, Ended: true})
	if err != nil {
		t.s.eng.deps.Log.Warn("what a command changed is not recorded", "err", err)
		t.say("A rollback will only bring back what this command has removed: " + err.Error())
	}
}

// nobodyAsked is what a model is told about a call that nobody could be asked about.
const nobodyAsked = "This call needs the user's approval, and nobody can be asked: this run does not approve such calls. It did not run. Do without it, and say in your answer what you could not do."

// denial is what a model is told about a denied call, if that is more than that the
// configuration denies it.
func (t *turn) denial(v tools.Verdict) string {
	if v.Rule != "agent."+t.agent+".readOnly" {
		return ""
	}
	return fmt.Sprintf("The agent %s is read-only, and this call would change something. It did not run.", t.agent)
}

// planned is a call with what it would do and what the policy says about that.
type planned struct {
	tool    tools.Tool
	call    tools.Call
	plan    tools.Plan
	verdict tools.Verdict
}

// plan asks what a call would do, and judges it.
func (t *turn) plan(tool tools.Tool, tc tools.Call) (planned, error) {
	plan, err := tool.Plan(t.ctx, tc)
	if err != nil {
		return planned{}, err
	}
	v := t.judge(tc, tool.Spec(), plan)
	t.s.eng.deps.Log.Debug("tool call judged", "tool", tool.Spec().FullName(), "decision", v.Decision, "rule", v.Rule, "reason", v.Reason)
	return planned{tool, tc, plan, v}, nil
}

// judged fills in what is announced of a call.
func (p planned) judged(j event.ToolJudged) event.ToolJudged {
	j.Arguments, j.Decision, j.Rule, j.Reason = p.call.Arguments, string(p.verdict.Decision), p.verdict.Rule, p.verdict.Reason
	j.Summary, j.Details, j.Offer = p.plan.Summary, p.plan.Details, p.verdict.Offer
	if p.verdict.Details != nil {
		j.Details = p.verdict.Details
	}
	return j
}

// taskList returns the chat's list of tasks.
func (t *turn) taskList() *event.Tasks {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history.tasks
}

// fetchedRules returns the ids of the path-scoped rules that the model knows.
func (t *turn) fetchedRules() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Values(t.history.rules))
}

// fileLog records what a call does to files.
type fileLog struct {
	t      *turn
	callID string
}

var _ tools.FileLog = fileLog{}

// Writing implements tools.FileLog.
func (l fileLog) Writing(ctx context.Context, path string, content []byte) error {
	change, err := l.t.s.eng.deps.Files.Writing(ctx, l.t.s.id, path, content)
	if err != nil {
		return err
	}
	change.CallID = l.callID
	l.t.emit(change)
	return nil
}

// Moving implements tools.FileLog.
func (l fileLog) Moving(_ context.Context, from, to string) error {
	l.t.emit(event.FileChanged{CallID: l.callID, Path: from, MovedTo: to})
	return nil
}

// failCall announces a call that can not run, with its error as the result.
func (t *turn) failCall(judged event.ToolJudged, err error) {
	judged.Decision, judged.Rule, judged.Reason = string(tools.Deny), "invalid", "the call can not run"
	t.emit(judged, event.ToolFinished{CallID: judged.CallID, Outputs: []string{err.Error()}, Failed: true}, event.Progress{Text: progressGenerating})
}

// ask announces a call and waits for the user's decision.
func (t *turn) ask(judged event.ToolJudged) (Decision, error) {
	ch := make(chan Decision, 1)
	t.mu.Lock()
	// Registered before the announcement: a client may answer at once.
	t.waiting[judged.CallID] = ch
	t.emitLocked(judged, event.Progress{Text: progressApproval})
	t.mu.Unlock()
	select {
	case d := <-ch:
		return d, nil
	case <-t.ctx.Done():
		return Decision{}, context.Cause(t.ctx)
	}
}

// execute runs a call and records its result, and what the model is told with it.
func (t *turn) execute(tool tools.Tool, tc tools.Call, told []event.Instructions, point *event.UndoPoint) {
	defer func() {
		if p := recover(); p != nil {
			t.s.eng.deps.Log.Error("tool call panicked", "tool", tool.Spec().FullName(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if t.ctx.Err() != nil {
		t.closeUndoPoint(point)
		return
	}
	start := t.s.eng.deps.Now()
	res, err := t.runTool(tool, tc)
	t.closeUndoPoint(point)
	if t.ctx.Err() != nil {
		return // the end of the turn says what became of the call
	}
	if err != nil {
		res = tools.Result{Outputs: []string{err.Error()}, Failed: true}
	}
	if res.Outputs == nil {
		res.Outputs = []string{}
	}
	for i, o := range res.Outputs {
		res.Outputs[i] = strings.ToValidUTF8(o, "�")
	}
	elapsed := t.since(start)
	extra, stop := t.afterCall(tool, tc, &res)
	if t.ctx.Err() != nil {
		return
	}
	t.emit(event.ToolFinished{
		CallID: tc.ID, Outputs: res.Outputs, Images: res.Images, Failed: res.Failed, ElapsedMS: elapsed, Details: res.Details, Context: extra, Instructions: told,
	}, event.Progress{Text: progressGenerating})
	if stop != nil {
		t.say(stop.Notice())
		t.mu.Lock()
		t.byHook = true
		t.mu.Unlock()
	}
}

// runTool keeps a tool's panic from taking the daemon down.
func (t *turn) runTool(tool tools.Tool, tc tools.Call) (res tools.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.s.eng.deps.Log.Error("tool panicked", "tool", tool.Spec().FullName(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error in %s: %v", tool.Spec().FullName(), p)
		}
	}()
	return tool.Run(t.ctx, tc, t.liveOutput().add)
}

// arguments checks what the model wrote as arguments.
func arguments(text string) (json.RawMessage, error) {
	if strings.TrimSpace(text) == "" {
		return json.RawMessage("{}"), nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil || m == nil {
		return nil, fmt.Errorf("INVALID_ARGS: the arguments are not a JSON object: %s", shorten.Bytes(text, 200))
	}
	return json.RawMessage(text), nil
}
