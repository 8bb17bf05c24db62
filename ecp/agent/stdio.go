package agent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
)

// MaxMessage is the longest message that is taken, in bytes.
const MaxMessage = 16 << 20

const (
	// grace is how long what was asked for may go on when the input has ended: runtimes end
	// agents like that, and scripts pipe their calls in at once.
	grace = time.Second
	// farewell is how long the last answers may take to be written.
	farewell = 500 * time.Millisecond
)

// Serve answers what comes in on r, one JSON object per line (1.4), until it ends, the
// other side stops reading, or ctx ends. Neither a reader nor a writer that hangs holds it
// up then. The agent is not closed.
func (a *Agent) Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	s := &stdio{agent: a, w: w, broken: make(chan struct{}), room: make(chan struct{}, maxUnread)}
	calls, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() { ended <- s.read(calls, r) }()
	var err error
	select {
	case err = <-ended:
	case <-s.broken:
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
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-answered:
		return err
	case <-timer.C:
	case <-s.broken:
	case <-ctx.Done():
	}
	cancel(errLeft)
	timer.Reset(farewell)
	select {
	case <-answered:
	case <-timer.C:
	}
	return err
}

// maxUnread bounds the answers that are not written yet: a runtime that does not read them
// is not read from either.
const maxUnread = 4 * maxWaiting

// stdio is one runtime on a pair of pipes.
type stdio struct {
	agent *Agent
	calls sync.WaitGroup
	room  chan struct{}

	broken chan struct{} // closed when w does not take any more

	writing sync.Mutex // guards w
	w       io.Writer

	mu    sync.Mutex    // guards what follows
	ended bool          // nothing more is taken
	last  chan struct{} // closed when the last answer in the order of the calls was written
	err   error         // of w
}

// read takes lines until there are no more.
func (s *stdio) read(ctx context.Context, r io.Reader) error {
	in := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(in, MaxMessage)
		var long tooLong
		switch {
		case errors.As(err, &long):
			s.write(ecp.Response{Err: ecp.Errorf(ecp.CodeParse, "Parse error: %v", err)})
			continue
		case len(line) > 0:
			s.take(ctx, line)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read stdin: %w", err)
		}
	}
}

// take answers a line. Calls have their place in the order of the lines, and so have their
// answers.
func (s *stdio) take(ctx context.Context, line []byte) {
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return
	}
	list, batch := parse(line)
	answers, ordered := s.agent.take(ctx, list)
	var before, written chan struct{}
	if ordered {
		before, written = s.last, make(chan struct{})
		s.last = written
	}
	s.calls.Go(func() {
		defer func() { <-s.room }()
		out := answers()
		if ordered {
			defer close(written)
			if before != nil {
				<-before
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
		s.agent.log.Error("an answer can not be encoded", "err", err)
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
		close(s.broken)
	}
}

func (s *stdio) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// tooLong says that a line has more than so many bytes.
type tooLong int

func (n tooLong) Error() string { return fmt.Sprintf("the message has more than %d bytes", int(n)) }

// readLine reads a line without its end and the blanks around it. One that is too long is
// skipped, whatever its length, and takes no memory. The last line need not have an end.
func readLine(in *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > limit+1; long {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && err == nil:
			return nil, tooLong(limit)
		}
		return bytes.TrimSpace(line), err
	}
}
