package jsonrpc

import (
	"context"
	"errors"
	"io"
	"sync"
)

// ErrClosed is returned for messages sent after the connection has ended.
var ErrClosed = errors.New("jsonrpc: connection closed")

// DefaultMaxQueued bounds the bytes that wait for a peer that does not read. Senders of more block until
// there is space or their context ends. A message whose context ends is lost unless its sender has stored
// it elsewhere (for chats: in the event log).
const DefaultMaxQueued = 1 << 20

// maxUrgent bounds the queue for urgent messages, which never block their senders. A peer that lets so
// many bytes wait is disconnected.
const maxUrgent = 256 << 20

// errPeerStuck ends the connection to such a peer.
var errPeerStuck = errors.New("jsonrpc: the peer does not read")

// writer is an ordered queue before the pipe. One goroutine drains it.
type writer struct {
	w     io.Writer
	max   int // bytes in queue, see Options.MaxQueued
	frame func([]byte) []byte
	fail  func(error)   // called when the peer cannot be written to
	wake  chan struct{} // capacity 1: the queue has work or is closing
	ended chan struct{} // closed when the draining goroutine has ended

	mu     sync.Mutex // guards the fields below
	queue  [][]byte
	queued int           // bytes in queue
	space  chan struct{} // closed and replaced when bytes leave the queue
	closed bool
	err    error
}

func newWriter(w io.Writer, max int, frame func([]byte) []byte, fail func(error)) *writer {
	wr := &writer{
		w:     w,
		max:   max,
		frame: frame,
		fail:  fail,
		wake:  make(chan struct{}, 1),
		ended: make(chan struct{}),
		space: make(chan struct{}),
	}
	go wr.drain()
	return wr
}

// send queues one body as one frame. It waits while the queue is full, unless the message is
// urgent.
func (wr *writer) send(ctx context.Context, body []byte, urgent bool) error {
	frame := wr.frame(body)
	for {
		wr.mu.Lock()
		if wr.err != nil || wr.closed {
			err := wr.err
			wr.mu.Unlock()
			if err == nil {
				err = ErrClosed
			}
			return err
		}
		// An empty queue takes any frame, however large.
		if urgent && wr.queued > maxUrgent {
			wr.err = errPeerStuck
			wr.mu.Unlock()
			wr.fail(errPeerStuck)
			return errPeerStuck
		}
		if urgent || wr.queued == 0 || wr.queued+len(frame) <= wr.max {
			wr.queue = append(wr.queue, frame)
			wr.queued += len(frame)
			wr.mu.Unlock()
			wr.signal()
			return nil
		}
		space := wr.space
		wr.mu.Unlock()
		select {
		case <-space:
		case <-wr.ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (wr *writer) signal() {
	select {
	case wr.wake <- struct{}{}:
	default:
	}
}

// close stops accepting messages; queued ones are still written.
func (wr *writer) close() {
	wr.mu.Lock()
	wr.closed = true
	wr.mu.Unlock()
	wr.signal()
}

func (wr *writer) drain() {
	defer close(wr.ended)
	for {
		wr.mu.Lock()
		batch, closed := wr.queue, wr.closed
		wr.queue = nil
		wr.mu.Unlock()
		if len(batch) == 0 {
			if closed {
				return
			}
			<-wr.wake
			continue
		}
		for _, frame := range batch {
			// One Write per message: a client parses each chunk on its own
			// (eca-protocol.md 1.3, rule 3).
			_, err := wr.w.Write(frame)
			wr.mu.Lock()
			wr.queued -= len(frame)
			if err != nil {
				wr.err = err
			}
			close(wr.space)
			wr.space = make(chan struct{})
			wr.mu.Unlock()
			if err != nil {
				wr.fail(err)
				return
			}
		}
	}
}
