package netclient

import (
	"net"
	"syscall"
)

// promptly returns a connection that acknowledges what it has read at once. By default,
// Linux waits up to 40 ms with that on a connection that has just sent a request. A server
// that writes header and body separately, and has not turned Nagle's algorithm off (as
// Python's http.server), sends the body only when the header is acknowledged: each answer
// would be late by that time.
func promptly(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &promptConn{Conn: conn, raw: raw}
}

type promptConn struct {
	net.Conn
	raw syscall.RawConn
}

// Read implements net.Conn. The option holds for the moment only, so it is set after each
// read; without it, answers are just slower.
func (c *promptConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		_ = c.raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
	return n, err
}
