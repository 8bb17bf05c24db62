package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/llm"
)

// attempt is one run of a scenario with its own agent.
type attempt struct {
	*run
	c            Case
	out          report.Attempt
	conn         conn
	workspace    *workspace
	executor     executor
	earlierCalls []grade.Call

	killedAtStart bool // the agent was killed before it answered agent/initialize

	ungraded []answeredStep // steps that are graded after the agent has ended
	snapshot *snapshot      // the agent's changes; nil until they have been read
}

// answeredStep is a step that the agent has executed. Its report is out.Steps[i].
type answeredStep struct {
	index  int
	result ecp.StepResult
}

// WorkspaceVariable is the environment variable with the workspace of a scenario, which is also in
// the config of agent/initialize.
const WorkspaceVariable = "ECP_WORKSPACE"

// attemptCase makes one attempt of a case. It never fails: errors are part of the result.
func (r *run) attemptCase(ctx context.Context, c Case) report.Attempt {
	a := &attempt{run: r, c: c, out: report.Attempt{Status: report.Passed, ExitReason: report.ReasonOK, Steps: []report.Step{}, Errors: []report.Problem{}}}
	start := r.opts.Now()
	if limit := c.Scenario.Setup.TimeoutS; limit > 0 && !r.opts.Reference {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, duration(limit))
		defer cancel()
	}
	a.perform(ctx)
	if len(a.out.Errors) > 0 {
		a.skipRemainingSteps(a.out.Errors[len(a.out.Errors)-1].Message)
	}
	a.out.DurationMS = r.opts.Now().Sub(start).Milliseconds()
	return a.out
}

func (a *attempt) perform(ctx context.Context) {
	defer a.cleanUp()
	if err := a.prepare(ctx); err != nil {
		a.fail(ctx, 0, err)
		return
	}
	if err := a.connect(ctx); err != nil {
		a.fail(ctx, 0, err)
		return
	}
	a.runSteps(ctx)
	if len(a.ungraded) > 0 {
		a.gradeAfterAgent(ctx)
	}
}

// prepare creates the workspace and the executor.
func (a *attempt) prepare(ctx context.Context) error {
	setup := a.c.Scenario.Setup
	if a.opts.Reference {
		a.executor = newHostExecutor(a, "")
		return nil
	}
	f := setup.Workspace
	if f == nil && setup.Environment != nil {
		f = &Fixture{}
	}
	dir := ""
	if f != nil {
		var err error
		if a.workspace, err = newWorkspace(ctx, a.dir, *f, a.pool); err != nil {
			return callError(kindWorkspace, "workspace", "%v", err)
		}
		dir = a.workspace.dir
	}
	var err error
	if a.executor, err = a.newExecutor(ctx, dir); err != nil {
		return callError(kindEnvironment, "environment", "%v", err)
	}
	return nil
}

// skipRemainingSteps reports the steps that were not executed because of an earlier error.
func (a *attempt) skipRemainingSteps(why string) {
	for _, step := range a.c.Scenario.Steps[len(a.out.Steps):] {
		out := report.Step{Input: step.Input, ToolCalls: []ecp.ToolCall{}}
		out.NotExecuted(report.StatusSkipped, report.ReasonSkipped, why, a.opts.Reference)
		a.out.Steps = append(a.out.Steps, out)
	}
}

// runSteps runs the steps until one fails. If ctx ends between two steps, the attempt counts as stopped.
func (a *attempt) runSteps(ctx context.Context) {
	for i, step := range a.c.Scenario.Steps {
		if i > 0 && ctx.Err() != nil {
			a.fail(ctx, i+1, stoppedError(ctx, ecp.MethodStep, "there was no time left for it"))
			return
		}
		if !a.runStep(ctx, i, step) {
			return
		}
	}
}

// stoppedError returns the error of a call that has no result because ctx ended. timeoutMessage is
// its message if ctx reached a time limit.
func stoppedError(ctx context.Context, method, timeoutMessage string) *CallError {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return callError(kindTimeout, method, "%s", timeoutMessage)
	}
	return callError(kindInterrupted, method, "the run was stopped")
}

// disconnect closes the connection, without waiting for the agent if there was an error. Afterwards no
// process that the agent started is left, within the guarantees of internal/proc.
func (a *attempt) disconnect() {
	if a.conn == nil {
		return
	}
	broken := len(a.out.Errors) > 0
	a.conn.close(broken)
	a.out.Notes = append(a.out.Notes, a.conn.notes()...)
	if text := a.conn.stderr(); broken && text != "" {
		last := &a.out.Errors[len(a.out.Errors)-1]
		last.Stderr = text
	}
	a.conn = nil
}

// cleanUp ends the programs that the attempt started, saves the diff, and removes the attempt's files.
func (a *attempt) cleanUp() {
	a.disconnect()
	if a.executor != nil {
		a.out.Notes = append(a.out.Notes, a.executor.close()...)
	}
	if a.workspace == nil {
		return
	}
	a.takeSnapshot()
	a.saveDiff()
	if a.opts.Keep {
		a.out.Workspace = a.workspace.dir
		return
	}
	a.workspace.remove()
}

