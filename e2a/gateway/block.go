package gateway

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"net/url"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/internal/pdftext"
	"github.com/seed-dec29ce4/eca/workspace"
)

// block is what a content block says: text of the message, something that it points at, or
// why it is left out.
type block struct {
	text    string
	ref     contexts.Ref
	leftOut string
}

// readBlock reads a content block. The error says what is malformed.
func readBlock(ctx context.Context, raw any) (block, error) {
	b, ok := raw.(map[string]any)
	if !ok {
		return block{}, errors.New("a content block must be an object")
	}
	kind, _ := b["type"].(string)
	media := text(b, "mime_type", "mimeType")
	switch kind {
	case "":
		return block{}, errors.New("type is missing")
	case "text":
		said, ok := b["text"].(string)
		if !ok {
			return block{}, errors.New("text must be a string")
		}
		return block{text: said}, nil
	case "image":
		return blob(ctx, b["data"], "data", attachment{text(b, "name", "uri"), media, kind})
	case "resource":
		return resource(ctx, b)
	case "resource_link":
		return link(b)
	}
	return block{leftOut: attachment{text(b, "name", "uri"), media, kind}.because("content of type " + kind + " is not supported")}, nil
}

// text is the first member that is a string and says something.
func text(o map[string]any, keys ...string) string {
	for _, key := range keys {
		if s, ok := o[key].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

func resource(ctx context.Context, b map[string]any) (block, error) {
	r, ok := b["resource"].(map[string]any)
	if !ok {
		return block{}, errors.New("resource must be an object")
	}
	uri := text(r, "uri")
	if content, ok := r["text"].(string); ok {
		return block{text: fmt.Sprintf("<context uri=\"%s\">\n%s\n</context>", html.EscapeString(uri), content)}, nil
	}
	return blob(ctx, r["blob"], "resource.blob", attachment{uri, text(r, "mime_type", "mimeType"), "resource"})
}

func link(b map[string]any) (block, error) {
	uri := text(b, "uri")
	if uri == "" {
		return block{}, errors.New("uri is missing")
	}
	if path := localPath(uri); path != "" {
		return block{ref: contexts.Ref{Type: "file", Path: path}}, nil
	}
	return block{text: fmt.Sprintf("[Linked resource] %s: %s", text(b, "name", "uri"), uri)}, nil
}

// attachment is what a content block brings along.
type attachment struct{ name, mediaType, kind string }

// because says why an attachment is left out.
func (a attachment) because(why string) string {
	name := a.name
	if name == "" {
		name = "an attachment"
	}
	if a.mediaType != "" {
		name += " (" + a.mediaType + ")"
	}
	return name + ": " + why
}

// maxAttachment bounds the text of an attachment, in bytes: less than contexts take of one
// text.
const maxAttachment = 250 << 10

// blob reads base64 by what is in it, whatever its media type says: an image, the text of a
// PDF, or text. field names it in errors.
func blob(ctx context.Context, raw any, field string, a attachment) (block, error) {
	encoded, ok := raw.(string)
	if !ok || encoded == "" {
		return block{}, fmt.Errorf("%s must be base64, and not empty", field)
	}
	if strings.HasPrefix(encoded, "data:") {
		_, encoded, _ = strings.Cut(encoded, ",")
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "=\r\n "))
	if err != nil {
		return block{}, fmt.Errorf("%s is not valid base64: %w", field, err)
	}
	content := string(data)
	switch {
	case workspace.ImageType(data) != "" && len(data) > workspace.MaxImage:
		return block{leftOut: a.because(fmt.Sprintf("the image has %d bytes; at most %d are supported", len(data), workspace.MaxImage))}, nil
	case workspace.ImageType(data) != "":
		return block{ref: contexts.Ref{Type: "image", Base64: encoded}}, nil
	case a.kind == "image":
		return block{leftOut: a.because("only PNG, JPEG, GIF and WebP images are supported")}, nil
	case pdftext.Is(data):
		if content, err = pdftext.Text(ctx, data); err != nil {
			return block{leftOut: a.because(err.Error())}, nil
		}
	case workspace.IsBinary(data), !utf8.Valid(data):
		return block{leftOut: a.because(fmt.Sprintf("%d bytes of binary data, which is not an image, a PDF or text", len(data)))}, nil
	}
	if len(content) > maxAttachment {
		content = strings.ToValidUTF8(content[:maxAttachment], "") + "\n[the rest is left out]\n"
	}
	label := a.name
	if label == "" {
		label = "attachment"
	}
	return block{ref: contexts.Ref{Type: "text", Label: label, Text: content}}, nil
}

// localPath returns the path that a URI names on this machine, or nothing.
func localPath(uri string) string {
	if filepath.IsAbs(uri) {
		return uri
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" {
		return ""
	}
	path := u.Path
	if u.Host != "" && u.Host != "localhost" {
		return filepath.FromSlash("//" + u.Host + path)
	}
	if len(path) > 2 && path[0] == '/' && path[2] == ':' { // a drive
		path = path[1:]
	}
	return filepath.FromSlash(path)
}
