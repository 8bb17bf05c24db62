package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// order is a request to start a program. It is sent, with the child's three standard streams, over a
// socket that preserves packet boundaries: from eca to the supervisor and, if the child is bounded,
// from the supervisor to the second stage. Process arguments are not used, because all users can read
// them.
type order struct {
	Path   string         `json:"path"`
	Args   []string       `json:"args"` // without the program's name
	Dir    string         `json:"dir"`
	Env    []string       `json:"env"`
	Policy sandbox.Policy `json:"policy"`

	files []*os.File
}

const (
	orderHeader = "order %d"
	packetSize  = 64 << 10
	maxStreams  = 3
)

// send writes an order in packets: first the size of its JSON, with the streams, then the JSON in
// pieces, because the kernel limits the size of a packet.
func (o order) send(write func(packet, rights []byte) error) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("encode the order: %w", err)
	}
	fds := make([]int, len(o.files))
	for i, f := range o.files {
		fds[i] = int(f.Fd())
	}
	if err := write(fmt.Appendf(nil, orderHeader, len(text)), unix.UnixRights(fds...)); err != nil {
		return err
	}
	for len(text) > 0 {
		n := min(len(text), packetSize)
		if err := write(text[:n], nil); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

func (o order) close() {
	for _, f := range o.files {
		_ = f.Close()
	}
}

// errOrder means that a received packet is not a valid order.
var errOrder = errors.New("the order is invalid")

// receiveOrder receives the rest of an order, given its first packet.
func receiveOrder(fd int, header, rights []byte) (o order, err error) {
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	size := 0
	if _, err := fmt.Sscanf(string(header), orderHeader, &size); err != nil {
		return o, errOrder
	}
	controls, err := unix.ParseSocketControlMessage(rights)
	for i := 0; err == nil && i < len(controls); i++ {
		var fds []int
		fds, err = unix.ParseUnixRights(&controls[i])
		for _, fd := range fds {
			o.files = append(o.files, os.NewFile(uintptr(fd), "stream"))
		}
	}
	text := make([]byte, 0, size)
	for err == nil && len(text) < size {
		var n int
		n, _, err = receivePacket(fd, text[len(text):size], nil)
		if n == 0 && err == nil {
			err = errOrder
		}
		text = text[:len(text)+n]
	}
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err == nil && len(o.files) != maxStreams {
		err = errOrder
	}
	return o, err
}

// closedBeforeRead reports whether a socket error means that the other end was closed before it had read
// everything.
func closedBeforeRead(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// receivePacket receives a packet into buf, and its file descriptors into rights. It returns the
// number of bytes in each. If n is 0 without an error, the other end is closed.
func receivePacket(fd int, buf, rights []byte) (n, extra int, err error) {
	for {
		n, extra, _, _, err = unix.Recvmsg(fd, buf, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, syscall.EINTR) {
			return n, extra, err
		}
	}
}

// sendPacket sends a packet.
func sendPacket(fd int, packet, rights []byte) error {
	for {
		err := unix.Sendmsg(fd, packet, rights, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// socketPair returns the two ends of a packet socket.
func socketPair(name string) (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), name), os.NewFile(uintptr(fds[1]), name), nil
}
