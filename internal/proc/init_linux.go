package proc

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Messages from the first process of a PID namespace to the supervisor. endMessage contains whether a
// signal killed the child, and whether the child left processes behind.
const (
	startedMessage = "started"
	endMessage     = "ended %t %t"
)

// runInit runs as the first process of a PID namespace: it starts the child within its bounds, reaps
// orphans, and returns when the child has ended. When the process exits, the kernel kills everything
// that the child left behind.
//
// The process itself is not bounded, and the child cannot trace it.
func runInit(o order) int {
	report := func(text string) { _ = sendPacket(socketFD, []byte(text), nil) }
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		report(err.Error())
		return 127
	}
	type result struct {
		pid int
		err error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // never unlocked: the bounded thread must end with this goroutine
		pid, err := forkBounded(o)
		started <- result{pid, err}
	}()
	r := <-started
	if r.err != nil {
		report(r.err.Error())
		return 127
	}
	report(startedMessage)
	go func() {
		for s := range signals {
			_ = syscall.Kill(-r.pid, s.(syscall.Signal)) //nolint:forcetypeassert // of this system
		}
	}()
	code := reapUntil(r.pid)
	report(fmt.Sprintf(endMessage, code < 0, hasChildren()))
	return code
}

// forkBounded bounds the calling thread and starts the child from it.
func forkBounded(o order) (pid int, err error) {
	if err := sandbox.Apply(o.Policy); err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(o.Path, append([]string{o.Path}, o.Args...), &syscall.ProcAttr{Env: o.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return 0, &os.PathError{Op: "exec", Path: o.Path, Err: err}
	}
	return pid, nil
}
