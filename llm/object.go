package llm

import "encoding/json"

// Object appends a JSON object to a buffer, byte for byte as encoding/json encodes a
// struct. It is for what is large and encoded often: the messages of a conversation.
type Object struct {
	out   []byte
	empty bool
}

// NewObject begins an object behind out. The buffer is End's from then on.
func NewObject(out []byte) *Object { return &Object{append(out, '{'), true} }

// Key begins a member whose value the caller appends to what is returned, and gives back
// with Value. The key needs no escaping.
func (o *Object) Key(key string) []byte {
	if !o.empty {
		o.out = append(o.out, ',')
	}
	o.empty = false
	o.out = append(o.out, '"')
	o.out = append(o.out, key...)
	return append(o.out, '"', ':')
}

// Value takes the buffer of Key back, with the value.
func (o *Object) Value(out []byte) { o.out = out }

// Text adds a member.
func (o *Object) Text(key, value string) { o.out = AppendText(o.Key(key), value) }

// Optional adds a member unless it is empty.
func (o *Object) Optional(key, value string) {
	if value != "" {
		o.Text(key, value)
	}
}

// Pointer adds a member, which may be empty, unless there is none.
func (o *Object) Pointer(key string, value *string) {
	if value != nil {
		o.Text(key, *value)
	}
}

// End returns the buffer with the object.
func (o *Object) End() []byte { return append(o.out, '}') }

// AppendText appends a JSON string as encoding/json writes it.
func AppendText(out []byte, s string) []byte {
	raw, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return append(out, `""`...)
	}
	return append(out, raw...)
}
