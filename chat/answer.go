package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// answer collects one response of the model.
type answer struct {
	t         *turn
	req       llm.Request
	any       bool                 // something of it was shown
	reasoning map[string]string    // the provider's id -> ours
	started   map[string]time.Time // by our id
	calls     []call
	usage     llm.Usage
	reported  bool // the usage
	stop      llm.StopReason
	output    int // bytes of text, for an estimate if the provider reports no usage
}

// call is one tool call of the model.
type call struct {
	event.Tool
	providerID string
	arguments  string
	ended      bool // the arguments are complete
	api        string
	opaque     json.RawMessage // what the provider wants back
}

// delta records one delta.
func (a *answer) delta(d llm.Delta) {
	t := a.t
	silent := []llm.DeltaKind{llm.RetryDelta, llm.AgainDelta, llm.UsageDelta, llm.StopDelta}
	if !a.any && !slices.Contains(silent, d.Kind) {
		a.any = true
		t.imagesWereIt()
		t.enter(progressGenerating)
	}
	if d.Kind != llm.ToolEnd { // it repeats what came
		a.output += len(d.Text)
	}
	switch d.Kind {
	case llm.TextDelta:
		t.emit(event.TextDelta{Text: d.Text})
	case llm.ReasoningStart:
		a.startReasoning(d.ID)
	case llm.ReasoningDelta:
		if _, ok := a.reasoning[d.ID]; !ok {
			a.startReasoning(d.ID)
		}
		t.emit(event.ReasoningDelta{ID: a.reasoning[d.ID], Text: d.Text})
	case llm.ReasoningEnd:
		if _, ok := a.reasoning[d.ID]; !ok {
			a.startReasoning(d.ID)
		}
		id := a.reasoning[d.ID]
		delete(a.reasoning, d.ID)
		t.emit(event.ReasoningFinished{ID: id, ElapsedMS: t.since(a.started[id]), API: d.API, Opaque: d.Opaque})
	case llm.ToolStart:
		a.proposeCall(d)
	case llm.ToolArgs:
		if c := a.call(d.ID); c != nil {
			t.emit(event.ToolArgsDelta{CallID: c.CallID, Text: d.Text})
		}
	case llm.ToolEnd:
		if c := a.call(d.ID); c != nil {
			c.arguments, c.ended, c.api, c.opaque = d.Text, true, d.API, d.Opaque
		}
	case llm.UsageDelta:
		a.usage, a.reported = d.Usage, true
		t.emit(t.usage(a.req, *a))
	case llm.StopDelta:
		a.stop = d.Stop
	case llm.RetryDelta:
		t.emit(event.Progress{Retry: true, Text: retryText(d.Err, d.Retry, t.s.eng.deps.Now())})
	case llm.AgainDelta:
		t.enter(progressWaiting)
	}
}

func (a *answer) startReasoning(providerID string) {
	t := a.t
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.newID(providerID)
	a.reasoning[providerID] = id
	a.started[id] = t.s.eng.deps.Now()
	t.emitLocked(event.ReasoningStarted{ID: id})
}

func (a *answer) endReasoning() {
	for _, id := range a.reasoning {
		a.t.emit(event.ReasoningFinished{ID: id, ElapsedMS: a.t.since(a.started[id])})
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
	} else if d.Name == compactSpec().Name && t.cfg.Env == config.EnvTest {
		c.Tool = event.Tool{Name: compactTool, Server: tools.Native, Origin: tools.OriginNative}
		summary = progressCompactingTool
	} else {
		c.Tool = event.Tool{Name: d.Name, Server: "unknown", Origin: "unknown"}
	}
	t.mu.Lock()
	c.CallID = t.newID(d.ID)
	t.emitLocked(event.ToolProposed{Tool: c.Tool, Summary: summary})
	t.mu.Unlock()
	a.calls = append(a.calls, c)
}

// newID returns an id for what the provider named id. A turn and its subagents, which end
// with it, never have the same: some clients name the parent's chat whoever asks
// (eca-protocol 4.2), so that their word about one call would count for another's, and keep
// calls of all chats in one list. The caller holds t.mu.
func (t *turn) newID(id string) string {
	return t.history.uniqueID(id, t.s.eng.deps.NewID, func(id string) bool {
		if t.boss == nil {
			return t.children.name(id, t)
		}
		return !t.boss.knows(id) && t.boss.children.name(id, t)
	})
}

// knows says whether the chat has a call or reasoning with this id. A subagent's turn may
// hold its own lock while it asks; see follow.
func (t *turn) knows(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.history.ids[id]
}

// call returns the call a delta belongs to: a provider may use an id again once the
// call is complete.
func (a *answer) call(providerID string) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		if a.calls[i].providerID == providerID && !a.calls[i].ended {
			return &a.calls[i]
		}
	}
	return nil
}

func (t *turn) since(start time.Time) int64 {
	return t.s.eng.deps.Now().Sub(start).Milliseconds()
}

// retryText says why and when a request is repeated (eca-protocol 7.3).
func retryText(e *llm.Error, r llm.RetryInfo, now time.Time) string {
	what := "The provider failed"
	switch e.Kind {
	case llm.ErrRateLimited:
		wait := math.Ceil(r.Delay.Seconds())
		return fmt.Sprintf("⏳ Rate limited. Resuming at %s (in %.0fs, attempt %d/%d)", now.Add(r.Delay).Format("15:04"), wait, r.Attempt, r.Max)
	case llm.ErrOverloaded:
		what = "Provider overloaded"
		if e.Status == http.StatusInternalServerError {
			what = "The provider failed: " + e.Message
		}
	case llm.ErrNetwork:
		what = "Connection failed: " + e.Message
	case llm.ErrPrematureStop:
		what = e.Message
	case llm.ErrTimeout:
		what = "No answer in time"
	case llm.ErrCustom:
		what = cmp.Or(e.Label, what)
	}
	return fmt.Sprintf("⏳ %s. Retrying in %s (attempt %d/%d)", what, r.Delay.Round(time.Second/10), r.Attempt, r.Max)
}
