package chat

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Texts of a turn's progress (eca-protocol.md 7.3).
const (
	progressContexts   = "Parsing given context"
	progressWaiting    = "Waiting model"
	progressGenerating = "Generating"
	progressApproval   = "Waiting for tool call approval"
	progressCalling    = "Calling tool"
)

const noticeStopped = "\nPrompt stopped\n"

// unwindTime is how long a turn waits at its end for its tools and background subagents to return.
const unwindTime = 5 * time.Second

// turn answers one prompt. It runs on one goroutine, plus one for each running tool call. It consists
// of parts with one job each. A part has access to the shared context and to the parts in its fields,
// not to the turn.
type turn struct {
	*turnContext
	firstSeq event.Seq // sequence number of its first event
	prompt   Prompt
	// missingAgent is the name of the requested agent if no such agent exists. The turn of a subagent then
	// fails; any other uses the default agent.
	missingAgent string

	steers    steers
	loop      loopGuard
	budget    *turnBudget
	images    *imageFilter
	requests  *requestBuilder
	hooks     *turnHooks
	compactor *compactor
	children  *children
	calls     *callRunner

	incomplete event.Incomplete // of the last answer

	cancel context.CancelCauseFunc
	done   chan struct{} // closed when all goroutines of the turn have ended, or were abandoned
}

func newTurn(s *Session, p Prompt) *turn {
	deps := &s.eng.deps
	if deps.Refresh != nil {
		deps.Refresh()
	}
	snap := deps.Current()
	t := &turn{firstSeq: s.log.Next(), prompt: p, done: make(chan struct{})}
	t.turnContext = &turnContext{Snapshot: snap, session: s, id: p.TurnID, parent: p.Parent, assignment: p.assignment, tools: snap.Tools()}
	if t.id == "" {
		t.id = deps.NewID()
	}
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	t.ids = &idRegistry{owners: map[string]*turnRecord{}}
	if p.assignment != nil {
		parent := p.assignment.parentTurn
		t.ids = parent.ids
		stop := context.AfterFunc(parent.ctx, func() { t.cancel(context.Cause(parent.ctx)) })
		context.AfterFunc(t.ctx, func() { stop() })
	}
	t.chooseAgent()
	t.vars = sync.OnceValue(t.promptVars)
	t.rec = &turnRecord{log: s.log, turn: t.id, history: s.history, ended: make(chan struct{})}
	t.budget = &turnBudget{turnContext: t.turnContext, end: func() {}}
	t.images = &imageFilter{turnContext: t.turnContext}
	t.requests = &requestBuilder{turnContext: t.turnContext, images: t.images}
	t.hooks = &turnHooks{turnContext: t.turnContext, resumed: t.firstSeq > 1}
	t.compactor = &compactor{turnContext: t.turnContext, requests: t.requests, images: t.images, hooks: t.hooks, stream: t.stream}
	t.children = newChildren(t.turnContext)
	t.calls = &callRunner{turnContext: t.turnContext, hooks: t.hooks, children: t.children}
	t.rec.watch = []func(event.Body){t.loop.addResult}
	if t.Hooks.Any(hooks.ChatStatusChanged) {
		t.rec.watch = append(t.rec.watch, t.hooks.watchActivity())
	}
	if p.assignment != nil {
		t.rec.report = p.assignment.observe
	}
	return t
}

// chooseAgent sets the agent: the prompt's, or the last one of the chat.
func (t *turn) chooseAgent() {
	t.agent = t.prompt.Agent
	if t.agent == "" {
		t.agent = t.session.log.Meta().Agent
	}
	if t.parent == "" || t.agent == "" {
		requested, known := t.agent, false
		if t.agent, known = t.Config.FindAgent(requested); !known {
			t.missingAgent = requested
		}
	} else if _, ok := t.Config.Agents[t.agent]; !ok {
		t.missingAgent = t.agent
	}
}

