//go:build !linux

package proc

import "time"

// Watch returns a channel that is closed when a process that need not be our child ends, or
// immediately if there is no such process. It polls every two seconds. The caller must call stop to
// end the waiting; further calls do nothing.
func Watch(pid int) (gone <-chan struct{}, stop func()) {
	return watchByPolling(pid, 2*time.Second)
}
