package bedrock

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Limits of one message. The format allows headers of 128 KiB and payloads of 24 MiB; messages of
// Converse have a few hundred bytes.
const (
	maxMessage = 16 << 20
	maxHeaders = 128 << 10
)

// errCorrupt is wrapped by errors about bytes that are not an event stream.
var errCorrupt = errors.New("the event stream is corrupt")

func corruptError(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errCorrupt, fmt.Sprintf(format, args...))
}

// message is one message of an AWS event stream, with the headers that Converse uses.
type message struct {
	kind      string // :message-type: event, exception or error
	event     string // :event-type
	exception string // :exception-type, or :error-code
	text      string // :error-message
	payload   []byte // valid until the next message is read
}

// eventReader reads application/vnd.amazon.eventstream: messages with a prelude of two lengths and
// their checksum, headers, a payload, and a checksum of the whole message. Numbers are big-endian.
type eventReader struct {
	r   *bufio.Reader
	buf bytes.Buffer
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{r: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the next message. It returns io.EOF between two messages, and io.ErrUnexpectedEOF
// within one; bytes that are not a message are an errCorrupt. Memory grows with the bytes that have
// arrived, not with the announced length.
func (e *eventReader) next() (message, error) {
	var prelude [12]byte
	if _, err := io.ReadFull(e.r, prelude[:]); err != nil {
		return message{}, err
	}
	total, headers := binary.BigEndian.Uint32(prelude[:4]), binary.BigEndian.Uint32(prelude[4:8])
	const frame = uint32(len(prelude)) + 4 // bytes that are neither headers nor payload
	switch {
	case crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]):
		return message{}, corruptError("the checksum of a message's lengths is wrong")
	case total > maxMessage || headers > maxHeaders:
		return message{}, corruptError("a message of %d bytes with %d bytes of headers is too large", total, headers)
	case total < frame || headers > total-frame:
		return message{}, corruptError("a message of %d bytes cannot have %d bytes of headers", total, headers)
	}
	e.buf.Reset()
	rest := int64(total) - int64(len(prelude))
	if _, err := io.CopyN(&e.buf, e.r, rest); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return message{}, err
	}
	body := e.buf.Bytes()
	content, sum := body[:rest-4], binary.BigEndian.Uint32(body[rest-4:])
	if crc32.Update(crc32.ChecksumIEEE(prelude[:]), crc32.IEEETable, content) != sum {
		return message{}, corruptError("the checksum of a message is wrong")
	}
	m := message{payload: content[headers:]}
	return m, m.readHeaders(content[:headers])
}

// readHeaders reads headers. Each has a name with its length in one byte, a type, and a value whose
// size depends on the type.
func (m *message) readHeaders(b []byte) error {
	for len(b) > 0 {
		name, rest, ok := cut(b[1:], int(b[0]))
		if !ok || len(rest) == 0 {
			return corruptError("a header is cut")
		}
		size, skip, err := headerSize(rest)
		if err != nil {
			return err
		}
		value, after, ok := cut(rest[skip:], size)
		if !ok {
			return corruptError("the header %.40q is cut", name)
		}
		if rest[0] == headerString {
			m.set(string(name), string(value))
		}
		b = after
	}
	return nil
}

func (m *message) set(name, value string) {
	switch name {
	case ":message-type":
		m.kind = value
	case ":event-type":
		m.event = value
	case ":exception-type", ":error-code":
		m.exception = value
	case ":error-message":
		m.text = value
	}
}

// headerString is the type of a header that is text.
const headerString = 7

// headerSize returns the size of a header's value, and the number of bytes before it (type and
// length).
func headerSize(b []byte) (size, skip int, err error) {
	switch b[0] {
	case 0, 1: // true, false
		return 0, 1, nil
	case 2: // 8 bits
		return 1, 1, nil
	case 3: // 16 bits
		return 2, 1, nil
	case 4: // 32 bits
		return 4, 1, nil
	case 5, 8: // 64 bits, a time
		return 8, 1, nil
	case 6, headerString: // bytes or text, after a length of two bytes
		if len(b) < 3 {
			return 0, 0, corruptError("the length of a header is cut")
		}
		return int(binary.BigEndian.Uint16(b[1:3])), 3, nil
	case 9: // a UUID
		return 16, 1, nil
	}
	return 0, 0, corruptError("a header has the unknown type %d", b[0])
}

// cut returns the first n bytes of b and what follows; ok is false if b is shorter.
func cut(b []byte, n int) (head, tail []byte, ok bool) {
	if n > len(b) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}
