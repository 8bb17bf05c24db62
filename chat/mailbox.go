package chat

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
)

// mailbox is an unbounded queue of operations on a session. Senders never wait.
type mailbox struct {
	ready chan struct{} // capacity 1

	mu         sync.Mutex // guards the fields below
	operations []func()
	closed     bool
}

func newMailbox() *mailbox { return &mailbox{ready: make(chan struct{}, 1)} }

// put adds an operation; it returns false if the mailbox is closed.
func (m *mailbox) put(operation func()) bool { return m.add(operation, false) }

// putLast adds an operation and closes the mailbox.
func (m *mailbox) putLast(operation func()) { m.add(operation, true) }

func (m *mailbox) add(operation func(), last bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.closed = last
	m.operations = append(m.operations, operation)
	select {
	case m.ready <- struct{}{}:
	default:
	}
	return true
}

func (m *mailbox) take() []func() {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.operations
	m.operations = nil
	return out
}

// Pending is the future result of an operation on a session.
type Pending[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// Wait waits for the result. It returns ctx.Err() if ctx is done first.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-p.done:
		return p.value, p.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// enqueue runs f on the session's goroutine, after all earlier operations.
func enqueue[T any](s *Session, f func() (T, error)) *Pending[T] {
	p := &Pending[T]{done: make(chan struct{})}
	ok := s.mail.put(func() {
		defer close(p.done)
		defer func() {
			if r := recover(); r != nil {
				s.eng.deps.Log.Error("session operation panicked", "chat", s.id, "panic", r, "stack", string(debug.Stack()))
				p.err = fmt.Errorf("internal error: %v", r)
			}
		}()
		p.value, p.err = f()
	})
	if !ok {
		p.err = ErrClosed
		close(p.done)
	}
	return p
}
