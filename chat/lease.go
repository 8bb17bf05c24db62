package chat

import (
	"context"
	"sync"
	"time"
)

// lease is the right to append to a chat, shared by everything in this process that
// does: a turn, an edit, what a title request brought.
type lease struct {
	mu    sync.Mutex // guards what follows
	users int
	free  func()
}

// acquire takes the lock for the first user.
func (l *lease) acquire(lock func() (func(), bool, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		free, ok, err := lock()
		switch {
		case err != nil:
			// Without lock files (a read-only or full disk) the chat still works, alone.
			free = func() {}
		case !ok:
			return ErrBusyElsewhere
		}
		l.free = free
	}
	l.users++
	return nil
}

// heldElsewhere reports whether another process has the lock.
func (l *lease) heldElsewhere(lock func() (func(), bool, error)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 0 {
		return false
	}
	free, ok, err := lock()
	if ok && err == nil {
		free()
	}
	return err == nil && !ok
}

// share adds a user if there is one already.
func (l *lease) share() (ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		return false
	}
	l.users++
	return true
}

func (l *lease) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.users--
	if l.users == 0 {
		l.free()
	}
}

// drop frees the lock, even while it is still in use.
func (l *lease) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 0 {
		l.users = 0
		l.free()
	}
}

// busyTime is how long another process may still hold a chat whose turn it has just
// shown to be over.
const busyTime = 300 * time.Millisecond

// lock takes a chat's lock; ok is false while another process uses the chat.
func (e *Engine) lock(ctx context.Context, id string) (free func(), ok bool, err error) {
	over := time.NewTimer(busyTime)
	defer over.Stop()
	again := time.NewTicker(busyTime / 30)
	defer again.Stop()
	for {
		if free, ok, err = e.deps.Store.Lock(id); ok || err != nil {
			return free, ok, err
		}
		select {
		case <-again.C:
		case <-over.C:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, nil
		}
	}
}
