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

// callRunner gets the model's calls decided, and runs those that may.
type callRunner struct {
	*setting
	hooks      *turnHooks
	children   *children
	approvals  approvals
	running    sync.WaitGroup
	byHook     atomic.Bool // a hook ends the turn after the calls that run
	instructed []string    // files whose instructions were given to calls of the response at hand
}

// run decides about the calls of one response one after the other, runs those
// that may, concurrently, and waits for them (eca-protocol 8.2).
func (t *callRunner) run(calls []call) error {
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
		t.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-t.ctx.Done():
		return context.Cause(t.ctx)
	}
	switch {
	case byHook, t.byHook.Load():
		return errByHook
	case rejected:
		return errRejected
	}
	return nil
}

// called returns the tool that a call is for, and its arguments, which are an empty object
// if they cannot be read.
func (t *callRunner) called(c *call) (tools.Tool, json.RawMessage, error) {
	args, err := arguments(c.arguments)
	if !c.ended {
		err = errors.New("the model's answer ended before the call was complete; it did not run")
	}
	if err != nil {
		return nil, json.RawMessage("{}"), err
	}
	tool, ok := t.tools.Lookup(history.ModelName(c.Tool))
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
func (t *callRunner) runCall(c *call) (stop bool, err error) {
	tool, args, err := t.called(c)
	judged := event.ToolJudged{Tool: c.Tool, Arguments: args, API: c.api, Opaque: c.opaque}
	if err != nil {
		if tool != nil { // the user sees the reason, too
			judged.Summary, judged.Rule, judged.Reason = err.Error(), "disabledTools", "the tool is disabled for agent "+t.agent
		}
		t.failCall(judged, err)
		return false, nil
	}
	charged, callID := t.charged(c.CallID)
	tc := tools.Call{ID: c.CallID, ChatID: t.s.id, Agent: t.agent, Model: t.model.ID, Roots: t.Roots, Arguments: args, Files: fileLog{charged, callID}, Tasks: read(t.rec, (*history.History).Tasks), Rules: read(t.rec, (*history.History).Rules), Subagents: subagents{t.setting, t.children, c.CallID}}
	p, err := t.plan(tool, tc)
	if err != nil {
		t.failCall(judged, err)
		return false, nil
	}
	h, err := t.hooks.runPreToolCallHooks(p)
	if err != nil {
		return false, err
	}
	judged = h.judged(judged)
	if h.rejected != nil && h.verdict.Decision != tools.Deny {
		t.rec.emit(judged, *h.rejected, event.Progress{Text: progressGenerating})
	}
	switch {
	case h.stop:
		return false, errByHook
	case h.rejected != nil && h.verdict.Decision != tools.Deny:
		return false, nil
	}
	d, err := t.decideCall(h, &judged)
	if err != nil || !d.runs {
		return d.stops, err
	}
	if !judged.Manual {
		t.rec.emit(judged)
	}
	if t.ctx.Err() != nil {
		t.closeUndoPoint(d.point)
		return false, context.Cause(t.ctx)
	}
	t.rec.emit(event.ToolStarted{CallID: c.CallID}, event.Progress{Text: cmp.Or(tool.Spec().Progress, progressCalling)})
	told := t.instructions(h.plan.Paths)
	if tool.Spec().OwnChat {
		t.execute(tool, d.call, told, nil)
	} else {
		t.running.Go(func() { t.execute(tool, d.call, told, d.point) })
	}
	return false, nil
}

// decided is the decision on a call.
type decided struct {
	call  tools.Call
	point *event.UndoPoint // taken before it; or nil
	runs  bool
	stops bool // the user rejected it, and the turn ends
}

// decideCall applies the policy's verdict: it asks the user if that says so. The reasons are
// added to judged; a call that does not run is announced and rejected here.
func (t *callRunner) decideCall(h hookedCall, judged *event.ToolJudged) (out decided, err error) {
	tc, plan, verdict := h.call, h.plan, h.verdict
	tc.Places, tc.Printed = verdict.Places, verdict.Printed
	tc.Authorization.Rule = verdict.Rule
	reject := func(r event.ToolRejected) (decided, error) {
		r.CallID, r.Reason = tc.ID, event.RejectedByConfig
		t.rec.emit(*judged, r)
		return decided{}, nil
	}
	if verdict.Decision == tools.Allow {
		if out.point, err = t.undoPoint(tc, plan, judged); err != nil && verdict.Rule == tools.RuleWorkspace {
			verdict.Decision, judged.Decision = tools.Ask, string(tools.Ask)
		}
	}
	own := h.tool.Spec().OwnChat
	switch {
	case verdict.Decision == tools.Deny:
		return reject(event.ToolRejected{Message: t.denial(verdict)})
	case verdict.Decision != tools.Ask:
	case t.trusted() && !h.mustAsk && !verdict.AlwaysAsk || own:
		tc.Authorization.Auto = true
		out.point, _ = t.undoPoint(tc, plan, judged)
	case !t.asks():
		return reject(event.ToolRejected{Message: noQuestions})
	default:
		judged.Manual = true
		d, err := t.ask(*judged)
		if err != nil {
			return decided{}, err
		}
		if !d.Approve {
			rejected := event.ToolRejected{CallID: tc.ID, Reason: event.RejectedByUser}
			if d.Unasked {
				rejected.Message = nobodyAsked
			}
			t.rec.emit(rejected)
			return decided{stops: !d.GoOn && t.assignment == nil}, nil
		}
		tc.Authorization.Approved, tc.Authorization.Auto = !d.Auto, d.Auto
		if d.Remember != tools.Once || !d.Auto {
			if err := t.Policy.Remember(tc, h.tool.Spec(), plan, d.Remember); err != nil {
				t.rec.say("This is not remembered after eca ends: " + err.Error())
			}
		}
	}
	out.call, out.runs = tc, true
	return out, nil
}

// undoPoint records the files before a call that runs without a question, if it is one that
// changes files in ways of its own, and says so with the call.
func (t *callRunner) undoPoint(tc tools.Call, plan tools.Plan, judged *event.ToolJudged) (*event.UndoPoint, error) {
	of, callID := t.charged(tc.ID)
	tc.ID = callID
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
	of.rec.emit(*point)
	return point, nil
}

// closeUndoPoint records what the call of an undo point has changed.
func (t *callRunner) closeUndoPoint(point *event.UndoPoint) {
	if point == nil {
		return
	}
	err := t.s.eng.deps.Files.End(*point)
	of, _ := t.charged(point.CallID)
	of.rec.emit(event.UndoPoint{CallID: point.CallID, Roots: point.Roots, Ended: true})
	if err != nil {
		t.s.eng.deps.Log.Warn("what a command changed is not recorded", "err", err)
		t.rec.say("A rollback will only bring back what this command has removed: " + err.Error())
	}
}

// noQuestions is the result for a model whose call would have to ask the user.
const noQuestions = unaskedStart + " for a subagent in the background. It did not run. Say in your result what you could not do."

// nobodyAsked is the result of a call in a run without a user to ask.
const nobodyAsked = unaskedStart + ": this run does not approve such calls. It did not run. Do without it, and say in your answer what you could not do."

// unaskedStart begins the results of calls about which nobody could be asked.
const unaskedStart = "This call needs the user's approval, and nobody can be asked"

// NobodyAsked reports whether a call was rejected because nobody could be asked about it.
func NobodyAsked(r event.ToolRejected) bool { return strings.HasPrefix(r.Message, unaskedStart) }

// denial is the result of a denied call, if it says more than that the
// configuration denies it.
func (t *callRunner) denial(v tools.Verdict) string {
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
func (t *setting) plan(tool tools.Tool, tc tools.Call) (planned, error) {
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
	j.Summary, j.Details, j.Offer, j.NotRemembered = p.plan.Summary, p.plan.Details, p.verdict.Offer, p.verdict.NotRemembered
	if p.verdict.Details != nil {
		j.Details = p.verdict.Details
	}
	return j
}

// fileLog records what a call does to files.
type fileLog struct {
	t      *setting // of the turn that has the call
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
	ch := t.approvals.open(judged.CallID) // before it is announced: a client may answer at once
	defer t.pauseBudget()()
	t.rec.emit(judged, event.Progress{Text: progressApproval})
	select {
	case d := <-ch:
		return d, nil
	case <-t.ctx.Done():
		return Decision{}, context.Cause(t.ctx)
	}
}

// execute runs a call and records its result, and the text that the model gets with it.
func (t *callRunner) execute(tool tools.Tool, tc tools.Call, told []event.Instructions, point *event.UndoPoint) {
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
		return // the end of the turn records the outcome of the call
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
	extra, stop := t.hooks.runPostToolCallHooks(tool, tc, &res)
	if t.ctx.Err() != nil {
		return
	}
	t.rec.emit(event.ToolFinished{
		CallID: tc.ID, Outputs: res.Outputs, Images: res.Images, Failed: res.Failed, ElapsedMS: elapsed, Details: res.Details, Context: extra, Instructions: told,
	}, event.Progress{Text: progressGenerating})
	if stop != nil {
		t.rec.say(stop.Notice())
		t.byHook.Store(true)
	}
}

// runTool keeps a tool's panic from taking the daemon down.
func (t *callRunner) runTool(tool tools.Tool, tc tools.Call) (res tools.Result, err error) {
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
