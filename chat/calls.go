package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
)

// callRunner handles the model's tool calls: it has the policy, hooks and the user decide about them,
// and runs the calls that may run.
type callRunner struct {
	*turnContext
	hooks           *turnHooks
	children        *children
	approvals       approvals
	running         sync.WaitGroup
	stoppedByHook   atomic.Bool // a hook ends the turn once the running calls have ended
	instructedFiles []string    // files whose instructions were added to results of the current response
}

// run handles the calls of one response: it decides about them one after the other, runs the
// approved ones concurrently, and waits for them (eca-protocol.md 8.2).
func (t *callRunner) run(calls []call) error {
	t.instructedFiles = nil // those of earlier calls are in the history now
	rejected, stoppedByHook := false, false
	for i := range calls {
		endsTurn, err := t.runCall(&calls[i])
		if errors.Is(err, errStoppedByHook) {
			stoppedByHook = true
			break // wait for the calls that run already
		}
		if err != nil {
			return err
		}
		rejected = rejected || endsTurn
	}
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	switch {
	case stoppedByHook, t.stoppedByHook.Load():
		return errStoppedByHook
	case rejected:
		return errRejected
	}
	return nil
}

// lookup returns the tool of a call and its arguments, or an empty object if the arguments are
// invalid. If the error is that the agent may not use the tool, hiddenBy names the setting that hides
// the tool from the agent.
func (t *callRunner) lookup(c *call) (tool tools.Tool, args json.RawMessage, hiddenBy string, err error) {
	args, err = arguments(c.arguments)
	if !c.complete {
		err = errors.New("the model's answer ended before the call was complete; it did not run")
	}
	if err != nil {
		return nil, json.RawMessage("{}"), "", err
	}
	tool, ok := t.tools.Lookup(history.ModelName(c.Tool))
	if ok {
		hiddenBy = t.hiddenBy(tool.Spec())
	}
	switch {
	case hiddenBy != "":
		return nil, args, hiddenBy, fmt.Errorf("Tool '%s' is disabled for agent %s", c.Name, t.agent) //nolint:staticcheck // shown as it is
	case !ok || c.Origin == "unknown":
		return nil, args, "", fmt.Errorf("Tool '%s' not found", c.Name) //nolint:staticcheck // shown as it is
	}
	return tool, args, "", nil
}

// runCall announces a call, decides about it and starts it if it may run. endsTurn reports that the
// user rejected the call, which ends the turn.
func (t *callRunner) runCall(c *call) (endsTurn bool, err error) {
	tool, args, hiddenBy, err := t.lookup(c)
	judged := event.ToolJudged{Tool: c.Tool, Arguments: args, API: c.api, Opaque: c.opaque}
	if err != nil {
		if hiddenBy != "" { // the user sees the reason, too
			judged.Summary, judged.Rule, judged.Reason = err.Error(), hiddenBy, "the tool is disabled for agent "+t.agent
		}
		t.failCall(judged, err)
		return false, nil
	}
	owner, callID := t.changeOwner(c.CallID)
	tc := tools.Call{
		ID: c.CallID, ChatID: t.session.id, Agent: t.agent, Model: t.model.ID, Roots: t.Roots, Arguments: args,
		Files: fileLog{owner, callID}, Subagents: subagents{t.turnContext, t.children, c.CallID},
		Tasks: read(t.rec, (*history.History).Tasks), Rules: read(t.rec, (*history.History).Rules),
	}
	p, err := t.plan(tool, tc)
	if err != nil {
		t.failCall(judged, err)
		return false, nil
	}
	h, err := t.hooks.runPreToolCallHooks(p)
	if err != nil {
		return false, err
	}
	judged = h.announcement(judged)
	// If the policy denies the call, decideCall reports that, not the hook's rejection.
	rejectedByHook := h.rejected != nil && h.verdict.Decision != tools.Deny
	if rejectedByHook {
		t.rec.emit(judged, *h.rejected, event.Progress{Text: progressGenerating})
	}
	switch {
	case h.stopsTurn:
		return false, errStoppedByHook
	case rejectedByHook:
		return false, nil
	}
	d, err := t.decideCall(h, &judged)
	if err != nil || !d.mayRun {
		return d.endsTurn, err
	}
	if !judged.Manual {
		t.rec.emit(judged)
	}
	if t.ctx.Err() != nil {
		t.closeUndoPoint(d.point)
		return false, context.Cause(t.ctx)
	}
	t.rec.emit(event.ToolStarted{CallID: c.CallID}, event.Progress{Text: cmp.Or(tool.Spec().Progress, progressCalling)})
	instructions := t.instructions(h.plan.Paths)
	if tool.Spec().OwnChat {
		t.execute(tool, d.call, instructions, nil)
	} else {
		t.running.Go(func() { t.execute(tool, d.call, instructions, d.point) })
	}
	return false, nil
}

