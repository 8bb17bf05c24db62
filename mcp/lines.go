package mcp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// errTooLong is why a connection ends over which too much came at once.
var errTooLong = fmt.Errorf("it sent a message of more than %d MiB", maxMessage>>20)

// readLine reads up to the end of a line and returns it without that. It keeps at most
// most bytes; a longer line is errTooLong, and the rest of it is not read.
func readLine(r *bufio.Reader, most int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > most+1 {
			return nil, errTooLong
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return trimEnd(line), nil
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return trimEnd(line), nil // the last line may lack its end
		default:
			return nil, err
		}
	}
}

func trimEnd(line []byte) []byte {
	for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
		line = line[:len(line)-1]
	}
	return line
}
