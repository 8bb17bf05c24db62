package agent

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
)

const (
	maxResult          = 4 << 10 // bytes of a call's result in the step result
	maxEvidenceCalls   = 20      // calls that evaluation_context lists
	maxEvidenceFiles   = 20
	maxEvidenceArgs    = 160 // bytes of the arguments of such a call
	maxEvidenceOutcome = 200 // bytes of the outcome of such a call, or of a question
)

// outcome is how a step ended.
type outcome struct {
	status     ecp.Status
	stopReason string
	question   *question
	notes      []string // remarks that precede the step's log
}

// result returns the result of a step. The caller holds r.mu.
func (r *run) result(o outcome, now time.Time) ecp.StepResult {
	rec, clean := r.record, r.agent.opts.Host.Clean
	evidence := clean(r.evidence(o))
	output := rec.output(o.question)
	logs := clean(noteLines(o.notes) + rec.logs.String())
	total := now.Sub(rec.started).Milliseconds()
	cost := rec.cost
	return ecp.StepResult{
		Status: o.status, PublicOutput: &output, EvaluationContext: &evidence, PrivateThought: &evidence, Logs: &logs,
		ToolCalls: r.toolCalls(), Usage: rec.usage.usage(), CostUSD: &cost,
		Timing: &ecp.Timing{TotalMS: max(total, 0), ModelMS: rec.modelMS, ToolMS: rec.toolMS},
		Model:  rec.model, StopReason: o.stopReason,
		Extra: map[string]json.RawMessage{"metadata": rawJSON(map[string]any{
			"agent": rec.agent, "chat_id": r.session.ID(), "cost_known": rec.priced && !rec.unpriced, "files_changed": append([]string{}, rec.files...),
		})},
	}
}

// notStartedResult returns the result of a step that ended before its turn started.
func (a *Agent) notStartedResult(stop string) ecp.StepResult {
	output, evidence, logs, cost := "", "Tools called: none\nStop reason: "+stop, "", 0.0
	return ecp.StepResult{
		Status: ecp.Paused, PublicOutput: &output, EvaluationContext: &evidence, PrivateThought: &evidence, Logs: &logs,
		ToolCalls: []ecp.ToolCall{}, CostUSD: &cost, Timing: &ecp.Timing{}, Model: a.settings.Model, StopReason: stop,
	}
}

func noteLines(list []string) string {
	var b strings.Builder
	for _, n := range list {
		b.WriteString("+0ms " + oneLine(n, maxLine) + "\n")
	}
	return b.String()
}

// output returns the text that a user would have seen in the step.
func (r *record) output(question *question) string {
	parts := make([]string, 0, len(r.texts)+1)
	for _, t := range r.texts {
		if text := t.String(); strings.TrimSpace(text) != "" {
			parts = append(parts, text)
		}
	}
	if len(parts) > 1 { // only blank lines separate them
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
	}
	if r.isCommand && len(parts) == 0 {
		parts = r.notices
	}
	if question != nil {
		parts = append(parts, question.text())
	}
	return strings.Join(parts, "\n\n")
}

// toolCalls lists the calls of the step, including refused ones. It leaves out calls that exceeded
// the budget, and calls that were stopped before they ran.
func (r *run) toolCalls() []ecp.ToolCall {
	list := []ecp.ToolCall{}
	for _, c := range r.record.calls {
		if !r.hasRun(c) {
			continue
		}
		extra := map[string]json.RawMessage{
			ecp.CallID: rawJSON(c.id), ecp.CallIsError: rawJSON(c.state != callSucceeded && c.state != callPending),
			ecp.CallDuration: rawJSON(c.elapsedMS), ecp.CallResult: rawJSON(r.agent.opts.Host.Clean(shorten(c.result, maxResult))),
		}
		if c.state == callRefused {
			extra["refused"] = rawJSON(true)
		}
		if c.parent != "" {
			extra["parent_id"] = rawJSON(c.parent)
		}
		list = append(list, ecp.ToolCall{Name: c.name, Arguments: c.arguments, Extra: extra})
	}
	return list
}

