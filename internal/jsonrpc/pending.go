package jsonrpc

import (
	"context"
	"strconv"
	"sync"
)

// Pending are calls that are not answered yet, by id. The zero value is usable.
type Pending struct {
	// First is the id of the first call; 0 means 1.
	First int64

	mu      sync.Mutex // guards the fields below
	count   int64
	waiting map[string]chan Message
	closed  bool
}

// Add returns the id of a new call and a channel for its answer. The channel is closed without an
// answer when none can arrive any more. The caller must pass the id to Forget.
func (p *Pending) Add() (id string, answer <-chan Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count++
	ch := make(chan Message, 1)
	if p.closed {
		close(ch)
		return "", ch
	}
	if p.waiting == nil {
		p.waiting = map[string]chan Message{}
	}
	id = strconv.FormatInt(max(p.First, 1)+p.count-1, 10)
	p.waiting[id] = ch
	return id, ch
}

// Forget drops a later answer to a call.
func (p *Pending) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, id)
}

// Deliver passes an answer to the waiting caller. Without one, the answer is dropped.
func (p *Pending) Deliver(id string, m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ch := p.waiting[id]; ch != nil {
		delete(p.waiting, id)
		ch <- m
	}
}

// Close ends all current and future waits.
func (p *Pending) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for id, ch := range p.waiting {
		delete(p.waiting, id)
		close(ch)
	}
}

// Running are calls of the peer that are being answered, by id. The zero value is usable.
type Running struct {
	mu   sync.Mutex // guards byID
	byID map[string]context.CancelFunc
}

// Add registers a call for cancellation until the returned function is called.
func (r *Running) Add(id string, cancel context.CancelFunc) (remove func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID == nil {
		r.byID = map[string]context.CancelFunc{}
	}
	r.byID[id] = cancel
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.byID, id)
	}
}

// Len is the number of calls that are being answered.
func (r *Running) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.byID)
}

// Cancel cancels a call if it is being answered.
func (r *Running) Cancel(id string) {
	r.mu.Lock()
	cancel := r.byID[id]
	r.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}
