package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// answer collects one response of the model.
type answer struct {
	t               *turn
	req             llm.Request
	hasOutput       bool                 // some of the answer was shown
	hasText         bool                 // the answer has text that is not blank, or an image
	reasoning       map[string]string    // ids of unfinished blocks, by the provider's ids
	reasoningStarts map[string]time.Time // when blocks of reasoning began, by our ids
	calls           []call
	serverCalls     []*serverCall // calls that the provider runs, in the order in which they began
	sources         []source
	text            strings.Builder
	usage           llm.Usage
	usageReported   bool // the provider has reported usage
	stop            llm.StopReason
	outputBytes     int // bytes of text, to estimate usage if the provider does not report it
}

// call is one tool call of the model.
type call struct {
	event.Tool
	providerID string
	arguments  string
	complete   bool // the arguments are complete
	api        string
	opaque     json.RawMessage // provider data that must be sent back with the call
}

// handleDelta handles one delta of the answer.
func (a *answer) handleDelta(d llm.Delta) {
	t := a.t
	silent := []llm.DeltaKind{llm.RetryDelta, llm.AttemptDelta, llm.UsageDelta, llm.StopDelta}
	if !a.hasOutput && !slices.Contains(silent, d.Kind) {
		a.hasOutput = true
		t.images.confirmRefusal()
		t.rec.showProgress(progressGenerating)
	}
	if d.Kind != llm.ToolEnd { // ToolEnd repeats the whole arguments
		a.outputBytes += len(d.Text)
	}
	switch d.Kind {
	case llm.TextDelta:
		a.hasText = a.hasText || strings.TrimSpace(d.Text) != ""
		a.text.WriteString(d.Text)
		t.rec.emit(event.TextDelta{Text: d.Text})
	case llm.ReasoningStart:
		a.startReasoning(d.ID)
	case llm.ReasoningDelta:
		if _, ok := a.reasoning[d.ID]; !ok {
			a.startReasoning(d.ID)
		}
		t.rec.emit(event.ReasoningDelta{ID: a.reasoning[d.ID], Text: d.Text})
	case llm.ReasoningEnd:
		if _, ok := a.reasoning[d.ID]; !ok {
			a.startReasoning(d.ID)
		}
		id := a.reasoning[d.ID]
		delete(a.reasoning, d.ID)
		t.rec.emit(event.ReasoningFinished{ID: id, ElapsedMS: t.millisSince(a.reasoningStarts[id]), API: d.API, Opaque: d.Opaque})
	case llm.ToolStart:
		a.proposeCall(d)
	case llm.ToolArgs:
		if c := a.incompleteCall(d.ID); c != nil {
			t.rec.emit(event.ToolArgsDelta{CallID: c.CallID, Text: d.Text})
		}
	case llm.ToolEnd:
		if c := a.incompleteCall(d.ID); c != nil {
			c.arguments, c.complete, c.api, c.opaque = d.Text, true, d.API, d.Opaque
		}
	case llm.ServerStart:
		a.beginServerCall(d)
	case llm.ServerRun:
		a.runServerCall(d)
	case llm.ServerEnd:
		a.endServerCall(d)
	case llm.SourceDelta:
		a.cite(d)
	case llm.UsageDelta:
		a.usage, a.usageReported = d.Usage, true
		t.rec.emit(t.usage(a.req, *a))
	case llm.StopDelta:
		a.stop = d.Stop
	case llm.RetryDelta:
		t.rec.emit(event.Progress{Retry: true, Text: retryText(d.Err, d.Retry, t.session.eng.deps.Now())})
	case llm.AttemptDelta:
		t.rec.showProgress(progressWaiting)
	}
}

func (a *answer) startReasoning(providerID string) {
	id := a.t.newID(providerID)
	a.reasoning[providerID] = id
	a.reasoningStarts[id] = a.t.session.eng.deps.Now()
	a.t.rec.emit(event.ReasoningStarted{ID: id})
}

func (a *answer) endReasoning() {
	for _, id := range a.reasoning {
		a.t.rec.emit(event.ReasoningFinished{ID: id, ElapsedMS: a.t.millisSince(a.reasoningStarts[id])})
	}
	clear(a.reasoning)
}

func (a *answer) proposeCall(d llm.Delta) {
	t := a.t
	c := call{providerID: d.ID}
	summary := ""
	if tool, ok := t.tools.Lookup(d.Name); ok && !t.hidden(tool.Spec()) {
		spec := tool.Spec()
		c.Tool = event.Tool{Name: spec.Name, Server: spec.Server, Origin: spec.Origin}
		summary = spec.Preparing
	} else if d.Name == compactSpec().Name && t.Config.Conformance().CompactByTool {
		c.Tool = event.Tool{Name: CompactTool, Server: tools.Native, Origin: tools.OriginNative}
		summary = compactToolSummary
	} else {
		c.Tool = event.Tool{Name: d.Name, Server: "unknown", Origin: "unknown"}
	}
	c.CallID = t.newID(d.ID)
	t.rec.emit(event.ToolProposed{Tool: c.Tool, Summary: summary})
	a.calls = append(a.calls, c)
}

// incompleteCall returns the call that a delta belongs to, or nil. It skips complete calls, because
// providers may use their ids again.
func (a *answer) incompleteCall(providerID string) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].providerID == providerID && !a.calls[i].complete {
			return &a.calls[i]
		}
	}
	return nil
}

// retryText describes why and when a request is retried (eca-protocol.md 7.3).
func retryText(e *llm.Error, r llm.RetryInfo, now time.Time) string {
	what := "The provider failed"
	switch e.Kind {
	case llm.ErrRateLimited:
		wait := math.Ceil(r.Delay.Seconds())
		return fmt.Sprintf("⏳ Rate limited. Resuming at %s (in %.0fs, attempt %d/%d)", now.Add(r.Delay).Format("15:04"), wait, r.Attempt, r.Max)
	case llm.ErrOverloaded:
		what = "The provider failed: " + strings.TrimRight(e.Message, ". ")
		if e.Busy() {
			what = "Provider overloaded"
		}
	case llm.ErrNetwork:
		what = "Connection failed: " + e.Message
	case llm.ErrPrematureStop, llm.ErrMalformed:
		what = e.Message
	case llm.ErrTimeout:
		what = "No answer in time"
	case llm.ErrCustom:
		what = cmp.Or(e.Label, what)
	}
	return fmt.Sprintf("⏳ %s. Retrying in %s (attempt %d/%d)", what, r.Delay.Round(time.Second/10), r.Attempt, r.Max)
}
