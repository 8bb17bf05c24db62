// Package proc starts child processes. It is the only importer of os/exec.
//
// Every child leads its own process group (Unix) or process tree (Windows). When a
// run ends, for whatever reason, what is left of it is killed: a stopped or timed-out
// command leaves nothing behind (but see Spec.Leaves).
//
// On Linux the children of a Pool run below supervisors, which also find daemons that
// moved to a session of their own, and which outlive a parent that is killed. Elsewhere, and
// for Start, a process that leaves the group escapes, and a parent that is killed leaves its
// children behind.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// grace is how long a process group may react to a polite request to end.
const grace = 250 * time.Millisecond

// Spec describes a child.
type Spec struct {
	Path   string
	Args   []string // without the program's name
	Dir    string
	Env    []string  // added to the environment
	Stdin  io.Reader // nil is empty; a child that does not read it to its end may end all the same
	Stdout io.Writer
	Stderr io.Writer

	// Environ is the child's environment, nil for our own.
	Environ []string

	// Leaves says that what the child has started goes on when the child ends normally, as
	// a browser does that a program opens. Only a child of Start can have that.
	Leaves bool

	// Sandbox bounds what the child may do. Where the system cannot hold that, or without
	// a Pool that has to, the child runs without bounds; or not at all (a
	// sandbox.Error), if they are required.
	Sandbox sandbox.Policy
}

// Exit says how a child ended.
type Exit struct {
	Code   int  // -1 if it was killed
	Killed bool // by us, because ctx ended
	Left   bool // it left processes behind when it ended, which were ended too

	// OutOfMemory says that the system killed it, or what it ran, for memory: at the limit for
	// bounded children, in bytes, or where that is 0, because the machine had no more.
	OutOfMemory bool
	MemoryLimit int64
}

// MemoryCause says, in words for the user, that the child was killed for memory; empty if it was
// not, or was stopped by us.
func (e Exit) MemoryCause() string {
	switch {
	case !e.OutOfMemory || e.Killed:
		return ""
	case e.MemoryLimit == 0:
		return "it was killed because the machine had no more memory"
	}
	return fmt.Sprintf("it used more memory than a sandboxed command may (%d MiB) and was killed", e.MemoryLimit>>20)
}

// Run starts a child without a supervisor and waits for it. When ctx ends the whole group is
// asked to end, then killed. An error means that the child could not be started.
func Run(ctx context.Context, spec Spec) (Exit, error) { return run(ctx, spec, startBare) }

// Process is a running child without a supervisor.
type Process struct {
	cmd    *exec.Cmd
	leaves bool
	temp   string // the child's own temporary folder; empty if it has none
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	exit   Exit
	killed bool
}

// Start starts a child without a supervisor and does not wait for it. Kill or Wait must be
// called.
func Start(spec Spec) (*Process, error) {
	temp, err := bound(&spec, false)
	if err != nil {
		return nil, err
	}
	p, err := start(spec)
	if err != nil {
		_ = removeTemp(temp)
		return nil, err
	}
	p.temp = temp
	go func() {
		defer close(p.done)
		p.end(p.cmd.Wait())
	}()
	return p, nil
}

func start(spec Spec) (*Process, error) {
	cmd := exec.Command(found(spec), spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = spec.environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Stdin, spec.Stdout, spec.Stderr
	// A descendant that keeps our pipes open must not keep us waiting.
	cmd.WaitDelay = grace
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return &Process{cmd: cmd, leaves: spec.Leaves, done: make(chan struct{})}, nil
}

// makeTemp makes a temporary folder for one child.
func makeTemp() (string, error) {
	dir, err := os.MkdirTemp("", "eca-")
	if err != nil {
		return "", fmt.Errorf("make a temporary folder for the sandbox: %w", err)
	}
	return dir, nil
}

// removeTemp removes a child's own folder, also when the child took its rights away.
func removeTemp(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// environ returns the child's environment, where each name stands once.
func (s *Spec) environ() []string {
	base := s.Environ
	if base == nil {
		base = os.Environ()
	}
	return (&exec.Cmd{Env: append(base[:len(base):len(base)], s.Env...)}).Environ()
}

// found is where a program is that is named without a folder, if the child gets a PATH of
// its own: the system looks in ours.
func found(spec Spec) string {
	if filepath.Base(spec.Path) != spec.Path {
		return spec.Path
	}
	for _, pair := range slices.Backward(spec.Env) {
		path, ok := strings.CutPrefix(pair, "PATH=")
		if !ok {
			continue
		}
		if full, ok := LookPath(spec.Path, path); ok {
			return full
		}
		break
	}
	return spec.Path
}

// LookPath returns where a program is, in a PATH if its name is not a path itself.
func LookPath(name, path string) (full string, ok bool) {
	if filepath.Base(name) != name {
		full, err := exec.LookPath(name)
		return full, err == nil
	}
	for _, dir := range filepath.SplitList(path) {
		if full, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return full, true
		}
	}
	return "", false
}

// end records how the child ended, and kills what is left.
func (p *Process) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := groupAlive(p.cmd.Process.Pid)
	if !p.leaves || p.killed {
		killGroup(p.cmd.Process.Pid)
	}
	p.exit = Exit{Code: p.cmd.ProcessState.ExitCode(), Killed: p.killed, Left: left && !p.killed}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.exit.Code = -1
	}
	_ = removeTemp(p.temp)
}

// Pid returns the child's process id, which is also its group's.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and its group is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end.
func (p *Process) Wait() Exit {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Kill ends the group: politely, and after a short grace by force. It returns when
// the child is gone.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return // its id may belong to somebody else by now
	default:
	}
	p.mu.Lock()
	p.killed = true
	p.mu.Unlock()
	terminateGroup(p.cmd.Process.Pid)
	if p.ended(grace) {
		return
	}
	killGroup(p.cmd.Process.Pid)
	<-p.done
}

func (p *Process) ended(within time.Duration) bool { return closes(p.done, within) }

// closes waits a while for a channel to close.
func closes(done <-chan struct{}, within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// Installed says whether PATH has a program.
func Installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
