package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/seed-dec29ce4/eca/internal/lines"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

// maxEvent limits one event of a stream, in bytes. Providers send complete tool arguments and
// encrypted reasoning in single events, but more than a megabyte is rare.
const maxEvent = 16 << 20

// ErrEventTooLarge is returned for an event above 16 MiB.
var ErrEventTooLarge = errors.New("an event of the stream is larger than 16 MiB")

// NewSSEReader returns a reader of the events of an answer.
func NewSSEReader(r io.Reader) *sse.Reader { return sse.NewReader(r, maxEvent, ErrEventTooLarge) }

// UnstreamedObject detects servers that answer a request for a stream with one JSON object, although
// the content type of the answer is that of a stream. It returns this object. If the answer is a
// stream, object is nil, and stream reads the answer from the beginning.
func UnstreamedObject(answer io.Reader) (object []byte, stream io.Reader, err error) {
	r := bufio.NewReader(answer)
	if first, err := r.Peek(1); err != nil || first[0] != '{' {
		return nil, r, nil //nolint:nilerr // the next read returns the error again
	}
	object, err = io.ReadAll(io.LimitReader(r, maxEvent))
	return object, nil, err
}

// NDJSONReader reads a stream of JSON documents, one per line (application/x-ndjson). Blank lines
// are ignored.
type NDJSONReader struct{ lines *lines.Reader }

// NewNDJSONReader reads documents from r.
func NewNDJSONReader(r io.Reader) *NDJSONReader {
	return &NDJSONReader{lines.NewReader(r, maxEvent, ErrEventTooLarge)}
}

// Next returns the next line that is not blank. The line is valid until the next call, and need not
// be valid JSON. At the end of input, Next returns io.EOF. A last line without a newline is
// returned only if it is valid JSON.
func (n *NDJSONReader) Next() ([]byte, error) {
	for {
		line, err := n.lines.Next()
		line = bytes.TrimSpace(line)
		switch {
		case err != nil && (len(line) == 0 || !json.Valid(line)):
			return nil, err
		case len(line) > 0:
			return line, nil
		}
	}
}
