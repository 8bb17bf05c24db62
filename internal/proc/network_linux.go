package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// networkArg, followed by ports, makes a program that calls Supervise keep a network namespace open
// until its parent closes the socket or exits.
const networkArg = "__network"

// enterProgram is the system program that runs another program in existing namespaces.
const enterProgram = "nsenter"

// Network is a network namespace with only a loopback interface. Several children can share it
// (Pool.Join). The only connections out of it go to its listeners, which eca serves from outside.
type Network struct {
	cmd       *exec.Cmd
	socket    *os.File
	user, net *os.File // the namespaces
	listeners []net.Listener
}

// NewNetwork creates a network namespace that listens on ports of its loopback interface.
func (p *Pool) NewNetwork(ports ...int) (n *Network, err error) {
	if _, err := exec.LookPath(enterProgram); err != nil {
		return nil, fmt.Errorf("make a network namespace: %w", err)
	}
	ours, theirs, err := socketPair("network")
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	n = &Network{socket: ours}
	defer func() {
		if err != nil {
			n.Close()
			n = nil
		}
	}()
	args := []string{"eca", networkArg}
	for _, port := range ports {
		args = append(args, strconv.Itoa(port))
	}
	cmd := exec.Command(p.supervisor)
	cmd.Args, cmd.ExtraFiles, cmd.Env = args, []*os.File{theirs}, []string{"GOMAXPROCS=1"}
	setProcessGroup(cmd)
	sandbox.UserNamespace(cmd.SysProcAttr)
	cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
	if err := cmd.Start(); err != nil {
		return n, fmt.Errorf("make a network namespace: %w", err)
	}
	n.cmd = cmd
	_ = theirs.Close()
	for range ports {
		l, err := receiveListener(int(ours.Fd()))
		if err != nil {
			return n, fmt.Errorf("make a network namespace: %w", err)
		}
		n.listeners = append(n.listeners, l)
	}
	for name, file := range map[string]**os.File{"user": &n.user, "net": &n.net} {
		if *file, err = os.Open(fmt.Sprintf("/proc/%d/ns/%s", cmd.Process.Pid, name)); err != nil {
			return n, fmt.Errorf("make a network namespace: %w", err)
		}
	}
	return n, nil
}

// Listeners returns the listeners of the ports, in the order of the ports.
func (n *Network) Listeners() []net.Listener { return n.listeners }

// Close closes the listeners. The namespace exists until its last child ends.
func (n *Network) Close() {
	for _, l := range n.listeners {
		_ = l.Close()
	}
	for _, f := range []*os.File{n.socket, n.user, n.net} {
		if f != nil {
			_ = f.Close()
		}
	}
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
	}
}

// enter changes a command to start in the namespaces.
func (n *Network) enter(cmd *exec.Cmd) error {
	program, err := exec.LookPath(enterProgram)
	if err != nil {
		return err
	}
	first := 3 + len(cmd.ExtraFiles)
	cmd.ExtraFiles = append(cmd.ExtraFiles, n.user, n.net)
	cmd.Args = append([]string{
		enterProgram, fmt.Sprintf("--user=/proc/self/fd/%d", first), fmt.Sprintf("--net=/proc/self/fd/%d", first+1), "--preserve-credentials", "--", cmd.Path,
	}, cmd.Args[1:]...)
	cmd.Path = program
	return nil
}

// receiveListener receives a listening socket. The error may be the other process's reason why it
// could not listen.
func receiveListener(fd int) (net.Listener, error) {
	buf, rights := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	n, extra, err := receivePacket(fd, buf, rights)
	if err != nil {
		return nil, err
	}
	controls, err := unix.ParseSocketControlMessage(rights[:extra])
	if err != nil || len(controls) == 0 {
		return nil, errors.New(string(buf[:max(n, 0)]))
	}
	fds, err := unix.ParseUnixRights(&controls[0])
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer file.Close()
	return net.FileListener(file)
}

// holdNetwork runs the process that keeps a network namespace open.
func holdNetwork(ports []string) int {
	ownSocket()
	if err := sandbox.LoopbackUp(); err != nil {
		_ = sendPacket(socketFD, []byte(err.Error()), nil)
		return 1
	}
	for _, port := range ports {
		if err := passListener(port); err != nil {
			_ = sendPacket(socketFD, []byte(err.Error()), nil)
			return 1
		}
	}
	_, _, _ = receivePacket(socketFD, make([]byte, 1), nil) // until the parent exits
	return 0
}

// passListener opens a listening socket, sends it to the parent, and closes it.
func passListener(port string) error {
	l, err := net.Listen("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	defer l.Close()
	raw, err := l.(syscall.Conn).SyscallConn() //nolint:forcetypeassert // of TCP
	if err != nil {
		return err
	}
	var sendErr error
	if err := raw.Control(func(fd uintptr) { sendErr = sendPacket(socketFD, []byte("listener"), unix.UnixRights(int(fd))) }); err != nil {
		return err
	}
	return sendErr
}