// evidence describes the actions of a step in a few lines. It is for evaluators, so it leaves out the
// model's reasoning.
func (r *run) evidence(o outcome) string {
	rec := r.record
	var b strings.Builder
	var run, notRun []*call
	for _, c := range rec.calls {
		if r.hasRun(c) {
			run = append(run, c)
		} else {
			notRun = append(notRun, c)
		}
	}
	if len(run) == 0 {
		b.WriteString("Tools called: none\n")
	} else {
		fmt.Fprintf(&b, "Tools called: %d\n", len(run))
	}
	for i, c := range run {
		if i == maxEvidenceCalls {
			fmt.Fprintf(&b, "- and %d more\n", len(run)-i)
			break
		}
		by := ""
		if c.parent != "" {
			by = " (by a subagent)"
		}
		fmt.Fprintf(&b, "- %s %s%s: %s\n", c.name, shorten(string(c.arguments), maxEvidenceArgs), by, c.outcome())
	}
	if n := len(rec.files); n > 0 {
		list := strings.Join(rec.files[:min(n, maxEvidenceFiles)], ", ")
		if n > maxEvidenceFiles {
			list += fmt.Sprintf(" and %d more", n-maxEvidenceFiles)
		}
		fmt.Fprintf(&b, "Files changed: %s\n", list)
	}
	for _, c := range notRun {
		fmt.Fprintf(&b, "Not run: %s\n", c.name)
	}
	if o.question != nil {
		fmt.Fprintf(&b, "Waiting for an answer to: %s\n", oneLine(o.question.Text, maxEvidenceOutcome))
	}
	fmt.Fprintf(&b, "Stop reason: %s", o.stopReason)
	return b.String()
}

func (c *call) outcome() string {
	switch c.state {
	case callSucceeded:
		return "done"
	case callFailed:
		return "failed: " + oneLine(c.result, maxEvidenceOutcome)
	case callRefused:
		return "refused: " + oneLine(c.result, maxEvidenceOutcome)
	case callStopped:
		return "stopped"
	case callPending:
	}
	return "has not ended"
}

// rawJSON encodes a value whose encoding cannot fail.
func rawJSON(v any) json.RawMessage {
	raw, err := ecp.Encode(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// turnOutcome returns the outcome of a step whose turn has ended. If the turn failed, failed is its
// error. stopReason is the reason for stopping the turn, if it was stopped.
func turnOutcome(end *event.TurnFinished, stopReason string) (o outcome, failed string) {
	switch {
	case end == nil:
		return outcome{}, "the turn ended without a reason"
	case end.Reason == event.FinishedFailed:
		return outcome{status: ecp.Paused, stopReason: ecp.StopError}, end.Err
	case end.Reason == event.FinishedDone && end.Incomplete == event.IncompleteLength:
		return outcome{status: ecp.Paused, stopReason: ecp.StopOutput, notes: []string{"the answer was cut at the model's output limit"}}, ""
	case end.Reason == event.FinishedDone && end.Incomplete == event.IncompleteRefusal:
		return outcome{status: ecp.Paused, stopReason: ecp.StopRefusal, notes: []string{"the model refused to continue, or its provider filtered the answer"}}, ""
	case end.Reason == event.FinishedDone && end.Dialog:
		return outcome{status: ecp.Paused, stopReason: ecp.StopQuestion}, ""
	case end.Reason == event.FinishedDone:
		return outcome{status: ecp.Done, stopReason: ecp.StopEnd}, ""
	case end.Reason == event.FinishedByHook, end.Reason == event.FinishedBlocked:
		return outcome{status: ecp.Paused, stopReason: ecp.StopBlocked}, ""
	case end.Reason == event.FinishedLoop, end.Reason == event.FinishedBudget, end.Reason == event.FinishedRejected:
		return outcome{status: ecp.Paused, stopReason: ecp.StopLimit}, ""
	case stopReason == "":
		stopReason = ecp.StopCancelled
	}
	return outcome{status: ecp.Paused, stopReason: stopReason}, ""
}
