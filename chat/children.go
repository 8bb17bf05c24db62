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
	*setting
	turns sync.WaitGroup // of background subagents
	ended chan struct{}  // holds one element when one of those has ended

	mu         sync.Mutex          // guards what follows
	running    map[string]*child   // by call, once their turns have begun
	sessions   map[string]*Session // by call: those that take decisions, from before their turns begin
	background map[string]*child   // by call, until their reports are delivered
	claimed    map[string]struct{} // chats in use
}

// claim takes a chat for a call; ok is false while another one uses it.
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

// open has a subagent take decisions about calls, until it is removed.
func (c *children) open(k *child) {
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

func (c *children) reported(k *child) {
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

func (c *children) all() []*child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Values(c.running))
}

// unreported returns those in the background whose results the model was not told.
func (c *children) unreported() []*child {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.background), func(a, b *child) int { return strings.Compare(a.callID, b.callID) })
}

func (c *children) wake() {
	select {
	case c.ended <- struct{}{}:
	default:
	}
}

func newChildren(t *setting) *children {
	return &children{
		setting: t, ended: make(chan struct{}, 1),
		running: map[string]*child{}, sessions: map[string]*Session{}, background: map[string]*child{}, claimed: map[string]struct{}{},
	}
}

// runBehind lets a subagent run in the background of the turn.
func (c *children) runBehind(k *child) {
	c.addBackground(k)
	c.turns.Go(func() {
		<-k.turn.done
		c.dismiss(k)
		c.wake()
	})
}

// dismiss closes the chat of a subagent that has ended.
func (c *children) dismiss(k *child) {
	c.s.eng.mu.Lock()
	if c.s.eng.sessions[k.session.id] == k.session {
		delete(c.s.eng.sessions, k.session.id)
	}
	c.s.eng.mu.Unlock()
	k.session.close(errStopped)
	c.remove(k)
}

// takeReports tells the model the results of those in the background that have ended.
func (c *children) takeReports() (any bool) {
	for _, k := range c.unreported() {
		select {
		case <-k.turn.rec.ended:
			c.rec.emit(k.report())
			c.reported(k)
			any = true
		default:
		}
	}
	return any
}

// awaitBackground waits until a background subagent ends or the user says something (steered).
// more is false if no background subagent is left.
func (c *children) awaitBackground(steered func() bool) (more bool, err error) {
	for {
		if len(c.unreported()) == 0 {
			return false, nil
		}
		said, reported := steered(), c.takeReports()
		if said || reported {
			return true, nil
		}
		c.rec.enter(progressSubagent)
		select {
		case <-c.ended:
		case <-c.ctx.Done():
			return false, context.Cause(c.ctx)
		}
	}
}

// endAll stops all subagents when the turn ends. It waits up to maxEnding, so that clients see
// their ends before the end of the turn.
func (c *children) endAll() {
	list := c.all()
	for _, k := range list {
		k.turn.cancel(errStopped)
	}
	if len(list) == 0 {
		return
	}
	timer := time.NewTimer(maxEnding)
	defer timer.Stop()
	for _, k := range list {
		select {
		case <-k.turn.rec.ended:
		case <-timer.C:
			return
		}
	}
}
