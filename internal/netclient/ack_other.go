//go:build !linux

package netclient

import "net"

// promptly returns a connection that acknowledges what it has read at once, where the
// system can; only Linux can.
func promptly(conn net.Conn) net.Conn { return conn }
