//go:build !linux

package proc

import "time"

// idlePool is always empty: this system has no supervisors.
type idlePool struct {
	spare int
	rest  time.Duration
}

func (p *Pool) start(spec Spec) (Child, error) { return startBare(spec) }

func (*idlePool) close() {}
