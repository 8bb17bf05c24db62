package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// defaultMaxTokens is sent if the model's limit is unknown, because the API requires a number.
const defaultMaxTokens = 32000

// maxName is the maximum length of a tool's name.
const maxName = 128

// maxImage is the maximum size of an image, in bytes of base64.
const maxImage = 5 << 20

// The wire types of a request.
type (
	request struct {
		Model     string         `json:"model"`
		MaxTokens int64          `json:"max_tokens"`
		Tools     []tool         `json:"tools,omitempty"`
		System    []block        `json:"system,omitempty"`
		Messages  []message      `json:"messages"`
		Thinking  map[string]any `json:"thinking,omitempty"`
		Stream    bool           `json:"stream"`
	}
	tool struct {
		Type        string            `json:"type,omitempty"` // set only for the API's own tools
		Name        string            `json:"name"`
		Description string            `json:"description,omitempty"`
		InputSchema json.RawMessage   `json:"input_schema,omitempty"`
		MaxUses     int               `json:"max_uses,omitempty"`
		Cache       *llm.CacheControl `json:"cache_control,omitempty"`
	}
	message struct {
		Role    llm.Role `json:"role"`
		Content []block  `json:"content"`
	}
	// block is text, image, tool_use or tool_result, or raw.
	block struct {
		Type      string            `json:"type"`
		Text      string            `json:"text,omitempty"`
		Source    *source           `json:"source,omitempty"`
		ID        string            `json:"id,omitempty"`
		Name      string            `json:"name,omitempty"`
		Input     json.RawMessage   `json:"input,omitempty"`
		ToolUseID string            `json:"tool_use_id,omitempty"`
		Content   []block           `json:"content,omitempty"`
		IsError   bool              `json:"is_error,omitempty"`
		Cache     *llm.CacheControl `json:"cache_control,omitempty"`

		raw json.RawMessage // thinking, or a block of one of the API's own tools; sent unchanged
	}
	source struct {
		Type      string `json:"type"`
		MediaType string `json:"media_type"`
		Data      string `json:"data"`
	}
)

// MarshalJSON implements json.Marshaler. Content that is a single text is encoded as a string, as
// other clients do.
func (b block) MarshalJSON() ([]byte, error) {
	type plain block
	switch {
	case b.raw != nil:
		return b.raw, nil
	case len(b.Content) == 1 && b.Content[0].Type == "text":
		return json.Marshal(struct {
			plain
			Content string `json:"content"`
		}{plain(b), b.Content[0].Text})
	}
	return json.Marshal(plain(b))
}

func (m message) has(kind string) bool {
	return slices.ContainsFunc(m.Content, func(b block) bool { return b.Type == kind })
}

// encode returns the body of a request. Only reasoning of origin may be sent (see Messages.origin).
// tools maps the tool names that the model gets to the real ones.
func encode(req llm.Request, origin string) (body []byte, tools llm.Aliases, err error) {
	e := encoder{origin: origin, thinking: req.Reasoning, tools: llm.NewAliases(maxName), calls: llm.NewAliases(maxName)}
	r := request{Model: req.Model, MaxTokens: req.MaxOutput, Stream: true}
	if r.MaxTokens <= 0 {
		r.MaxTokens = defaultMaxTokens
	}
	if req.ServerTools.WebSearch { // first, because the last tool gets the cache mark
		r.Tools = append(r.Tools, tool{Type: webSearchTool, Name: e.tools.Add(llm.WebSearch), MaxUses: maxSearches})
	}
	for _, t := range req.Tools {
		schema, err := inputSchema(t.Schema)
		if err != nil {
			return nil, tools, fmt.Errorf("schema of tool %s: %w", t.Name, err)
		}
		r.Tools = append(r.Tools, tool{Name: e.tools.Add(t.Name), Description: t.Description, InputSchema: schema})
	}
	r.System = text(req.System)
	fixed := len(r.System)
	r.System = append(r.System, text(req.SystemTail)...)
	r.Messages = e.messages(llm.Portable(req.Messages, origin))
	r.Thinking = thinking(req, r.MaxTokens, r.Messages)
	if req.Cached() {
		markCache(&r, fixed, req.Retention.Mark())
	}
	if body, err = json.Marshal(r); err != nil {
		return nil, tools, err
	}
	extra := req.Extra
	if !req.Reasoning && extra["thinking"] != nil {
		extra = maps.Clone(extra)
		delete(extra, "thinking")
	}
	body, err = llm.MergeExtra(body, extra)
	return body, e.tools, err
}

