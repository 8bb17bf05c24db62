package usage

import (
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
)

// Output is the standard output of a program. It remembers the first failed write, because most
// code does not check for errors when it prints: with a full disk, the exit code must not be that
// of success. A closed pipe is not remembered: see IsUnread.
type Output struct {
	*os.File

	mu  sync.Mutex // guards err
	err error
}

// NewOutput wraps a file.
func NewOutput(file *os.File) *Output { return &Output{File: file} }

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	n, err := o.File.Write(p)
	if err != nil && !errors.Is(err, syscall.EPIPE) {
		o.mu.Lock()
		defer o.mu.Unlock()
		if o.err == nil {
			o.err = err
		}
	}
	return n, err
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
