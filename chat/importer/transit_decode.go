package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// errTooLarge is returned for input beyond the limits.
var errTooLarge = errors.New("too much data")

// decodeTransit reads one value, which must be the whole content of r. size limits, in bytes, the input
// and the total size of all strings after cache codes are expanded. depth limits the nesting of arrays
// and maps.
func decodeTransit(r io.Reader, size int64, depth int) (any, error) {
	in := &boundedReader{r: r, left: size}
	d := &transitDecoder{json: json.NewDecoder(in), left: size, depth: depth}
	d.json.UseNumber()
	v, err := d.value(false)
	if err == nil {
		if _, end := d.json.Token(); !errors.Is(end, io.EOF) {
			err = errors.New("unexpected data after the value")
		}
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("transit: at byte %d: %w", d.json.InputOffset(), err)
	}
	return v, nil
}

// boundedReader returns an error at its limit, where io.LimitReader would return EOF.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// The cache of the compact encoding: the first occurrence of a long keyword, tag or key gets a code,
// which replaces all later occurrences.
const (
	cacheBase     = '0'
	cacheDigits   = 44
	cacheSize     = cacheDigits * cacheDigits // a full cache is emptied
	cacheMinUnits = 4                         // minimum length of a cached string, in UTF-16 code units
)

type transitDecoder struct {
	json  *json.Decoder
	cache []string
	left  int64 // remaining limit for the size of strings, in bytes
	depth int   // remaining limit for the nesting
}

// tag is the decoded form of "~#name", mapMark that of "^ ". They are special only as the
// first element of an array or the first key of an object.
type (
	tag     string
	mapMark struct{}
)

// value reads a value that is not a tag or mapMark. asKey is true for a key of a map.
func (d *transitDecoder) value(asKey bool) (any, error) {
	v, err := d.valueOrTag(asKey)
	if err != nil {
		return nil, err
	}
	switch v.(type) {
	case tag, mapMark:
		return nil, errors.New("a tag without a value")
	}
	return v, nil
}

// valueOrTag reads a value, a tag or a mapMark.
func (d *transitDecoder) valueOrTag(asKey bool) (any, error) {
	t, err := d.json.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case string:
		return d.text(t, asKey)
	case json.Delim:
		if d.depth == 0 {
			return nil, fmt.Errorf("%w: too deep", errTooLarge)
		}
		d.depth--
		defer func() { d.depth++ }()
		if t == '{' {
			return d.object()
		}
		return d.array()
	}
	return t, nil // nil, a boolean or a number
}

