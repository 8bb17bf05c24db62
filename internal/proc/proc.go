// Package proc starts child processes. It is the only importer of os/exec.
//
// Every child leads its own process group (Unix) or process tree (Windows). When a
// run ends, for whatever reason, what is left of it is killed: a stopped or timed-out
// command leaves nothing behind (but see Spec.Leaves).
//
// On Linux a child can run below a supervisor (Spec.Supervisor): this program once
// more, which adopts whatever descends from the child and kills it when the run ends
// or when its parent dies, however it dies. That includes daemons that moved to a
// session of their own. Elsewhere, and without a supervisor, a process that leaves the
// group escapes, and a parent that is killed leaves its children behind.
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
	Env    []string  // added to our own environment
	Stdin  io.Reader // nil is empty; a child that does not read it to its end may end all the same
	Stdout io.Writer
	Stderr io.Writer

	// Supervisor is an executable whose main calls Supervise first; empty runs the child
	// without one. Only Linux uses it.
	Supervisor string

	// Leaves says that what the child has started goes on when the child ends by itself, as
	// a browser does that a program opens. Only a child without a supervisor can have that.
	Leaves bool

	// Sandbox bounds what the child may do. Where the system can not hold that, or without
	// a supervisor that has to, the child runs without bounds; or not at all (a
	// sandbox.Error), if they are required.
	Sandbox sandbox.Policy
}

// Exit says how a child ended.
type Exit struct {
	Code   int  // -1 if it was killed
	Killed bool // by us, because ctx ended
}

// Run starts a child and waits for it. When ctx ends the whole group is asked to
// end, then killed. An error means that the child could not be started.
func Run(ctx context.Context, spec Spec) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	p, err := Start(spec)
	if err != nil {
		return Exit{}, err
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		p.Kill()
	}
	return p.Wait(), nil
}

// Process is a running child.
type Process struct {
	cmd    *exec.Cmd
	sup    *supervision // nil without a supervisor
	leaves bool
	temp   string // the child's own temporary folder; empty if it has none
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	exit   Exit
	killed bool
}

// Start starts a child without waiting for it. Kill or Wait must be called.
func Start(spec Spec) (*Process, error) {
	temp, err := bound(&spec)
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
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = spec.Stdin, spec.Stdout, spec.Stderr
	// A descendant that keeps our pipes open must not keep us waiting.
	cmd.WaitDelay = grace
	ownGroup(cmd)
	p := &Process{cmd: cmd, leaves: spec.Leaves, done: make(chan struct{})}
	var err error
	if spec.Supervisor != "" {
		p.sup, err = supervised(cmd, spec)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return p, nil
}

// bound prepares what a sandbox needs: a temporary folder, which it returns, for a child
// that may write nowhere else.
func bound(spec *Spec) (temp string, err error) {
	if !spec.Sandbox.Bounds() {
		return "", nil
	}
	if why := unbound(spec.Supervisor); why != "" {
		if spec.Sandbox.Required {
			return "", sandbox.Error{Cause: why}
		}
		spec.Sandbox = sandbox.Policy{}
		return "", nil
	}
	spec.Sandbox.Look()
	if spec.Sandbox.Level == sandbox.ReadOnly {
		if temp, err = os.MkdirTemp("", "eca-"); err != nil {
			return "", fmt.Errorf("a temporary folder for the sandbox: %w", err)
		}
		spec.Sandbox.Temp = temp
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], "TMPDIR="+temp)
	}
	spec.wrap()
	return temp, nil
}

// removeTemp removes a child's own folder, also when the child took its rights away.
func removeTemp(dir string) error {
	if dir == "" {
		return nil
	}
	return os.RemoveAll(dir)
}

// Bounds says whether children can be bound, by what, and if not, why not.
func Bounds(supervisor string) sandbox.Support {
	s := sandbox.Probe()
	if why := unbound(supervisor); why != "" {
		return sandbox.Support{Without: why}
	}
	return s
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
		for _, dir := range filepath.SplitList(path) {
			if full, err := exec.LookPath(filepath.Join(dir, spec.Path)); err == nil {
				return full
			}
		}
		break
	}
	return spec.Path
}

// end records how the child ended, and kills what is left.
func (p *Process) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.leaves || p.killed {
		killGroup(p.cmd.Process.Pid)
	}
	p.exit = Exit{Code: p.cmd.ProcessState.ExitCode(), Killed: p.killed}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		p.exit.Code = -1
	}
	if p.sup != nil {
		p.exit.Code = p.sup.exitCode()
		p.sup.close()
	}
	_ = removeTemp(p.temp)
}

// Pid returns the child's process id, which is also its group's.
func (p *Process) Pid() int {
	if p.sup != nil {
		return p.sup.pid
	}
	return p.cmd.Process.Pid
}

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
	if p.sup != nil {
		p.sup.kill()
		if p.ended(supervisorTime) {
			return
		}
	}
	killGroup(p.cmd.Process.Pid)
	<-p.done
}

// supervisorTime bounds how long a supervisor may take to kill what it supervises.
const supervisorTime = 5 * time.Second

func (p *Process) ended(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}
