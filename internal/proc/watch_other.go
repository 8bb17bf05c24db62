//go:build !linux

package proc

import "time"

// Watch returns a channel that closes when a process that is not ours ends, at once
// otherwise. It looks every two seconds. stop ends the waiting; it must be called, and
// may be called again.
func Watch(pid int) (gone <-chan struct{}, stop func()) {
	return watchByPolling(pid, 2*time.Second)
}
