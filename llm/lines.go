package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxEvent bounds one event of a stream. Providers send whole tool arguments and
// encrypted reasoning in single events; a megabyte is rare, 16 are abuse.
const maxEvent = 16 << 20

// ErrEventTooLarge is returned for an event above 16 MiB.
var ErrEventTooLarge = errors.New("an event of the stream is larger than 16 MiB")

// lineReader reads the lines of a stream, each at most maxEvent long.
type lineReader struct{ r *bufio.Reader }

func newLineReader(r io.Reader) lineReader { return lineReader{bufio.NewReaderSize(r, 32<<10)} }

// next returns one line without its end, valid until the next call. At the end of input
// it returns what there is of a last line, with io.EOF.
func (l lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := append([]byte(nil), line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) > maxEvent {
				return nil, ErrEventTooLarge
			}
			line, err = l.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	line = bytes.TrimRight(line, "\r\n")
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return line, err
	}
	return nil, fmt.Errorf("read stream: %w", err)
}
