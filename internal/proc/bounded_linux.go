package proc

import (
	"bufio"
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
// child does start, unless the second stage stays as the first process of a PID namespace
// (runInit).
const reportFD = 3

// startBounded starts a child within the bounds of a policy and returns once it runs. The
// child leads a session of its own, so that it has no terminal. wait waits for its end.
func startBounded(policy sandbox.Policy, path string, argv []string) (pid int, wait func() int, err error) {
	policy.Protect = []int{os.Getpid(), os.Getppid()}
	report, reportW, err := os.Pipe()
	if err != nil {
		return 0, nil, fmt.Errorf("supervise: %w", err)
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	policy.Namespaces(attr)
	p, err := os.StartProcess("/proc/self/exe", append([]string{"eca", boundedArg, policy.Encode(), path}, argv...), &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, reportW}, Sys: attr,
	})
	_ = reportW.Close()
	if err != nil {
		_ = report.Close()
		return 0, nil, err
	}
	lines := bufio.NewReader(report)
	switch line, err := lines.ReadString('\n'); {
	case line == "" && errors.Is(err, io.EOF), line == reportStarted+"\n":
	default:
		if line = strings.TrimSpace(line); line != "" {
			err = errors.New(line)
		}
		_ = p.Kill()
		_, _ = p.Wait()
		_ = report.Close()
		return 0, nil, err
	}
	return p.Pid, func() int {
		code := reap(p.Pid)
		if line, _ := lines.ReadString('\n'); line != "" { // reportKilled
			code = -1
		}
		_ = report.Close()
		return code
	}, nil
}

// becomeBounded is the second stage: args are the policy, the child's program and its
// arguments, the name first. It returns only if the child cannot start.
func becomeBounded(args []string) int {
	runtime.LockOSThread() // the bounds are this thread's, and the child takes its place
	unix.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	policy, err := sandbox.Decode(args[0])
	if err == nil {
		err = sandbox.Enter(policy)
	}
	switch {
	case err != nil:
	case policy.OwnProcesses:
		return runInit(policy, args[1], args[2:], report)
	default:
		err = bindAndExec(policy, args[1], args[2:])
	}
	fmt.Fprintln(report, err)
	return 127
}

func bindAndExec(policy sandbox.Policy, path string, argv []string) error {
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
