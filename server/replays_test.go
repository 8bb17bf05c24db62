package server_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/esrp/journal"
)

// withJournalCheck returns o with a state directory. After the daemon has ended, the test checks the
// journal in it.
func withJournalCheck(t *testing.T, o options) options {
	t.Helper()
	o.state = tempDir(t)
	t.Cleanup(func() { checkJournal(t, o.state) })
	return o
}

// checkJournal checks the journal that a daemon left in a state directory: it is undamaged, and the
// replay of every chat that can be replayed sends the same requests.
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
			t.Errorf("the replay of chat %s differs: %v", *id, err)
		}
	}
}
