package chat

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Pin has the chat kept however old it is, or not any more.
func (s *Session) Pin(on bool) *Pending[event.Seq] {
	return edit(s, func() error { return s.eng.deps.Store.Pin(s.ctx, s.id, on) })
}

// Expire removes a chat that was changed last before a time. One that is open here, that
// another process uses, or that was changed meanwhile stays. It runs no hook,
// because no user works with the chat.
func (e *Engine) Expire(ctx context.Context, id string, before time.Time) (gone bool, err error) {
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
	free, ok, err := e.deps.Store.Lock(id)
	if err != nil || !ok {
		return false, err
	}
	defer free()
	meta, _, found, err := e.deps.Store.Meta(ctx, id)
	if err != nil || !found || !meta.Updated.Before(before) {
		return false, err
	}
	return true, e.remove(id)
}
