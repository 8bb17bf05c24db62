package llm

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are in memory, so that time can be the test's.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	opened int
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	p.opened++
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, errors.New("closed")
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

// Post uses a connection again although its callers do not read after the last event. If the server
// does not end its answer, Post waits for the end for at most drainTime.
func TestPostReusesConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const event = "data: [DONE]\n\n"
		eventRead := make(chan bool, 1) // the server ends its answer only after the client has read the event
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
			<-eventRead
			if r.URL.Path == "/endless" {
				<-r.Context().Done()
				return
			}
			time.Sleep(drainTime / 2)
		})}
		listener := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
		go func() { _ = srv.Serve(listener) }()
		defer srv.Close()
		client := &http.Client{Transport: &http.Transport{DialContext: listener.dial}}
		defer client.CloseIdleConnections()
		post := func(path string) {
			t.Helper()
			at := Endpoint{Provider: "p", URL: "http://models.example" + path, Client: client, Now: time.Now}
			err := at.Post(context.Background(), []byte("{}"), nil, func(body io.Reader) error {
				_, err := io.ReadFull(body, make([]byte, len(event)))
				eventRead <- true
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			post("")
		}
		if listener.opened != 1 {
			t.Errorf("20 requests used %d connections, want 1", listener.opened)
		}
		began := time.Now()
		post("/endless")
		if took := time.Since(began); took != drainTime {
			t.Errorf("Post waited %s for the end of an endless answer, want %s", took, drainTime)
		}
	})
}