// fail adds an error to the report, which makes the result of the attempt an error.
func (a *attempt) fail(ctx context.Context, step int, err error) *report.Problem {
	e := asCallError(err, kindProtocol, "run")
	p := report.Problem{Scenario: a.c.Scenario.Name, Step: step, Kind: e.Kind, Message: e.Error()}
	switch {
	case e.Kind == kindInterrupted:
		p.Kind = stopKind(ctx)
		if p.Kind == kindBudget {
			p.Message = "the run's budget is used up"
		}
	case e.Kind == kindTimeout && step > 0:
		p.Message = fmt.Sprintf("%s (step %d)", p.Message, step)
	}
	a.out.Status = report.Error
	a.out.Errors = append(a.out.Errors, p)
	if e.Kind != kindJudge && e.Kind != kindGrader && a.out.ExitReason == report.ReasonOK {
		a.out.ExitReason = e.exitReason(ctx)
	}
	return &p
}

// limit returns the time limit of one call.
func (a *attempt) limit() time.Duration { return callLimit(a.opts) }

func callLimit(o Options) time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return DefaultTimeout
}

// stepLimit returns the time limit of a step.
func (a *attempt) stepLimit(st Step) time.Duration {
	if t := st.Constraints.TimeoutS; t > 0 && !a.opts.Reference {
		return duration(t)
	}
	return a.limit()
}

// ranOutOfTime reports whether an agent ended a step because of the runtime's time limit. A shorter
// limit in the agent's own budgets is part of the task, and what the agent did until then is graded.
func (a *attempt) ranOutOfTime(st Step, r ecp.StepResult) bool {
	if r.Status != ecp.Paused || r.StopReason != ecp.StopTime || a.opts.Reference {
		return false
	}
	params, err := json.Marshal(map[string]any{"config": a.config()})
	if err != nil {
		return true
	}
	agentConfig, err := ecp.ParseConfig(params)
	return err != nil || agentConfig.Budgets.TimeoutS == 0 || duration(agentConfig.Budgets.TimeoutS) >= a.stepLimit(st)
}

// agentVariables returns the environment variables that eca adds for an agent: its time limit and its
// workspace.
func (a *attempt) agentVariables() []string {
	if a.opts.Reference {
		return nil
	}
	seconds := 0.0 // the longest limit, so that the agent does not give up too early
	for _, st := range a.c.Scenario.Steps {
		seconds = max(seconds, a.stepLimit(st).Seconds())
	}
	if seconds == 0 {
		seconds = a.limit().Seconds()
	}
	env := []string{ecp.TimeoutVariable + "=" + strconv.FormatFloat(seconds, 'f', -1, 64)}
	if a.workspace != nil {
		env = append(env, WorkspaceVariable+"="+a.executor.workspace())
	}
	return env
}

// connect starts the agent or connects to its server, and initializes it. It also resets a server, to
// remove the state of earlier scenarios.
func (a *attempt) connect(ctx context.Context) error {
	if IsURL(a.c.target) {
		a.conn = newHTTP(a.c.server, a.opts.Client, a.opts.Headers)
	} else {
		c, err := startStdio(a.executor.agent(a.c.target, a.agentVariables()), a.pool)
		if err != nil {
			return err
		}
		a.conn = c
	}
	limit := a.limit()
	if a.opts.StartTimeout > 0 {
		limit = a.opts.StartTimeout
	}
	if err := a.initialize(ctx, limit); err != nil {
		var e *CallError
		a.killedAtStart = errors.As(err, &e) && (e.Kind == kindTimeout || e.Kind == kindInterrupted)
		if errors.As(err, &e) && (e.Kind == kindVersion || e.Kind == kindCapability) {
			a.blockTarget(a.c.target, e)
		}
		return err
	}
	a.notifyWatcher(Event{Ready: true})
	if !IsURL(a.c.target) || a.opts.Reference {
		return nil
	}
	return a.reset(ctx)
}

// reset removes the state of earlier scenarios from a server. It accepts servers without agent/reset.
func (a *attempt) reset(ctx context.Context) error {
	raw, err := a.call(ctx, a.limit(), ecp.MethodReset, struct{}{})
	var e *CallError
	if errors.As(err, &e) && e.Code == ecp.CodeNoMethod {
		a.out.Notes = append(a.out.Notes, "the agent has no agent/reset, so state of earlier scenarios may remain")
		return nil
	}
	if err != nil {
		return err
	}
	if err := ecp.ParseResetResult(raw); err != nil {
		return callError(kindProtocol, ecp.MethodReset, "%v, not %s", err, clip(string(raw), maxShown))
	}
	return nil
}

func (a *attempt) call(ctx context.Context, limit time.Duration, method string, params any) (json.RawMessage, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return call(limited, a.conn, a.ids, method, params)
}

