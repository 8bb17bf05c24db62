package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// A bounded child is started in two stages. The second stage is this program once more: it
// gets the order over a socket, bounds itself and becomes the child.
//
// The supervisor cannot bound itself and then start the child: a child may signal and trace
// what is within its own bounds, so it could end the one process that ends what it leaves
// behind.

// launch is how a second stage is started, which cannot be changed once it runs.
type launch struct{}

// launchFor returns how the second stage of a child is started.
func launchFor(sandbox.Policy) launch { return launch{} }

// attributes are those of the second stage's process. It leads a session of its own, so that the
// child has no terminal.
func (launch) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// stage is a second stage that waits for its order.
type stage struct {
	launch  launch
	process *os.Process
	socket  *os.File
}

func startStage(l launch) (*stage, error) {
	ours, theirs, err := socketPair("second stage")
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"eca", boundedArg}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, theirs},
		Env:   []string{"GOMAXPROCS=1", "GOGC=off"},
		Sys:   l.attributes(),
	})
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start the second stage: %w", err)
	}
	return &stage{l, p, ours}, nil
}

// discard ends a second stage that is not needed.
func (s *stage) discard() {
	_ = s.socket.Close()
	_ = s.process.Kill()
	_, _ = s.process.Wait()
}

// startBounded starts a child within the bounds of a policy and returns once it runs: through
// the second stage that is ready if it fits, else through a new one.
func startBounded(ready *stage, o order) (pid int, err error) {
	o.Policy.Protect = append(o.Policy.Protect, os.Getpid())
	l := launchFor(o.Policy)
	if ready != nil && ready.launch == l {
		if pid, err = ready.become(o); !unread(err) {
			return pid, err
		}
	} else if ready != nil {
		ready.discard()
	}
	s, err := startStage(l)
	if err != nil {
		return 0, err
	}
	return s.become(o)
}

// become has the second stage become the child.
func (s *stage) become(o order) (pid int, err error) {
	if err = s.send(o); err == nil {
		err = s.started()
	}
	if err != nil {
		s.discard()
		return 0, err
	}
	_ = s.socket.Close()
	return s.process.Pid, nil
}

func (s *stage) send(o order) error {
	return o.send(func(packet, rights []byte) error { return sendPacket(int(s.socket.Fd()), packet, rights) })
}

// started waits until the second stage has become the child, which closes the socket, or says
// why it cannot.
func (s *stage) started() error {
	buf := make([]byte, 4<<10)
	n, _, err := receivePacket(int(s.socket.Fd()), buf, nil)
	if err == nil && n > 0 {
		err = errors.New(strings.TrimSpace(string(buf[:n])))
	}
	return err
}

// becomeBounded is the second stage. It returns only if there is no order, or the child cannot
// start.
func becomeBounded() int {
	runtime.LockOSThread() // the bounds are this thread's, and the child takes its place
	ownSocket()
	buf, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(maxStreams*4))
	n, extra, err := receivePacket(socketFD, buf, rights)
	if err != nil || n == 0 {
		return 0 // the supervisor ended
	}
	o, err := receiveOrder(socketFD, buf[:n], rights[:extra])
	if err == nil {
		err = bindAndExec(o)
	}
	_ = sendPacket(socketFD, []byte(err.Error()), nil)
	return 127
}

// bindAndExec turns this process into the child.
func bindAndExec(o order) error {
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	for i, f := range o.files {
		if err := unix.Dup3(int(f.Fd()), i, 0); err != nil {
			return fmt.Errorf("hand over descriptor %d: %w", i, err)
		}
	}
	// Whatever whoever started eca had left open.
	if err := unix.CloseRange(socketFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := sandbox.Apply(o.Policy); err != nil {
		return err
	}
	if err := unix.Exec(o.Path, append([]string{o.Path}, o.Args...), o.Env); err != nil {
		return &os.PathError{Op: "exec", Path: o.Path, Err: err}
	}
	return nil
}
