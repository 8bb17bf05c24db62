package usage

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// Output is the standard output of a program. It remembers the first write that failed, because
// most code that prints does not look: a full disk must not end in an exit code that says success.
// A closed pipe is not kept: see IsUnread.
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

// WhileRead returns a context that ends, with that error as its cause, when a write to w finds that
// nothing reads it any more. Only an Output knows.
func WhileRead(ctx context.Context, w io.Writer) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	if o, ok := w.(*Output); ok {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.onUnread = cancel
	}
	return ctx, cancel
}

// WriteString implements io.StringWriter.
func (o *Output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

// ReadFrom implements io.ReaderFrom, because that of the file would not come by Write.
func (o *Output) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{o}, r)
}

// WriteError returns why a part of what was written to w is lost; nil if nothing is. Only an Output knows.
func WriteError(w io.Writer) error {
	o, ok := w.(*Output)
	if !ok {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// File returns the file that a stream writes to.
func File(w io.Writer) (*os.File, bool) {
	if o, ok := w.(*Output); ok {
		return o.File, true
	}
	file, ok := w.(*os.File)
	return file, ok
}