// array reads the rest of an array after "[": a list, a map or a tagged value.
func (d *transitDecoder) array() (any, error) {
	if !d.json.More() {
		return []any{}, d.end()
	}
	first, err := d.valueOrTag(false)
	if err != nil {
		return nil, err
	}
	switch first := first.(type) {
	case mapMark:
		m := transitMap{}
		for d.json.More() {
			f, err := d.field()
			if err != nil {
				return nil, err
			}
			m = append(m, f)
		}
		return m, d.end()
	case tag:
		return d.tagged(first)
	}
	list := []any{first}
	for d.json.More() {
		v, err := d.value(false)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, d.end()
}

// object reads the rest of an object after "{": the verbose form of a map or a tagged value.
func (d *transitDecoder) object() (any, error) {
	m := transitMap{}
	for d.json.More() {
		k, err := d.valueOrTag(true)
		if err != nil {
			return nil, err
		}
		if t, ok := k.(tag); ok && len(m) == 0 {
			return d.tagged(t)
		}
		var f transitField
		if f.Key, err = key(k); err != nil {
			return nil, err
		}
		if f.Value, err = d.value(false); err != nil {
			return nil, err
		}
		m = append(m, f)
	}
	return m, d.end()
}

func (d *transitDecoder) field() (f transitField, err error) {
	k, err := d.value(true)
	if err != nil {
		return f, err
	}
	if !d.json.More() {
		return f, errors.New("a map has a key without a value")
	}
	if f.Key, err = key(k); err != nil {
		return f, err
	}
	f.Value, err = d.value(false)
	return f, err
}

// key returns a key as text. It returns an error for keys that are not scalars: records do not
// have such keys, and as text they would grow with each level of nesting.
func key(k any) (string, error) {
	switch k := k.(type) {
	case string:
		return k, nil
	case transitMap, []any, transitTagged, tag, mapMark:
		return "", errors.New("a map has a key that is not a scalar")
	}
	b, err := appendScalar(nil, k)
	return string(b), err
}

// tagged reads the value of a tag and the end of their array or object.
func (d *transitDecoder) tagged(t tag) (any, error) {
	v, err := d.value(false)
	if err != nil {
		return nil, err
	}
	if err := d.end(); err != nil {
		return nil, fmt.Errorf("the tag %q has more than one value", string(t))
	}
	list, isList := v.([]any)
	switch {
	case t == "'":
		return v, nil
	case isList && (t == "list" || t == "set" || t == "array"):
		return list, nil
	case isList && t == "cmap" && len(list)%2 == 0:
		m := transitMap{}
		for i := 0; i < len(list); i += 2 {
			k, err := key(list[i])
			if err != nil {
				return nil, err
			}
			m = append(m, transitField{Key: k, Value: list[i+1]})
		}
		return m, nil
	}
	return transitTagged{Tag: string(t), Value: v}, nil
}

// end reads the end of an array or object.
func (d *transitDecoder) end() error {
	t, err := d.json.Token()
	if err != nil {
		return err
	}
	if t != json.Delim(']') && t != json.Delim('}') {
		return fmt.Errorf("expected an end, not %v", t)
	}
	return nil
}

// text resolves cache codes and decodes a string.
func (d *transitDecoder) text(s string, asKey bool) (any, error) {
	if s == "^ " {
		return mapMark{}, nil
	}
	if strings.HasPrefix(s, "^") {
		i, ok := cacheIndex(s)
		if !ok || i >= len(d.cache) {
			return nil, fmt.Errorf("unknown code %q", s)
		}
		s = d.cache[i]
	} else if cacheable(s, asKey) {
		if len(d.cache) == cacheSize {
			d.cache = d.cache[:0]
		}
		d.cache = append(d.cache, s)
	}
	if d.left -= int64(len(s)); d.left < 0 {
		return nil, errTooLarge
	}
	return scalar(s)
}

func cacheIndex(code string) (int, bool) {
	n := 0
	for _, c := range []byte(code[1:]) {
		if c < cacheBase || c >= cacheBase+cacheDigits {
			return 0, false
		}
		n = n*cacheDigits + int(c-cacheBase)
	}
	return n, len(code) == 2 || len(code) == 3
}

func cacheable(s string, asKey bool) bool {
	if !asKey && !strings.HasPrefix(s, "~:") && !strings.HasPrefix(s, "~$") && !strings.HasPrefix(s, "~#") {
		return false
	}
	units := 0
	for _, r := range s {
		units += utf16.RuneLen(r)
		if units >= cacheMinUnits {
			return true
		}
	}
	return false
}

// scalar decodes a string that may begin with a type.
func scalar(s string) (any, error) {
	if len(s) < 2 || s[0] != '~' {
		return s, nil
	}
	rest := s[2:]
	switch s[1] {
	case '~', '^', '`':
		return s[1:], nil
	case ':', '$', 'u', 'r', 'c', 'b', 'z':
		return rest, nil
	case '#':
		return tag(rest), nil
	case '_':
		return nil, nil
	case '?':
		return rest == "t", nil
	case 'i', 'n', 'd', 'f':
		if _, err := strconv.ParseFloat(rest, 64); (err != nil && !errors.Is(err, strconv.ErrRange)) || !json.Valid([]byte(rest)) {
			return nil, fmt.Errorf("%q is not a number", s)
		}
		return json.Number(rest), nil
	case 'm':
		ms, err := strconv.ParseInt(rest, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is not a time", s)
		}
		return date(s, time.UnixMilli(ms))
	case 't':
		t, err := time.Parse(time.RFC3339Nano, rest)
		if err != nil {
			return nil, fmt.Errorf("%q is not a time", s)
		}
		return date(s, t)
	}
	return s, nil
}

// date returns t in UTC, or an error if its year cannot be written as JSON.
func date(s string, t time.Time) (any, error) {
	if t = t.UTC(); t.Year() < 0 || t.Year() > 9999 {
		return nil, fmt.Errorf("%q is not a time", s)
	}
	return t, nil
}
