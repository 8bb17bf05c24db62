//go:build unix

package main

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func ignoreSignals() { signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT) }

// stopItself stops the process, so that it takes no other signal than that to die.
func stopItself() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }

// peakMemory is the most memory that an ended process had, in bytes.
func peakMemory(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	switch {
	case !ok:
		return 0
	case runtime.GOOS == "darwin":
		return usage.Maxrss
	}
	return usage.Maxrss << 10
}
