package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

// result makes what the model gets of what a server sent.
func result(raw json.RawMessage) (tools.Result, error) {
	var r struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return tools.Result{}, fmt.Errorf("the result can not be read: %w", err)
	}
	got := contents(r.Content...)
	out := tools.Result{Failed: r.IsError, Outputs: got.texts, Images: got.images}
	// Servers send structured content as text as well, for clients that do not know it.
	if data := string(r.Structured); data != "" && data != "null" && !got.said {
		out.Outputs = append(out.Outputs, data)
	}
	if len(out.Outputs) == 0 {
		out.Outputs = []string{"(the tool returned nothing)"}
	}
	return out, nil
}

// content is what a server sent, for a model.
type content struct {
	texts  []string // what is no text is named in words
	images []event.Image
	said   bool // there is text of the server's own
}

// contents makes that of what was sent.
func contents(list ...json.RawMessage) (out content) {
	add := func(text string) { out.texts = append(out.texts, text) }
	image := func(what, media, data string) {
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			add(fmt.Sprintf("[%s can not be shown: its data are no base64]", what))
			return
		}
		add(fmt.Sprintf("[%s, %d bytes]", what, len(raw)))
		out.images = append(out.images, event.Image{MediaType: media, Data: raw})
	}
	for _, one := range list {
		content, err := wire.UnmarshalContent(one)
		if err != nil {
			add(fmt.Sprintf("[content that eca can not read: %s]", cut(err.Error(), 200)))
			continue
		}
		switch c := content.(type) {
		case wire.TextContent:
			out.said = out.said || strings.TrimSpace(c.Text) != ""
			add(c.Text)
		case wire.ImageContent:
			image("image "+c.MIMEType, c.MIMEType, c.Data)
		case wire.AudioContent:
			add(fmt.Sprintf("[audio %s, %d bytes: models can not hear it]", c.MIMEType, base64.StdEncoding.DecodedLen(len(c.Data))))
		case wire.ResourceLink:
			add(reference(c))
		case wire.EmbeddedResource:
			switch res := c.Resource.(type) {
			case wire.TextResourceContents:
				out.said = true
				add(fmt.Sprintf("[resource %s]\n%s", res.URI, res.Text))
			case wire.BlobResourceContents:
				if strings.HasPrefix(res.MIMEType, "image/") {
					image("image "+res.MIMEType+" "+res.URI, res.MIMEType, res.Blob)
					continue
				}
				add(fmt.Sprintf("[resource %s (%s), %d bytes: it is no text]", res.URI, res.MIMEType, base64.StdEncoding.DecodedLen(len(res.Blob))))
			}
		default:
			add(fmt.Sprintf("[content that eca does not know: %T]", c))
		}
	}
	return out
}

// reference names a resource that the server has and did not send.
func reference(l wire.ResourceLink) string {
	text := fmt.Sprintf("[resource %s: %s", l.URI, l.Name)
	if l.Description != "" {
		text += ", " + l.Description
	}
	return text + "]"
}
