package chat

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Pin sets whether the chat is kept regardless of its age.
func (s *Session) Pin(on bool) *Pending[event.Seq] {
	return edit(s, func() error { return s.eng.deps.Store.Pin(s.ctx, s.id, on) })
}

// Expire removes a chat that has not changed since a time. It keeps a chat that is open in this
// process, that another process uses, or that has changed meanwhile. It runs no hooks, because they
// are for chats that a user works with.
func (e *Engine) Expire(ctx context.Context, id string, before time.Time) (removed bool, err error) {
	done := make(chan struct{})
	e.mu.Lock()
	_, open := e.sessions[id]
	_, opening := e.opening[id]
	_, deleting := e.deleting[id]
	if open || opening || deleting || e.closed {
		e.mu.Unlock()
		return false, nil
	}
	e.deleting[id] = done
	e.mu.Unlock()
	defer func() {
		e.mu.Lock()
		delete(e.deleting, id)
		e.mu.Unlock()
		close(done)
	}()
	unlock, ok, err := e.deps.Store.Lock(id)
	if err != nil || !ok {
		return false, err
	}
	defer unlock()
	meta, _, found, err := e.deps.Store.Meta(ctx, id)
	if err != nil || !found || !meta.Updated.Before(before) {
		return false, err
	}
	return true, e.deleteLocked(id)
}
