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

// supervisorTime bounds how long a supervisor may take to kill what it supervises.
const supervisorTime = 5 * time.Second

func gaps(supervised bool) []string {
	if supervised {
		return nil
	}
	return []string{"without a supervisor, commands that leave their process group, or whose daemon is killed, go on"}
}

// unbound says why children cannot be bound; empty if they can.
func unbound(supervised bool) string {
	if !supervised {
		return "there is no supervisor that could"
	}
	return sandbox.Probe().Without
}

// wrap does nothing: the second stage bounds the child.
func (*Spec) wrap() {}

// stock is the idle supervisors of a Pool.
type stock struct {
	spare int           // how many are kept
	rest  time.Duration // how long one is kept without use

	ending sync.WaitGroup // supervisors that are not kept

	mu     sync.Mutex // guards what follows
	idle   []*warden  // the one that was used last at the end
	timer  *time.Timer
	closed bool
	reaper chan struct{} // closed, it ends the goroutine that reaps orphans; nil before the first supervisor
	bounds bool          // some child was bounded: second stages are worth preparing
}

func (p *Pool) start(spec Spec) (Child, error) {
	path, err := resolve(spec)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Path, err)
	}
	spec.Path = path
	temp, err := bound(&spec, true)
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

// resolve finds a program that is named without a folder.
func resolve(spec Spec) (string, error) {
	path := found(spec)
	if filepath.Base(path) != path {
		return path, nil
	}
	return exec.LookPath(path)
}

// supervise has a child started by a supervisor.
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
	defer files.handOver()
	o.files = files.files[:]
	w, pid, err := p.place(o)
	if err != nil {
		files.handOver()
		files.finish()
		return nil, err
	}
	c := &ward{warden: w, pid: pid, temp: o.Policy.Temp, streams: files, done: make(chan struct{})}
	go c.wait(p)
	return c, nil
}

// place has a supervisor start a child: an idle one that still lives, else a new one.
func (p *Pool) place(o order) (*warden, int, error) {
	for {
		w := p.stock.take(o.Policy.Bounds())
		fresh := w == nil
		if fresh {
			var err error
			p.stock.reap()
			if w, err = newWarden(p.supervisor, p.network); err != nil {
				return nil, 0, fmt.Errorf("start the supervisor: %w", err)
			}
		}
		err := o.send(w.send)
		pid := 0
		if err == nil {
			pid, err = w.started()
		}
		if err == nil {
			return w, pid, nil
		}
		if refusal := new(refusedError); errors.As(err, &refusal) {
			p.stock.put(w)
			return nil, 0, err
		}
		w.close()
		if fresh || !unread(err) {
			return nil, 0, fmt.Errorf("the supervisor: %w", err)
		}
	}
}

// reap has orphans come to this process, and reaps them until the stock is closed.
func (s *stock) reap() {
	adoptOrphans()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reaper != nil || s.closed {
		return
	}
	done := make(chan struct{})
	s.reaper = done
	s.ending.Go(func() { reapOrphans(done) })
	s.ending.Go(sweepMemoryGroups)
}

