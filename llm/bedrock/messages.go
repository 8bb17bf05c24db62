package bedrock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// The wire types of a history.
type (
	converseTurn struct {
		Role    string         `json:"role"`
		Content []contentBlock `json:"content"`
	}
	contentBlock struct { // exactly one field is set
		Text       string          `json:"text,omitempty"`
		Image      *image          `json:"image,omitempty"`
		Reasoning  json.RawMessage `json:"reasoningContent,omitempty"`
		ToolUse    *toolUse        `json:"toolUse,omitempty"`
		ToolResult *toolResult     `json:"toolResult,omitempty"`
		CachePoint *cachePoint     `json:"cachePoint,omitempty"`
	}
	image struct {
		Format string      `json:"format"`
		Source imageSource `json:"source"`
	}
	imageSource struct {
		Bytes []byte `json:"bytes"`
	}
	toolUse struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	toolResult struct {
		ID      string         `json:"toolUseId"`
		Content []contentBlock `json:"content"`
		Status  string         `json:"status,omitempty"`
	}
)

// turns encodes the history in the form that Converse accepts: roles alternate, results come first
// in their message, no text is blank, and ids have valid characters. Reasoning is sent only to the
// vendor that produced it.
func turns(req llm.Request, origin string) []converseTurn {
	e := encoder{origin: origin, statusAndImages: acceptsStatusAndImages(req.Model), ids: map[string]string{}, used: map[string]bool{}}
	var out []converseTurn
	for _, m := range req.Messages {
		content := e.blocks(m.Parts)
		if len(content) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == string(m.Role) {
			out[n-1].Content = append(out[n-1].Content, content...)
			continue
		}
		out = append(out, converseTurn{string(m.Role), content})
	}
	for _, t := range out {
		slices.SortStableFunc(t.Content, func(a, b contentBlock) int { return afterResults(a) - afterResults(b) })
	}
	return out
}

func afterResults(b contentBlock) int {
	if b.ToolResult != nil {
		return 0
	}
	return 1
}

type encoder struct {
	origin          string
	statusAndImages bool              // results may have a status and images (see acceptsStatusAndImages)
	ids             map[string]string // of calls, from eca's ids to the ids that are sent
	used            map[string]bool
}

func (e *encoder) blocks(parts []llm.Part) []contentBlock {
	var out []contentBlock
	for _, part := range parts {
		switch part := part.(type) {
		case llm.Text:
			if strings.TrimSpace(part.Text) != "" {
				out = append(out, contentBlock{Text: part.Text})
			}
		case llm.Image:
			out = append(out, imageBlock(part))
		case llm.Reasoning:
			if part.API == e.origin && len(part.Opaque) > 0 {
				out = append(out, contentBlock{Reasoning: part.Opaque})
			}
		case llm.ToolCall:
			out = append(out, contentBlock{ToolUse: &toolUse{ID: e.id(part.ID), Name: part.Name, Input: part.Arguments}})
		case llm.ToolResult:
			out = append(out, contentBlock{ToolResult: e.result(part)})
			if len(part.Images) > 0 && !e.statusAndImages {
				out = append(out, contentBlock{Text: llm.ImagesLabel(e.ids[part.ID])})
				for _, img := range part.Images {
					out = append(out, imageBlock(img))
				}
			}
		}
	}
	return out
}

// result encodes a result. It is never empty, because Converse refuses an empty one.
func (e *encoder) result(r llm.ToolResult) *toolResult {
	out := &toolResult{ID: e.ids[r.ID]}
	if strings.TrimSpace(r.Text) != "" {
		out.Content = append(out.Content, contentBlock{Text: r.Text})
	}
	if e.statusAndImages {
		for _, img := range r.Images {
			out.Content = append(out.Content, imageBlock(img))
		}
	}
	if out.Content == nil {
		out.Content = []contentBlock{{Text: "(no output)"}}
	}
	if r.Failed && e.statusAndImages {
		out.Status = "error"
	}
	return out
}

// id returns a unique valid id for a call: at most 64 letters, digits, _ and -.
func (e *encoder) id(id string) string {
	const maxID = 64
	clean := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
	if clean == "" {
		clean = "call"
	}
	clean = clean[:min(len(clean), maxID)]
	unique := clean
	for n := 2; e.used[unique]; n++ {
		suffix := "-" + strconv.Itoa(n)
		unique = clean[:min(len(clean), maxID-len(suffix))] + suffix
	}
	e.used[unique] = true
	e.ids[id] = unique
	return unique
}

// imageBlock encodes an image. If no model accepts its type, the block is a text that mentions
// the missing image.
func imageBlock(img llm.Image) contentBlock {
	format, isImage := strings.CutPrefix(img.MediaType, "image/")
	if !isImage || len(img.Data) == 0 || !slices.Contains([]string{"png", "jpeg", "gif", "webp"}, format) {
		return contentBlock{Text: fmt.Sprintf("(an image of the type %q, which cannot be shown to this model, was left out)", img.MediaType)}
	}
	return contentBlock{Image: &image{Format: format, Source: imageSource{img.Data}}}
}

// mark sets cache points after the last user messages.
func (c caching) mark(history []converseTurn) {
	llm.MarkBackwards(len(history), c.messages, func(i int) bool {
		t := &history[i]
		if t.Role != string(llm.User) || !c.results && t.Content[0].ToolResult != nil {
			return false
		}
		t.Content = append(t.Content, contentBlock{CachePoint: c.point})
		return true
	})
}
