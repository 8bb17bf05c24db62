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
	out := tools.Result{Failed: r.IsError}
	said := false
	add := func(text string) { out.Outputs = append(out.Outputs, text) }
	image := func(what, media, data string) {
		raw, err := base64.StdEncoding.DecodeString(data)
		if err != nil {
			add(fmt.Sprintf("[%s can not be shown: its data are no base64]", what))
			return
		}
		add(fmt.Sprintf("[%s, %d bytes]", what, len(raw)))
		out.Images = append(out.Images, event.Image{MediaType: media, Data: raw})
	}
	for _, one := range r.Content {
		content, err := wire.UnmarshalContent(one)
		if err != nil {
			add(fmt.Sprintf("[content that eca can not read: %s]", cut(err.Error(), 200)))
			continue
		}
		switch c := content.(type) {
		case wire.TextContent:
			said = said || strings.TrimSpace(c.Text) != ""
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
				said = true
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
	// Servers send structured content as text as well, for clients that do not know it.
	if data := string(r.Structured); data != "" && data != "null" && !said {
		add(data)
	}
	if len(out.Outputs) == 0 {
		add("(the tool returned nothing)")
	}
	return out, nil
}

// reference names a resource that the server has and did not send.
func reference(l wire.ResourceLink) string {
	text := fmt.Sprintf("[resource %s: %s", l.URI, l.Name)
	if l.Description != "" {
		text += ", " + l.Description
	}
	return text + "]"
}
