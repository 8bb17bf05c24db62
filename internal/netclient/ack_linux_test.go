package netclient_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/netclient"
)

// ackDelay is the minimum time for which Linux can delay an acknowledgement.
const ackDelay = 40 * time.Millisecond

// nagleServer serves HTTP with Nagle's algorithm, as Python's http.server does. It writes each part of an
// answer separately, and a connection serves one or more requests.
func nagleServer(t testing.TB, keep bool, parts ...string) (url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetNoDelay(false) //nolint:forcetypeassert // of a TCP listener
		for in := bufio.NewReader(conn); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, r.Body)
			for i, part := range parts {
				if i == 0 && !keep {
					part = strings.Replace(part, "\r\n", "\r\nConnection: close\r\n", 1)
				}
				if _, err := io.WriteString(conn, part); err != nil {
					return
				}
			}
			if !keep {
				return
			}
		}
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "http://" + listener.Addr().String()
}

const (
	header = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
	body   = "true"
)

// countStalls makes requests, and counts those that took as long as a delayed acknowledgement.
func countStalls(t testing.TB, client *http.Client, url string, n int) (stalled int) {
	t.Helper()
	for range n {
		began := time.Now()
		res, err := client.Post(url, "application/json", strings.NewReader(`{"jsonrpc":"2.0"}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || string(got) != body {
			t.Fatalf("%q, %v", got, err)
		}
		if time.Since(began) >= ackDelay {
			stalled++
		}
	}
	return stalled
}

// An answer whose header and body are written separately does not wait for a delayed
// acknowledgement. Without quick acknowledgements, each answer does; on a busy machine, some do anyway.
func TestNoStallBetweenHeaderAndBody(t *testing.T) {
	const requests = 20
	for name, url := range map[string]string{"one request each": nagleServer(t, false, header, body), "kept alive": nagleServer(t, true, header, body)} {
		t.Run(name, func(t *testing.T) {
			network := netclient.New(func(string) string { return "" })
			defer network.Close()
			if n := countStalls(t, network.Client(netclient.Options{HTTP1: true}), url, requests); n > requests/2 {
				t.Errorf("%d of %d answers waited for an acknowledgement", n, requests)
			}
		})
	}
}

// BenchmarkHeaderAndBody compares answers in two writes with the floor, answers in one.
func BenchmarkHeaderAndBody(b *testing.B) {
	for name, url := range map[string]string{"floor": nagleServer(b, true, header+body), "separate": nagleServer(b, true, header, body)} {
		b.Run(name, func(b *testing.B) {
			network := netclient.New(func(string) string { return "" })
			defer network.Close()
			b.ReportMetric(float64(countStalls(b, network.Client(netclient.Options{HTTP1: true}), url, b.N))/float64(b.N), "stalls/op")
		})
	}
}