// run executes work and then ends the turn, even if work panics.
func (t *turn) run(work func() error) {
	defer close(t.done)
	var err error
	defer func() {
		if p := recover(); p != nil {
			t.session.eng.deps.Log.Error("turn panicked", "chat", t.session.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
		t.finish(err)
		t.cancel(nil)
		t.unwind()
		t.budget.end()
	}()
	err = work()
}

// converse answers the prompt, and then the follow-up messages of hooks.
func (t *turn) converse() error {
	for followUps := 0; ; followUps++ {
		if err := t.answer(); err != nil {
			return err
		}
		next, err := t.hooks.runPostRequestHooks(followUps > 0)
		if err != nil || next == "" {
			return err
		}
		if followUps == maxFollowUps {
			t.rec.showNotice("Hooks have continued this turn too often, so it ends here.")
			return nil
		}
		t.rec.emit(event.UserMessage{ContentID: t.session.eng.deps.NewID(), Text: next, Steer: true})
		t.rec.showProgress(progressWaiting)
	}
}

// errRejected ends a turn in which the user rejected a call.
var errRejected = errors.New("tool call rejected")

// answer is the loop of a turn: ask the model, run its calls, ask again.
func (t *turn) answer() error {
	for r := (recovery{}); ; {
		if err := t.admit(); err != nil {
			return err
		}
		a, err := t.stream(t.requests.build())
		if err != nil {
			if err := t.recoverFromError(&r, a, err); err != nil {
				return err
			}
			continue
		}
		r.overflows = 0
		if a.stop == llm.StopRefusal { // a filter stopped the answer, so its calls may not be what the model intended
			t.rec.emit(t.openCallRejections()...)
			a.calls = nil
		}
		if len(a.calls) == 0 {
			if r.shouldResume(a.stop) || t.continueCodeBlock(&r, a) {
				continue
			}
			t.noteIncomplete(a, a.hasText || strings.TrimSpace(r.text) != "")
			t.budget.warnIfSpent()
			if more, err := t.children.awaitBackground(t.emitSteers); err != nil || !more {
				return err
			}
			continue
		}
		r = recovery{}
		if err := t.assignment.countStep(); err != nil {
			return err
		}
		if err := t.calls.run(a.calls); err != nil {
			return err
		}
		if t.looping(a.calls) {
			return errLoop
		}
		t.renewTools(a.calls)
		t.emitSteers()
		t.children.emitReports()
	}
}

// admit returns nil if the turn may make another request. It asks the user if the budget is spent,
// and compacts the conversation if it is nearly full.
func (t *turn) admit() error {
	if err := t.budget.admit(); err != nil {
		return err
	}
	compacted, err := t.compactor.compactIfFull()
	if err != nil || !compacted {
		return err
	}
	return t.budget.admit() // writing the summary may have used up the budget
}

// noteIncomplete notes whether the last answer is complete, and notifies the user if it is not.
// hasText reports whether this answer, or an earlier part that it continues, contains text.
func (t *turn) noteIncomplete(a *answer, hasText bool) {
	switch {
	case a.stop == llm.StopPaused:
		t.incomplete = event.IncompleteUnmarked
		t.rec.emit(event.Notice{Text: "\n\nThe provider paused the answer repeatedly; something may be missing. Send another prompt to continue.\n"})
	case a.stop == llm.StopLength:
		t.incomplete = event.IncompleteLength
		t.rec.emit(event.Notice{Text: "\n\nThe answer reached the model's output limit and was truncated.\n"})
	case a.stop == llm.StopRefusal:
		t.incomplete = event.IncompleteRefusal
		t.rec.emit(event.Notice{Text: "\n\nThe model refused to continue, or its provider filtered the answer.\n"})
	case !hasText:
		t.incomplete = event.IncompleteEmpty
		t.rec.emit(event.Notice{Text: "\n\nThe model's answer is empty. Repeat the prompt, or choose another model.\n"})
	case a.stop == llm.StopUnmarked:
		t.incomplete = event.IncompleteUnmarked
		t.rec.emit(event.Notice{Text: "\n\nThe provider did not mark the answer as complete; something may be missing.\n"})
	default:
		t.incomplete = ""
	}
}

// toolsWait is how long a turn waits for changed tools of MCP servers.
const toolsWait = 5 * time.Second

// renewTools updates the tools of the turn for the model's next request: a call of an MCP tool can make
// its server change the tools.
func (t *turn) renewTools(calls []call) {
	deps := t.session.eng.deps
	calledMCP := slices.ContainsFunc(calls, func(c call) bool { return c.Origin == tools.OriginMCP })
	if !calledMCP || deps.AwaitTools == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, toolsWait)
	defer cancel()
	deps.AwaitTools(ctx)
	t.tools = t.Tools()
}

// emitSteers adds the user's messages since the last request to the chat.
func (t *turn) emitSteers() (added bool) {
	texts := t.steers.take()
	if len(texts) == 0 {
		return false
	}
	t.rec.emit(event.UserMessage{ContentID: t.session.eng.deps.NewID(), Text: strings.Join(texts, "\n"), Steer: true})
	return true
}

// looping reports whether the turn must end because its calls repeat. A new message of the user
// resets the count.
func (t *turn) looping(calls []call) bool {
	if t.steers.waiting() {
		t.loop.reset()
		return false
	}
	return t.loop.addRound(calls)
}

// finish emits the terminal event, and before it a notice, rejections of open calls and reports of
// subagents. err is nil, one of the errors that end a turn normally (such as errRejected), or
// a failure that the user sees. If the turn was cancelled, the cause replaces err.
func (t *turn) finish(err error) {
	if t.ctx.Err() != nil {
		err = context.Cause(t.ctx)
	}
	end := event.TurnFinished{Reason: event.FinishedDone, Dialog: t.session.InDialog()}
	var notice event.Body
	switch {
	case err == nil:
		end.Incomplete = t.incomplete
	case errors.Is(err, errRejected):
		end.Reason = event.FinishedRejected
		notice = event.Notice{Text: "Tell ECA what to do differently for the rejected tool(s)"}
	case errors.Is(err, errStopped):
		end.Reason = event.FinishedStopped
		if t.assignment == nil { // the parent's call shows that a subagent was stopped
			notice = event.Notice{Text: noticeStopped}
		}
	case errors.Is(err, errLoop):
		end.Reason = event.FinishedLoop
		notice = event.Notice{Text: fmt.Sprintf(noticeLoop, loopRounds)}
	case errors.Is(err, ErrBudget):
		end.Reason, end.Err, notice = event.FinishedBudget, err.Error(), budgetNotice(err)
	case errors.Is(err, errStoppedByHook):
		end.Reason = event.FinishedByHook
	case errors.Is(err, errBlocked):
		end.Reason = event.FinishedBlocked
	case errors.Is(err, errSuperseded):
		end.Reason = event.FinishedSuperseded
	case errors.Is(err, errShutdown), errors.Is(err, context.Canceled):
		end.Reason = event.FinishedInterrupted
	default:
		end.Reason, end.Err = event.FinishedFailed, err.Error()
		var failed *llm.Error
		end.Retryable = errors.As(err, &failed) && failed.Retryable()
		notice = event.Notice{Text: "\n\n" + err.Error()}
	}
	t.children.endAll()
	var reports []event.Body
	for _, c := range t.children.unreported() {
		reports = append(reports, c.report())
	}
	reason := event.Interrupted
	switch end.Reason {
	case event.FinishedStopped, event.FinishedSuperseded:
		reason = event.RejectedByStop
	case event.FinishedByHook:
		reason = event.StoppedByHook
	}
	// A client that sees the end of the turn must not find the session running.
	t.session.busy.Store(false)
	t.rec.finish(end, func(h *history.History, runningHooks []event.HookStarted) (bodies []event.Body) {
		if notice != nil {
			bodies = append(bodies, notice)
		}
		for _, s := range runningHooks { // hooks of calls that have not returned yet
			bodies = append(bodies, event.HookFinished{ID: s.ID, Name: s.Name, Action: s.Action, Status: 1, Error: "it was stopped"})
		}
		for _, id := range h.OpenCalls() {
			bodies = append(bodies, h.Reject(id, reason))
		}
		return append(bodies, reports...)
	})
}

// unwind waits up to unwindTime until all calls and background subagents have ended.
func (t *turn) unwind() {
	returned := make(chan struct{})
	go func() {
		t.calls.running.Wait()
		t.children.backgroundTurns.Wait()
		close(returned)
	}()
	timer := time.NewTimer(unwindTime)
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		t.session.eng.deps.Log.Warn("a cancelled tool call or subagent has not returned", "chat", t.session.id)
	}
}

