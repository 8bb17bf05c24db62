package daemon

import (
	"context"
	"sync"
)

// watchers shares one loop between all watchers; it runs while there is one.
type watchers struct {
	joining sync.Mutex // held while the loop starts or ends; guards end
	end     func()     // ends the loop and waits for it; nil while the loop is not running

	mu      sync.Mutex // guards changed
	changed map[*func()]struct{}
}

// join adds a watcher, and starts the loop for the first one.
func (w *watchers) join(changed func(), loop func(context.Context, func())) (leave func()) {
	w.joining.Lock()
	defer w.joining.Unlock()
	w.mu.Lock()
	if w.changed == nil {
		w.changed = map[*func()]struct{}{}
	}
	w.changed[&changed] = struct{}{}
	w.mu.Unlock()
	if w.end == nil {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			loop(ctx, w.notify)
		}()
		w.end = func() {
			cancel()
			<-done
		}
	}
	return func() {
		w.joining.Lock()
		defer w.joining.Unlock()
		w.mu.Lock()
		delete(w.changed, &changed)
		last := len(w.changed) == 0
		w.mu.Unlock()
		if last {
			w.end()
			w.end = nil
		}
	}
}

// notify calls all watchers.
func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for changed := range w.changed {
		(*changed)()
	}
}
