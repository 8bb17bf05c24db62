package turn

import (
	"cmp"
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
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/internal/pdftext"
	"github.com/seed-dec29ce4/eca/workspace"
)

// block is the result of reading a content block: text of the prompt, a context, or the reason why
// the block is left out.
type block struct {
	text    string
	ref     contexts.Ref
	leftOut string
}

// readBlock reads a content block. It returns an error if the block is malformed.
func readBlock(ctx context.Context, b e2a.Block) (block, error) {
	named := attachment{cmp.Or(b.Name, b.URI), b.MIMEType, b.Type}
	switch b.Type {
	case "":
		return block{}, errors.New("a content block must be an object with a type")
	case "text":
		if b.Text == nil {
			return block{}, errors.New("text must be a string")
		}
		return block{text: *b.Text}, nil
	case "image":
		return blob(ctx, b.Data, "data", named)
	case "resource":
		r := b.Resource
		if r == nil {
			return block{}, errors.New("resource must be an object")
		}
		if r.Text != nil {
			return block{text: fmt.Sprintf("<context uri=\"%s\">\n%s\n</context>", html.EscapeString(r.URI), *r.Text)}, nil
		}
		return blob(ctx, r.Blob, "resource.blob", attachment{r.URI, r.MIMEType, "resource"})
	case "resource_link":
		if b.URI == "" {
			return block{}, errors.New("uri is missing")
		}
		if path := localPath(b.URI); path != "" {
			return block{ref: contexts.Ref{Type: "file", Path: path}}, nil
		}
		return block{text: fmt.Sprintf("[Linked resource] %s: %s", named.name, b.URI)}, nil
	}
	return block{leftOut: named.leftOutBecause("content of type " + b.Type + " is not supported")}, nil
}

// attachment describes the attachment in a content block.
type attachment struct{ name, mediaType, kind string }

// leftOutBecause returns a description of the attachment with the reason why it is left out.
func (a attachment) leftOutBecause(why string) string {
	name := cmp.Or(a.name, "an attachment")
	if a.mediaType != "" {
		name += " (" + a.mediaType + ")"
	}
	return name + ": " + why
}

// maxAttachment limits the text of an attachment, in bytes. It is below the limit that contexts sets
// for one text.
const maxAttachment = 250 << 10

// blob decodes base64 to an image, the text of a PDF, or text. The content decides which, not the
// media type. field names the member in errors.
func blob(ctx context.Context, encoded, field string, a attachment) (block, error) {
	if encoded == "" {
		return block{}, fmt.Errorf("%s must be non-empty base64", field)
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
		return block{leftOut: a.leftOutBecause(fmt.Sprintf("the image has %d bytes; at most %d are supported", len(data), workspace.MaxImage))}, nil
	case workspace.ImageType(data) != "":
		return block{ref: contexts.Ref{Type: "image", Base64: encoded}}, nil
	case a.kind == "image":
		return block{leftOut: a.leftOutBecause("only PNG, JPEG, GIF and WebP images are supported")}, nil
	case pdftext.Is(data):
		if content, err = pdftext.Text(ctx, data); err != nil {
			return block{leftOut: a.leftOutBecause(err.Error())}, nil
		}
	case workspace.IsBinary(data), !utf8.Valid(data):
		return block{leftOut: a.leftOutBecause(fmt.Sprintf("%d bytes of binary data, which is not an image, a PDF or text", len(data)))}, nil
	}
	if len(content) > maxAttachment {
		content = strings.ToValidUTF8(content[:maxAttachment], "") + "\n[the rest is left out]\n"
	}
	return block{ref: contexts.Ref{Type: "text", Label: cmp.Or(a.name, "attachment"), Text: content}}, nil
}

// localPath returns the path on this machine that a URI names, or "".
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
