package llm

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxSSEEvent bounds one event. Providers send whole tool arguments and encrypted
// reasoning in single events; a megabyte is rare, 16 are abuse.
const maxSSEEvent = 16 << 20

// ErrEventTooLarge is returned for an event above 16 MiB.
var ErrEventTooLarge = errors.New("server-sent event is too large")

// SSEEvent is one server-sent event. Data is valid until the next call of Next.
type SSEEvent struct {
	Name string
	Data []byte
}

// SSEReader reads a text/event-stream (WHATWG HTML, section 9.2), ignoring
// comments, ids and retry hints. Lines may end in \n or \r\n.
type SSEReader struct {
	r    *bufio.Reader
	data []byte
}

// NewSSEReader reads events from r.
func NewSSEReader(r io.Reader) *SSEReader {
	return &SSEReader{r: bufio.NewReaderSize(r, 32<<10)}
}

// Next returns the next event that has data. At the end of input it returns io.EOF,
// also when a last event lacks its blank line: such an event is cut, not whole.
func (s *SSEReader) Next() (SSEEvent, error) {
	s.data = s.data[:0]
	name, has := "", false
	for {
		line, err := s.line()
		if err != nil {
			return SSEEvent{}, err
		}
		if len(line) == 0 {
			if has {
				return SSEEvent{Name: name, Data: s.data}, nil
			}
			name = ""
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			name = string(value)
		case "data":
			if has {
				s.data = append(s.data, '\n')
			}
			has = true
			if len(s.data)+len(value) > maxSSEEvent {
				return SSEEvent{}, ErrEventTooLarge
			}
			s.data = append(s.data, value...)
		}
	}
}

// line returns one line without its end. The slice is valid until the next call.
func (s *SSEReader) line() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		long := append([]byte(nil), line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(long) > maxSSEEvent {
				return nil, ErrEventTooLarge
			}
			line, err = s.r.ReadSlice('\n')
			long = append(long, line...)
		}
		line = long
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, fmt.Errorf("read stream: %w", err)
	}
	return bytes.TrimRight(line, "\r\n"), nil
}
