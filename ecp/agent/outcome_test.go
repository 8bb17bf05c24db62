package agent

import (
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
)

// A step is not done if its answer was cut or refused.
func TestIncompleteAnswersPauseTheStep(t *testing.T) {
	for incomplete, want := range map[event.Incomplete]struct {
		status ecp.Status
		stop   string
	}{
		"":                       {ecp.Done, ecp.StopEnd},
		event.IncompleteUnmarked: {ecp.Done, ecp.StopEnd},
		event.IncompleteLength:   {ecp.Paused, ecp.StopOutput},
		event.IncompleteRefusal:  {ecp.Paused, ecp.StopRefusal},
	} {
		o, failed := turnOutcome(&event.TurnFinished{Reason: event.FinishedDone, Incomplete: incomplete}, "")
		if o.status != want.status || o.stopReason != want.stop || failed != "" {
			t.Errorf("%q: %v %v %q", incomplete, o.status, o.stopReason, failed)
		}
	}
}