// config returns the config for agent/initialize.
func (a *attempt) config() map[string]any {
	out := map[string]any{}
	if a.opts.Reference { // the reference sends no config
		return out
	}
	for _, over := range []map[string]any{a.opts.Config, a.c.Scenario.Setup.Config, a.c.variant.Config} {
		out = llm.DeepMerge(out, over)
	}
	if a.workspace != nil {
		out["workspace"] = a.executor.workspace()
	} else if dir, ok := out["workspace"].(string); ok && dir == "." {
		out["workspace"], _ = os.Getwd()
	}
	return out
}

// runStep runs one step. It reports whether the agent answered, so that the next step can follow.
func (a *attempt) runStep(ctx context.Context, i int, step Step) bool {
	out := report.Step{Input: step.Input, ToolCalls: []ecp.ToolCall{}, Checks: []report.Check{}, Verdict: report.Passed, Outcome: report.StatusOK, ExitReason: report.ReasonOK}
	start := a.opts.Now()
	raw, err := a.call(ctx, a.stepLimit(step), ecp.MethodStep, ecp.StepParams{Input: step.Input})
	out.DurationMS = float64(a.opts.Now().Sub(start).Microseconds()) / 1000
	var result ecp.StepResult
	if err == nil {
		if result, err = ecp.ParseStepResult(raw); err != nil {
			err = callError(kindProtocol, ecp.MethodStep, "%v: %s", err, clip(string(raw), maxShown))
		}
	}
	if err == nil && a.ranOutOfTime(step, result) {
		copyResult(&out, result) // what it did until then
		err = callError(kindTimeout, ecp.MethodStep, "the agent stopped at the time limit, before its answer was complete")
	}
	if err != nil {
		p := a.fail(ctx, i+1, err)
		out.NotExecuted(report.StatusFailed, asCallError(err, kindProtocol, ecp.MethodStep).exitReason(ctx), p.Message, a.opts.Reference)
		a.out.Steps = append(a.out.Steps, out)
		return false
	}
	copyResult(&out, result)
	if a.c.Scenario.Setup.Environment != nil && !a.opts.Reference {
		a.out.Steps = append(a.out.Steps, out)
		a.ungraded = append(a.ungraded, answeredStep{i, result})
		return true
	}
	if i == len(a.c.Scenario.Steps)-1 {
		a.takeSnapshot()
	}
	a.gradeStep(ctx, i, step, result, &out)
	a.out.Steps = append(a.out.Steps, out)
	return true
}

// gradeAfterAgent ends the agent, copies the hidden tests, and grades the steps.
func (a *attempt) gradeAfterAgent(ctx context.Context) {
	last := a.ungraded[len(a.ungraded)-1].index + 1
	a.disconnect()
	if err := a.executor.stopAgent(ctx); err != nil && ctx.Err() != nil {
		a.fail(ctx, last, stoppedError(ctx, "environment", "there was no time left to stop the agent"))
	} else if err != nil {
		a.fail(ctx, last, callError(kindEnvironment, "environment", "%v", err))
	} else if a.takeSnapshot(); a.snapshot.err != nil {
		a.fail(ctx, last, callError(kindWorkspace, "workspace", "%v", a.snapshot.err))
	} else if err := a.copyTests(ctx); err != nil {
		a.fail(ctx, last, callError(kindWorkspace, "tests", "%v", err))
	}
	for _, done := range a.ungraded {
		out := &a.out.Steps[done.index]
		if n := len(a.out.Errors); n > 0 && (a.snapshot == nil || a.snapshot.err != nil || !a.snapshot.testsCopied) {
			p := a.out.Errors[n-1]
			out.NotExecuted(report.StatusFailed, report.ReasonError, p.Message, false)
			continue
		}
		a.gradeStep(ctx, done.index, a.c.Scenario.Steps[done.index], done.result, out)
	}
}

// copyTests copies the hidden tests for the graders.
func (a *attempt) copyTests(ctx context.Context) error {
	if tests := a.c.Scenario.Setup.Tests; tests != "" {
		if err := a.executor.copyTests(ctx, resolveIn(a.dir, tests)); err != nil {
			return err
		}
	}
	a.snapshot.testsCopied = true
	return nil
}

// copyResult copies an agent's result into the report.
func copyResult(out *report.Step, result ecp.StepResult) {
	out.Status, out.Output, out.Logs = string(result.Status), result.PublicOutput, result.Logs
	if text := result.Context(); text != "" || result.EvaluationContext != nil || result.PrivateThought != nil {
		out.EvaluationContext = &text
	}
	if result.ToolCalls != nil {
		out.ToolCalls = result.ToolCalls
	}
	out.Usage, out.CostUSD, out.Timing, out.Model, out.StopReason, out.Extra = result.Usage, result.CostUSD, result.Timing, result.Model, result.StopReason, result.Extra
}
