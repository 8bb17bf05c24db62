package gateway

import (
	"fmt"
	"html"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/e2a"
)

// prompt is what the user says: text, and what it points at.
type prompt struct {
	text string
	refs []contexts.Ref
}

// seeContext is said for a prompt that has nothing but attachments.
const seeContext = "(see attached context)"

// promptOf reads the content blocks or the text of an envelope (e2a.md 4, 5.8).
func promptOf(e e2a.Envelope) (prompt, error) {
	method := e2a.MethodPrompt
	e.Method = &method // chat.send says it in the same words
	blocks, ok := e2a.ACPPromptParams(e)["prompt"].([]any)
	if !ok {
		if s, is := e.Params["prompt"].(string); is { // what plain clients send
			blocks = []any{map[string]any{"type": "text", "text": s}}
		}
	}
	var p prompt
	var texts []string
	for _, b := range blocks {
		block, ok := b.(map[string]any)
		if !ok {
			continue
		}
		text, ref := readBlock(block)
		if text != "" {
			texts = append(texts, text)
		}
		if ref.Type != "" {
			p.refs = append(p.refs, ref)
		}
	}
	p.text = strings.TrimSpace(strings.Join(texts, "\n"))
	for _, key := range []string{"text", "content", "query"} {
		if s, ok := e.Params[key].(string); ok && p.text == "" {
			p.text = strings.TrimSpace(s)
		}
	}
	if p.text == "" && len(p.refs) > 0 {
		p.text = seeContext
	}
	if p.text == "" {
		return p, fail(codeBadParams, "the prompt says nothing: params.prompt, content_blocks, text, content and query are empty")
	}
	return p, nil
}

// readBlock reads a content block. One that is malformed, or of a kind that nobody knows,
// says nothing.
func readBlock(b map[string]any) (text string, ref contexts.Ref) {
	str := func(o map[string]any, keys ...string) string {
		for _, key := range keys {
			if s, ok := o[key].(string); ok && s != "" {
				return s
			}
		}
		return ""
	}
	switch b["type"] {
	case "text":
		return str(b, "text"), ref
	case "image":
		return "", image(str(b, "data"), str(b, "mime_type", "mimeType"))
	case "resource":
		r, _ := b["resource"].(map[string]any)
		if t := str(r, "text"); t != "" {
			return fmt.Sprintf("<context uri=\"%s\">\n%s\n</context>", html.EscapeString(str(r, "uri")), t), ref
		}
		return "", image(str(r, "blob"), str(r, "mime_type", "mimeType"))
	case "resource_link":
		uri := str(b, "uri")
		if path := localPath(uri); path != "" {
			return "", contexts.Ref{Type: "file", Path: path}
		}
		if uri != "" {
			return fmt.Sprintf("[Linked resource] %s: %s", str(b, "name", "uri"), uri), ref
		}
	}
	return "", ref
}

// image is a context for a picture of a kind that models take.
func image(data, mime string) contexts.Ref {
	switch mime {
	case "image/png", "image/jpeg", "image/webp", "image/gif":
		if data != "" {
			return contexts.Ref{Type: "image", Base64: data}
		}
	}
	return contexts.Ref{}
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