// inputSchema returns a tool's schema in the form that the API accepts: an object without
// alternatives at the top level. The tool itself checks the conditions that this
// removes.
func inputSchema(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		raw = json.RawMessage(`{}`)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if fields == nil {
		fields = map[string]json.RawMessage{}
	}
	changed := false
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if _, ok := fields[key]; ok {
			delete(fields, key)
			changed = true
		}
	}
	if string(fields["type"]) != `"object"` {
		fields["type"] = json.RawMessage(`"object"`)
		changed = true
	}
	if !changed {
		return raw, nil
	}
	return json.Marshal(fields)
}

// markCache sets the four cache breakpoints that the API allows: after the tools, after the first
// fixed blocks of the system prompt, and after the last two user messages.
func markCache(r *request, fixed int, mark *llm.CacheControl) {
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].Cache = mark
	}
	if fixed > 0 {
		r.System[fixed-1].Cache = mark
	}
	llm.MarkBackwards(len(r.Messages), 2, func(i int) bool {
		m := r.Messages[i]
		if m.Role != llm.User {
			return false
		}
		m.Content[len(m.Content)-1].Cache = mark
		return true
	})
}

// encoder encodes messages.
type encoder struct {
	origin       string
	thinking     bool
	tools, calls llm.Aliases
}

// messages encodes a history. Roles alternate, and no message is empty.
func (e *encoder) messages(history []llm.Message) []message {
	var out []message
	for _, m := range history {
		content := e.content(m)
		if len(content) == 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].Role == m.Role {
			out[n-1].Content = append(out[n-1].Content, content...)
			continue
		}
		out = append(out, message{m.Role, content})
	}
	return out
}

// content encodes the blocks of a message. Results come first, as the API requires.
func (e *encoder) content(m llm.Message) []block {
	var results, rest []block
	for _, part := range m.Parts {
		switch part := part.(type) {
		case llm.Text:
			rest = append(rest, text(part.Text)...)
		case llm.Image:
			rest = append(rest, image(part, m.Role))
		case llm.Reasoning:
			if raw := replay(part); e.thinking && part.API == e.origin && raw != nil {
				rest = append(rest, block{raw: raw})
			}
		case llm.ServerCall:
			rest = append(rest, searchBlocks(part)...)
		case llm.ToolCall:
			rest = append(rest, block{Type: "tool_use", ID: e.calls.Add(part.ID), Name: e.tools.Add(part.Name), Input: llm.ArgumentsObject(part.Arguments)})
		case llm.ToolResult:
			result, more := e.result(part)
			results = append(results, result)
			rest = append(rest, more...)
		}
	}
	return append(results, rest...)
}

// result encodes a tool's result. more has the images of a failed call. They must follow the
// results, because the result of a failed call may contain only text.
func (e *encoder) result(r llm.ToolResult) (result block, more []block) {
	result = block{Type: "tool_result", ToolUseID: e.calls.Add(r.ID), Content: text(r.Text), IsError: r.Failed}
	for _, i := range r.Images {
		if r.Failed {
			more = append(more, image(i, llm.User))
		} else {
			result.Content = append(result.Content, image(i, llm.User))
		}
	}
	if r.Failed && len(result.Content) == 0 {
		result.Content = text("The call failed and gave no reason.")
	}
	return result, more
}

// text encodes a text as a block. It returns nil for a blank text, which the API refuses.
func text(s string) []block {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	return []block{{Type: "text", Text: s}}
}

// image encodes an image. If the API does not accept it, the block is a text that mentions
// the missing image, so that the conversation can continue.
func image(i llm.Image, from llm.Role) block {
	size := base64.StdEncoding.EncodedLen(len(i.Data))
	known := slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, i.MediaType)
	if !known || size == 0 || size > maxImage || from != llm.User {
		return block{Type: "text", Text: fmt.Sprintf("[An image (%s, %d bytes) was here. It cannot be shown to this model.]", i.MediaType, len(i.Data))}
	}
	return block{Type: "image", Source: &source{"base64", i.MediaType, base64.StdEncoding.EncodeToString(i.Data)}}
}
