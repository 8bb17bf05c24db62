package llm

import (
	"bytes"
	"encoding/json"
)

// Optional is a part of an answer without which the answer can be used, such as its usage. If the part
// does not have the form of T, it is left out instead of making the answer unreadable.
type Optional[T any] struct {
	Value   T
	Sent    bool // Value was received
	Invalid bool // it was sent in another form
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *Optional[T]) UnmarshalJSON(raw []byte) error {
	var value T
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if o.Invalid = json.Unmarshal(raw, &value) != nil; !o.Invalid {
		o.Value, o.Sent = value, true
	}
	return nil
}

// Count is a number of tokens as providers report it. It is neither negative nor absurdly large, so that
// sums of counts do not overflow.
type Count uint32
