package proc

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// What the first process of a PID namespace reports: that the child runs, and, if a signal ended
// it, that.
const (
	reportStarted = "started"
	reportKilled  = "killed"
)

// runInit is the first process of a PID namespace: it starts the child within its bounds, reaps
// what ends, and ends with the child. Whatever the child left behind ends then too.
//
// It stays outside of the child's bounds, and cannot be traced from within.
func runInit(policy sandbox.Policy, path string, argv []string, report *os.File) int {
	polite := make(chan os.Signal, 1)
	signal.Notify(polite, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fmt.Fprintln(report, err)
		return 127
	}
	type result struct {
		pid int
		err error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread and its bounds end here
		pid, err := forkBounded(policy, path, argv)
		started <- result{pid, err}
	}()
	r := <-started
	if r.err != nil {
		fmt.Fprintln(report, r.err)
		return 127
	}
	fmt.Fprintln(report, reportStarted)
	go func() {
		for s := range polite {
			_ = syscall.Kill(-r.pid, s.(syscall.Signal)) //nolint:forcetypeassert // of this system
		}
	}()
	code := reap(r.pid)
	if code < 0 {
		fmt.Fprintln(report, reportKilled)
	}
	return code
}

// forkBounded bounds the calling thread and starts the child from it.
func forkBounded(policy sandbox.Policy, path string, argv []string) (pid int, err error) {
	if full, err := exec.LookPath(path); err == nil {
		path = full
	}
	if err := sandbox.Apply(policy); err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(path, argv, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return 0, &os.PathError{Op: "exec", Path: path, Err: err}
	}
	return pid, nil
}