// take returns an idle supervisor, or nil.
func (s *stock) take(bounds bool) *warden {
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

// put takes a supervisor back that has nothing to supervise, and has it prepare for the next
// child.
func (s *stock) put(w *warden) {
	s.mu.Lock()
	keep, prepare := !s.closed && len(s.idle) < s.spare, s.bounds
	if keep {
		w.idleSince = time.Now()
		s.idle = append(s.idle, w)
		if s.timer == nil {
			s.timer = time.AfterFunc(s.rest, s.trim)
		}
	}
	if keep && prepare {
		_ = w.send([]byte(prepareMessage), nil) // does not wait; a dead one is noticed when it is used
	}
	s.mu.Unlock()
	if !keep {
		s.ending.Go(w.close)
	}
}

// trim ends the supervisors that have not been used for long.
func (s *stock) trim() {
	s.mu.Lock()
	var old []*warden
	for len(s.idle) > 0 && time.Since(s.idle[0].idleSince) >= s.rest {
		old, s.idle = append(old, s.idle[0]), s.idle[1:]
	}
	s.timer = nil
	if len(s.idle) > 0 && !s.closed {
		s.timer = time.AfterFunc(s.rest-time.Since(s.idle[0].idleSince), s.trim)
	}
	s.mu.Unlock()
	for _, w := range old {
		w.close()
	}
}

func (s *stock) close() {
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
	s.ending.Wait()
}

// warden is the parent's end of a supervisor.
type warden struct {
	program   string // its executable
	cmd       *exec.Cmd
	conn      *net.UnixConn
	idleSince time.Time

	ended  chan struct{} // closed when it has ended
	killed bool          // eca ended it; set by then
}

func newWarden(supervisor string, network *Network) (*warden, error) {
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
		supervisor = "/proc/self/exe" // an update may have put another version there
	}
	cmd := exec.Command(supervisor)
	cmd.Args = []string{"eca", wardenArg}
	cmd.ExtraFiles = []*os.File{theirs}
	if network != nil {
		if err := network.enter(cmd); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	w := &warden{program: program, cmd: cmd, conn: socket, ended: make(chan struct{})}
	go func() {
		w.killed = cmd.Wait() != nil
		close(w.ended)
	}()
	return w, nil
}

// close ends a supervisor and what it supervises. It ends when the socket does; only one that
// does not is killed.
func (w *warden) close() {
	_ = w.conn.Close()
	stuck := time.AfterFunc(2*supervisorTime, func() { _ = w.cmd.Process.Kill() })
	defer stuck.Stop()
	<-w.ended
	if w.killed {
		endOrphans(w.program)
		closeMemoryGroup(w.cmd.Process.Pid)
	}
}

func (w *warden) send(packet, rights []byte) error {
	_, _, err := w.conn.WriteMsgUnix(packet, rights, nil)
	return err
}

func (w *warden) receive() (string, error) {
	buf := make([]byte, 4<<10)
	n, err := w.conn.Read(buf)
	if err == nil && n == 0 {
		err = errors.New("the supervisor ended")
	}
	return string(buf[:n]), err
}

// refusedError is why a supervisor that goes on could not start a child.
type refusedError struct{ cause string }

func (e *refusedError) Error() string { return e.cause }

// started waits until the child runs.
func (w *warden) started() (pid int, err error) {
	answer, err := w.receive()
	if err != nil {
		return 0, err
	}
	if _, err := fmt.Sscanf(answer, pidMessage, &pid); err != nil {
		return 0, &refusedError{answer}
	}
	return pid, nil
}

// ward is a child below a supervisor.
type ward struct {
	warden  *warden
	pid     int
	temp    string // its own temporary folder, which the supervisor removes
	streams *streams
	done    chan struct{}

	mu     sync.Mutex // guards what follows
	exit   Exit
	killed bool
	over   bool // the supervisor may have another child, which must not get our orders
}

// wait waits for the child's end, and gives its supervisor back.
func (c *ward) wait(p *Pool) {
	answer, err := c.warden.receive()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	exit := Exit{}
	if _, scanErr := fmt.Sscanf(answer, exitMessage, &exit.Code, &exit.Left, &exit.OutOfMemory, &exit.MemoryLimit); err != nil || scanErr != nil {
		exit = Exit{Code: -1}
		c.warden.close()
		_ = removeTemp(c.temp)
	} else {
		p.stock.put(c.warden)
	}
	c.streams.finish()
	c.mu.Lock()
	c.exit = exit
	c.exit.Killed, c.exit.Left = c.killed, exit.Left && !c.killed
	c.mu.Unlock()
	close(c.done)
}

// Pid implements Child.
func (c *ward) Pid() int { return c.pid }

// Done implements Child.
func (c *ward) Done() <-chan struct{} { return c.done }

// Wait implements Child.
func (c *ward) Wait() Exit {
	<-c.done
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exit
}

// Kill implements Child.
func (c *ward) Kill() {
	for _, attempt := range []struct {
		do   func()
		wait time.Duration
	}{{c.message(termMessage), grace}, {c.message(killMessage), supervisorTime}} {
		c.unlessOver(attempt.do)
		if closes(c.done, attempt.wait) {
			return
		}
	}
	c.unlessOver(func() { _ = c.warden.cmd.Process.Kill() }) // the child dies with it
	<-c.done
}

func (c *ward) message(text string) func() {
	return func() { _ = c.warden.send([]byte(text), nil) }
}

// unlessOver does something to the supervisor if it still has this child.
func (c *ward) unlessOver(do func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.killed = true
		do()
	}
}

// ownSocket makes the calling program's end of its socket private to it.
func ownSocket() { unix.CloseOnExec(socketFD) }
