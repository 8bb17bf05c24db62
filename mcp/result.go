package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
)

// convertResult converts a server's result of a tool call for the model.
func convertResult(raw json.RawMessage, schema *outputSchema) (tools.Result, error) {
	var r struct {
		Content    []json.RawMessage `json:"content"`
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
	}
	if err := decode(raw, &r); err != nil {
		return tools.Result{}, err
	}
	got := convertContent(r.Content...)
	out := tools.Result{Failed: r.IsError, Outputs: got.texts, Images: got.images}
	if data := string(r.Structured); data != "" && data != "null" && !repeatsStructured(r.Structured, got.serverTexts) {
		out.Outputs = append(out.Outputs, withoutBinary(r.Structured))
	}
	if len(out.Outputs) == 0 {
		out.Outputs = []string{"(the tool returned nothing)"}
	}
	if !r.IsError {
		if err := schema.check(r.Structured); err != nil {
			out.Failed = true
			out.Outputs = append([]string{visible.Text("[" + err.Error() + "]")}, out.Outputs...)
		}
	}
	return out, nil
}

// content is the content of a server's message in the form that a model gets.
type content struct {
	texts       []string // binary data is described in words
	images      []event.Image
	serverTexts []string // the server's own texts
}

// convertContent converts content items for a model.
func convertContent(list ...json.RawMessage) (out content) {
	add := func(addText string) { out.texts = append(out.texts, visible.Text(addText)) }
	addBinary := func(what, media, data string) {
		raw, err := decodeBase64(data)
		switch {
		case err != nil:
			add(fmt.Sprintf("[%s cannot be shown: the data is not valid base64]", what))
		case strings.HasPrefix(media, "image/"):
			add(fmt.Sprintf("[%s, %d bytes]", what, len(raw)))
			out.images = append(out.images, event.Image{MediaType: media, Data: raw})
		case strings.HasPrefix(media, "audio/"):
			add(fmt.Sprintf("[%s, %d bytes: models cannot hear it]", what, len(raw)))
		default:
			add(fmt.Sprintf("[%s, %d bytes: not text]", what, len(raw)))
		}
	}
	addText := func(addText string) {
		out.serverTexts = append(out.serverTexts, addText)
		rest, urls := cutDataURLs(addText)
		if strings.TrimSpace(rest) != "" || len(urls) == 0 {
			add(rest)
		}
		for _, u := range urls {
			if strings.TrimSpace(rest) == "" {
				addBinary("data "+u.media, u.media, u.data)
			} else if raw, err := decodeBase64(u.data); err == nil && strings.HasPrefix(u.media, "image/") {
				out.images = append(out.images, event.Image{MediaType: u.media, Data: raw}) // the text describes it
			}
		}
	}
	for _, one := range list {
		content, err := wire.UnmarshalContent(one)
		if err != nil {
			add(fmt.Sprintf("[content that eca cannot read: %s]", shorten.Bytes(err.Error(), 200)))
			continue
		}
		switch c := content.(type) {
		case wire.TextContent:
			addText(c.Text)
		case wire.ImageContent:
			addBinary("image "+c.MIMEType, cmp.Or(c.MIMEType, "image/*"), c.Data)
		case wire.AudioContent:
			addBinary("audio "+c.MIMEType, "audio/*", c.Data)
		case wire.ResourceLink:
			add(describeLink(c))
		case wire.EmbeddedResource:
			switch res := c.Resource.(type) {
			case wire.TextResourceContents:
				if isBase64Data(res.MIMEType, res.Text) {
					addBinary(fmt.Sprintf("resource %s (%s)", res.URI, res.MIMEType), res.MIMEType, res.Text)
					continue
				}
				add("[resource " + res.URI + "]\n" + res.Text)
			case wire.BlobResourceContents:
				what := fmt.Sprintf("resource %s (%s)", res.URI, res.MIMEType)
				if strings.HasPrefix(res.MIMEType, "image/") {
					what = "image " + res.MIMEType + " " + res.URI
				}
				addBinary(what, res.MIMEType, res.Blob)
			}
		default:
			add(fmt.Sprintf("[unsupported content: %T]", c))
		}
	}
	return out
}

// describeLink describes a resource to which the server only refers.
func describeLink(l wire.ResourceLink) string {
	text := fmt.Sprintf("[resource %s: %s", l.URI, l.Name)
	if l.Description != "" {
		text += ", " + l.Description
	}
	return text + "]"
}
