// Package proc starts child processes. It is the only importer of os/exec.
//
// Every child leads its own process group (Unix) or process tree (Windows). When a run ends for any
// reason, the remaining processes of the group are killed: a stopped or timed-out command leaves no
// processes behind (but see Spec.Leaves).
//
// On Linux, the children of a Pool run below supervisors. A supervisor also finds daemons that moved
// to their own session, and outlives a parent that is killed. On other systems, and with Start, a
// process that leaves the group escapes, and the children of a killed parent survive.
package proc

import (
	"bytes"
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

// grace is the time between the request to exit and the kill of a process group.
const grace = 250 * time.Millisecond

// Spec describes a child.
type Spec struct {
	Path   string
	Args   []string // without the program's name
	Dir    string
	Env    []string  // added to the environment
	Stdin  io.Reader // nil means empty; the child need not read it to the end
	Stdout io.Writer
	Stderr io.Writer

	// Environ is the child's environment; nil means that of this process.
	Environ []string

	// Leaves lets processes that the child started, such as a browser, continue when the child exits
	// normally. Only Start supports it.
	Leaves bool

	// Sandbox bounds what the child may do. If the system or the Pool cannot enforce the bounds,
	// the child runs without them, or fails to start with a sandbox.Error if they are required.
	Sandbox sandbox.Policy
}

// Exit describes how a child ended.
type Exit struct {
	Code   int  // -1 if it was killed
	Killed bool // by this package, because ctx ended
	Left   bool // the child left processes behind, which were killed unless Spec.Leaves is set

	// OutOfMemory means that the system killed the child, or a process that it started, for lack of
	// memory. MemoryLimit is the limit that was reached, in bytes; 0 means that the machine ran out
	// of memory.
	OutOfMemory bool
	MemoryLimit int64
}

// MemoryCause returns a text for the user if the child was killed for lack of memory. It returns an
// empty string if the child was not, or if this package killed it.
func (e Exit) MemoryCause() string {
	switch {
	case !e.OutOfMemory || e.Killed:
		return ""
	case e.MemoryLimit == 0:
		return "it was killed because the machine had no more memory"
	}
	return fmt.Sprintf("it used more memory than a sandboxed command may (%d MiB) and was killed", e.MemoryLimit>>20)
}

// Run starts a child without a supervisor and waits for it. When ctx ends, the whole group is asked
// to exit and then killed. An error means that the child could not be started.
func Run(ctx context.Context, spec Spec) (Exit, error) { return run(ctx, spec, startBare) }

// Process is a running child without a supervisor.
type Process struct {
	cmd    *exec.Cmd
	leaves bool
	temp   string // the child's temporary folder; may be empty
	done   chan struct{}

	mu     sync.Mutex // guards the fields below
	exit   Exit
	killed bool
}

// Start starts a child without a supervisor and does not wait for it. The caller must call Kill or
// Wait.
func Start(spec Spec) (*Process, error) {
	temp, err := prepareSandbox(&spec, false)
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
	cmd := exec.Command(programPath(spec), spec.Args...)
	cmd.Dir = spec.Dir
	cmd.Env = spec.environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Stdin, spec.Stdout, spec.Stderr
	// Do not wait longer for a descendant that keeps the pipes open.
	cmd.WaitDelay = grace
	setProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return &Process{cmd: cmd, leaves: spec.Leaves, done: make(chan struct{})}, nil
}

// makeTemp creates a temporary folder for one child.
func makeTemp() (string, error) {
	dir, err := os.MkdirTemp("", "eca-")
	if err != nil {
		return "", fmt.Errorf("make a temporary folder for the sandbox: %w", err)
	}
	return dir, nil
}

// removeTemp removes a child's temporary folder, even if the child removed its permissions.
func removeTemp(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// environ returns the child's environment, without duplicate names.
func (s *Spec) environ() []string {
	base := s.Environ
	if base == nil {
		base = os.Environ()
	}
	return (&exec.Cmd{Env: append(base[:len(base):len(base)], s.Env...)}).Environ()
}

// programPath resolves a program name in the PATH that spec.Env sets, because os/exec would search
// the PATH of this process.
func programPath(spec Spec) string {
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

// LookPath returns the path of a program. If name has no directory, it is searched for in path, a
// list of directories like PATH.
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

// end records how the child ended, and kills the remaining processes of its group.
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

// Pid returns the child's process ID, which is also its process group ID.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and its group is gone.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the child to end.
func (p *Process) Wait() Exit {
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.exit
}

// Kill asks the group to exit, and kills it after a short grace period. It returns when the child
// has ended.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return // another process may have this ID by now
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

func (p *Process) ended(within time.Duration) bool { return Within(p.done, within) }

// Within waits for end to be closed, but not longer than d. It reports whether end was closed.
func Within(end <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-end:
		return true
	case <-timer.C:
		return false
	}
}

// Installed reports whether a program is in PATH.
func Installed(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}

// Head is a writer that keeps the beginning of a child's output and discards the rest. Writes never
// fail, so the child is not interrupted. Head is not safe for concurrent use.
type Head struct {
	Limit int  // in bytes
	Cut   bool // more was written

	buf bytes.Buffer
}

// Write implements io.Writer.
func (h *Head) Write(p []byte) (int, error) {
	keep := min(len(p), h.Limit-h.buf.Len())
	h.buf.Write(p[:keep])
	h.Cut = h.Cut || keep < len(p)
	return len(p), nil
}

// Bytes returns the beginning of the output.
func (h *Head) Bytes() []byte { return h.buf.Bytes() }

// String returns the beginning of the output.
func (h *Head) String() string { return h.buf.String() }
