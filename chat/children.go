package chat

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// children are the subagents of a turn.
type children struct {
	*turnContext
	backgroundTurns sync.WaitGroup // the turns of background subagents
	wakeups         chan struct{}  // capacity 1; receives when a background subagent has ended, or the user has sent a message

	mu         sync.Mutex          // guards the fields below
	running    map[string]*child   // by call: subagents whose turns have begun
	sessions   map[string]*Session // by call: subagents that accept decisions; added before their turns begin
	background map[string]*child   // by call: background subagents that have not reported yet
	claimed    map[string]struct{} // ids of chats in use
}

// claim reserves a subagent's chat for a call; ok is false while another call uses it.
func (c *children) claim(chat string) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, taken := c.claimed[chat]; taken {
		return false
	}
	c.claimed[chat] = struct{}{}
	return true
}

func (c *children) release(chat string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.claimed, chat)
}

func (c *children) inUse(chat string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, taken := c.claimed[chat]
	return taken
}

// addSession makes a subagent receive the user's decisions about its calls, until it is removed.
func (c *children) addSession(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[k.callID] = k.session
}

func (c *children) openSessions() []*Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.sessions))
}

func (c *children) add(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[k.callID] = k
}

func (c *children) addBackground(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.background[k.callID] = k
}

func (c *children) markReported(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.background, k.callID)
}

func (c *children) remove(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, k.callID)
	delete(c.sessions, k.callID)
	delete(c.claimed, k.ChatID)
}

func (c *children) runningChildren() []*child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.running))
}

// unreported returns the background subagents that have not reported yet, ordered by call.
func (c *children) unreported() []*child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.background), func(a, b *child) int { return strings.Compare(a.callID, b.callID) })
}

func (c *children) wake() {
	select {
	case c.wakeups <- struct{}{}:
	default:
	}
}

func newChildren(t *turnContext) *children {
	return &children{
		turnContext: t, wakeups: make(chan struct{}, 1),
		running: map[string]*child{}, sessions: map[string]*Session{}, background: map[string]*child{}, claimed: map[string]struct{}{},
	}
}

// runInBackground continues a subagent in the background of the turn.
func (c *children) runInBackground(k *child) {
	c.addBackground(k)
	c.backgroundTurns.Go(func() {
		<-k.turn.done
		c.dismiss(k)
		c.wake()
	})
}

// dismiss closes the chat of a subagent that has ended.
func (c *children) dismiss(k *child) {
	c.session.eng.mu.Lock()
	if c.session.eng.sessions[k.session.id] == k.session {
		delete(c.session.eng.sessions, k.session.id)
	}
	c.session.eng.mu.Unlock()
	k.session.close(errStopped)
	c.remove(k)
}

// emitReports adds the reports of the background subagents that have ended since the last call.
func (c *children) emitReports() (emitted bool) {
	for _, k := range c.unreported() {
		select {
		case <-k.turn.rec.ended:
			c.rec.emit(k.report())
			c.markReported(k)
			emitted = true
		default:
		}
	}
	return emitted
}

// awaitBackground waits until a background subagent has ended or the user has sent a message, and adds
// the report or the message to the chat. more is false if no background subagent is left.
func (c *children) awaitBackground(emitSteers func() bool) (more bool, err error) {
	for {
		if len(c.unreported()) == 0 {
			return false, nil
		}
		steered, reported := emitSteers(), c.emitReports()
		if steered || reported {
			return true, nil
		}
		c.rec.showProgress(progressSubagent)
		select {
		case <-c.wakeups:
		case <-c.ctx.Done():
			return false, context.Cause(c.ctx)
		}
	}
}

// endAll stops all subagents when the turn ends. It waits up to childEndTimeout, so that clients see
// their ends before the end of the turn.
func (c *children) endAll() {
	list := c.runningChildren()
	for _, k := range list {
		k.turn.cancel(errStopped)
	}
	if len(list) == 0 {
		return
	}
	timer := time.NewTimer(childEndTimeout)
	defer timer.Stop()
	for _, k := range list {
		select {
		case <-k.turn.rec.ended:
		case <-timer.C:
			return
		}
	}
}
