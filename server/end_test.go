package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/server"
)

// slowHost is configured only after proceed is closed.
type slowHost struct {
	*daemon.Daemon
	begun, proceed, ended chan struct{}
}

func (h *slowHost) Configure(options json.RawMessage, roots []string) {
	close(h.begun)
	<-h.proceed
	h.Daemon.Configure(options, roots)
	close(h.ended)
}

// If the client disconnects, the current message is handled to its end before the daemon closes.
func TestEndWhileHandling(t *testing.T) {
	t.Parallel()
	r := newHost(t, options{closed: true})
	h := &slowHost{r.daemon, make(chan struct{}), make(chan struct{}), make(chan struct{})}
	toServer, in := io.Pipe()
	out, toEditor := io.Pipe()
	go func() { _, _ = io.Copy(io.Discard, out) }()
	ctx, cancel := context.WithCancel(t.Context()) // as if the client's process had died
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, toServer, toEditor, server.Options{Host: h, Version: "test"}) }()
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	if _, err := fmt.Fprintf(in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	<-h.begun
	cancel()
	select {
	case err := <-served:
		t.Fatalf("Serve returned before the message was handled: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(h.proceed)
	<-h.ended
	if err := <-served; err != nil {
		t.Error(err)
	}
	_, _ = in.Close(), toEditor.Close()
	r.daemon.Close()
}
