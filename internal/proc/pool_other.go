//go:build !linux

package proc

import "time"

// idlePool holds nothing: this system has no supervisors.
type idlePool struct {
	spare int
	rest  time.Duration
}

func (p *Pool) start(spec Spec) (Child, error) { return startBare(spec) }

func (*idlePool) close() {}
