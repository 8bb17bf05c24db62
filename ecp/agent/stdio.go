package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/lines"
)

// MaxMessage bounds incoming messages, in bytes.
const MaxMessage = 16 << 20

const (
	// inputEndGrace is how long requests may still run after the input has ended. A runtime ends the agent by
	// closing its input, but a script may have piped all its requests at once.
	inputEndGrace = time.Second
	// lastAnswersTime is how long writing the last answers may take.
	lastAnswersTime = 500 * time.Millisecond
)

// Serve answers the messages on r, one JSON object per line (docs/contracts/ecp.md 1.4), until r ends,
// w cannot be written, or ctx ends. It then waits a limited time for the last answers, and returns even if a
// read or a write hangs. It does not close the agent.
func (a *Agent) Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	s := &stdio{agent: a, w: w, writeFailed: make(chan struct{}), unread: make(chan struct{}, maxUnread)}
	calls, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- s.read(calls, r) }()
	var err error
	select {
	case err = <-ended:
	case <-s.writeFailed:
		err = s.failure()
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		s.calls.Wait()
		close(answered)
	}()
	timer := time.NewTimer(inputEndGrace)
	defer timer.Stop()
	select {
	case <-answered:
		return err
	case <-timer.C:
	case <-s.writeFailed:
	case <-ctx.Done():
	}
	cancel(errDisconnected)
	timer.Reset(lastAnswersTime)
	select {
	case <-answered:
	case <-timer.C:
	}
	return err
}

// maxUnread limits the messages without a written answer. At the limit no more input is read, because
// the runtime may not be reading the answers.
const maxUnread = 4 * maxWaiting

// stdio is the connection to one runtime on a pair of pipes.
type stdio struct {
	agent  *Agent
	calls  sync.WaitGroup
	unread chan struct{} // one element for each message without a written answer

	writeFailed chan struct{} // closed when w accepts no more data

	writing sync.Mutex // guards w
	w       io.Writer

	mu          sync.Mutex    // guards the fields below
	ended       bool          // no more messages are accepted
	lastWritten chan struct{} // closed when the last queued answer was written
	err         error         // of w
}

// read handles lines until the input ends.
func (s *stdio) read(ctx context.Context, r io.Reader) error {
	tooLong := ecp.Errorf(ecp.CodeParse, "Parse error: the message has more than %d bytes", MaxMessage)
	in := lines.NewReader(r, MaxMessage, tooLong)
	for {
		line, err := in.NextMessage()
		switch {
		case errors.Is(err, tooLong):
			s.write(ecp.Response{Err: tooLong})
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read stdin: %w", err)
		default:
			s.answerLine(ctx, bytes.Clone(line))
		}
	}
}

// answerLine starts to answer a line. Requests are executed, and their answers written, in the order
// of the lines.
func (s *stdio) answerLine(ctx context.Context, line []byte) {
	select {
	case s.unread <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	list, batch := parseMessages(line)
	answers, ordered := s.agent.enqueueMessages(ctx, list)
	var previous, written chan struct{}
	if ordered {
		previous, written = s.lastWritten, make(chan struct{})
		s.lastWritten = written
	}
	s.calls.Go(func() {
		defer func() { <-s.unread }()
		out := answers()
		if ordered {
			defer close(written)
			if previous != nil {
				<-previous
			}
		}
		switch {
		case len(out) == 0:
		case batch:
			s.write(out)
		default:
			s.write(out[0])
		}
	})
}

// write writes an answer as one line.
func (s *stdio) write(v any) {
	line, err := ecp.Encode(v)
	if err != nil {
		s.agent.opts.Log.Error("cannot encode an answer", "err", err)
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.failure() != nil {
		return
	}
	if _, err := s.w.Write(append(line, '\n')); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = fmt.Errorf("write stdout: %w", err)
		close(s.writeFailed)
	}
}

func (s *stdio) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
