package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// wire is a client that writes messages literally and keeps the bodies it reads.
type wire struct {
	t   testing.TB
	in  *os.File
	end string // appended to each body, and counted

	mu      sync.Mutex // guards the fields below
	bodies  []string
	changed chan struct{}
	closed  bool
}

func newWire(t testing.TB, d host, end string) *wire {
	t.Helper()
	out, in, done := serve(t, d)
	w := &wire{t: t, in: in, end: end, changed: make(chan struct{})}
	read := make(chan struct{})
	go func() {
		defer close(read)
		w.read(bufio.NewReader(out))
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-done
		<-read
		_ = out.Close()
	})
	return w
}

func (w *wire) read(r *bufio.Reader) {
	for {
		body, err := readFrame(r)
		w.mu.Lock()
		if err == nil {
			w.bodies = append(w.bodies, string(body))
		}
		w.closed = err != nil
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func readFrame(r *bufio.Reader) ([]byte, error) {
	header, err := textproto.NewReader(r).ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		return nil, err
	}
	body := make([]byte, n)
	_, err = io.ReadFull(r, body)
	return body, err
}

// send writes one message.
func (w *wire) send(body string) {
	w.t.Helper()
	body += w.end
	if _, err := fmt.Fprintf(w.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		w.t.Fatal(err)
	}
}

// mark returns the number of messages so far.
func (w *wire) mark() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.bodies)
}

// waitUntil waits until a condition holds for all messages so far, or for their end.
func (w *wire) waitUntil(what string, met func(bodies []string, ended bool) bool) {
	w.t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	for {
		w.mu.Lock()
		bodies, changed, ended := w.bodies, w.changed, w.closed
		w.mu.Unlock()
		if met(bodies, ended) {
			return
		}
		why := "the daemon ended"
		if !ended {
			select {
			case <-changed:
				continue
			case <-deadline.C:
				why = "it takes too long"
			}
		}
		w.t.Fatalf("%s: no %s in\n%s", why, what, strings.Join(bodies, "\n"))
	}
}

// await waits for a message after a mark that has all pieces. It returns the message and the mark
// after it.
func (w *wire) await(mark int, pieces ...string) (body string, next int) {
	w.t.Helper()
	w.waitUntil(fmt.Sprintf("%q behind %d", pieces, mark), func(bodies []string, _ bool) bool {
		for i, b := range bodies[mark:] {
			if hasAll(b, pieces) {
				body, next = b, mark+i+1
				return true
			}
		}
		return false
	})
	return body, next
}

// awaitStart waits until the tasks of the start have ended.
func (w *wire) awaitStart() {
	w.t.Helper()
	w.waitUntil("end of the start", func(bodies []string, _ bool) bool {
		var heard []fake.Message
		for _, b := range bodies {
			var m fake.Message
			_ = json.Unmarshal([]byte(b), &m)
			heard = append(heard, m)
		}
		return fake.Ready()(heard) == fake.Met
	})
}

// awaitEnd waits until the daemon has closed its output.
func (w *wire) awaitEnd() {
	w.t.Helper()
	w.waitUntil("end", func(_ []string, ended bool) bool { return ended })
}

// messagesSince returns the messages after a mark that have all pieces.
func (w *wire) messagesSince(mark int, pieces ...string) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.bodies[mark:] {
		if hasAll(b, pieces) {
			out = append(out, b)
		}
	}
	return out
}
