package mcp

import (
	"time"

	"github.com/seed-dec29ce4/eca/internal/bug"
)

// State is the state of a server (eca-features.md 19, eca-protocol.md 5.2).
type State string

// The states of a server.
const (
	Disabled   State = "disabled" // by the configuration
	Stopped    State = "stopped"  // by the user
	Starting   State = "starting"
	Running    State = "running"
	NeedsLogin State = "requires-auth"
	Failed     State = "failed" // the server may be waiting for a restart
	Stopping   State = "stopping"
)

// canMoveTo reports whether a server can move from s to next.
func (s State) canMoveTo(next State) bool {
	switch s {
	case Disabled:
		return next == Starting || next == Stopped
	case Stopped:
		return next == Starting || next == Disabled
	case Starting:
		return next == Running || next == NeedsLogin || next == Failed || next == Stopping
	case Running:
		return next == Failed || next == NeedsLogin || next == Stopping
	case NeedsLogin, Failed:
		return next == Starting || next == Stopped || next == Disabled
	case Stopping:
		return next == Stopped || next == Disabled
	}
	return false
}

// moveTo returns the next state, if the transition is legal.
func (s State) moveTo(next State) State {
	if !s.canMoveTo(next) {
		bug.Reportf("an MCP server cannot go from %s to %s", s, next)
		return s
	}
	return next
}

// Delays and limits of restarts.
const (
	firstRestart    = time.Second
	maxRestartDelay = time.Minute
	maxRestarts     = 5           // in a row; after that only the user or a call starts the server
	stableAfter     = time.Minute // a server that ran this long may use all restarts again
)

// restartDelay returns the delay before the next restart; false means that there are no more restarts.
func restartDelay(restarts int) (time.Duration, bool) {
	if restarts >= maxRestarts {
		return 0, false
	}
	return min(firstRestart<<restarts, maxRestartDelay), true
}
