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
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Texts of a turn's progress (eca-protocol 7.3).
const (
	progressContexts   = "Parsing given context"
	progressWaiting    = "Waiting model"
	progressGenerating = "Generating"
	progressApproval   = "Waiting for tool call approval"
	progressCalling    = "Calling tool"
)

const noticeStopped = "\nPrompt stopped\n"

// unwindTime bounds how long a cancelled turn waits for its tools to return.
const unwindTime = 5 * time.Second

// turn answers one prompt. It runs as one goroutine, plus one for each tool call
// that is being executed.
type turn struct {
	s      *Session
	id     string
	first  event.Seq // its first event
	prompt Prompt
	agent  string
	// missingAgent was asked for and is not there; agent stands in for it, but not in a
	// subagent's turn, which fails.
	missingAgent string

	cfg    *config.Config
	model  Model
	tools  *tools.Registry
	policy tools.Policy
	roots  []string
	hooks  *hooks.Set
	boss   *turn // the turn that this one of a subagent works for

	children *children // subagents that work for this one

	noCompact bool                 // a hook forbids it
	vars      func() template.Vars // of prompts
	quiet     bool                 // nothing is recorded: a preview
	sys       *system              // the system prompt, once it is known; see systemPrompt

	ctx    context.Context
	cancel context.CancelCauseFunc
	calls  sync.WaitGroup // executing calls

	imageTrial  bool   // the request goes without images, to see whether they are refused
	imagesTried bool   // that was done in this turn
	imageFault  string // what the provider said of the request with them

	instructed []string       // files whose instructions this turn gave to calls
	behind     sync.WaitGroup // subagents in the background
	done       chan struct{}
	ended      chan struct{} // closed when the terminal event is out

	mu      sync.Mutex // guards what follows, and the order of emitted events
	history *history
	over    bool                     // the terminal event is out; nothing may follow
	phase   string                   // the last progress
	waiting map[string]chan Decision // announced calls that wait for the user
	steers  []string                 // what the user said since the model was asked
	byHook  bool                     // a hook ends the turn after the calls that run
	loop    loopGuard

	steps      int                // batches of tool calls, of a subagent
	said       strings.Builder    // by a subagent since its last call
	saidBefore string             // the last it said in front of calls
	end        event.TurnFinished // once it is out

	activity activity            // for hooks
	scripts  []event.HookStarted // that run and are shown
}

func (s *Session) newTurn(p Prompt) *turn {
	deps := s.eng.deps
	if deps.Refresh != nil {
		deps.Refresh()
	}
	t := &turn{
		s: s, id: p.TurnID, first: s.log.Next(), prompt: p, cfg: deps.Config(), tools: deps.Tools(), policy: deps.Policy(), roots: deps.Roots(), hooks: s.eng.hookSet(),
		done: make(chan struct{}), ended: make(chan struct{}), history: s.history, waiting: map[string]chan Decision{},
		boss: p.boss, children: newChildren(),
	}
	if t.id == "" {
		t.id = deps.NewID()
	}
	t.ctx, t.cancel = context.WithCancelCause(s.ctx)
	if p.boss != nil {
		stop := context.AfterFunc(p.boss.ctx, func() { t.cancel(context.Cause(p.boss.ctx)) })
		context.AfterFunc(t.ctx, func() { stop() })
	}
	meta := s.log.Meta()
	t.agent = p.Agent
	if t.agent == "" {
		t.agent = meta.Agent
	}
	if p.Parent == "" || t.agent == "" {
		asked, known := t.agent, false
		if t.agent, known = t.cfg.FindAgent(asked); !known {
			t.missingAgent = asked
		}
	} else if _, ok := t.cfg.Agents[t.agent]; !ok {
		t.missingAgent = t.agent
	}
	t.vars = sync.OnceValue(t.promptVars)
	return t
}

// emit records events of the turn. After the terminal event nothing is recorded.
func (t *turn) emit(bodies ...event.Body) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emitLocked(bodies...)
}

func (t *turn) emitLocked(bodies ...event.Body) {
	if t.over {
		return
	}
	for i, b := range bodies {
		b = event.Stored(b)
		bodies[i] = b
		t.history.add(b)
		t.loop.note(b)
		t.reportActivity(b)
		switch b := b.(type) {
		case event.Progress:
			t.phase = b.Text
		case event.HookStarted:
			t.scripts = append(t.scripts, b)
		case event.HookFinished:
			t.scripts = slices.DeleteFunc(t.scripts, func(s event.HookStarted) bool { return s.ID == b.ID })
		case event.TurnFinished:
			t.over, t.end = true, b
		}
		if t.boss != nil {
			t.follow(b)
		}
	}
	t.s.log.Append(t.id, bodies...)
	if t.over {
		close(t.ended)
	}
}

// enter shows a progress unless it is shown already.
func (t *turn) enter(phase string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.phase != phase {
		t.emitLocked(event.Progress{Text: phase})
	}
}

