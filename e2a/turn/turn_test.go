package turn

import (
	"errors"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// TestOutcomes has a row for each end of a turn.
func TestOutcomes(t *testing.T) {
	for reason, want := range map[event.FinishReason]StopReason{
		event.FinishedDone: EndTurn, event.FinishedStopped: Cancelled, event.FinishedSuperseded: Cancelled, event.FinishedInterrupted: Cancelled,
		event.FinishedRejected: Rejected, event.FinishedLoop: Loop, event.FinishedBudget: Budget, event.FinishedBlocked: EndTurn,
	} {
		var f follower
		f.content.WriteString("Hi")
		if err := f.finish(event.TurnFinished{Reason: reason}); err != nil || f.outcome.Reason != want || f.outcome.Content != "Hi" {
			t.Errorf("%s: %+v, %v", reason, f.outcome, err)
		}
	}
	var f follower
	err := f.finish(event.TurnFinished{Reason: event.FinishedFailed, Err: "Error: no such luck"})
	var failed *Error
	if !errors.As(err, &failed) || *failed != (Error{Failed, "no such luck"}) {
		t.Errorf("%v", err)
	}
}

// One unknown price makes the sum unknown.
func TestUsage(t *testing.T) {
	price := 0.5
	u := Usage{Cost: new(float64)}
	u.add(event.UsageReported{InputTokens: 1, Cost: &price})
	u.add(event.UsageReported{InputTokens: 2, CacheReadTokens: 3, Cost: &price})
	if u.InputTokens != 3 || u.CacheReadTokens != 3 || *u.Cost != 1 || price != 0.5 {
		t.Errorf("%+v", u)
	}
	u.add(event.UsageReported{})
	u.add(event.UsageReported{Cost: &price})
	if u.Cost != nil {
		t.Errorf("%+v", u)
	}
}

// A superseded turn ends after the next one of its chat has begun: it must remove neither that
// turn's questions nor its waiting calls.
func TestSupersededTurnKeepsTheNextTurnsState(t *testing.T) {
	w := pending{newID: func() string { return "q" }}
	first, second := &Turn{Session: "c", ctx: t.Context()}, &Turn{Session: "c", ctx: t.Context(), questions: make(chan Question)}
	w.add(first)
	w.add(second)
	w.addCall(first, "c1")
	w.addCall(second, "c2")
	w.remove(first)
	if calls := w.calls[second]; len(w.calls) != 1 || len(calls) != 1 || calls[0] != "c2" {
		t.Errorf("%v", w.calls)
	}
	go func() {
		select {
		case q := <-second.questions:
			w.answer(q.ID, "yes")
		case <-t.Context().Done():
		}
	}()
	if a, err := w.Ask(t.Context(), ask.Question{ChatID: "c"}); err != nil || a.Text != "yes" {
		t.Errorf("%+v, %v", a, err)
	}
	w.remove(second)
	if _, err := w.Ask(t.Context(), ask.Question{ChatID: "c"}); !errors.Is(err, errNoTurn) {
		t.Errorf("after the last turn: %v", err)
	}
}
