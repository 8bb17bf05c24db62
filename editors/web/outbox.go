package web

import "sync"

// Limits of an outbox.
const (
	fullMessages = 256     // an outbox with more is full
	maxOutbox    = 8 << 20 // a full outbox with more bytes is too slow to wait for
)

// outbox queues the messages to a page.
type outbox struct {
	filled chan struct{} // has an element while there are messages

	mu       sync.Mutex // guards the fields below
	messages [][]byte
	size     int // of the messages, in bytes
}

func newOutbox() *outbox { return &outbox{filled: make(chan struct{}, 1)} }

// add appends a message.
func (o *outbox) add(body []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.messages = append(o.messages, body)
	o.size += len(body)
	o.signal()
}

// take removes the oldest message. It may be called once for each element of filled.
func (o *outbox) take() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	body := o.messages[0]
	o.messages[0] = nil
	o.messages = o.messages[1:]
	o.size -= len(body)
	if len(o.messages) > 0 {
		o.signal()
	}
	return body
}

func (o *outbox) signal() {
	select {
	case o.filled <- struct{}{}:
	default:
	}
}

// level reports whether the outbox is full, and whether it also has more than maxOutbox bytes.
func (o *outbox) level() (full, excessive bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	full = len(o.messages) > fullMessages
	return full, full && o.size > maxOutbox
}
