package a2a

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a"
)

// part is a part of a message or an artifact. Exactly one of Text, Raw, URL and Data is set, or, in
// A2A 0.3, File.
type part struct {
	Data      json.RawMessage `json:"data,omitempty"`
	File      *file           `json:"file,omitempty"` // 0.3
	Filename  string          `json:"filename,omitempty"`
	Kind      string          `json:"kind,omitempty"` // 0.3
	MediaType string          `json:"mediaType,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Raw       *string         `json:"raw,omitempty"` // base64
	Text      *string         `json:"text,omitempty"`
	URL       *string         `json:"url,omitempty"`
}

// file is a file in the form of A2A 0.3.
type file struct {
	Bytes    *string `json:"bytes,omitempty"` // base64
	MIMEType string  `json:"mimeType,omitempty"`
	Name     string  `json:"name,omitempty"`
	URI      *string `json:"uri,omitempty"`
}

// modern returns the part in the form of A2A 1.0.
func (p part) modern() part {
	p.Kind = ""
	if f := p.File; f != nil {
		p.File, p.Raw, p.URL = nil, f.Bytes, f.URI
		p.MediaType, p.Filename = cmp.Or(f.MIMEType, p.MediaType), cmp.Or(f.Name, p.Filename)
	}
	return p
}

// legacy returns the part in the form of A2A 0.3.
func (p part) legacy() part {
	out := part{Kind: "file", Metadata: p.Metadata}
	switch {
	case p.Text != nil:
		out.Kind, out.Text = "text", p.Text
	case p.Data != nil:
		out.Kind, out.Data = "data", p.Data
	default:
		out.File = &file{p.Raw, p.MediaType, p.Filename, p.URL}
	}
	return out
}

// block returns the equivalent content block (e2a.md 5.2); false means that the part has no
// content.
func (p part) block() (e2a.Block, bool) {
	p = p.modern()
	set := func(s *string) bool { return s != nil && *s != "" }
	switch {
	case p.Text != nil:
		return e2a.TextBlock(*p.Text), true
	case set(p.Raw) && strings.HasPrefix(p.MediaType, "image/"):
		return e2a.Block{Type: "image", MIMEType: p.MediaType, Data: *p.Raw}, true
	case set(p.Raw):
		return e2a.Block{Type: "resource", Resource: &e2a.Resource{Blob: *p.Raw, MIMEType: p.MediaType, URI: cmp.Or(p.Filename, "attachment")}}, true
	case set(p.URL):
		return e2a.Block{Type: "resource_link", URI: *p.URL, Name: cmp.Or(p.Filename, *p.URL), MIMEType: p.MediaType}, true
	case p.Data != nil:
		return e2a.TextBlock(string(p.Data)), true
	}
	return e2a.Block{}, false
}
