package usage

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/visible"
)

// Output is the standard output of a program. It remembers the first failed write, because most
// code does not check for errors when it prints: with a full disk, the exit code must not be that
// of success. A closed pipe is not remembered: see IsUnread.
type Output struct {
	*os.File

	mu       sync.Mutex // guards the fields below
	err      error
	onUnread context.CancelCauseFunc // may be nil
}

// NewOutput wraps a file.
func NewOutput(file *os.File) *Output { return &Output{File: file} }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err == nil {
		return n, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	unread := errors.Is(err, syscall.EPIPE)
	if unread && o.onUnread != nil {
		o.onUnread(err)
	}
	if !unread && o.err == nil {
		o.err = err
	}
	return n, err
}

// WhileRead returns a context that ends when a write to w fails because the reader has closed the
// pipe. The error of the write is the cause. This works only if w is an Output.
func WhileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if o, ok := Raw(w).(*Output); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.onUnread = cancel
	}
	return ctx, cancel
}

// WriteString implements io.StringWriter.
func (o *Output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// ReadFrom implements io.ReaderFrom, because the embedded file's method would bypass Write.
func (o *Output) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{o}, r)
}

// WriteError returns why a part of the output to w was lost; nil if nothing was, or if w is not an
// Output.
func WriteError(w io.Writer) error {
	o, ok := Raw(w).(*Output)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// File returns the file that a stream writes to.
func File(w io.Writer) (*os.File, bool) {
	w = Raw(w)
	if o, ok := w.(*Output); ok {
		return o.File, true
	}
	file, ok := w.(*os.File)
	return file, ok
}

// visibleWriter is the stream that Visible returns.
type visibleWriter struct {
	out io.Writer

	mu         sync.Mutex // guards incomplete, and keeps writes in order
	incomplete []byte     // the beginning of a character that the next write completes
}

// Visible returns a stream that writes to w what visible.Text returns, so that no text from a
// project, a model or a server controls the user's terminal. JSON keeps its meaning, because the
// escapes are those of JSON.
func Visible(w io.Writer) io.Writer { return &visibleWriter{out: w} }

// Write implements io.Writer.
func (e *visibleWriter) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	text := slices.Concat(e.incomplete, p)
	complete := len(text)
	for start := complete - 1; start >= max(0, len(text)-utf8.UTFMax); start-- {
		if utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				complete = start
			}
			break
		}
	}
	e.incomplete = slices.Clone(text[complete:])
	if _, err := io.WriteString(e.out, visible.Text(string(text[:complete]))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Raw returns the stream below Visible, for protocols and for eca's own colours. Other streams are
// returned unchanged.
func Raw(w io.Writer) io.Writer {
	if e, ok := w.(*visibleWriter); ok {
		return e.out
	}
	return w
}
