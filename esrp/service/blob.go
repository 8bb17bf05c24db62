package service

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/esrp"
)

// inlineSize is how many bytes data takes in a record. For data above the limit of outputs in a
// response, it only returns some size above the limit.
func inlineSize(data []byte) int {
	if len(data) > maxInline {
		return len(data)
	}
	text, _ := encode(data)
	doc, err := esrp.StringValue(text).Canonical()
	if err != nil {
		return maxInline + 1
	}
	return len(doc)
}

// encode encodes data for a body.
func encode(data []byte) (string, esrp.Encoding) {
	if utf8.Valid(data) {
		return string(data), esrp.UTF8
	}
	return base64.StdEncoding.EncodeToString(data), esrp.Base64
}
