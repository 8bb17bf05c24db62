package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// wardenArg, as only argument, makes a program that calls Supervise a supervisor for one
// child after the other.
const wardenArg = "__warden"

// wardenFD is the supervisor's end of the socket over which it is told what to do. Messages
// are packets: to it the order to start a child, with the child's streams, or term or kill;
// from it pid N or an error, and later exit N.
const wardenFD = 3

// maxOrder bounds a message, in bytes; the kernel has a limit too.
const maxOrder = 192 << 10

// order is what a supervisor starts.
type order struct {
	Path string
	Args []string
	Dir  string
	Env  []string
}

// warden is the parent's end of a supervisor.
type warden struct {
	cmd  *exec.Cmd
	conn *net.UnixConn
}

func newWarden(supervisor string) (*warden, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "warden"), os.NewFile(uintptr(fds[1]), "warden")
	defer ours.Close()
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("no unix socket")
	}
	cmd := exec.Command(supervisor)
	cmd.Args = []string{"eca", wardenArg}
	cmd.ExtraFiles = []*os.File{theirs}
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &warden{cmd: cmd, conn: socket}, nil
}

// close ends a supervisor and what it supervises. It does so by itself; only one that does
// not is killed.
func (w *warden) close() {
	_ = w.conn.Close()
	stuck := time.AfterFunc(2*supervisorTime, func() { _ = w.cmd.Process.Kill() })
	defer stuck.Stop()
	_ = w.cmd.Wait()
}

func (w *warden) receive() (string, error) {
	buf := make([]byte, 4<<10)
	n, err := w.conn.Read(buf)
	if err == nil && n == 0 {
		err = errors.New("the supervisor ended")
	}
	return string(buf[:n]), err
}

// start has a child started. An error of a usable supervisor is the child's.
func (w *warden) start(p *Pool, spec Spec, streams [3]*os.File) (c Child, usable bool, err error) {
	o := order{Path: spec.Path, Args: spec.Args, Dir: spec.Dir, Env: append(os.Environ(), spec.Env...)}
	if o.Dir == "" {
		if o.Dir, err = os.Getwd(); err != nil {
			return nil, false, err
		}
	}
	message, err := json.Marshal(o)
	if err != nil || len(message) > maxOrder {
		return nil, false, errors.New("the order is too long")
	}
	rights := unix.UnixRights(int(streams[0].Fd()), int(streams[1].Fd()), int(streams[2].Fd()))
	if _, _, err := w.conn.WriteMsgUnix(message, rights, nil); err != nil {
		return nil, false, err
	}
	answer, err := w.receive()
	if err != nil {
		return nil, false, err
	}
	pid := 0
	if _, err := fmt.Sscanf(answer, "pid %d", &pid); err != nil {
		return nil, true, fmt.Errorf("start %s: %s", spec.Path, answer)
	}
	ward := &ward{warden: w, done: make(chan struct{})}
	go ward.wait(p)
	return ward, true, nil
}

// ward is a child below a warden.
type ward struct {
	warden *warden
	done   chan struct{}

	mu     sync.Mutex // guards what follows
	exit   Exit
	killed bool
	over   bool // the supervisor may have another child, who must not get our orders
}

// wait waits for the child's end, and gives its supervisor back.
func (c *ward) wait(p *Pool) {
	answer, err := c.warden.receive()
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	code := -1
	if _, scanErr := fmt.Sscanf(answer, "exit %d", &code); err != nil || scanErr != nil {
		code = -1
		c.warden.close()
	} else {
		p.put(c.warden)
	}
	c.mu.Lock()
	c.exit = Exit{Code: code, Killed: c.killed}
	c.mu.Unlock()
	close(c.done)
}

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
	}{{c.order("term"), grace}, {c.order("kill"), supervisorTime}} {
		c.unlessOver(attempt.do)
		if c.ended(attempt.wait) {
			return
		}
	}
	c.unlessOver(func() { _ = c.warden.cmd.Process.Kill() }) // the child dies with it
	<-c.done
}

func (c *ward) order(text string) func() {
	return func() { _, _ = c.warden.conn.Write([]byte(text)) }
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

func (c *ward) ended(within time.Duration) bool {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case <-c.done:
		return true
	case <-t.C:
		return false
	}
}

// guard is the supervisor: it starts one child after the other, until its parent closes the
// socket or dies, however it dies.
type guard struct {
	starts chan job

	mu  sync.Mutex // guards pid
	pid int        // of the child; 0 if there is none
}

type job struct {
	order order
	files []*os.File
}

func runGuard() int {
	// The child dies with the thread that started it; this one stays.
	runtime.LockOSThread()
	unix.CloseOnExec(wardenFD)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // only the socket ends it
	g := &guard{starts: make(chan job)}
	go g.listen()
	for s := range g.starts {
		pid, err := startWard(s)
		for _, f := range s.files {
			_ = f.Close()
		}
		if err != nil {
			g.tell(err.Error())
			continue
		}
		g.child(pid)
		g.tell(fmt.Sprintf("pid %d", pid))
		code := reap(pid)
		for hasChildren() { // what the child left behind ends with it
			killDescendants(pid)
		}
		g.child(0)
		g.tell(fmt.Sprintf("exit %d", code))
	}
	return 0
}

func (g *guard) child(pid int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pid = pid
}

func (g *guard) current() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pid
}

func (*guard) tell(text string) { _ = unix.Send(wardenFD, []byte(text), unix.MSG_NOSIGNAL) }

// listen takes orders.
func (g *guard) listen() {
	buf, rights := make([]byte, maxOrder), make([]byte, unix.CmsgSpace(3*4))
	for {
		n, extra, _, _, err := unix.Recvmsg(wardenFD, buf, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			g.leave()
		}
		switch text := string(buf[:n]); {
		case text == "term":
			if pid := g.current(); pid != 0 {
				_ = syscall.Kill(-pid, syscall.SIGTERM)
			}
		case text == "kill":
			go g.kill(g.current()) // not of what is started next
		case strings.HasPrefix(text, "{"):
			g.begin(buf[:n], rights[:extra])
		}
	}
}

func (g *guard) begin(message, rights []byte) {
	s := job{}
	controls, err := unix.ParseSocketControlMessage(rights)
	for i := 0; err == nil && i < len(controls); i++ {
		var fds []int
		fds, err = unix.ParseUnixRights(&controls[i])
		for _, fd := range fds {
			s.files = append(s.files, os.NewFile(uintptr(fd), "stream"))
		}
	}
	if err == nil {
		err = json.Unmarshal(message, &s.order)
	}
	if err != nil || len(s.files) != 3 {
		g.tell("the order can not be read")
		return
	}
	g.starts <- s
}

// kill kills until a child has ended; 0 is none.
func (g *guard) kill(pid int) {
	for pid != 0 && g.strike(pid) {
		time.Sleep(10 * time.Millisecond)
	}
}

// strike kills what there is of a child, and says whether it is still the one that is
// supervised. No other child begins meanwhile: it would be killed too.
func (g *guard) strike(pid int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pid != pid {
		return false
	}
	killDescendants(pid)
	return true
}

// leave ends the supervisor, when all it supervises is dead.
func (g *guard) leave() {
	for range 500 {
		pid := g.current()
		if pid == 0 {
			os.Exit(0)
		}
		killDescendants(pid)
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(1)
}

func startWard(s job) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("supervise: %w", err)
	}
	p, err := os.StartProcess(s.order.Path, append([]string{s.order.Path}, s.order.Args...), &os.ProcAttr{
		Dir: s.order.Dir, Env: s.order.Env, Files: s.files,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, err
	}
	return p.Pid, nil
}
