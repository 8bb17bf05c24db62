package mcp

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/tools"
)

// activeCall is a running call and its timer, which ends the call if the server neither answers nor
// reports progress for too long.
type activeCall struct {
	ActiveCall
	c             *connection
	silenceTimer  *time.Timer
	openQuestions int // questions waiting for the user; guarded by the connection's mutex
}

// registerCall adds a call to the running calls. unregister removes it.
func (c *connection) registerCall(call tools.Call, tool string, silenceTimer *time.Timer) (a *activeCall, unregister func()) {
	a = &activeCall{c: c, silenceTimer: silenceTimer}
	a.ActiveCall = ActiveCall{ChatID: call.ChatID, CallID: call.ID, Model: call.Model, Tool: tool, pauseTimer: a.pauseTimer, samples: &sampleCounter{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, a)
	return a, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls = slices.DeleteFunc(c.calls, func(other *activeCall) bool { return other == a })
	}
}

// activeCalls lists the running calls, the oldest first.
func (c *connection) activeCalls() []ActiveCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []ActiveCall
	for _, a := range c.calls {
		out = append(out, a.ActiveCall)
	}
	return out
}

// sampleCounter counts the requests to models that a call causes.
type sampleCounter struct {
	mu       sync.Mutex // guards the fields below
	requests int
	allowed  bool // the user allowed all requests for the rest of the call
}

// next counts a request. allowed reports whether the user has allowed all requests of the call, and n
// is the number of this request.
func (s *sampleCounter) next() (allowed bool, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	return s.allowed, s.requests
}

// allow makes next report true for the rest of the call.
func (s *sampleCounter) allow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.allowed = true
}

// restartTimer restarts the timer, unless a question to the user has paused it.
func (a *activeCall) restartTimer() {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	if a.openQuestions == 0 {
		a.silenceTimer.Reset(a.c.silenceLimit)
	}
}

// pauseTimer stops the timer while the server waits for the user.
func (a *activeCall) pauseTimer() (release func()) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	a.openQuestions++
	a.silenceTimer.Stop()
	return func() {
		a.c.mu.Lock()
		defer a.c.mu.Unlock()
		if a.openQuestions--; a.openQuestions == 0 {
			a.silenceTimer.Reset(a.c.silenceLimit)
		}
	}
}
