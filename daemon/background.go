package daemon

import (
	"context"
	"sync"
)

// background is work that begins at most once, in a goroutine of its own, and is ended by close.
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

// close returns when the work has ended. Work that has not begun never does.
func (b *background) close() {
	b.cancel()
	b.once.Do(func() {})
	b.done.Wait()
}
