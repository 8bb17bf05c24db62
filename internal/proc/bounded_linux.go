package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// boundedArg, as first argument, makes a program that calls Supervise the second stage of a
// bounded child: it bounds itself and becomes the child.
//
// The supervisor cannot bound itself and then start the child: a child may signal and trace
// what is within its own bounds, so it could end the one process that ends what it leaves
// behind.
const boundedArg = "__bounded"

// reportFD is where the second stage writes why the child could not start. It closes when the
// child does start.
const reportFD = 3

// startBounded starts a child within the bounds of a policy and returns once it runs. The
// child leads a session of its own, so that it has no terminal.
func startBounded(policy sandbox.Policy, path string, argv []string) (pid int, err error) {
	policy.Protect = []int{os.Getpid(), os.Getppid()}
	report, reportW, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("supervise: %w", err)
	}
	defer report.Close()
	p, err := os.StartProcess("/proc/self/exe", append([]string{"eca", boundedArg, policy.Encode(), path}, argv...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, reportW},
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	_ = reportW.Close()
	if err != nil {
		return 0, err
	}
	failure, err := io.ReadAll(report)
	if err == nil && len(failure) > 0 {
		err = errors.New(strings.TrimSpace(string(failure)))
	}
	if err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		return 0, err
	}
	return p.Pid, nil
}

// becomeBounded is the second stage: args are the policy, the child's program and its
// arguments, the name first. It returns only if the child cannot start.
func becomeBounded(args []string) int {
	runtime.LockOSThread() // the bounds are this thread's, and the child takes its place
	unix.CloseOnExec(reportFD)
	err := bindAndExec(args[0], args[1], args[2:])
	fmt.Fprintln(os.NewFile(reportFD, "report"), err)
	return 127
}

func bindAndExec(encoded, path string, argv []string) error {
	policy, err := sandbox.Decode(encoded)
	if err != nil {
		return err
	}
	if full, err := exec.LookPath(path); err == nil {
		path = full
	}
	if err := sandbox.Apply(policy); err != nil {
		return err
	}
	if err := unix.Exec(path, argv, os.Environ()); err != nil {
		return &os.PathError{Op: "exec", Path: path, Err: err}
	}
	return nil
}
