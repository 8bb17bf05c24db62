// Package login keeps the logins that wait for the user: in a browser, or at a page where a
// code is entered.
//
// It guarantees that there is at most one login per name, that a newer one takes the place of
// an older one, and that all have ended when Attempts.Close returns. It does not know how one
// logs in, and stores nothing: who begins a login says what to wait for.
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

// BrowserTime is how long a login in a browser is waited for.
const BrowserTime = 15 * time.Minute

// Attempts are the logins that wait for the user.
type Attempts struct {
	ctx  context.Context // ends with the daemon
	stop context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex // guards what follows
	open map[string]*Attempt
}

// Attempt is a login that waits.
type Attempt struct {
	cancel context.CancelCauseFunc
	paste  func(text string) error // nil: there is nothing to paste
	done   chan struct{}           // closed when the rest is set
	notice string
	err    error

	mu       sync.Mutex // guards answered
	answered bool       // the user has pasted: the caller that took the text gets the outcome
}

// Why a login ended before the user finished it.
var (
	errNewer  = errors.New("another login was begun in its place")
	errLogout = errors.New("the login was cancelled")
	ErrLate   = errors.New("the login was not finished in time; log in again")
)

// New returns no attempts. Close must be called.
func New() *Attempts {
	l := &Attempts{open: map[string]*Attempt{}}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l
}

// Close ends all logins and what was given to Go.
func (l *Attempts) Close() {
	l.stop()
	l.work.Wait()
}

// Begin waits in the background for a login to end; finish is called with its outcome.
func (l *Attempts) Begin(name string, limit time.Duration, paste func(string) error, wait func(context.Context) (notice string, err error)) *Attempt {
	ctx, cancel := context.WithCancelCause(l.ctx)
	a := &Attempt{cancel: cancel, paste: paste, done: make(chan struct{})}
	l.mu.Lock()
	old := l.open[name]
	l.open[name] = a
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
		if l.open[name] == a {
			delete(l.open, name)
		}
	})
	return a
}

// Find returns the login of a name that waits; or nil.
func (l *Attempts) Find(name string) *Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[name]
}

// Cancel ends a login that waits.
func (l *Attempts) Cancel(name string) {
	if a := l.Find(name); a != nil {
		a.cancel(errLogout)
	}
}

// Wait returns the outcome to who began the login; ErrAnswered if the user pasted.
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

// Answer takes what the user pasted, and returns the outcome.
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

// Pasting says whether the user can finish the login by pasting something.
func (a *Attempt) Pasting() bool { return a.paste != nil }

// Done is closed when the login has ended.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Context ends with Close.
func (l *Attempts) Context() context.Context { return l.ctx }

// Go runs what belongs to logins in the background; Close waits for it.
func (l *Attempts) Go(work func(context.Context)) { l.work.Go(func() { work(l.ctx) }) }
