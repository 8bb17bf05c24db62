package e2a

import (
	"cmp"
	"encoding/json"
)

// Block is a content block of a prompt, as ACP defines it (e2a.md 5.8). It is decoded from snake
// case or camel case, and encoded in snake case.
type Block struct {
	Data     string    `json:"data,omitempty"` // base64
	MIMEType string    `json:"mime_type,omitempty"`
	Name     string    `json:"name,omitempty"`
	Resource *Resource `json:"resource,omitempty"`
	Text     *string   `json:"text,omitempty"`
	Type     string    `json:"type"`
	URI      string    `json:"uri,omitempty"`
}

// Resource is embedded content: text, or base64 in Blob.
type Resource struct {
	Blob     string  `json:"blob,omitempty"`
	MIMEType string  `json:"mime_type,omitempty"`
	Text     *string `json:"text,omitempty"`
	URI      string  `json:"uri,omitempty"`
}

// TextBlock returns a block of text.
func TextBlock(text string) Block { return Block{Type: "text", Text: &text} }

// UnmarshalJSON reads a block. It never fails: members of a wrong type count as missing, and the code
// that uses the block reports missing members.
func (b *Block) UnmarshalJSON(raw []byte) error {
	var in struct {
		Type, Data, Name, URI Optional[string]
		Text                  Optional[*string]
		Resource              Optional[*Resource]
		Snake                 Optional[string] `json:"mime_type"`
		Camel                 Optional[string] `json:"mimeType"`
	}
	_ = json.Unmarshal(raw, &in) // a value that is not an object has no type
	*b = Block{
		Type: in.Type.Value, Text: in.Text.Value, Data: in.Data.Value, Name: in.Name.Value, URI: in.URI.Value, Resource: in.Resource.Value,
		MIMEType: cmp.Or(in.Snake.Value, in.Camel.Value),
	}
	return nil
}

// UnmarshalJSON reads a resource. Members of a wrong type count as missing.
func (r *Resource) UnmarshalJSON(raw []byte) error {
	var b Block
	var in struct {
		Blob Optional[string]
	}
	_ = b.UnmarshalJSON(raw)
	*r = Resource{MIMEType: b.MIMEType, Text: b.Text, URI: b.URI}
	if err := json.Unmarshal(raw, &in); err != nil {
		return err
	}
	r.Blob = in.Blob.Value
	return nil
}

// Optional is an optional member: a malformed value counts as absent.
type Optional[T any] struct{ Value T }

// UnmarshalJSON implements json.Unmarshaler.
func (o *Optional[T]) UnmarshalJSON(raw []byte) error {
	var v T
	if json.Unmarshal(raw, &v) == nil {
		o.Value = v
	}
	return nil
}
