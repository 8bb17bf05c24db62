package mcp

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// eventReader reads a stream of server-sent events.
type eventReader struct {
	r     *bufio.Reader
	begun bool
}

// streamEvent is one of them.
type streamEvent struct {
	name string // of the kind; empty is a message
	data []byte
	id   string // to go on from; only if hasID
	// hasID says that the event has an id, hasRetry that it says how long to wait before
	// the stream is asked for again.
	hasID, hasRetry bool
	retry           time.Duration
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the next event that says anything. At the end of the stream, what stands
// there without the empty line that ends events is one too, but not what it says about the
// stream.
func (r *eventReader) next() (streamEvent, error) {
	var e streamEvent
	var data [][]byte
	size := 0
	for {
		line, err := readLine(r.r, maxMessage)
		if err != nil {
			if e.data = bytes.Join(data, []byte("\n")); errors.Is(err, io.EOF) && len(e.data) > 0 {
				e.hasID, e.hasRetry = false, false
				return e, nil
			}
			return streamEvent{}, err
		}
		if !r.begun {
			line, r.begun = bytes.TrimPrefix(line, []byte("\uFEFF")), true
		}
		if len(line) == 0 {
			e.data = bytes.Join(data, []byte("\n"))
			if len(e.data) > 0 || e.hasID || e.hasRetry {
				return e, nil
			}
			e, data = streamEvent{}, nil
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			e.name = string(value)
		case "data":
			if size += len(value) + 1; size > maxMessage {
				return streamEvent{}, errTooLong
			}
			data = append(data, value)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.id, e.hasID = string(value), true
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry, e.hasRetry = time.Duration(ms)*time.Millisecond, true
			}
		}
	}
}
