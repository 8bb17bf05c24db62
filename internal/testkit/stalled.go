package testkit

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Stalled connects a client to an HTTP server that sends text and then nothing more. It returns the
// server's answer and the time until the server closes the connection. The clock is that of
// testing/synctest, so no real time passes. A server that waits forever fails the test. Stalled uses
// only the handler and the timeouts of server.
func Stalled(t *testing.T, server *http.Server, text string) (answer string, after time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, conn := net.Pipe()
		l := &oneConn{conn: conn, closed: make(chan struct{})}
		s := &http.Server{
			Handler: server.Handler, ReadHeaderTimeout: server.ReadHeaderTimeout, IdleTimeout: server.IdleTimeout,
			ErrorLog: log.New(io.Discard, "", 0),
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		start := time.Now()
		if _, err := io.WriteString(client, text); err != nil {
			t.Errorf("the client cannot send: %v", err)
		}
		got, err := io.ReadAll(client)
		if err != nil {
			t.Errorf("the client cannot receive: %v", err)
		}
		answer, after = string(got), time.Since(start)
		_ = s.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("the server ended with %v", err)
		}
	})
	return answer, after
}

// oneConn is a listener that accepts one connection.
type oneConn struct {
	conn   net.Conn
	once   sync.Once
	mu     sync.Mutex // guards taken
	taken  bool
	closed chan struct{}
}

// Accept implements net.Listener.
func (l *oneConn) Accept() (net.Conn, error) {
	l.mu.Lock()
	first := !l.taken
	l.taken = true
	l.mu.Unlock()
	if first {
		return l.conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