// decide passes a decision to the call that waits for it. If no call of this turn is waiting for it, the
// decision goes to all subagents, whose pending results are returned.
func (t *turn) decide(callID string, d Decision) (accepted bool, children []*Pending[bool]) {
	if t.calls.approvals.decide(callID, d) {
		return true, nil
	}
	for _, s := range t.children.openSessions() { // some clients send the parent's chat id (eca-protocol.md 4.2)
		children = append(children, s.Decide(callID, d))
	}
	return false, children
}

// stream makes a request and shows its answer. With an error, it returns the part of the answer that had
// arrived. If the budget's time limit ends the request and the user chooses to continue, stream repeats
// the request, unless a part of the answer had arrived.
func (t *turn) stream(req llm.Request) (*answer, error) {
	for {
		a, err := t.attempt(req)
		if !errors.Is(err, errTimeLimit) {
			return a, err
		}
		if err := t.budget.admit(); err != nil {
			return a, err
		}
		if a.hasOutput {
			return a, &llm.Error{Kind: llm.ErrTimeout, Message: t.model.displayName() + " had stopped sending in the middle of its answer when the time limit was reached"}
		}
	}
}

// attempt makes a request and shows its answer. It returns errTimeLimit if the time limit of the
// budget ended the request.
func (t *turn) attempt(req llm.Request) (*answer, error) {
	a := &answer{t: t, req: req, reasoning: map[string]string{}, reasoningStarts: map[string]time.Time{}}
	ctx, noteArrival, stop := t.budget.withTimeLimit()
	defer stop()
	for d, err := range t.model.Client.Stream(ctx, req) {
		if err != nil {
			a.endReasoning()
			if t.ctx.Err() == nil && errors.Is(context.Cause(ctx), errTimeLimit) {
				err = errTimeLimit
			}
			return a, err
		}
		a.handleDelta(d)
		if a.hasOutput {
			noteArrival()
		}
	}
	a.endReasoning()
	if t.ctx.Err() != nil {
		return a, context.Cause(t.ctx)
	}
	a.endServerCalls()
	if a.stop == "" {
		return a, &llm.Error{Kind: llm.ErrPrematureStop, Message: "the model's answer ended without a stop reason"}
	}
	if !a.usageReported && !t.Config.Conformance().ReferenceContent { // the provider did not report the usage, so it is estimated
		t.rec.emit(t.usage(req, *a))
	}
	return a, nil
}
