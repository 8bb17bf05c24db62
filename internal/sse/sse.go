// Package sse reads and writes streams of server-sent events (WHATWG HTML, section 9.2).
//
// It guarantees that no event takes more memory than its limit, that a truncated event
// is not taken for a whole one, and that a client which does not read holds up a writer
// for a bounded time. It knows nothing of what events say, and does not connect again.
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
	// ID is the id of the last event that had one. A reader that goes on with another
	// stream starts with the id from there.
	ID string
	// Retry is how long the server last asked to wait before the stream is asked for again;
	// negative if it did not.
	Retry time.Duration

	lines    *lines.Reader
	limit    int
	tooLong  error
	data     []byte
	hasEvent bool
}

// NewReader returns a reader of events of at most limit bytes; tooLong is the error for a
// longer one.
func NewReader(r io.Reader, limit int, tooLong error) *Reader {
	return &Reader{Retry: -1, lines: lines.NewReader(r, limit, tooLong), limit: limit, tooLong: tooLong}
}

// Next returns the next event that has data. At the end of the input it returns io.EOF, with
// what there is of an event that lacks its blank line; only the caller can know whether its
// data is complete.
func (s *Reader) Next() (Event, error) {
	s.data = s.data[:0]
	name, id, has := "", s.ID, false
	for {
		line, err := s.lines.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			return Event{}, err
		}
		if !s.hasEvent {
			line, s.hasEvent = bytes.TrimPrefix(line, []byte("\uFEFF")), true
		}
		if len(line) == 0 && err == nil {
			s.ID = id
			if has {
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
			if has {
				s.data = append(s.data, '\n')
			}
			has = true
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

// Append adds an event to dst. data is one line; an empty id or name is left out.
func Append(dst []byte, id, name string, data []byte) []byte {
	for _, field := range [...]struct{ name, value string }{{"id: ", id}, {"event: ", name}} {
		if field.value != "" {
			dst = append(append(append(dst, field.name...), field.value...), '\n')
		}
	}
	dst = append(append(dst, "data: "...), data...)
	return append(dst, "\n\n"...)
}

// writeTime is how long a client may take to read what is written.
const writeTime = 30 * time.Second

// Writer answers a request with a stream of events.
type Writer struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

// NewWriter begins the answer.
func NewWriter(w http.ResponseWriter) Writer {
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // or proxies collect events
	return Writer{w, http.NewResponseController(w)}
}

// Event writes an event as Append does. It may be sent only with the next Flush.
func (s Writer) Event(id, name string, data []byte) error {
	return s.write(Append(nil, id, name, data))
}

// Comment writes a line that clients ignore, so that no proxy takes the connection for dead,
// and sends it.
func (s Writer) Comment(text string) error {
	return errors.Join(s.write([]byte(": "+text+"\n\n")), s.Flush())
}

// Flush sends what was written.
func (s Writer) Flush() error { return s.control.Flush() }

func (s Writer) write(text []byte) error {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // servers of tests may not have it
	_, err := s.w.Write(text)
	return err
}