// callDecision is the decision about a call.
type callDecision struct {
	call     tools.Call
	point    *event.UndoPoint // nil if the call does not need one
	mayRun   bool
	endsTurn bool // the user rejected the call, which ends the turn
}

// decideCall applies the policy's verdict, which may be to ask the user. It adds reasons to judged. If
// the call may not run, decideCall announces and rejects it.
func (t *callRunner) decideCall(h hookedCall, judged *event.ToolJudged) (out callDecision, err error) {
	tc, plan, verdict := h.call, h.plan, h.verdict
	tc.Places, tc.Printed = verdict.Places, verdict.Printed
	tc.Authorization.Rule = verdict.Rule
	reject := func(r event.ToolRejected) (callDecision, error) {
		r.CallID, r.Reason = tc.ID, event.RejectedByConfig
		t.rec.emit(*judged, r)
		return callDecision{}, nil
	}
	if verdict.Decision == tools.Allow {
		// The workspace rule allows only commands that a rollback can undo.
		if out.point, err = t.undoPoint(tc, plan, judged); err != nil && verdict.Rule == tools.RuleWorkspace {
			verdict.Decision, judged.Decision = tools.Ask, string(tools.Ask)
		}
	}
	// Clients cannot ask about tools that change only their own chat.
	autoApproved := h.tool.Spec().OwnChat || t.autoApproves() && !h.mustAsk && !verdict.AlwaysAsk
	switch {
	case verdict.Decision == tools.Deny:
		return reject(event.ToolRejected{Message: t.denial(verdict)})
	case verdict.Decision != tools.Ask: // allowed
	case autoApproved:
		tc.Authorization.Auto = true
		out.point, _ = t.undoPoint(tc, plan, judged)
	case !t.canAskUser():
		return reject(event.ToolRejected{Message: resultBackgroundApproval, Unasked: true})
	default:
		judged.Manual = true
		d, err := t.ask(*judged)
		if err != nil {
			return callDecision{}, err
		}
		if !d.Approve {
			rejected := event.ToolRejected{CallID: tc.ID, Reason: event.RejectedByUser, Unasked: d.Unasked}
			if d.Unasked {
				rejected.Message = resultUnattendedApproval
			}
			t.rec.emit(rejected)
			return callDecision{endsTurn: !d.GoOn && t.assignment == nil}, nil
		}
		tc.Authorization.Approved, tc.Authorization.Auto = !d.Auto, d.Auto
		if d.Remember != tools.Once || !d.Auto {
			if err := t.Policy.Remember(tc, h.tool.Spec(), plan, d.Remember); err != nil {
				t.rec.showNotice("This will be forgotten when eca exits: " + err.Error())
			}
		}
	}
	out.call, out.mayRun = tc, true
	return out, nil
}

// undoPoint records the files before a call that runs without asking the user, if it can change
// files in ways that eca does not see, such as a shell command. It adds to the call's reason whether a
// rollback can undo the call.
func (t *callRunner) undoPoint(tc tools.Call, plan tools.Plan, judged *event.ToolJudged) (*event.UndoPoint, error) {
	owner, callID := t.changeOwner(tc.ID)
	tc.ID = callID
	point, notCovered, err := t.session.eng.deps.Files.Begin(t.ctx, owner.session.id, tc, plan)
	switch {
	case err != nil:
		judged.Reason += "; " + err.Error()
		return nil, err
	case point == nil:
		return nil, nil //nolint:nilnil // the call does not need one
	}
	judged.Reason += "; a rollback can undo it"
	if len(notCovered) > 0 {
		judged.Reason += "; not covered by undo: " + strings.Join(notCovered, ", ")
	}
	owner.rec.emit(*point)
	return point, nil
}

// closeUndoPoint records the changes of a call that has an undo point.
func (t *callRunner) closeUndoPoint(point *event.UndoPoint) {
	if point == nil {
		return
	}
	err := t.session.eng.deps.Files.End(*point)
	owner, _ := t.changeOwner(point.CallID)
	owner.rec.emit(event.UndoPoint{CallID: point.CallID, Roots: point.Roots, Ended: true})
	if err != nil {
		t.session.eng.deps.Log.Warn("could not record the changes of a command", "err", err)
		t.rec.showNotice("The changes of this command could not be recorded. A rollback can restore only what it removed: " + err.Error())
	}
}

// resultBackgroundApproval is the result of a call of a background subagent that needs approval.
const resultBackgroundApproval = "This call needs the user's approval, and nobody can be asked on behalf of a background subagent. It did not run. Say in your result what you could not do."

// resultUnattendedApproval is the result of a call that needs approval in a run without a user.
const resultUnattendedApproval = "This call needs the user's approval, and nobody can be asked: this run does not approve such calls. It did not run. Do without it, and say in your answer what you could not do."

// denial returns the result of a call that is denied because the agent is read-only. It is empty for
// all other reasons, which have a standard text.
func (t *callRunner) denial(v tools.Verdict) string {
	if v.Rule != "agent."+t.agent+".readOnly" {
		return ""
	}
	return fmt.Sprintf("The agent %s is read-only, and this call would change something. It did not run.", t.agent)
}

