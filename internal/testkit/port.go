package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// FreePort returns a TCP port of 127.0.0.1 on which nothing listens. Servers of other tests, which listen
// on port 0, never get it: the system chooses theirs from 32768 up.
func FreePort(t testing.TB) int {
	t.Helper()
	return FreePorts(t, 1)[0]
}

// FreePorts returns n different ports, each like that of FreePort.
func FreePorts(t testing.TB, n int) (ports []int) {
	t.Helper()
	const first, after = 10000, 32768
	for range 100 * n {
		port := first + rand.IntN(after-first)
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err != nil {
			continue
		}
		defer l.Close() // held until all are chosen, so that they differ
		if ports = append(ports, port); len(ports) == n {
			return ports
		}
	}
	t.Fatalf("%d of %d ports are free", len(ports), n)
	return nil
}
