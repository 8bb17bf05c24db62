package proc

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Watch returns a channel that is closed when a process ends, or immediately if the process does not
// exist. The process need not be a child of this process. Watch waits for a notification from the
// kernel. Where that is not possible, for example because too many files are open, it polls every two
// seconds. The caller must call stop to release the resources; further calls of stop do nothing.
func Watch(pid int) (gone <-chan struct{}, stop func()) {
	fd, err := unix.PidfdOpen(pid, 0)
	ch := make(chan struct{})
	switch err {
	case nil:
	case unix.ESRCH:
		close(ch)
		return ch, func() {}
	default:
		return watchByPolling(pid, 2*time.Second)
	}
	// The pipe wakes the waiting goroutine when stop is called.
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		_ = unix.Close(fd)
		return watchByPolling(pid, 2*time.Second)
	}
	go func() {
		defer unix.Close(fd)
		defer unix.Close(p[0])
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}, {Fd: int32(p[0]), Events: unix.POLLIN}}
		for {
			if _, err := unix.Poll(fds, -1); err != nil { // a signal, or a shortage of memory
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if fds[0].Revents != 0 {
				close(ch)
			}
			return
		}
	}()
	var once sync.Once // a second close could hit another file with the same descriptor
	return ch, func() { once.Do(func() { _ = unix.Close(p[1]) }) }
}
