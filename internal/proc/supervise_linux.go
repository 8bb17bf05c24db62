package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// superviseArg, as first argument, makes a program that calls Supervise a supervisor.
const superviseArg = "__supervise"

// The supervisor's extra files: the first ends when its parent does, to the second it
// writes what became of the child.
const (
	lifeFD   = 3
	statusFD = 4
)

// Gaps says what of the promises about children does not hold here; none on Linux with a
// supervisor.
func Gaps(supervisor string) []string {
	if supervisor == "" {
		return []string{"without a supervisor, commands that leave their process group, or whose daemon is killed, go on"}
	}
	return nil
}

// unbound says why children can not be bound; empty if they can.
func unbound(supervisor string) string {
	if supervisor == "" {
		return "there is no supervisor that could"
	}
	return sandbox.Probe().Without
}

// wrap does nothing: the supervisor bounds the child.
func (*Spec) wrap() {}

// supervised starts spec below a supervisor and waits until the child runs.
func supervised(cmd *exec.Cmd, spec Spec) (sup *supervision, err error) {
	life, lifeW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer life.Close()
	statusR, status, err := os.Pipe()
	if err != nil {
		_ = lifeW.Close()
		return nil, err
	}
	defer status.Close()
	cmd.Path, cmd.Args = spec.Supervisor, append([]string{"eca", superviseArg, spec.Sandbox.Encode(), spec.Path}, spec.Args...)
	cmd.Err = nil
	cmd.ExtraFiles = []*os.File{life, status}
	sup = &supervision{life: lifeW, file: statusR, status: bufio.NewReader(statusR)}
	if err := cmd.Start(); err != nil {
		sup.close()
		return nil, err
	}
	_ = status.Close() // ours; the supervisor's copy ends with it
	line, err := sup.status.ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "pid %d", &sup.pid); scanErr != nil {
		_ = cmd.Wait()
		sup.close()
		if line == "" {
			return nil, fmt.Errorf("the supervisor did not start: %w", err)
		}
		return nil, fmt.Errorf("%s", strings.TrimSpace(line))
	}
	return sup, nil
}

// supervision is the parent's end of a supervisor.
type supervision struct {
	life   *os.File // closing it kills everything below the supervisor
	file   *os.File
	status *bufio.Reader
	pid    int // of the child
}

// exitCode reads how the child ended; -1 if it was killed, also with its supervisor.
func (s *supervision) exitCode() int {
	line, _ := s.status.ReadString('\n')
	code := -1
	_, _ = fmt.Sscanf(line, "exit %d", &code)
	return code
}

func (s *supervision) kill() { _ = s.life.Close() }

func (s *supervision) close() {
	_ = s.life.Close()
	_ = s.file.Close()
}

// Supervise must be called first in main of every program that names itself as a
// Spec.Supervisor. If this process was started to supervise, it does so and returns
// true with the code to exit with.
func Supervise(args []string) (code int, ok bool) {
	if len(args) == 2 && args[1] == wardenArg {
		return runGuard(), true
	}
	if len(args) == 2 && args[1] == nothingArg {
		return 0, true
	}
	if len(args) >= 5 && args[1] == boundedArg {
		return becomeBounded(args[2:]), true
	}
	if len(args) < 4 || args[1] != superviseArg {
		return 0, false
	}
	// The child dies with the thread that started it; this one stays.
	runtime.LockOSThread()
	unix.CloseOnExec(lifeFD)
	unix.CloseOnExec(statusFD)
	status := os.NewFile(statusFD, "status")
	// Before the child runs: from then on it may be asked to end, and the supervisor has to
	// outlive it.
	polite := make(chan os.Signal, 1)
	signal.Notify(polite, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	policy, err := sandbox.Decode(args[2])
	pid, wait := 0, func() int { return -1 }
	if err == nil {
		pid, wait, err = startChild(policy, args[3], args[3:])
	}
	if err != nil {
		fmt.Fprintln(status, err)
		return 127, true
	}
	fmt.Fprintf(status, "pid %d\n", pid)
	go func() {
		// Ends when the parent closes its end or dies, however it dies.
		_, _ = io.Copy(io.Discard, os.NewFile(lifeFD, "life"))
		for range 500 {
			killDescendants(pid)
			time.Sleep(10 * time.Millisecond)
		}
	}()
	go func() {
		for range polite {
			_ = syscall.Kill(-pid, syscall.SIGTERM)
		}
	}()
	code = wait()
	// What the child left behind ends with it.
	for hasChildren() {
		killDescendants(pid)
	}
	_ = removeTemp(policy.Temp) // the parent may be gone
	fmt.Fprintf(status, "exit %d\n", code)
	return 0, true
}

// startChild becomes the reaper of all that descends from it, and starts the child in a
// group of its own. The supervisor itself stays outside of the child's bounds.
func startChild(policy sandbox.Policy, path string, argv []string) (pid int, wait func() int, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, nil, fmt.Errorf("supervise: %w", err)
	}
	if policy.Bounds() {
		return startBounded(policy, path, argv)
	}
	if full, err := exec.LookPath(path); err == nil {
		path = full
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, nil, err
	}
	return p.Pid, func() int { return reap(p.Pid) }, nil
}

// reap waits for the child, and for whatever else ends before it.
func reap(child int) (code int) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		switch {
		case err == syscall.EINTR: //nolint:errorlint // a bare errno
		case err != nil:
			return -1
		case pid == child && ws.Signaled():
			return -1
		case pid == child:
			return ws.ExitStatus()
		}
	}
}

// hasChildren reaps what has ended and says whether something is left.
func hasChildren() bool {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR: //nolint:errorlint // a bare errno
		case err != nil:
			return false
		case pid == 0:
			time.Sleep(time.Millisecond)
			return true
		}
	}
}

// killDescendants kills the child's group and every process that descends from this
// one, also those that moved to sessions of their own.
func killDescendants(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		data, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state ppid ...; the name may contain anything.
		_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 2 {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	self := os.Getpid()
	for pid := range parents {
		for p, depth := parents[pid], 0; p > 1 && depth < 1000; p, depth = parents[p], depth+1 {
			if p == self {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				break
			}
		}
	}
}
