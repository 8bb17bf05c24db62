package proc

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Child is a running child, with or without a supervisor.
type Child interface {
	Pid() int              // the process ID, which is also the process group ID
	Done() <-chan struct{} // closed when the child and all processes that it started have ended
	Wait() Exit
	Kill() // kills the child and its descendants; returns when they have ended
}

// Pool starts children below supervisors. A supervisor is another process of this program: it has
// one child at a time, adopts all descendants of the child, and kills them when the child ends or
// when the parent exits for any reason. The pool keeps some idle supervisors, because starting one
// takes time, and stops supervisors that have not been used for a while.
//
// Only Linux has supervisors. On other systems, with an empty name, and for a nil Pool, children
// are started as by Start.
type Pool struct {
	supervisor string
	network    *Network // the network namespace of the children; nil means eca's own
	idlePool   idlePool
}

// NewPool returns a pool. It does not start supervisors before they are needed. supervisor is an
// executable whose main function first calls Supervise; spare is the number of idle supervisors to
// keep. The caller must call Close.
func NewPool(supervisor string, spare int) *Pool {
	return &Pool{supervisor: supervisor, idlePool: idlePool{spare: spare, maxIdle: time.Minute}}
}

// Join returns a pool whose children are in the given network namespace. Their policies must have
// Joined set.
func (p *Pool) Join(n *Network) *Pool {
	joined := NewPool(p.supervisor, 1)
	joined.network = n
	return joined
}

// Run starts a child and waits for it. When ctx ends, the child's group is asked to exit; then the
// child and its descendants are killed. An error means that the child could not be started.
func (p *Pool) Run(ctx context.Context, spec Spec) (Exit, error) {
	return run(ctx, spec, p.Start)
}

// Start starts a child without waiting for it. The caller must call Kill or Wait.
func (p *Pool) Start(spec Spec) (Child, error) {
	if p == nil || p.supervisor == "" {
		return startBare(spec)
	}
	return p.start(spec)
}

// Close stops the idle supervisors. Each of the others stops when its child has ended.
func (p *Pool) Close() {
	if p != nil {
		p.idlePool.close()
	}
}

// Bounds reports whether children of the pool can be bounded: the mechanism, or the reason why not.
func (p *Pool) Bounds() sandbox.Support {
	if why := whyUnbounded(p != nil && p.supervisor != ""); why != "" {
		return sandbox.Support{Without: why}
	}
	return sandbox.Probe()
}

// Gaps lists the guarantees of this package that do not hold for children of the pool.
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

// startBare returns a nil Child instead of a Child that contains a nil Process.
func startBare(spec Spec) (Child, error) {
	p, err := Start(spec)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// prepareSandbox prepares the sandbox of a child, and returns the temporary folder that it created, if any.
// Where bounds cannot be enforced, it removes them from the spec, or returns an error if they are
// required.
func prepareSandbox(spec *Spec, supervised bool) (temp string, err error) {
	if !spec.Sandbox.Bounds() {
		return "", nil
	}
	if why := whyUnbounded(supervised); why != "" {
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
