package chat

import (
	"context"
	"sync"
	"time"
)

// lease is the right to append to a chat: the chat's lock, shared by all users in this process, which
// are turns, edits and title requests.
type lease struct {
	mu     sync.Mutex // guards the fields below
	users  int
	unlock func()
}

// acquire adds a user. The first one locks the chat.
func (l *lease) acquire(lock func() (func(), bool, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users == 0 {
		unlock, ok, err := lock()
		switch {
		case err != nil:
			// Without lock files (read-only or full disk) the chat still works, unprotected.
			unlock = func() {}
		case !ok:
			return ErrBusyElsewhere
		}
		l.unlock = unlock
	}
	l.users++
	return nil
}

// heldElsewhere reports whether another process has locked the chat.
func (l *lease) heldElsewhere(lock func() (func(), bool, error)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 0 {
		return false
	}
	unlock, ok, err := lock()
	if ok && err == nil {
		unlock()
	}
	return err == nil && !ok
}

// share adds a user if the lease is in use already.
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
		l.unlock()
	}
}

// drop releases the lock, even if the lease is in use.
func (l *lease) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users > 0 {
		l.users = 0
		l.unlock()
	}
}

// busyTime is how long to wait for the lock of another process, which may hold it for a moment after
// clients have seen the end of its turn.
const busyTime = 300 * time.Millisecond

// lock locks a chat; ok is false if another process uses it.
func (e *Engine) lock(ctx context.Context, id string) (unlock func(), ok bool, err error) {
	timeout := time.NewTimer(busyTime)
	defer timeout.Stop()
	retry := time.NewTicker(busyTime / 30)
	defer retry.Stop()
	for {
		if unlock, ok, err = e.deps.Store.Lock(id); ok || err != nil {
			return unlock, ok, err
		}
		select {
		case <-retry.C:
		case <-timeout.C:
			return nil, false, nil
		case <-ctx.Done():
			return nil, false, nil
		}
	}
}
