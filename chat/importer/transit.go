package importer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// The reference stores chats as Transit data in one of its JSON encodings, compact or verbose
// (https://github.com/cognitect/transit-format). Values are decoded to these types: nil, bool,
// string, json.Number, time.Time, []any and transitMap. Keywords, symbols, URIs and UUIDs
// become strings; lists and sets become []any. A value with an unknown tag becomes a
// transitTagged.

// transitMap is a map that keeps the order of its source.
type transitMap []transitField

// transitField is one entry of a transitMap.
type transitField struct {
	Key   string
	Value any
}

// Get returns the value of a key, or nil. If a key is repeated, the last value applies.
func (m transitMap) Get(key string) any {
	for _, f := range slices.Backward(m) {
		if f.Key == key {
			return f.Value
		}
	}
	return nil
}

// Has reports whether a key is present.
func (m transitMap) Has(key string) bool {
	return slices.ContainsFunc(m, func(f transitField) bool { return f.Key == key })
}

// MarshalJSON implements json.Marshaler. It keeps the order of the keys.
func (m transitMap) MarshalJSON() ([]byte, error) { return appendJSON(nil, m) }

// transitTagged is a value with an unknown tag.
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
