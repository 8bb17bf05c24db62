package netclient

import (
	"net"
	"syscall"
)

// withQuickAck returns a connection that acknowledges data immediately after reading it. By default,
// Linux delays that by up to 40 ms on a connection that has just sent a request. A server that
// writes header and body separately with Nagle's algorithm enabled (such as Python's http.server)
// sends the body only when the header is acknowledged, so each answer would be delayed.
func withQuickAck(conn net.Conn) net.Conn {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return conn
	}
	return &quickAckConn{Conn: conn, raw: raw}
}

type quickAckConn struct {
	net.Conn
	raw syscall.RawConn
}

// Read implements net.Conn. The option is not permanent, so it is set after each read; without it,
// answers are just slower.
func (c *quickAckConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		_ = c.raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_QUICKACK, 1)
		})
	}
	return n, err
}
