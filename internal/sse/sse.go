// Package sse reads and writes streams of server-sent events (WHATWG HTML, section 9.2).
//
// No event takes more memory than its limit, a truncated event is not returned as a complete one,
// and a client that does not read blocks a writer only for a limited time. The package does not
// interpret events and does not reconnect.
package sse

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/internal/lines"
)

// ContentType is the media type of a stream.
const ContentType = "text/event-stream"

// Event is one server-sent event. Data is valid until the next call of Next.
type Event struct {
	Name string
	Data []byte
}

// Reader reads events. Lines may end in \n or \r\n; comments are ignored.
type Reader struct {
	// ID is the id of the last event that had one. To continue with another stream, set it to the
	// ID of the previous reader.
	ID string
	// Retry is the reconnection delay that the server last requested; negative if it requested
	// none.
	Retry time.Duration

	lines      *lines.Reader
	limit      int
	tooLong    error
	data       []byte
	bomChecked bool
}

// NewReader returns a reader of events of at most limit bytes; it returns tooLong for a longer
// event.
func NewReader(r io.Reader, limit int, tooLong error) *Reader {
	return &Reader{Retry: -1, lines: lines.NewReader(r, limit, tooLong), limit: limit, tooLong: tooLong}
}

// Next returns the next event that has data. At the end of the input it returns io.EOF, together
// with an event whose final blank line is missing, if any; only the caller can know whether the
// data of that event is complete.
func (s *Reader) Next() (Event, error) {
	s.data = s.data[:0]
	name, id, hasData := "", s.ID, false
	for {
		line, err := s.lines.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return Event{}, err
		}
		if !s.bomChecked {
			line, s.bomChecked = bytes.TrimPrefix(line, []byte("\uFEFF")), true
		}
		if len(line) == 0 && err == nil {
			s.ID = id
			if hasData {
				return Event{Name: name, Data: s.data}, nil
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
			if hasData {
				s.data = append(s.data, '\n')
			}
			hasData = true
			if len(s.data)+len(value) > s.limit {
				return Event{}, s.tooLong
			}
			s.data = append(s.data, value...)
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				id = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.Retry = time.Duration(ms) * time.Millisecond
			}
		}
		if err != nil {
			return Event{Name: name, Data: s.data}, err
		}
	}
}

// Append appends an event to dst. data must be one line; an empty id or name is omitted.
func Append(dst []byte, id, name string, data []byte) []byte {
	for _, field := range [...]struct{ name, value string }{{"id: ", id}, {"event: ", name}} {
		if field.value != "" {
			dst = append(append(append(dst, field.name...), field.value...), '\n')
		}
	}
	dst = append(append(dst, "data: "...), data...)
	return append(dst, "\n\n"...)
}

// writeTime is how long a client may take to read the written data.
const writeTime = 30 * time.Second

// Writer answers a request with an event stream.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// NewWriter starts the answer.
func NewWriter(w http.ResponseWriter) Writer {
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // otherwise proxies may buffer events
	return Writer{w, http.NewResponseController(w)}
}

// Event writes an event as Append does. It may not be sent before the next Flush.
func (s Writer) Event(id, name string, data []byte) error {
	return s.write(Append(nil, id, name, data))
}

// Comment writes and sends a line that clients ignore, so that proxies keep the connection open.
func (s Writer) Comment(text string) error {
	return errors.Join(s.write([]byte(": "+text+"\n\n")), s.Flush())
}

// Flush sends the written data.
func (s Writer) Flush() error { return s.control.Flush() }

func (s Writer) write(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // servers in tests may not support it
	_, err := s.w.Write(text)
	return err
}
