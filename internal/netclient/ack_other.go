//go:build !linux

package netclient

import "net"

// withQuickAck returns the connection unchanged: only Linux can acknowledge data immediately.
func withQuickAck(conn net.Conn) net.Conn { return conn }
