// Package lineproc runs child processes that communicate in lines: MCP servers and ECP agents.
//
// A child that does not read only blocks the callers that wait for it. A line of any length takes
// no more memory than its limit. The connection ends once, with the reason, even if another process
// has the child's output open. After Close, neither the child nor any process that it started is
// running. The package does not interpret lines.
package lineproc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/lines"
	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// exitTime is how long to wait for the end of the child after the end of its output, or the other way
// round, even on a busy machine. Both are needed to determine why the connection ended.
const exitTime = 3 * time.Second

// ErrClosed is the reason for the end of a connection after Close.
var ErrClosed = errors.New("the program was ended")

// Options configure the connection to a child.
type Options struct {
	Limit   int           // bytes of a line
	TooLong error         // ends the connection if the child writes a longer line
	Grace   time.Duration // how long the child may take to end after its input ends
	// Line handles a non-blank line without surrounding blanks; the line is valid until Line
	// returns. The last line may be cut. Line must not block after ended is closed. An error ends
	// the connection.
	Line func(ended <-chan struct{}, line []byte, cut bool) error
	// ExitError describes how the child ended. exit is nil if only its output has ended.
	ExitError func(exit *proc.Exit) error
}

// Process is a child and the connection to it.
type Process struct {
	o         Options
	child     proc.Child
	in        *os.File // for writing to the child
	out       *os.File
	frames    chan []byte
	eof       chan struct{} // closed at the end of the child's output
	ended     chan struct{}
	cause     error // set before ended is closed
	endOnce   sync.Once
	closeOnce sync.Once
	work      sync.WaitGroup
}

// Start starts a child; it adds the input and the output to spec.
func Start(pool *proc.Pool, spec proc.Spec, o Options) (*Process, error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return nil, err
	}
	defer stdout.Close()
	spec.Stdin, spec.Stdout = stdin, stdout
	p := &Process{o: o, in: in, out: out, frames: make(chan []byte), eof: make(chan struct{}), ended: make(chan struct{})}
	if p.child, err = pool.Start(spec); err != nil {
		_, _ = in.Close(), out.Close()
		return nil, err
	}
	p.work.Go(p.write)
	p.work.Go(func() { p.End(p.read()) })
	p.work.Go(func() {
		<-p.child.Done()
		if !proc.Within(p.ended, exitTime) {
			p.End(p.exitError()) // another process has its stdout open
		}
	})
	return p, nil
}

// Child is the process itself.
func (p *Process) Child() proc.Child { return p.child }

// Input is the pipe to the child.
func (p *Process) Input() *os.File { return p.in }

// Frames takes the data for the child, including line ends.
func (p *Process) Frames() chan<- []byte { return p.frames }

// Ended returns a channel that is closed when the connection has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Cause returns why the connection has ended, or nil if it has not.
func (p *Process) Cause() error {
	select {
	case <-p.ended:
		return p.cause
	default:
		return nil
	}
}

// OwnEnd returns why the connection has ended, or nil if it has not. Unlike Cause, it waits for the
// reason if the child's output has already ended.
func (p *Process) OwnEnd() error {
	select {
	case <-p.eof:
		<-p.ended // the reader waits no longer than exitTime for the reason
	default:
	}
	return p.Cause()
}

// End ends the connection, but not the child; only the first reason is kept.
func (p *Process) End(reason error) {
	p.endOnce.Do(func() {
		p.cause = reason
		close(p.ended)
	})
}

// Close ends the connection and the child. It closes the child's input, then asks the child to
// exit, then kills it with all processes that it started. With now, it skips the first wait.
func (p *Process) Close(now bool) {
	p.End(ErrClosed)
	p.closeOnce.Do(func() {
		_ = p.in.Close()
		if now || !proc.Within(p.child.Done(), p.o.Grace) {
			p.child.Kill()
		}
		_ = p.out.Close() // another process may still have it open
	})
	p.work.Wait()
}

// write is the only goroutine that writes to the child, so that a child that does not read blocks
// no others.
func (p *Process) write() {
	for {
		select {
		case frame := <-p.frames:
			if _, err := p.in.Write(frame); err != nil {
				// The reader has a better reason: it still has to read the child's last output.
				if !proc.Within(p.eof, exitTime) {
					p.End(fmt.Errorf("it does not take its input any more: %w", err))
				}
				return
			}
		case <-p.ended:
			return
		}
	}
}

// read passes on lines until the end, and returns the reason for the end.
func (p *Process) read() error {
	err := Read(p.ended, p.out, p.o)
	close(p.eof)
	if err != nil {
		return err
	}
	return p.exitError()
}

