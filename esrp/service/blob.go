package service

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/esrp"
)

// inlineSize returns the size of data in a response, in bytes. For data above maxInline, it returns
// any size above that.
func inlineSize(data []byte) int {
	if len(data) > maxInline {
		return len(data)
	}
	text, _ := encodeBody(data)
	doc, err := esrp.StringValue(text).Canonical()
	if err != nil {
		return maxInline + 1
	}
	return len(doc)
}

// encodeBody encodes data for a body.
func encodeBody(data []byte) (string, esrp.Encoding) {
	if utf8.Valid(data) {
		return string(data), esrp.UTF8
	}
	return base64.StdEncoding.EncodeToString(data), esrp.Base64
}
