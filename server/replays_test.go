package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/esrp/journal"
)

// recorded gives a rig a state directory whose journal is checked when its daemon has ended.
func recorded(t *testing.T, o options) options {
	t.Helper()
	o.state = tempDir(t)
	t.Cleanup(func() { checkJournal(t, o.state) })
	return o
}

// checkJournal checks the records of the ended daemon of a state directory: the journal is
// complete, and every chat that can be replayed gives the same result.
func checkJournal(t *testing.T, state string) {
	t.Helper()
	c := journal.At(state)
	defer c.Close()
	if _, err := c.Verify(); err != nil {
		t.Errorf("the journal: %v", err)
	}
	calls, err := c.Calls("")
	if err != nil {
		t.Errorf("the journal: %v", err)
	}
	seen := map[string]bool{}
	for _, call := range calls {
		id := call.Request.Caller.RunID
		if id == nil || seen[*id] {
			continue
		}
		seen[*id] = true
		_, err := daemon.Replay(context.Background(), c, *id)
		if differs := (*daemon.Difference)(nil); errors.As(err, &differs) {
			t.Errorf("the chat %s is replayed otherwise: %v", *id, err)
		}
	}
}