// Read passes on the lines of a stream until its end, which is not an error.
func Read(ended <-chan struct{}, r io.Reader, o Options) error {
	in := lines.NewReader(r, o.Limit, o.TooLong)
	for {
		line, err := in.Next()
		if errors.Is(err, o.TooLong) {
			return err
		}
		if text := bytes.TrimSpace(line); len(text) > 0 {
			if err := o.Line(ended, text, err != nil); err != nil {
				return err
			}
		}
		if err != nil {
			return nil //nolint:nilerr // the end of its output, for any reason
		}
	}
}

func (p *Process) exitError() error {
	if !proc.Within(p.child.Done(), exitTime) {
		return p.o.ExitError(nil)
	}
	exit := p.child.Wait()
	return p.o.ExitError(&exit)
}

// Describe describes how a child ended, as passed to ExitError.
func Describe(exit *proc.Exit) string {
	switch {
	case exit == nil:
		return "closed its output"
	case exit.MemoryCause() != "":
		return "ended: " + exit.MemoryCause()
	case exit.Code < 0:
		return "was killed"
	}
	return fmt.Sprintf("ended with exit code %d", exit.Code)
}

// tailSize is the limit of a Tail without its own, in bytes.
const tailSize = 16 << 10

// Tail accepts all writes and keeps the end. The zero value is usable, for messages.
type Tail struct {
	Limit int // of the contents, in bytes; 0 is 16 KiB

	mu   sync.Mutex // guards data
	data []byte     // at most twice the limit, so that long outputs are not moved at each write
}

func (t *Tail) limit() int { return cmp.Or(t.Limit, tailSize) }

// Write implements io.Writer. It never fails, so that the child continues.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := t.limit()
	t.data = append(t.data, p[max(0, len(p)-limit):]...)
	if len(t.data) >= 2*limit {
		t.data = append(t.data[:0], t.data[len(t.data)-limit:]...)
	}
	return len(p), nil
}

// String returns the contents, starting at the beginning of a line.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := t.limit()
	text := string(t.data[max(0, len(t.data)-limit):])
	if len(t.data) >= limit {
		if _, rest, ok := strings.Cut(text, "\n"); ok {
			text = rest
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
}

// maxReason limits the length of a reason, in bytes.
const maxReason = 300

// Reason returns the line of a program's stderr that most likely tells why the program failed: the
// message of a crash, otherwise the last line that mentions a failure, otherwise the last one that
// is not part of a stack trace. It returns "" if there is no such line.
func Reason(stderr string) string {
	stderr = strings.ReplaceAll(stderr, "\r", "")
	// The stack traces of these crashes follow the message, and contain names of functions and files
	// that may mention a failure.
	if m := crash().FindStringSubmatch(stderr); m != nil {
		return shorten.Bytes(strings.TrimSpace(strings.Join(m[1:], " ")), maxReason)
	}
	if m := traceback().FindStringSubmatch(stderr); m != nil {
		return shorten.Bytes(strings.TrimSpace(m[1]), maxReason)
	}
	last := ""
	for _, l := range slices.Backward(strings.Split(stderr, "\n")) {
		l = strings.TrimSpace(l)
		switch {
		case l == "" || uninformative().MatchString(l):
		case failure().MatchString(l):
			return shorten.Bytes(l, maxReason)
		case last == "":
			last = l
		}
	}
	return shorten.Bytes(last, maxReason)
}

var (
	// crash matches a crash of Go, up to its stack trace, or of Rust, whose message is on the next line.
	crash = pattern.Lazy(`(?m)^((?:panic|fatal error): .*)(?:\n.*)*?\n\s*goroutine \d+ |^(thread '.*' (?:\(\d+\) )?panicked at .*:)\n(.*)$`)
	// traceback matches a traceback of Python at the end of a text. Its last line names the exception.
	traceback = pattern.Lazy(`(?m)^Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)\s*\z`)
	// uninformative matches lines about a failure that do not name its reason.
	uninformative = pattern.Lazy(`^(at |File "|node:|Node\.js v|Traceback|goroutine |exit status |note: |[~^]+$|\.\.\. |[{}()\[\]]|from /)|complete log of this run|\.log$|^[a-z][a-zA-Z]*: ['\[{]`)
	// failure matches lines that mention a failure.
	failure = pattern.Lazy(`(?i)error|exception|panic|fatal|cannot|can't|could not|couldn't|not found|no such|denied|refused|invalid|missing|required|failed|unknown|unable|usage:`)
)
