package llm

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// Limits are the time limits of a request; 0 turns a limit off.
type Limits struct {
	Connect   time.Duration // until the connection is established; enforced by the HTTP client
	FirstByte time.Duration // from the start of the request to the first byte of the answer's body
	Idle      time.Duration // between two bytes of the body
	Total     time.Duration // the whole request
}

// DefaultLimits are the documented defaults of the configuration keys
// connectTimeoutSeconds, firstByteTimeoutSeconds, streamIdleTimeoutSeconds and
// requestTimeoutSeconds.
func DefaultLimits() Limits {
	return Limits{Connect: 15 * time.Second, FirstByte: 300 * time.Second, Idle: 120 * time.Second, Total: 3600 * time.Second}
}

// Watchdog cancels a request that exceeds its limits, with an *Error as the context's cause. Its
// kind is ErrDeadline for the total limit and ErrTimeout for the others.
type Watchdog struct {
	limits Limits
	cancel context.CancelCauseFunc

	mu    sync.Mutex // guards timer
	timer *time.Timer
	total *time.Timer
}

// Watch starts the timers for the first byte and the total time. The request must use the returned
// context. Stop must be called.
func Watch(ctx context.Context, limits Limits) (context.Context, *Watchdog) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &Watchdog{limits: limits, cancel: cancel}
	w.timer = w.after(limits.FirstByte, ErrTimeout, "sent nothing for %s after the request")
	w.total = w.after(limits.Total, ErrDeadline, "did not finish within %s")
	return ctx, w
}

func (w *Watchdog) after(d time.Duration, kind ErrorKind, what string) *time.Timer {
	if d <= 0 {
		return nil
	}
	return time.AfterFunc(d, func() {
		w.cancel(&Error{Kind: kind, Message: "The model " + fmt.Sprintf(what, d)})
	})
}

// Stop stops the timers and releases the context.
func (w *Watchdog) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range []*time.Timer{w.timer, w.total} {
		if t != nil {
			t.Stop()
		}
	}
	w.cancel(nil)
}

// Body wraps a response body. Each successful read restarts the idle timer.
func (w *Watchdog) Body(r io.Reader) io.Reader { return &watchedBody{w, r, false} }

type watchedBody struct {
	w       *Watchdog
	r       io.Reader
	started bool
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 {
		b.w.progress(!b.started)
		b.started = true
	}
	return n, err
}

// progress replaces the first-byte timer with the idle timer at the first read, and restarts the
// idle timer at later ones.
func (w *Watchdog) progress(first bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first {
		if w.timer != nil {
			w.timer.Stop()
		}
		w.timer = w.after(w.limits.Idle, ErrTimeout, "stopped in the middle of its answer and sent nothing for %s")
		return
	}
	if w.timer != nil {
		w.timer.Reset(w.limits.Idle)
	}
}
