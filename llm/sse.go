package llm

import (
	"bufio"
	"errors"
	"io"

	"github.com/seed-dec29ce4/eca/internal/sse"
)

// maxEvent limits one event of a stream, in bytes. Providers send complete tool arguments and
// encrypted reasoning in single events, but more than a megabyte is rare.
const maxEvent = 16 << 20

// ErrEventTooLarge is returned for an event above 16 MiB.
var ErrEventTooLarge = errors.New("an event of the stream is larger than 16 MiB")

// NewSSEReader returns a reader of the events of an answer.
func NewSSEReader(r io.Reader) *sse.Reader { return sse.NewReader(r, maxEvent, ErrEventTooLarge) }

// UnstreamedObject returns the JSON object that some servers send although they were asked to stream and their
// content type claims a stream. If the answer is a stream, object is nil and stream reads it from
// the beginning.
func UnstreamedObject(answer io.Reader) (object []byte, stream io.Reader, err error) {
	r := bufio.NewReader(answer)
	if first, err := r.Peek(1); err != nil || first[0] != '{' {
		return nil, r, nil //nolint:nilerr // the next read returns the error again
	}
	object, err = io.ReadAll(io.LimitReader(r, maxEvent))
	return object, nil, err
}
