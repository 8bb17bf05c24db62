package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// killTimeout is how long a supervisor may take to kill its descendants.
const killTimeout = 5 * time.Second

func gaps(supervised bool) []string {
	if supervised {
		return nil
	}
	return []string{"without a supervisor, commands that leave their process group, or whose daemon is killed, keep running"}
}

// whyUnbounded returns why children cannot be bounded, or "" if they can be.
func whyUnbounded(supervised bool) string {
	if !supervised {
		return "no supervisor is available to apply the sandbox"
	}
	return sandbox.Probe().Without
}

// wrap does nothing: the second stage bounds the child.
func (*Spec) wrap() {}

// idlePool holds the idle supervisors of a Pool.
type idlePool struct {
	spare   int           // how many supervisors are kept
	maxIdle time.Duration // how long an idle supervisor is kept

	background sync.WaitGroup // waits for the supervisors that are being stopped

	mu     sync.Mutex          // guards the fields below
	idle   []*supervisorHandle // the most recently used is last
	timer  *time.Timer
	closed bool
	reaper chan struct{} // closed to stop the goroutine that reaps orphans; nil before the first supervisor
	bounds bool          // a child was bounded, so second stages are prepared
}

func (p *Pool) start(spec Spec) (Child, error) {
	path, err := resolve(spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	spec.Path = path
	temp, err := prepareSandbox(&spec, true)
	if err != nil {
		return nil, err
	}
	c, err := p.supervise(spec)
	if err != nil {
		_ = removeTemp(temp)
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	return c, nil
}

// resolve returns the path of the program, which spec may give by name only.
func resolve(spec Spec) (string, error) {
	path := programPath(spec)
	if filepath.Base(path) != path {
		return path, nil
	}
	return exec.LookPath(path)
}

// supervise starts a child through a supervisor.
func (p *Pool) supervise(spec Spec) (Child, error) {
	o := order{Path: spec.Path, Args: spec.Args, Dir: spec.Dir, Env: spec.environ(), Policy: spec.Sandbox}
	if o.Dir == "" {
		var err error
		if o.Dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	o.Policy.Protect = append(o.Policy.Protect, os.Getpid())
	files, err := openStreams(spec)
	if err != nil {
		return nil, err
	}
	defer files.closeChildFiles()
	o.files = files.files[:]
	w, pid, err := p.startSupervised(o)
	if err != nil {
		files.closeChildFiles()
		files.finish()
		return nil, err
	}
	c := &supervisedChild{supervisor: w, pid: pid, temp: o.Policy.Temp, streams: files, done: make(chan struct{})}
	go c.wait(p)
	return c, nil
}

// startSupervised starts a child through an idle supervisor that is still alive, or through a new one.
func (p *Pool) startSupervised(o order) (*supervisorHandle, int, error) {
	for {
		w := p.idlePool.take(o.Policy.Bounds())
		isNew := w == nil
		if isNew {
			var err error
			p.idlePool.startReaping()
			if w, err = newSupervisor(p.supervisor, p.network); err != nil {
				return nil, 0, fmt.Errorf("start the supervisor: %w", err)
			}
		}
		err := o.send(w.send)
		pid := 0
		if err == nil {
			pid, err = w.awaitStart()
		}
		if err == nil {
			return w, pid, nil
		}
		if refusal := new(startError); errors.As(err, &refusal) {
			p.idlePool.put(w)
			return nil, 0, err
		}
		w.close()
		if isNew || !closedBeforeRead(err) {
			return nil, 0, fmt.Errorf("the supervisor: %w", err)
		}
	}
}

// startReaping makes this process the parent of orphans, and reaps them until the pool is closed.
func (s *idlePool) startReaping() {
	adoptOrphans()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reaper != nil || s.closed {
		return
	}
	done := make(chan struct{})
	s.reaper = done
	s.background.Go(func() { reapOrphans(done) })
	s.background.Go(sweepMemoryGroups)
}

// take returns an idle supervisor, or nil.
func (s *idlePool) take(bounds bool) *supervisorHandle {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bounds = s.bounds || bounds
	n := len(s.idle)
	if n == 0 {
		return nil
	}
	w := s.idle[n-1]
	s.idle = s.idle[:n-1]
	return w
}

// put gives a supervisor back to the pool when its child has ended. The supervisor is stopped if
// the pool is full or closed; otherwise it prepares for the next child if the pool has bounded
// children.
func (s *idlePool) put(w *supervisorHandle) {
	s.mu.Lock()
	keep, prepare := !s.closed && len(s.idle) < s.spare, s.bounds
	if keep {
		w.idleSince = time.Now()
		s.idle = append(s.idle, w)
		if s.timer == nil {
			s.timer = time.AfterFunc(s.maxIdle, s.stopUnused)
		}
	}
	if keep && prepare {
		_ = w.send([]byte(prepareMessage), nil) // does not block; if the supervisor is dead, its next use fails
	}
	s.mu.Unlock()
	if !keep {
		s.background.Go(w.close)
	}
}

// stopUnused stops the supervisors that have not been used for a while.
func (s *idlePool) stopUnused() {
	s.mu.Lock()
	var old []*supervisorHandle
	for len(s.idle) > 0 && time.Since(s.idle[0].idleSince) >= s.maxIdle {
		old, s.idle = append(old, s.idle[0]), s.idle[1:]
	}
	s.timer = nil
	if len(s.idle) > 0 && !s.closed {
		s.timer = time.AfterFunc(s.maxIdle-time.Since(s.idle[0].idleSince), s.stopUnused)
	}
	s.mu.Unlock()
	for _, w := range old {
		w.close()
	}
}

func (s *idlePool) close() {
	s.mu.Lock()
	idle := s.idle
	s.idle, s.closed = nil, true
	if s.reaper != nil {
		close(s.reaper)
		s.reaper = nil
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	for _, w := range idle {
		w.close()
	}
	s.background.Wait()
}

// supervisorHandle is the parent's handle of a supervisor.
type supervisorHandle struct {
	program   string // path of the executable
	cmd       *exec.Cmd
	conn      *net.UnixConn
	idleSince time.Time

	ended  chan struct{} // closed when the supervisor has exited
	killed bool          // it was killed or failed; written before ended is closed
}

func newSupervisor(supervisor string, network *Network) (*supervisorHandle, error) {
	ours, theirs, err := socketPair("supervisor")
	if err != nil {
		return nil, err
	}
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("the socket is not a Unix socket")
	}
	program := supervisor
	if own, err := os.Executable(); err == nil && own == supervisor && network == nil {
		supervisor = "/proc/self/exe" // an update may have replaced the executable
	}
	cmd := exec.Command(supervisor)
	cmd.Args = []string{"eca", supervisorArg}
	cmd.ExtraFiles = []*os.File{theirs}
	if network != nil {
		if err := network.enter(cmd); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	setProcessGroup(cmd)
	if err := cmd.Start(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	w := &supervisorHandle{program: program, cmd: cmd, conn: socket, ended: make(chan struct{})}
	go func() {
		w.killed = cmd.Wait() != nil
		close(w.ended)
	}()
	return w, nil
}

// close stops a supervisor and its child by closing the socket. A supervisor that does not exit in
// time is killed.
func (w *supervisorHandle) close() {
	_ = w.conn.Close()
	stuck := time.AfterFunc(2*killTimeout, func() { _ = w.cmd.Process.Kill() })
	defer stuck.Stop()
	<-w.ended
	if w.killed {
		killOrphans(w.program)
		closeMemoryGroup(w.cmd.Process.Pid)
	}
}

func (w *supervisorHandle) send(packet, rights []byte) error {
	_, _, err := w.conn.WriteMsgUnix(packet, rights, nil)
	return err
}

func (w *supervisorHandle) receive() (string, error) {
	buf := make([]byte, 4<<10)
	n, err := w.conn.Read(buf)
	if err == nil && n == 0 {
		err = errors.New("the supervisor ended")
	}
	return string(buf[:n]), err
}

// startError is the reason why a working supervisor could not start a child.
type startError struct{ cause string }

func (e *startError) Error() string { return e.cause }

// awaitStart waits until the child runs, or returns an error if it cannot start.
func (w *supervisorHandle) awaitStart() (pid int, err error) {
	answer, err := w.receive()
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(answer, pidMessage, &pid); err != nil {
		return 0, &startError{answer}
	}
	return pid, nil
}

// supervisedChild is a child below a supervisor.
type supervisedChild struct {
	supervisor *supervisorHandle
	pid        int
	temp       string // the child's temporary folder, which the supervisor removes
	streams    *streams
	done       chan struct{}

	mu     sync.Mutex // guards the fields below
	exit   Exit
	killed bool
	ended  bool // the child has ended; the supervisor may already have another, to which messages would go
}

// wait waits for the child to end, and returns its supervisor to the pool.
func (c *supervisedChild) wait(p *Pool) {
	answer, err := c.supervisor.receive()
	c.mu.Lock()
	c.ended = true
	c.mu.Unlock()
	exit := Exit{}
	if _, scanErr := fmt.Sscanf(answer, exitMessage, &exit.Code, &exit.Left, &exit.OutOfMemory, &exit.MemoryLimit); err != nil || scanErr != nil {
		exit = Exit{Code: -1}
		c.supervisor.close()
		_ = removeTemp(c.temp)
	} else {
		p.idlePool.put(c.supervisor)
	}
	c.streams.finish()
	c.mu.Lock()
	c.exit = exit
	c.exit.Killed, c.exit.Left = c.killed, exit.Left && !c.killed
	c.mu.Unlock()
	close(c.done)
}

// Pid implements Child.
func (c *supervisedChild) Pid() int { return c.pid }

// Done implements Child.
func (c *supervisedChild) Done() <-chan struct{} { return c.done }

// Wait implements Child.
func (c *supervisedChild) Wait() Exit {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// Kill implements Child.
func (c *supervisedChild) Kill() {
	for _, attempt := range []struct {
		do   func()
		wait time.Duration
	}{{c.sender(termMessage), grace}, {c.sender(killMessage), killTimeout}} {
		c.ifCurrent(attempt.do)
		if Within(c.done, attempt.wait) {
			return
		}
	}
	c.ifCurrent(func() { _ = c.supervisor.cmd.Process.Kill() }) // the kernel then kills the child (Pdeathsig)
	<-c.done
}

func (c *supervisedChild) sender(text string) func() {
	return func() { _ = c.supervisor.send([]byte(text), nil) }
}

// ifCurrent calls do if this child is still the current child of its supervisor.
func (c *supervisedChild) ifCurrent(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.killed = true
		do()
	}
}

// ownSocket marks this process's end of the socket as close-on-exec.
func ownSocket() { unix.CloseOnExec(socketFD) }
