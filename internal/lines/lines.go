// Package lines reads the lines of a stream, each of a bounded length.
//
// A line that is too long takes no more memory than the limit, and the next line can be read
// afterwards. The package does not interpret lines.
package lines

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Reader reads lines.
type Reader struct {
	r       *bufio.Reader
	limit   int
	tooLong error
	skip    bool // the rest of the current line is not returned
}

// NewReader returns a Reader of lines of at most limit bytes; it returns tooLong for a longer line.
func NewReader(r io.Reader, limit int, tooLong error) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), limit: limit, tooLong: tooLong}
}

// Next returns the next line without its end (\n or \r\n), valid until the next call. At the end of
// the input it returns io.EOF, together with the last line if that has no end. For a line that is
// too long it returns the error as soon as possible; the next call skips the rest of the line.
func (l *Reader) Next() ([]byte, error) {
	var long []byte // a line that does not fit into the buffer
	for {
		part, err := l.r.ReadSlice('\n')
		full := errors.Is(err, bufio.ErrBufferFull)
		switch {
		case l.skip:
			if l.skip = full; !full && err != nil {
				return nil, err
			}
			continue
		case len(long)+len(bytes.TrimRight(part, "\r\n")) > l.limit:
			l.skip = full
			return nil, l.tooLong
		case full:
			long = append(long, part...)
			continue
		case len(long) > 0:
			part = append(long, part...)
		}
		return bytes.TrimRight(part, "\r\n"), err
	}
}

// NextMessage returns the next non-blank line without surrounding blanks, valid until the next
// call. The last line need not have an end.
func (l *Reader) NextMessage() ([]byte, error) {
	for {
		line, err := l.Next()
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil // the next call returns the error of the input
		}
		if err != nil {
			return nil, err
		}
	}
}
