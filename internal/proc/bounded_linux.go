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

// A bounded child is started in two stages. The second stage is another process of this program: it
// receives an order over a socket, bounds itself and becomes the child.
//
// The supervisor cannot bound itself and then start the child. A child may signal and trace
// processes with the same bounds, so it could kill the supervisor, which has to kill the child's
// remaining descendants.

// launch describes how a second stage is started. It is fixed once the stage runs.
type launch struct{ spaces sandbox.Spaces }

// launchFor returns the launch of the second stage for a policy.
func launchFor(p sandbox.Policy) launch { return launch{p.Spaces()} }

// attributes returns the attributes of the second stage's process. The process leads its own session,
// so the child has no controlling terminal.
func (l launch) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	l.spaces.Set(attr)
	return attr
}

// stage is a second stage that waits for its order.
type stage struct {
	launch  launch
	process *os.Process
	socket  *os.File
}

// startStage starts a second stage, in a memory group if memory is not nil.
func startStage(l launch, memory *memoryGroup) (*stage, error) {
	ours, theirs, err := socketPair("second stage")
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	p, err := os.StartProcess("/proc/self/exe", []string{"eca", boundedArg}, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, theirs},
		Env:   []string{"GOMAXPROCS=1", "GOGC=off"},
		Sys:   memory.attributes(l.attributes()),
	})
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start the second stage: %w", err)
	}
	return &stage{l, p, ours}, nil
}

// discard kills a second stage that is not needed.
func (s *stage) discard() {
	_ = s.socket.Close()
	_ = s.process.Kill()
	_, _ = s.process.Wait()
}

// startBounded starts a child within the bounds of its policy, and returns once the child runs. It
// uses the second stage ready if that has the same launch, otherwise a new one.
func startBounded(ready *stage, o order, start func(launch) (*stage, error)) (c startedChild, err error) {
	o.Policy.Protect = append(o.Policy.Protect, os.Getpid())
	l := launchFor(o.Policy)
	if ready != nil && ready.launch == l {
		if c, err = ready.runOrder(o); !closedBeforeRead(err) {
			return c, err
		}
	} else if ready != nil {
		ready.discard()
	}
	s, err := start(l)
	if err != nil {
		return startedChild{}, err
	}
	return s.runOrder(o)
}

// startedChild is a running child. If the second stage remains as the parent of the child, pid is its
// process ID, and endSocket is the open socket over which it reports the end of the child.
type startedChild struct {
	pid       int
	endSocket *os.File
}

// wait waits for the child to end. left reports whether the child left processes behind in its PID
// namespace; they have ended too.
func (c startedChild) wait() (code int, left bool) {
	code = reapUntil(c.pid)
	if c.endSocket == nil {
		return code, false
	}
	defer c.endSocket.Close()
	buf, killed := make([]byte, len(endMessage)+2), false
	n, _, _ := receivePacket(int(c.endSocket.Fd()), buf, nil)
	_, _ = fmt.Sscanf(string(buf[:max(n, 0)]), endMessage, &killed, &left) // no message leaves both values at false
	if killed {
		code = -1
	}
	return code, left
}

// runOrder sends an order to the second stage, which then becomes the child or starts it.
func (s *stage) runOrder(o order) (c startedChild, err error) {
	remains := false
	if err = s.send(o); err == nil {
		remains, err = s.awaitStart()
	}
	if err != nil {
		s.discard()
		return startedChild{}, err
	}
	if remains {
		return startedChild{s.process.Pid, s.socket}, nil
	}
	_ = s.socket.Close()
	return startedChild{pid: s.process.Pid}, nil
}

func (s *stage) send(o order) error {
	return o.send(func(packet, rights []byte) error { return sendPacket(int(s.socket.Fd()), packet, rights) })
}

// awaitStart waits until the child runs or cannot start. If the second stage became the child, the socket
// is closed. Otherwise the stage sends startedMessage and stays as the parent of the child, or sends
// the reason why the child cannot start.
func (s *stage) awaitStart() (remains bool, err error) {
	buf := make([]byte, 4<<10)
	n, _, err := receivePacket(int(s.socket.Fd()), buf, nil)
	switch text := strings.TrimSpace(string(buf[:max(n, 0)])); {
	case err != nil || n == 0:
		return false, err
	case text == startedMessage:
		return true, nil
	default:
		return false, errors.New(text)
	}
}

// runSecondStage runs the second stage and returns its exit code. It does not return if this process
// becomes the child.
func runSecondStage() int {
	runtime.LockOSThread() // the bounds apply to this thread, which becomes the child
	ownSocket()
	buf, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(maxStreams*4))
	n, extra, err := receivePacket(socketFD, buf, rights)
	if err != nil || n == 0 {
		return 0 // the supervisor has exited
	}
	o, err := receiveOrder(socketFD, buf[:n], rights[:extra])
	if err == nil {
		err = setUpChild(o)
	}
	if err == nil && o.Policy.OwnProcesses {
		return runInit(o)
	}
	if err == nil {
		err = applyAndExec(o)
	}
	_ = sendPacket(socketFD, []byte(err.Error()), nil)
	return 127
}

// setUpChild sets the working directory and the standard streams of the child, and sets up its
// namespaces.
func setUpChild(o order) error {
	if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	for i, f := range o.files {
		if err := unix.Dup3(int(f.Fd()), i, 0); err != nil {
			return fmt.Errorf("hand over descriptor %d: %w", i, err)
		}
	}
	// The child must not inherit descriptors that eca's parent left open.
	if err := unix.CloseRange(socketFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	return sandbox.Enter(o.Policy)
}

// applyAndExec bounds this process and executes the child's program. It returns only if that fails.
func applyAndExec(o order) error {
	if err := sandbox.Apply(o.Policy); err != nil {
		return err
	}
	if err := unix.Exec(o.Path, append([]string{o.Path}, o.Args...), o.Env); err != nil {
		return &os.PathError{Op: "exec", Path: o.Path, Err: err}
	}
	return nil
}
