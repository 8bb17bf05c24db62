// Package login manages logins that wait for the user, who completes them in a browser or enters a
// code on a page.
//
// It guarantees that there is at most one login per name, that a newer login replaces an older one,
// and that all have ended when Attempts.Close returns. It does not implement any login protocol and
// stores nothing: the caller of Begin supplies the function that waits.
//
// The entry points are New and Attempts.Begin.
package login

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/auth/oauth"
)

// BrowserTime is the time limit of a login in a browser.
const BrowserTime = 15 * time.Minute

// Attempts manages the pending logins.
type Attempts struct {
	ctx  context.Context // ends with the daemon
	stop context.CancelFunc
	work sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	pending map[string]*Attempt
}

// Attempt is a pending login.
type Attempt struct {
	cancel context.CancelCauseFunc
	paste  func(text string) error // nil: there is nothing to paste
	done   chan struct{}           // closed when notice and err are set
	notice string
	err    error

	mu       sync.Mutex // guards answered
	answered bool       // the user pasted a code: Answer returns the outcome, not Wait
}

// Reasons why a login ended before the user finished it.
var (
	errNewer     = errors.New("a newer login replaced this one")
	errCancelled = errors.New("the login was cancelled")
	ErrLate      = errors.New("the login was not finished in time; log in again")
)

// New returns an Attempts without logins. Close must be called.
func New() *Attempts {
	l := &Attempts{pending: map[string]*Attempt{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Close cancels all logins and the work that was started with Go, and waits for both.
func (l *Attempts) Close() {
	l.stop()
	l.work.Wait()
}

// Begin registers a login and calls wait in the background until it returns or limit is over.
// paste, if not nil, receives a code that the user pastes. An earlier login with the same name is
// cancelled.
func (l *Attempts) Begin(name string, limit time.Duration, paste func(string) error, wait func(context.Context) (notice string, err error)) *Attempt {
	ctx, cancel := context.WithCancelCause(l.ctx)
	a := &Attempt{cancel: cancel, paste: paste, done: make(chan struct{})}
	l.mu.Lock()
	old := l.pending[name]
	l.pending[name] = a
	l.mu.Unlock()
	if old != nil {
		old.cancel(errNewer)
	}
	l.work.Go(func() {
		defer close(a.done)
		defer cancel(nil)
		ctx, stop := context.WithTimeoutCause(ctx, limit, ErrLate)
		defer stop()
		a.notice, a.err = wait(ctx)
		if ctx.Err() != nil && a.err != nil {
			a.err = context.Cause(ctx)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.pending[name] == a {
			delete(l.pending, name)
		}
	})
	return a
}

// Find returns the pending login with a name, or nil.
func (l *Attempts) Find(name string) *Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pending[name]
}

// Cancel cancels a pending login.
func (l *Attempts) Cancel(name string) {
	if a := l.Find(name); a != nil {
		a.cancel(errCancelled)
	}
}

// Wait returns the outcome of a login, or ErrAnswered if the user pasted a code: then Answer
// returns the outcome.
func (a *Attempt) Wait(ctx context.Context) (notice string, err error) {
	select {
	case <-a.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answered {
		return "", auth.ErrAnswered
	}
	return a.notice, a.err
}

// Answer completes the login with a pasted code and returns the outcome.
func (a *Attempt) Answer(ctx context.Context, text string) (notice string, err error) {
	a.mu.Lock()
	a.answered = true
	err = a.paste(text)
	if err != nil {
		a.answered = false
	}
	a.mu.Unlock()
	if err != nil {
		return "", &auth.InvalidError{Reason: err.Error()}
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	var refused *oauth.Error
	if errors.As(a.err, &refused) {
		return "", &auth.InvalidError{Reason: a.err.Error()}
	}
	return a.notice, a.err
}

// Pasting reports whether the user can complete the login by pasting a code.
func (a *Attempt) Pasting() bool { return a.paste != nil }

// Done is closed when the login has ended.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Context returns a context that Close cancels.
func (l *Attempts) Context() context.Context { return l.ctx }

// Go runs work in the background; Close waits for it.
func (l *Attempts) Go(work func(context.Context)) { l.work.Go(func() { work(l.ctx) }) }