// plannedCall is a call with its plan and the policy's verdict.
type plannedCall struct {
	tool    tools.Tool
	call    tools.Call
	plan    tools.Plan
	verdict tools.Verdict
}

// plan gets the plan of a call and the policy's verdict about it.
func (t *turnContext) plan(tool tools.Tool, tc tools.Call) (plannedCall, error) {
	plan, err := tool.Plan(t.ctx, tc)
	if err != nil {
		return plannedCall{}, err
	}
	v := t.judge(tc, tool.Spec(), plan)
	t.session.eng.deps.Log.Debug("tool call judged", "tool", tool.Spec().FullName(), "decision", v.Decision, "rule", v.Rule, "reason", v.Reason)
	return plannedCall{tool, tc, plan, v}, nil
}

// announcement fills in the announcement of a call.
func (p plannedCall) announcement(j event.ToolJudged) event.ToolJudged {
	j.Arguments, j.Decision, j.Rule, j.Reason = p.call.Arguments, string(p.verdict.Decision), p.verdict.Rule, p.verdict.Reason
	j.Summary, j.Details, j.Offer, j.NotRemembered = p.plan.Summary, p.plan.Details, p.verdict.Offer, p.verdict.NotRemembered
	if p.verdict.Details != nil {
		j.Details = p.verdict.Details
	}
	return j
}

// fileLog records the changes that a call makes to files, for the turn and the call that changeOwner
// returns.
type fileLog struct {
	t      *turnContext
	callID string
}

var _ tools.FileLog = fileLog{}

// Writing implements tools.FileLog.
func (l fileLog) Writing(ctx context.Context, path string, content []byte) error {
	change, err := l.t.session.eng.deps.Files.Writing(ctx, l.t.session.id, path, content)
	if err != nil {
		return err
	}
	change.CallID = l.callID
	l.t.rec.emit(change)
	return nil
}

// Moving implements tools.FileLog.
func (l fileLog) Moving(_ context.Context, from, to string) error {
	l.t.rec.emit(event.FileChanged{CallID: l.callID, Path: from, MovedTo: to})
	return nil
}

// failCall announces a call that cannot run, with its error as the result.
func (t *callRunner) failCall(judged event.ToolJudged, err error) {
	judged.Decision, judged.Rule, judged.Reason = string(tools.Deny), cmp.Or(judged.Rule, "invalid"), cmp.Or(judged.Reason, "the call cannot run")
	t.rec.emit(judged, event.ToolFinished{CallID: judged.CallID, Outputs: []string{err.Error()}, Failed: true}, event.Progress{Text: progressGenerating})
}

// ask announces a call and waits for the user's decision.
func (t *callRunner) ask(judged event.ToolJudged) (Decision, error) {
	ch := t.approvals.open(judged.CallID) // before the announcement, because a client may answer immediately
	resume := t.pauseBudget()
	defer resume()
	t.rec.emit(judged, event.Progress{Text: progressApproval})
	select {
	case d := <-ch:
		return d, nil
	case <-t.ctx.Done():
		return Decision{}, context.Cause(t.ctx)
	}
}

// execute runs a call and emits its result, together with instructions for the model.
func (t *callRunner) execute(tool tools.Tool, tc tools.Call, instructions []event.Instructions, point *event.UndoPoint) {
	defer func() {
		if p := recover(); p != nil {
			t.session.eng.deps.Log.Error("tool call panicked", "tool", tool.Spec().FullName(), "panic", p, "stack", string(debug.Stack()))
		}
	}()
	if t.ctx.Err() != nil {
		t.closeUndoPoint(point)
		return
	}
	start := t.session.eng.deps.Now()
	res, err := t.runTool(tool, tc)
	t.closeUndoPoint(point)
	if t.ctx.Err() != nil {
		return // turn.finish emits the outcome of the call
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
	elapsed := t.millisSince(start)
	extra, hookStop := t.hooks.runPostToolCallHooks(tool, tc, &res)
	if t.ctx.Err() != nil {
		return
	}
	t.rec.emit(event.ToolFinished{
		CallID: tc.ID, Outputs: res.Outputs, Images: res.Images, Failed: res.Failed, ElapsedMS: elapsed, Details: res.Details, Stops: res.Stops, Context: extra, Instructions: instructions,
	}, event.Progress{Text: progressGenerating})
	if hookStop != nil {
		t.rec.showNotice(hookStop.Notice())
		t.stoppedByHook.Store(true)
	}
}

// runTool runs a tool and turns a panic into an error.
func (t *callRunner) runTool(tool tools.Tool, tc tools.Call) (res tools.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			t.session.eng.deps.Log.Error("tool panicked", "tool", tool.Spec().FullName(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error in %s: %v", tool.Spec().FullName(), p)
		}
	}()
	return tool.Run(t.ctx, tc, t.liveOutput().add)
}

// arguments parses the arguments that the model wrote.
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
