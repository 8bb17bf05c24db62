package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Resource is a readable resource of a server.
type Resource struct {
	Server, URI, Name string
	Description       string
	MediaType         string // according to the server
}

// Limits of resources.
const (
	maxResources = 2000
	maxURI       = 4096 // bytes
)

// Resources lists the resources of all servers that are running or restarting, ordered by server. It
// omits resource templates, because a user would have to fill in their parameters.
func (m *Manager) Resources() []Resource {
	var out []Resource
	for _, s := range m.Statuses() {
		if s.Offer != nil {
			out = append(out, s.Offer.Resources...)
		}
	}
	return out
}

// ReadResource returns the content of a resource: texts, and images of the types that models accept.
// Other content is described in words. Callers write the address before the text of an error: "URI
// could not be read: ...".
func (m *Manager) ReadResource(ctx context.Context, server, uri string) ([]event.Block, error) {
	var out []event.Block
	err := m.ask(ctx, server, func(ctx context.Context, c *connection) error {
		raw, err := c.get(ctx, wire.MethodResourcesRead, map[string]any{"uri": uri})
		if err != nil {
			return err
		}
		res, err := wire.ParseReadResourceResult(&raw)
		if err != nil {
			return err
		}
		for _, part := range res.Contents {
			out = append(out, resourceBlock(part, uri, c.clean))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("could not be read: %w", err)
	}
	return out, nil
}

// resourceBlock converts one part of a resource.
func resourceBlock(part wire.ResourceContents, uri string, clean func(string) string) event.Block {
	switch part := part.(type) {
	case wire.TextResourceContents:
		if isBase64Data(part.MIMEType, part.Text) {
			return resourceBlock(wire.BlobResourceContents{URI: part.URI, MIMEType: part.MIMEType, Blob: part.Text}, uri, clean)
		}
		return event.Block{Label: cmp.Or(part.URI, uri), Text: clean(part.Text)}
	case wire.BlobResourceContents:
		label := cmp.Or(part.URI, uri)
		data, err := decodeBase64(part.Blob)
		switch {
		case err != nil:
			return event.Block{Label: label, Text: "[Cannot be shown: the data is not valid base64]"}
		case acceptedImage(part.MIMEType) && len(data) <= workspace.MaxImage:
			return event.Block{Label: label, Text: fmt.Sprintf("[image %s, %d bytes]", part.MIMEType, len(data)), MediaType: part.MIMEType, Data: data}
		case isText(part.MIMEType) && utf8.Valid(data):
			return event.Block{Label: label, Text: clean(string(data))}
		}
		return event.Block{Label: label, Text: fmt.Sprintf("[%s, %d bytes: not text]", cmp.Or(part.MIMEType, "binary data"), len(data))}
	}
	return event.Block{Label: uri, Text: fmt.Sprintf("[unsupported content: %T]", part)}
}

// acceptedImage reports whether models accept images of a media type.
func acceptedImage(media string) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media)
}

// isText reports whether data of a media type is text even if a server sends it as a blob.
func isText(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "json") || strings.HasSuffix(media, "xml") || strings.HasSuffix(media, "yaml")
}

// listResources fetches all resources of the server.
func (c *connection) listResources(ctx context.Context, s *server) ([]Resource, error) {
	if c.capabilities.Resources == nil {
		return nil, nil
	}
	var out []Resource
	err := fetchPages(ctx, c, wire.MethodResourcesList, func(page *wire.ListResourcesResult) wire.Cursor {
		for _, r := range page.Resources {
			if r.URI == "" || oneLine(r.URI) != r.URI || len(r.URI) > maxURI || len(out) == maxResources {
				s.m.deps.Log.Warn("omitting a resource of an MCP server", "server", s.name, "resource", shorten.Bytes(r.URI, 100))
				continue
			}
			out = append(out, Resource{
				Server: s.name, URI: r.URI, Name: shorten.Bytes(oneLine(cmp.Or(r.Title, r.Name, r.URI)), maxToolName),
				Description: c.shortText(r.Description), MediaType: shorten.Bytes(oneLine(r.MIMEType), maxToolName),
			})
		}
		return page.NextCursor
	})
	return out, err
}
