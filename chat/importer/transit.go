package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Chats of the reference are transit data in its JSON encodings, the compact and the verbose
// one (https://github.com/cognitect/transit-format). It comes back in Go's plain types: nil,
// bool, string, json.Number, time.Time, []any and transitMap. Keywords, symbols, URIs and
// UUIDs become strings, lists and sets become []any; what that loses is of no use to a reader
// of stored records. A value with a tag that is not known is kept as transitTagged.

// transitMap is a map in the order of its source.
type transitMap []transitField

// transitField is one entry of a transitMap.
type transitField struct {
	Key   string
	Value any
}

// Get returns the value of a key, or nil; a repeated key has its last value.
func (m transitMap) Get(key string) any {
	for _, f := range slices.Backward(m) {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Has says whether a key is present.
func (m transitMap) Has(key string) bool {
	return slices.ContainsFunc(m, func(f transitField) bool { return f.Key == key })
}

// MarshalJSON writes an object with the keys in their order.
func (m transitMap) MarshalJSON() ([]byte, error) { return appendJSON(nil, m) }

// transitTagged is a value with a tag this package does not know.
type transitTagged struct {
	Tag   string `json:"tag"`
	Value any    `json:"value"`
}

// appendJSON appends the JSON of a decoded value to b.
func appendJSON(b []byte, v any) ([]byte, error) {
	var err error
	switch v := v.(type) {
	case transitMap:
		b = append(b, '{')
		for i, f := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendScalar(b, f.Key); err != nil {
				return nil, err
			}
			if b, err = appendJSON(append(b, ':'), f.Value); err != nil {
				return nil, err
			}
		}
		return append(b, '}'), nil
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ',')
			}
			if b, err = appendJSON(b, e); err != nil {
				return nil, err
			}
		}
		return append(b, ']'), nil
	case transitTagged:
		return appendJSON(b, transitMap{{"tag", v.Tag}, {"value", v.Value}})
	}
	return appendScalar(b, v)
}

func appendScalar(b []byte, v any) ([]byte, error) {
	buf := bytes.NewBuffer(b)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("write %T as JSON: %w", v, err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
