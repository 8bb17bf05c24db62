package chat

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// children are the subagents of a turn.
type children struct {
	mu         sync.Mutex          // guards what follows
	running    map[string]*child   // by call
	background map[string]*child   // by call, until their reports are told
	claimed    map[string]struct{} // chats in use
	names      map[string]*turn    // ids of calls and reasoning, by the turn that has them
	ended      chan struct{}       // holds one element when one in the background has ended
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

// name gives an id to a turn; ok is false if another turn of the family has it.
func (c *children) name(id string, t *turn) (ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owner, taken := c.names[id]; taken {
		return owner == t
	}
	c.names[id] = t
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

func (c *children) add(k *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[k.callID] = k
}

func (c *children) later(k *child) {
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

func newChildren() *children {
	return &children{
		running: map[string]*child{}, background: map[string]*child{}, claimed: map[string]struct{}{}, names: map[string]*turn{}, ended: make(chan struct{}, 1),
	}
}
