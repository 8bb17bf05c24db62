package mcp

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// activeCall is a call that runs, with the clock that ends it when the server says nothing.
type activeCall struct {
	ActiveCall
	c        *connection
	patience *time.Timer
	held     int // questions of the server that are open; guarded by the connection's mutex
}

// enter notes that a call runs, and leave that it does not any more.
func (c *connection) enter(call tools.Call, tool string, patience *time.Timer) (a *activeCall, leave func()) {
	a = &activeCall{c: c, patience: patience}
	a.ActiveCall = ActiveCall{ChatID: call.ChatID, CallID: call.ID, Agent: call.Agent, Model: call.Model, Tool: tool, hold: a.stopClock, samples: &samples{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, a)
	return a, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = slices.DeleteFunc(c.calls, func(other *activeCall) bool { return other == a })
	}
}

// active lists the calls that run, the oldest first.
func (c *connection) active() []ActiveCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ActiveCall
	for _, a := range c.calls {
		out = append(out, a.ActiveCall)
	}
	return out
}

// samples counts what a call asks of models.
type samples struct {
	mu      sync.Mutex // guards what follows
	asked   int
	allowed bool // by the user, for the rest of the call
}

// next counts a request, and says whether the user has to be asked.
func (s *samples) next() (allowed bool, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.allowed, s.asked
}

// allow has no more questions asked.
func (s *samples) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = true
}

// heard starts the clock anew, unless it is stopped.
func (a *activeCall) heard() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	if a.held == 0 {
		a.patience.Reset(a.c.limit)
	}
}

// stopClock stops the clock as long as the server waits for the user.
func (a *activeCall) stopClock() (release func()) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.held++
	a.patience.Stop()
	return func() {
		a.c.mu.Lock()
		defer a.c.mu.Unlock()
		if a.held--; a.held == 0 {
			a.patience.Reset(a.c.limit)
		}
	}
}
