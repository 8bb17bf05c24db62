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

// A connection carries the next request although no caller reads after the last event;
// one whose server does not end its answer delays no caller for long.
func TestPostReusesConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const event = "data: [DONE]\n\n"
		heard := make(chan bool, 1) // the event was read: only then does the answer end
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, event)
			w.(http.Flusher).Flush()
			<-heard
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
				heard <- true
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
			t.Errorf("%d connections", listener.opened)
		}
		began := time.Now()
		post("/endless")
		if took := time.Since(began); took != drainTime {
			t.Errorf("an answer that does not end was waited for %s", took)
		}
	})
}
