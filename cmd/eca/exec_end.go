package main

import (
	"cmp"
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// turnEnd describes how a turn ended.
type turnEnd struct {
	reason      string
	incomplete  event.Incomplete // why the answer is incomplete, if reason is "done"
	model       string
	interrupted bool
	refused     bool
}

// code returns the exit code for the turn.
func (e turnEnd) code() int {
	switch {
	case e.interrupted:
		return exitInterrupted
	case e.reason == "failed", e.reason == "blocked", e.reason == "loop":
		return exitFailed
	case e.incomplete == event.IncompleteLength, e.incomplete == event.IncompleteRefusal, e.incomplete == event.IncompleteEmpty:
		return exitFailed
	case e.reason == "budget":
		return exitBudget
	case e.refused:
		return exitRefused
	}
	return 0
}

// exitReason returns the exitReason of the last line of --json.
func (e turnEnd) exitReason() string { return cmp.Or(string(e.incomplete), e.reason) }

// titlePatience bounds the wait for the title of a chat. The end of the run would cancel the request
// for it.
const titlePatience = 3 * time.Second

// awaitTitle waits for a title that was requested from the model, but not beyond --max-time of the
// run, which started at began. Ctrl-C ends the wait.
func (c *execClient) awaitTitle(ctx context.Context, chatID string, began time.Time) {
	patience := titlePatience
	if limit := c.flags.limits.time; limit > 0 {
		patience = min(patience, time.Until(began.Add(limit)))
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.daemon.Engine().AwaitTitle(ctx, chatID)
}
