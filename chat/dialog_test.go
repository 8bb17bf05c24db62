package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// The events of a dialog decide whether the next prompt may reach a model.
func TestPendingDialogIsKnownFromTheEvents(t *testing.T) {
	login := event.UserMessage{Text: "/login acme", Command: true, Dialog: true}
	for name, c := range map[string]struct {
		events []event.Body
		open   bool
	}{
		"asked":                     {[]event.Body{login, event.TurnFinished{Reason: event.FinishedDone, Dialog: true}}, true},
		"asked by an older eca":     {[]event.Body{event.UserMessage{Command: true}, event.TurnFinished{Dialog: true}}, true},
		"killed while it waited":    {[]event.Body{login, event.TurnStarted{}, event.Notice{}}, true},
		"killed, and repaired":      {[]event.Body{login, event.TurnFinished{Reason: event.FinishedInterrupted}}, true},
		"steered while it waited":   {[]event.Body{login, event.UserMessage{Steer: true}}, true},
		"done":                      {[]event.Body{login, event.TurnFinished{Reason: event.FinishedDone}}, false},
		"stopped":                   {[]event.Body{login, event.TurnFinished{Reason: event.FinishedStopped}}, false},
		"another prompt":            {[]event.Body{login, event.TurnFinished{Dialog: true}, event.UserMessage{Text: "hi"}}, false},
		"no dialog, but cut off":    {[]event.Body{event.UserMessage{Text: "hi"}, event.TurnFinished{Reason: event.FinishedInterrupted}}, false},
		"the answer, then cut off":  {[]event.Body{login, event.TurnFinished{Dialog: true}, event.UserMessage{Text: Masked, Command: true, Dialog: true}}, true},
		"the answer, and its end":   {[]event.Body{login, event.UserMessage{Text: Masked, Dialog: true}, event.TurnFinished{Reason: event.FinishedDone}}, false},
		"a failed login is at rest": {[]event.Body{login, event.TurnFinished{Reason: event.FinishedFailed}}, false},
	} {
		h := history.New()
		for _, b := range c.events {
			h.Add(b)
		}
		if h.AwaitsDialog() != c.open {
			t.Errorf("%s: open is %t", name, h.AwaitsDialog())
		}
	}
}
