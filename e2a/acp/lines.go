package acp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
)

// maxLine is how long a message may be, in bytes: prompts bring images along.
const maxLine = 64 << 20

// errTooLong is a line beyond that.
var errTooLong = fmt.Errorf("the line is longer than %d MiB", maxLine>>20)

// readLine returns the next line that says something, without the blanks around it. Of one
// that is longer than limit nothing is kept, and the error is errTooLong; any other error is
// the end.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	for {
		text, err := wholeLine(r, limit)
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil // the reader's error comes again
		}
		if err != nil {
			return nil, err
		}
	}
}

func wholeLine(r *bufio.Reader, limit int) ([]byte, error) {
	var text []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > limit; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long {
			return nil, errTooLong
		}
		return text, err
	}
}