// run does the turn's work and ends the turn, whatever happens.
func (t *turn) run(work func() error) {
	defer close(t.done)
	var err error
	defer func() {
		if p := recover(); p != nil {
			t.s.eng.deps.Log.Error("turn panicked", "chat", t.s.id, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
		t.finish(err)
		t.cancel(nil)
		t.unwind()
	}()
	err = work()
}

// errRejected ends a turn in which the user refused a call.
var errRejected = errors.New("tool call rejected")

// answer is the loop of a turn: ask the model, run its calls, ask again.
func (t *turn) answer() error {
	for r := (recovery{}); ; {
		if err := t.compactIfFull(); err != nil {
			return err
		}
		a, err := t.request()
		if err != nil {
			if err := t.mend(&r, a, err); err != nil {
				return err
			}
			continue
		}
		r.tooLong = 0
		if len(a.calls) == 0 {
			if t.goOnWithCode(&r, a) {
				continue
			}
			switch a.stop {
			case llm.StopLength:
				t.emit(event.Notice{Text: "\n\nThe answer reached the model's output limit and is cut here.\n"})
			case llm.StopUnmarked:
				t.emit(event.Notice{Text: "\n\nThe provider ended the answer without saying that it is complete; something may be missing.\n"})
			case llm.StopRefusal:
				t.emit(event.Notice{Text: "\n\nThe model refused to go on.\n"})
			}
			if more, err := t.awaitSubagents(); err != nil || !more {
				return err
			}
			continue
		}
		r = recovery{}
		if err := t.stepped(); err != nil {
			return err
		}
		if err := t.runCalls(a.calls); err != nil {
			return err
		}
		if t.looping(a.calls) {
			return errLoop
		}
		t.renewTools(a.calls)
		t.takeSteers()
		t.takeReports()
	}
}

// toolsWait bounds how long a turn waits for the tools that a server says have changed.
const toolsWait = 5 * time.Second

// renewTools takes over the tools that a server has changed because of a call, so that the
// model can use them in its next answer.
func (t *turn) renewTools(calls []call) {
	deps := t.s.eng.deps
	served := slices.ContainsFunc(calls, func(c call) bool { return c.Origin == tools.OriginMCP })
	if !served || deps.AwaitTools == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.ctx, toolsWait)
	defer cancel()
	deps.AwaitTools(ctx)
	t.tools = deps.Tools()
}

func (t *turn) steer(text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steers = append(t.steers, text)
}

func (t *turn) unsteer() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steers = nil
}

// takeSteers shows the model, and the client, what the user said meanwhile.
func (t *turn) takeSteers() (any bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.steers) == 0 {
		return false
	}
	t.emitLocked(event.UserMessage{ContentID: t.s.eng.deps.NewID(), Text: strings.Join(t.steers, "\n"), Steer: true})
	t.steers = nil
	return true
}

// finish emits the terminal event. err is nil, a cause of cancellation, errRejected,
// or a failure that the user is told.
func (t *turn) finish(err error) {
	if t.ctx.Err() != nil {
		err = context.Cause(t.ctx)
	}
	end := event.TurnFinished{Reason: event.FinishedDone, Dialog: t.s.InDialog()}
	var notice event.Body
	switch {
	case err == nil:
	case errors.Is(err, errRejected):
		end.Reason = event.FinishedRejected
		notice = event.Notice{Text: "Tell ECA what to do differently for the rejected tool(s)"}
	case errors.Is(err, errStopped):
		end.Reason = event.FinishedStopped
		if t.boss == nil { // whose call says so
			notice = event.Notice{Text: noticeStopped}
		}
	case errors.Is(err, errLoop):
		end.Reason = event.FinishedLoop
		notice = event.Notice{Text: fmt.Sprintf(noticeLoop, loopRounds)}
	case errors.Is(err, errByHook):
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
	t.endChildren()
	t.mu.Lock()
	defer t.mu.Unlock()
	var bodies []event.Body
	if notice != nil {
		bodies = append(bodies, notice)
	}
	for _, s := range t.scripts { // of a call that has not returned yet
		bodies = append(bodies, event.HookFinished{ID: s.ID, Name: s.Name, Action: s.Action, Status: 1, Error: "it was stopped"})
	}
	reason := event.Interrupted
	if end.Reason == event.FinishedStopped || end.Reason == event.FinishedSuperseded {
		reason = event.RejectedByStop
	}
	if end.Reason == event.FinishedByHook {
		reason = event.StoppedByHook
	}
	for _, id := range t.history.openCalls() {
		bodies = append(bodies, t.history.reject(id, reason))
	}
	for _, c := range t.children.unreported() {
		bodies = append(bodies, c.report())
	}
	// Who sees the end must not find the session running.
	t.s.busy.Store(false)
	t.emitLocked(append(bodies, end)...)
}

// unwind waits until the calls that were cancelled have returned.
func (t *turn) unwind() {
	returned := make(chan struct{})
	go func() {
		t.calls.Wait()
		t.behind.Wait()
		close(returned)
	}()
	timer := time.NewTimer(unwindTime)
	defer timer.Stop()
	select {
	case <-returned:
	case <-timer.C:
		t.s.eng.deps.Log.Warn("a cancelled tool call does not return", "chat", t.s.id)
	}
}

// decide passes a decision to the call that waits for it.
func (t *turn) decide(callID string, d Decision) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if ch, ok := t.waiting[callID]; ok {
		delete(t.waiting, callID)
		ch <- d // has room for the one decision it gets
		return
	}
	for _, c := range t.children.all() { // some clients name the parent (eca-protocol 4.2)
		c.session.Decide(callID, d)
	}
}

// request asks the model once and streams its answer into the log. With an error it
// returns what came before.
func (t *turn) request() (*answer, error) { return t.stream(t.build()) }

// stream makes a request whose answer is shown.
func (t *turn) stream(req llm.Request) (*answer, error) {
	a := &answer{t: t, req: req, reasoning: map[string]string{}, started: map[string]time.Time{}}
	for d, err := range t.model.Client.Stream(t.ctx, req) {
		if err != nil {
			a.endReasoning()
			return a, err
		}
		a.delta(d)
	}
	a.endReasoning()
	if t.ctx.Err() != nil {
		return a, context.Cause(t.ctx)
	}
	if a.stop == "" {
		return a, &llm.Error{Kind: llm.ErrPrematureStop, Message: "the model's answer ended without saying why"}
	}
	if !a.reported && t.cfg.Env != config.EnvTest { // suites compare traffic, and an estimate is none
		t.emit(t.usage(req, *a))
	}
	return a, nil
}
