//go:build !linux

package netclient

import "net"

// promptly returns the connection unchanged: only Linux can acknowledge data immediately.
func promptly(conn net.Conn) net.Conn { return conn }
