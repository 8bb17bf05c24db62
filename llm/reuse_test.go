package llm

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// A connection carries the next request although nobody reads behind the last event; one
// whose server does not end its answer holds nobody up.
func TestPostReusesConnections(t *testing.T) {
	const event = "data: [DONE]\n\n"
	var opened atomic.Int32
	heard := make(chan bool, 1) // the event was read: only then does the answer end
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, event)
		w.(http.Flusher).Flush()
		if r.URL.Path == "/endless" {
			<-r.Context().Done()
		}
		<-heard
	}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	post := func(path string) {
		t.Helper()
		at := Endpoint{Provider: "p", URL: srv.URL + path, Client: client, Now: time.Now}
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
	if n := opened.Load(); n > 5 { // a busy machine may miss the end
		t.Errorf("%d connections", n)
	}
	post("/endless")
}
