package event

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// Version is stored with every encoded event. A program decodes events of a later version
// as Unknown.
const Version = 1

// EncodeBody returns the version and the JSON of a body, as stored.
func EncodeBody(b Body) (version int, raw []byte, err error) {
	if u, ok := b.(Unknown); ok {
		return Version + 1, u.Raw, nil // so that Body decodes it as Unknown again
	}
	// A model's raw JSON must stay unchanged, except for white space, because it is sent back.
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(b)
	return Version, bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// StoredForm returns a body in the form that the store returns, in which raw JSON has no white space.
// The copy in memory must have the same form; otherwise requests to the model would differ after a restart.
func StoredForm(b Body) Body {
	switch b := b.(type) {
	case ToolJudged:
		b.Arguments, b.Opaque = compact(b.Arguments), compact(b.Opaque)
		return b
	case ToolFinished:
		b.Opaque = compact(b.Opaque)
		return b
	case ReasoningFinished:
		b.Opaque = compact(b.Opaque)
		return b
	default:
	}
	return b
}

func compact(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil || out.Len() == len(raw) {
		return raw
	}
	return out.Bytes()
}

// Decoder decodes stored bodies.
type Decoder struct {
	kinds map[Kind]reflect.Type
}

// NewDecoder returns a Decoder; it is safe for concurrent use.
func NewDecoder() *Decoder {
	d := &Decoder{kinds: map[Kind]reflect.Type{}}
	for _, b := range All() {
		d.kinds[KindOf(b)] = reflect.TypeOf(b)
	}
	return d
}

// Body decodes a stored body. An unknown kind becomes Unknown. It returns an error if the body does
// not match its kind.
func (d *Decoder) Body(kind Kind, version int, raw []byte) (Body, error) {
	known, ok := d.kinds[kind]
	if !ok || version > Version {
		return Unknown{Name: kind, Raw: append(json.RawMessage(nil), raw...)}, nil
	}
	b := reflect.New(known)
	if err := json.Unmarshal(raw, b.Interface()); err != nil {
		return nil, fmt.Errorf("decode %s event: %w", kind, err)
	}
	return b.Elem().Interface().(Body), nil
}
