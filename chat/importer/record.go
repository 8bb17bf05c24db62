package importer

import (
	"encoding/json"
	"strconv"
	"time"
)

// Record is a message, or the summary of a chat, in the reference's format. `eca read-chat`
// prints each as one line of JSON.
type Record struct{ fields transitMap }

// MarshalJSON implements json.Marshaler.
func (r Record) MarshalJSON() ([]byte, error) { return r.fields.MarshalJSON() }

// Role returns the role of a message.
func (r Record) Role() string { return text(r.fields.Get("role")) }

// Created returns the time when a message was written; ok is false if an old message does
// not have it.
func (r Record) Created() (time.Time, bool) { return moment(r.fields.Get("created-at")) }

// Updated returns the time when a chat last changed.
func (r Record) Updated() (time.Time, bool) { return moment(r.fields.Get("updated-at")) }

// text returns a value that is a string or a number as text, or "" for other values.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// integer returns a value that is an integer, or 0 for other values.
func integer(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, err := strconv.ParseInt(n.String(), 10, 64)
	if err != nil {
		return 0
	}
	return i
}

// moment returns a value that is a time, or milliseconds since 1970, as a time.
func moment(v any) (time.Time, bool) {
	if t, ok := v.(time.Time); ok {
		return t, true
	}
	if ms := integer(v); ms > 0 {
		return time.UnixMilli(ms).UTC(), true
	}
	return time.Time{}, false
}

// millis is the inverse of moment.
func millis(t time.Time) json.Number { return json.Number(strconv.FormatInt(t.UnixMilli(), 10)) }
