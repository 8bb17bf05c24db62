package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/lines"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// stdio is a transport over a child's stdin and stdout: one message of JSON in a line. What
// is no message is noise: it is logged and does no harm.
type stdio struct {
	server   string // its name
	launch   Launch
	children *proc.Pool
	log      *slog.Logger
	stderr   *stderr
	hear     func(envelope)
	over     func(error)

	child  proc.Child
	in     *os.File // of the child; ours to write to
	out    *os.File
	frames chan []byte
	quit   chan struct{} // closed when the child can not be talked to any more
	work   sync.WaitGroup
	once   sync.Once
	closed sync.Once

	noise int // bytes of it in the log; of the reader
}

func newStdio(l Launch, children *proc.Pool, log *slog.Logger) *stdio {
	return &stdio{
		launch: l, children: children, log: log, stderr: &stderr{log: log, clean: l.Clean},
		over: func(error) {}, frames: make(chan []byte), quit: make(chan struct{}),
	}
}

// start implements transport: it starts the child.
func (t *stdio) start(_ context.Context, hear func(envelope), over func(error)) error {
	t.hear, t.over = hear, over
	stdin, in, err := os.Pipe()
	if err != nil {
		return err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		return err
	}
	defer stdout.Close()
	t.child, err = t.children.Start(proc.Spec{
		Path: t.launch.Command, Args: t.launch.Args, Dir: t.launch.Dir, Env: t.launch.Env,
		Stdin: stdin, Stdout: stdout, Stderr: t.stderr,
	})
	if err != nil {
		_, _ = in.Close(), out.Close()
		switch {
		case errors.Is(err, fs.ErrNotExist), strings.Contains(err.Error(), "no such file"), strings.Contains(err.Error(), "executable file not found"):
			err = fmt.Errorf("start %s: the program was not found: install it, or correct the command", t.launch.Command)
		case errors.Is(err, fs.ErrPermission):
			err = fmt.Errorf("start %s: the program may not be executed: %w", t.launch.Command, err)
		}
		return permanentError{err}
	}
	t.in, t.out = in, out
	t.work.Go(t.write)
	t.work.Go(t.read)
	t.work.Go(func() {
		<-t.child.Done()
		if !t.within(exitTime) {
			t.end(t.farewell()) // somebody else has its stdout open
		}
	})
	return nil
}

const (
	// stdinGrace is how long a child may take to end when its input ends.
	stdinGrace = 300 * time.Millisecond
	// exitTime is how long stdout and the end of the child may be apart, on a busy machine
	// too: who does not wait for the other does not know why the child ended.
	exitTime = 3 * time.Second
)

// within waits a while for the end of the conversation.
func (t *stdio) within(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.quit:
		return true
	case <-timer.C:
		return false
	}
}

// exits waits a while for the end of the child.
func (t *stdio) exits(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-t.child.Done():
		return true
	case <-timer.C:
		return false
	}
}

// farewell says how the child ended, and what it said last.
func (t *stdio) farewell() error {
	if !t.exits(exitTime) {
		return errors.New("it closed its output")
	}
	text := fmt.Sprintf("it ended with exit code %d", t.child.Wait().Code)
	if t.child.Wait().Code < 0 {
		text = "it was killed"
	}
	line, more := t.stderr.reason()
	if t.child.Wait().Code == 0 {
		text += ", as programs do that are not MCP servers"
	}
	if line != "" {
		text += ": " + line
	}
	if more {
		text += fmt.Sprintf(" (`eca mcp test %s --log-level info` shows all that it wrote)", t.server)
	}
	return errors.New(text)
}

// end ends the conversation; only the first reason counts.
func (t *stdio) end(reason error) {
	t.once.Do(func() {
		t.over(reason)
		close(t.quit)
	})
}

// close implements transport: the child's input ends, then it is asked to end, then killed,
// with all that it started.
func (t *stdio) close() {
	t.end(errEnded)
	t.closed.Do(func() {
		if t.child == nil {
			return
		}
		_ = t.in.Close()
		if !t.exits(stdinGrace) {
			t.child.Kill()
		}
		_ = t.out.Close()
	})
	t.work.Wait()
}

// agreed and listen implement transport: here all versions are the same.
func (t *stdio) agreed(string)           {}
func (t *stdio) listen() <-chan struct{} { return nil }

// write is the only one to write to the child: one that does not read holds up nobody else.
func (t *stdio) write() {
	for {
		select {
		case frame := <-t.frames:
			if _, err := t.in.Write(frame); err != nil {
				// The reader knows better why: the child's last words are still to be read.
				if !t.within(exitTime) {
					t.end(fmt.Errorf("it does not take its input any more: %w", err))
				}
				return
			}
		case <-t.quit:
			return
		}
	}
}

// send implements transport: it hands a message to the writer.
func (t *stdio) send(ctx context.Context, e envelope) error {
	frame, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if t.child == nil {
		return errNotStarted
	}
	select {
	case t.frames <- append(frame, '\n'):
		return nil
	case <-t.quit:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unread says whether the child has still to read what it was sent, where that can be known.
func (t *stdio) unread() (left, known bool) {
	raw, err := t.in.SyscallConn()
	if err != nil {
		return false, false
	}
	if raw.Control(func(fd uintptr) { left, known = pipeHolds(fd) }) != nil {
		return false, false
	}
	return left, known
}

func (t *stdio) read() {
	in := lines.NewReader(t.out, maxMessage, errTooLong)
	for {
		line, err := in.NextMessage()
		switch {
		case errors.Is(err, errTooLong):
			t.end(err)
			return
		case err != nil:
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				t.log.Debug("MCP server's stdout", "err", err)
			}
			t.end(t.farewell())
			return
		}
		t.message(line)
	}
}

// message handles one line.
func (t *stdio) message(line []byte) {
	list, err := readEnvelopes(line)
	if err != nil {
		t.loud(line)
		return
	}
	for _, e := range list {
		t.hear(e)
	}
}

// loud logs what is no message, up to a limit.
func (t *stdio) loud(line []byte) {
	t.noise += len(line)
	if t.noise <= maxLogged && len(line) > 0 {
		t.log.Debug("MCP server wrote what is no message to stdout", "text", shorten.Bytes(t.launch.Clean(string(line[:min(len(line), maxLogLine)])), maxLogLine))
	}
}
