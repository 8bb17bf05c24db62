package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// stdio is a transport over a child's stdin and stdout: one JSON message per line. Other lines are
// logged and ignored.
type stdio struct {
	server   string // its name
	launch   Launch
	children *proc.Pool
	log      *slog.Logger
	stderr   *stderrLog
	receive  func(envelope)

	proc *lineproc.Process // nil until it has started
	work sync.WaitGroup

	strayOutput *atomic.Pointer[string] // the first line that is not a message, if it came before all messages

	gotMessage bool // only the reader uses it
	strayBytes int  // logged bytes that are not messages; only the reader uses it
}

func newStdio(l Launch, children *proc.Pool, log *slog.Logger) *stdio {
	return &stdio{launch: l, children: children, log: log, stderr: &stderrLog{log: log, clean: l.Clean}, strayOutput: &atomic.Pointer[string]{}}
}

// stdinGrace is how long a child may take to exit after its input was closed.
const stdinGrace = 300 * time.Millisecond

// start implements transport: it starts the child.
func (t *stdio) start(_ context.Context, receive func(envelope), lost func(error)) (err error) {
	t.receive = receive
	t.proc, err = lineproc.Start(t.children, proc.Spec{
		Path: t.launch.Command, Args: t.launch.Args, Dir: t.launch.Dir, Env: t.launch.Env, Stderr: t.stderr,
	}, lineproc.Options{Limit: maxMessage, TooLong: errTooLong, Grace: stdinGrace, Line: t.handleLine, ExitError: t.exitError})
	if err != nil {
		missing := errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "no such file") || strings.Contains(err.Error(), "executable file not found")
		switch {
		case missing && strings.Contains(t.launch.Command, " "):
			err = fmt.Errorf("start %s: there is no program with this name: if it has arguments, move them from command to args", t.launch.Command)
		case missing:
			err = fmt.Errorf("start %s: the program was not found: install it, or correct the command", t.launch.Command)
		case errors.Is(err, fs.ErrPermission), strings.Contains(err.Error(), "permission denied"):
			err = fmt.Errorf("start %s: it cannot be executed: correct the command, or make the file executable (chmod +x)", t.launch.Command)
		case strings.Contains(err.Error(), "exec format error"):
			err = fmt.Errorf("start %s: it is not a program of this system: correct the command, or begin the script with a line such as #!/bin/sh", t.launch.Command)
		}
		return permanentError{err}
	}
	t.work.Go(func() {
		<-t.proc.Ended()
		lost(t.proc.Cause())
	})
	return nil
}

// exitError describes how the child ended and what it wrote last.
func (t *stdio) exitError(exit *proc.Exit) error {
	text := "it " + lineproc.Describe(exit)
	if exit == nil {
		return errors.New(text)
	}
	line, more := t.stderr.reason()
	if exit.Code == 0 {
		text += ", so it might not be an MCP server"
	}
	if line != "" {
		text += ": " + line
	}
	if more {
		text += fmt.Sprintf(" (`eca mcp test %s --log-level info` shows all its output)", visible.Argument(t.server))
	}
	return errors.New(text)
}

// endReason implements transport.
func (t *stdio) endReason() error {
	if t.proc == nil {
		return nil
	}
	return t.proc.OwnEnd()
}

// close implements transport.
func (t *stdio) close() {
	if t.proc == nil {
		return
	}
	t.proc.Close(false)
	t.work.Wait()
}

// setVersion and listen implement transport: all versions use the same pipes here.
func (t *stdio) setVersion(string)       {}
func (t *stdio) listen() <-chan struct{} { return nil }

// send implements transport: it passes a message to the writer.
func (t *stdio) send(ctx context.Context, e envelope) error {
	if t.proc == nil {
		return errNotStarted
	}
	select {
	case t.proc.Frames() <- append(e.Encode(), '\n'):
		return nil
	case <-t.proc.Ended():
		return t.proc.Cause()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unread reports whether the child has unread input (pending), if that can be determined (known).
func (t *stdio) unread() (pending, known bool) {
	raw, err := t.proc.Input().SyscallConn()
	if err != nil {
		return false, false
	}
	if raw.Control(func(fd uintptr) { pending, known = pipeHasData(fd) }) != nil {
		return false, false
	}
	return pending, known
}

// handleLine handles one line.
func (t *stdio) handleLine(_ <-chan struct{}, line []byte, _ bool) error {
	list, err := readEnvelopes(line)
	if err != nil {
		t.logStray(line)
		if text := shorten.Bytes(t.launch.Clean(string(line[:min(len(line), maxPrinted)])), maxPrinted); !t.gotMessage {
			t.strayOutput.CompareAndSwap(nil, &text)
		}
	} else if !t.gotMessage {
		t.gotMessage = true
		t.strayOutput.Store(nil)
	}
	for _, e := range list {
		if e.Method == string(wire.MethodInitialize) || e.Method == string(wire.MethodServerDiscover) {
			return permanentError{errEcho} // only clients send this request
		}
		t.receive(e)
	}
	return nil
}

// errEcho ends the connection to a program that copies its input, such as cat.
var errEcho = errors.New("it echoes its input, so it is not an MCP server; correct its command")

// logStray logs a line that is not a message, up to a limit.
func (t *stdio) logStray(line []byte) {
	t.strayBytes += len(line)
	if t.strayBytes <= maxLogged && len(line) > 0 {
		t.log.Debug("MCP server wrote an invalid message to stdout", "text", shorten.Bytes(t.launch.Clean(string(line[:min(len(line), maxLogLine)])), maxLogLine))
	}
}

const (
	maxLogLine = 2000      // bytes of a line in the log
	maxLogged  = 256 << 10 // bytes of a connection's stderr in the log
	maxPrinted = 300       // bytes shown of a line that is not a message
)

// stderrLog logs a server's stderr, up to a limit, and keeps its end.
type stderrLog struct {
	log   *slog.Logger
	clean func(string) string
	tail  lineproc.Tail

	mu     sync.Mutex // guards the fields below
	line   []byte     // the beginning of the incomplete line
	logged int
}

// Write implements io.Writer. It never fails, so that the server keeps running.
func (s *stderrLog) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	_, _ = s.tail.Write(p)
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		part := p
		if i >= 0 {
			part = p[:i]
		}
		s.line = append(s.line, part[:min(len(part), max(0, maxLogLine-len(s.line)))]...)
		if i < 0 {
			break
		}
		s.flush()
		p = p[i+1:]
	}
	return n, nil
}

// flush logs a line. The caller holds mu.
func (s *stderrLog) flush() {
	line := strings.TrimSpace(strings.ToValidUTF8(string(s.line), "�"))
	s.line = s.line[:0]
	switch {
	case line == "" || s.logged > maxLogged:
	case s.logged+len(line) > maxLogged:
		s.log.Info("MCP server stderr", "text", "[too much output; the rest is omitted]")
		s.logged = maxLogged + 1
	default:
		s.log.Info("MCP server stderr", "text", s.clean(line))
		s.logged += len(line)
	}
}

// reason returns the line that most likely explains why a server ended. more reports whether it
// wrote other lines.
func (s *stderrLog) reason() (line string, more bool) {
	text := s.tail.String()
	return lineproc.Reason(text), strings.Contains(text, "\n")
}
