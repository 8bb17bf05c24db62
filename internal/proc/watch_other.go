//go:build !linux

package proc

import "time"

// Watch returns a channel that is closed when a process ends, or soon if the process does not exist.
// The process need not be a child of this process. Watch polls every two seconds. The caller must
// call stop to end the polling; further calls of stop do nothing.
func Watch(pid int) (gone <-chan struct{}, stop func()) {
	return watchByPolling(pid, 2*time.Second)
}
