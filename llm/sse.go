package llm

import (
	"bufio"
	"bytes"
	"io"
)

// SSEEvent is one server-sent event. Data is valid until the next call of Next.
type SSEEvent struct {
	Name string
	Data []byte
}

// SSEReader reads a text/event-stream (WHATWG HTML, section 9.2), ignoring
// comments, ids and retry hints. Lines may end in \n or \r\n.
type SSEReader struct {
	lines lineReader
	data  []byte
}

// NewSSEReader reads events from r.
func NewSSEReader(r io.Reader) *SSEReader {
	return &SSEReader{lines: newLineReader(r)}
}

// Whole returns the JSON object that some servers answer with although they were asked
// to stream and say that they do. If the answer is a stream, object is nil and stream
// reads it from its beginning.
func Whole(answer io.Reader) (object []byte, stream io.Reader, err error) {
	r := bufio.NewReader(answer)
	if first, err := r.Peek(1); err != nil || first[0] != '{' {
		return nil, r, nil //nolint:nilerr // reading on meets the error again
	}
	object, err = io.ReadAll(io.LimitReader(r, maxEvent))
	return object, nil, err
}

// Next returns the next event that has data. At the end of input it returns io.EOF,
// also when a last event lacks its blank line: such an event is cut, not whole.
func (s *SSEReader) Next() (SSEEvent, error) {
	s.data = s.data[:0]
	name, has := "", false
	for {
		line, err := s.lines.next()
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
			if len(s.data)+len(value) > maxEvent {
				return SSEEvent{}, ErrEventTooLarge
			}
			s.data = append(s.data, value...)
		}
	}
}
