package proc

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Child is a running child, however it was started.
type Child interface {
	Pid() int              // the process id, which is also its group's
	Done() <-chan struct{} // closed when the child and all processes that it started have ended
	Wait() Exit
	Kill() // ends the child and what it started; returns when they are gone
}

// Pool starts children below supervisors. A supervisor is this program once more: it has one
// child at a time, adopts whatever descends from it and kills that when the child ends or when
// the parent dies, however it dies. Some idle supervisors are kept for the next children, so
// that these need not wait for one to start. Without use, none is left after a while.
//
// Only Linux has supervisors. Elsewhere, with an empty name, and for the nil Pool, children are
// started as by Start.
type Pool struct {
	supervisor string
	network    *Network // that children are in; nil: eca's own
	stock      stock
}

// NewPool returns a pool that has not started anything yet. supervisor is an executable whose
// main calls Supervise first; spare is how many idle supervisors are kept. Close must be called.
func NewPool(supervisor string, spare int) *Pool {
	return &Pool{supervisor: supervisor, stock: stock{spare: spare, rest: time.Minute}}
}

// Join returns a pool whose children are in a network namespace. Their policies are Joined.
func (p *Pool) Join(n *Network) *Pool {
	joined := NewPool(p.supervisor, 1)
	joined.network = n
	return joined
}

// Run starts a child and waits for it. When ctx ends, the child is asked to end, then killed,
// with everything it started. An error means that the child could not be started.
func (p *Pool) Run(ctx context.Context, spec Spec) (Exit, error) {
	return run(ctx, spec, p.Start)
}

// Start starts a child without waiting for it. Kill or Wait must be called.
func (p *Pool) Start(spec Spec) (Child, error) {
	if p == nil || p.supervisor == "" {
		return startBare(spec)
	}
	return p.start(spec)
}

// Close ends the idle supervisors; others end when their child has ended.
func (p *Pool) Close() {
	if p != nil {
		p.stock.close()
	}
}

// Bounds says whether children of the pool can be bound, by what, and if not, why not.
func (p *Pool) Bounds() sandbox.Support {
	if why := unbound(p != nil && p.supervisor != ""); why != "" {
		return sandbox.Support{Without: why}
	}
	return sandbox.Probe()
}

// Gaps says which of the promises about children do not hold here.
func (p *Pool) Gaps() []string { return gaps(p != nil && p.supervisor != "") }

// run starts a child and waits until it or ctx has ended.
func run(ctx context.Context, spec Spec, start func(Spec) (Child, error)) (Exit, error) {
	if err := ctx.Err(); err != nil {
		return Exit{}, err
	}
	c, err := start(spec)
	if err != nil {
		return Exit{}, err
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
		c.Kill()
	}
	return c.Wait(), nil
}

// startBare keeps a nil Process from becoming a Child that is not nil.
func startBare(spec Spec) (Child, error) {
	p, err := Start(spec)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// bound prepares what a sandbox needs, and returns the temporary folder that it made for a
// child that has one of its own. Where bounds cannot be held, it removes them, or fails if they are
// required.
func bound(spec *Spec, supervised bool) (temp string, err error) {
	if !spec.Sandbox.Bounds() {
		return "", nil
	}
	if why := unbound(supervised); why != "" {
		if spec.Sandbox.Required {
			return "", sandbox.Error{Cause: why}
		}
		spec.Sandbox = sandbox.Policy{}
		return "", nil
	}
	if err := spec.Sandbox.Prepare(); err != nil {
		return "", err
	}
	spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], spec.Sandbox.Env...)
	if spec.Sandbox.Level == sandbox.ReadOnly || spec.Sandbox.PrivateTemp {
		if temp, err = makeTemp(); err != nil {
			return "", err
		}
		spec.Sandbox.Temp = temp
		spec.Env = append(spec.Env[:len(spec.Env):len(spec.Env)], "TMPDIR="+temp)
	}
	spec.wrap()
	return temp, nil
}
