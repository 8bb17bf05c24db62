//go:build !linux

package proc

import (
	"errors"
	"net"
	"runtime"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// idlePool is always empty: this system has no supervisors.
type idlePool struct {
	spare   int
	maxIdle time.Duration
}

func (p *Pool) start(spec Spec) (Child, error) { return startBare(spec) }

func (*idlePool) close() {}

// Supervise does nothing on this system: children are in process groups or trees that are killed
// when their run ends, but children of a killed daemon survive.
func Supervise([]string) (code int, ok bool) { return 0, false }

func gaps(bool) []string {
	return []string{"on this system, commands that leave their process group or tree, or whose daemon is killed, keep running; eca ends all others"}
}

// Isolation reports that children cannot have namespaces on this system.
func (*Pool) Isolation() sandbox.Isolation {
	return sandbox.Isolation{Without: "eca does not support namespaces on " + runtime.GOOS}
}

// MemoryLimit returns an error: there is no memory limit on this system.
func (*Pool) MemoryLimit() (int64, error) {
	return 0, errors.New("eca does not support memory limits on " + runtime.GOOS)
}

// Network is a network namespace. Only Linux has them.
type Network struct{}

// NewNetwork returns an error: this system has no network namespaces.
func (p *Pool) NewNetwork(...int) (*Network, error) {
	return nil, errors.ErrUnsupported
}

// Listeners returns nil.
func (n *Network) Listeners() []net.Listener { return nil }

// Close does nothing.
func (n *Network) Close() {}

// Memory returns the resident memory of the processes of a group. On this system, ok is always false.
func Memory(int) (size int64, ok bool) { return 0, false }

// Watch returns a channel that is closed when a process ends, or soon if the process does not exist.
// The process need not be a child of this process. Watch polls every two seconds. The caller must
// call stop to end the polling; further calls of stop do nothing.
func Watch(pid int) (gone <-chan struct{}, stop func()) {
	return watchByPolling(pid, 2*time.Second)
}
