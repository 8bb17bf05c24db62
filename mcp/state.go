package mcp

import (
	"time"

	"github.com/seed-dec29ce4/eca/internal/bug"
)

// State is where a server is in its life (eca-features 19, eca-protocol 5.2).
type State string

// States.
const (
	Disabled   State = "disabled" // by the configuration
	Stopped    State = "stopped"  // by the user
	Starting   State = "starting"
	Running    State = "running"
	NeedsLogin State = "requires-auth"
	Failed     State = "failed" // it may be about to be started again
	Stopping   State = "stopping"
)

// may says whether a server can go from one state to another.
func (s State) may(next State) bool {
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

// to returns the next state, if it can be reached.
func (s State) to(next State) State {
	if !s.may(next) {
		bug.Reportf("an MCP server can not go from %s to %s", s, next)
		return s
	}
	return next
}

// The pace of restarts.
const (
	firstRestart = time.Second
	slowest      = time.Minute
	maxRestarts  = 5           // in a row; then the user, or a call, has to ask for one
	stable       = time.Minute // a server that ran that long begins anew
)

// pause is how long to wait before a restart, after so many in a row; false: no more.
func pause(restarts int) (time.Duration, bool) {
	if restarts >= maxRestarts {
		return 0, false
	}
	return min(firstRestart<<restarts, slowest), true
}
