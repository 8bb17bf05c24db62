package proc

import (
	"errors"
	"io"
	"os"
	"reflect"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// streams are the standard streams of a child as files. If the caller's reader or writer is not a
// file, data is copied through a pipe.
type streams struct {
	files      [3]*os.File
	childFiles []*os.File // ends of pipes that only the child needs
	input      *os.File   // our end of the child's input, if it is a pipe
	outputs    []*os.File // our ends of the child's outputs
	copying    sync.WaitGroup
}

// openStreams opens the streams of a child. The caller must call closeChildFiles and finish, even if the
// child does not start.
func openStreams(spec Spec) (s *streams, err error) {
	s = &streams{}
	defer func() {
		if err != nil {
			s.closeChildFiles()
			s.finish()
		}
	}()
	if s.files[0], err = s.reader(spec.Stdin); err != nil {
		return nil, err
	}
	if s.files[1], err = s.writer(spec.Stdout); err != nil {
		return nil, err
	}
	if sameWriter(spec.Stdout, spec.Stderr) { // one pipe for both, as in os/exec
		s.files[2] = s.files[1]
		return s, nil
	}
	s.files[2], err = s.writer(spec.Stderr)
	return s, err
}

func sameWriter(a, b io.Writer) bool {
	return a != nil && b != nil && reflect.TypeOf(a).Comparable() && a == b
}

func (s *streams) null(flag int) (*os.File, error) {
	f, err := os.OpenFile(os.DevNull, flag, 0)
	if err == nil {
		s.childFiles = append(s.childFiles, f)
	}
	return f, err
}

func (s *streams) reader(r io.Reader) (*os.File, error) {
	if r == nil {
		return s.null(os.O_RDONLY)
	}
	if f, ok := r.(*os.File); ok {
		return f, nil
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.childFiles, s.input = append(s.childFiles, theirs), ours
	go func() { // finish does not wait for this goroutine, because the reader may block for a long time
		_, _ = io.Copy(ours, r) // the child need not read everything
		_ = ours.Close()
	}()
	return theirs, nil
}

func (s *streams) writer(w io.Writer) (*os.File, error) {
	if w == nil {
		return s.null(os.O_WRONLY)
	}
	if f, ok := w.(*os.File); ok {
		return f, nil
	}
	ours, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.childFiles, s.outputs = append(s.childFiles, theirs), append(s.outputs, ours)
	s.copying.Go(func() {
		defer ours.Close()
		copyOutput(w, ours) // if the writer fails, the child gets SIGPIPE as usual
	})
	return theirs, nil
}

// maxPipe is the largest capacity of a pipe in bytes, unless a privileged process enlarged it.
const maxPipe = 1 << 20

// copyOutput copies a child's output until no process has the pipe open, or until the deadline that
// finish sets. Data that is already in the pipe at the deadline is still copied.
func copyOutput(w io.Writer, ours *os.File) {
	if _, err := io.Copy(w, ours); !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	_ = ours.SetReadDeadline(time.Time{})
	conn, err := ours.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 32<<10)
	for remaining := maxPipe; remaining > 0; {
		n, readErr := 0, error(nil)
		once := func(fd uintptr) bool {
			n, readErr = unix.Read(int(fd), buf) // fails instead of blocking if the pipe is empty
			return true
		}
		if err := conn.Read(once); err != nil || readErr != nil && !errors.Is(readErr, unix.EINTR) || readErr == nil && n == 0 {
			return
		}
		if _, err := w.Write(buf[:max(n, 0)]); err != nil {
			return
		}
		remaining -= max(n, 0)
	}
}

// closeChildFiles closes the files that only the child needs. It is called when the child has them.
func (s *streams) closeChildFiles() {
	for _, f := range s.childFiles {
		_ = f.Close()
	}
	s.childFiles = nil
}

// finish waits for the remaining output, but only for a short time, because another process may keep
// the pipe open.
func (s *streams) finish() {
	if s.input != nil {
		_ = s.input.Close()
	}
	for _, f := range s.outputs {
		_ = f.SetReadDeadline(time.Now().Add(grace))
	}
	s.copying.Wait()
}
