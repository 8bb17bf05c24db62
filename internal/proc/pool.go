package proc

import (
	"os"
	"os/exec"
	"sync"
)

// Child is a running child, however it was started. See Process.
type Child interface {
	Done() <-chan struct{}
	Wait() Exit
	Kill()
}

// Pool starts many children below few supervisors: each has one child at a time, and is used
// again when that one and all that descends from it have ended. It holds the same promises
// as a supervisor for each child, and saves the time it takes to start one.
type Pool struct {
	supervisor string

	mu     sync.Mutex // guards what follows
	idle   []*warden
	closed bool
}

// NewPool returns a pool without supervisors yet. With an empty supervisor, or where there
// are none, its children are started as by Start. Close must be called.
func NewPool(supervisor string) *Pool { return &Pool{supervisor: supervisor} }

// Start starts a child without waiting for it. Kill or Wait must be called. Only a child
// whose streams are all files, and that is not bound by a sandbox, gains from the pool.
func (p *Pool) Start(spec Spec) (Child, error) {
	spec.Supervisor = p.supervisor
	stdin, in := spec.Stdin.(*os.File)
	stdout, out := spec.Stdout.(*os.File)
	stderr, errs := spec.Stderr.(*os.File)
	if p.supervisor == "" || !in || !out || !errs || spec.Sandbox.Bounds() {
		return asChild(Start(spec))
	}
	w, err := p.take()
	if err != nil {
		return asChild(Start(spec)) // which has the whole way to say why, if it is no way
	}
	if path, err := exec.LookPath(spec.Path); err == nil {
		spec.Path = path
	}
	c, usable, err := w.start(p, spec, [3]*os.File{stdin, stdout, stderr})
	if usable && err != nil {
		p.put(w)
		return nil, err
	}
	if err != nil {
		w.close()
		return asChild(Start(spec))
	}
	return c, nil
}

// asChild keeps a nil Process from becoming a Child that is not nil.
func asChild(p *Process, err error) (Child, error) {
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Pool) take() (*warden, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return w, nil
	}
	return newWarden(p.supervisor)
}

// put takes a supervisor back that has nothing to supervise.
func (p *Pool) put(w *warden) {
	p.mu.Lock()
	closed := p.closed
	if !closed {
		p.idle = append(p.idle, w)
	}
	p.mu.Unlock()
	if closed {
		w.close()
	}
}

// Close ends the supervisors that are idle; others end when their child has ended.
func (p *Pool) Close() {
	p.mu.Lock()
	idle := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, w := range idle {
		w.close()
	}
}
