package proc

import (
	"sync"
	"time"
)

func watchByPolling(pid int, every time.Duration) (gone <-chan struct{}, stop func()) {
	ch, quit := make(chan struct{}), make(chan struct{})
	go func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for Alive(pid) {
			select {
			case <-t.C:
			case <-quit:
				return
			}
		}
		close(ch)
	}()
	var once sync.Once
	return ch, func() { once.Do(func() { close(quit) }) }
}
