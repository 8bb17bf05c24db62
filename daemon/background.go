package daemon

import (
	"context"
	"sync"
)

// background runs work at most once, in its own goroutine, until close.
type background struct {
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
	done   sync.WaitGroup
}

func newBackground() *background {
	b := &background{}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

func (b *background) begin(work func(context.Context)) {
	b.once.Do(func() { b.done.Go(func() { work(b.ctx) }) })
}

// close cancels the work and waits until it has ended. Work that has not begun is never started.
func (b *background) close() {
	b.cancel()
	b.once.Do(func() {})
	b.done.Wait()
}
