package openai

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/seed-dec29ce4/eca/llm"
)

// The conversation is encoded with these types instead of the module's, with which encoding a long
// conversation takes longer than sending it.
type (
	// inputItem is a message, a function_call, a function_call_output, or raw.
	inputItem struct {
		Type      string         `json:"type,omitempty"`
		Role      llm.Role       `json:"role,omitempty"`
		Content   []inputContent `json:"content,omitempty"`
		CallID    string         `json:"call_id,omitempty"`
		Name      string         `json:"name,omitempty"`
		Arguments *string        `json:"arguments,omitempty"`
		Output    *string        `json:"output,omitempty"`

		raw json.RawMessage // an item of the provider, sent unchanged
	}
	inputContent struct {
		Type     string  `json:"type"` // input_text, output_text or input_image
		Text     *string `json:"text,omitempty"`
		Detail   string  `json:"detail,omitempty"`
		ImageURL string  `json:"image_url,omitempty"`
	}
	functionTool struct {
		Type        string          `json:"type"` // function
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
)

func responsesInput(msgs []llm.Message, from string) (json.RawMessage, error) {
	items := make([]inputItem, 0, 2*len(msgs)) // results of calls are separate items
	for _, m := range msgs {
		var resultImages []inputContent // images that must follow the results
		for _, part := range m.Parts {
			switch part := part.(type) {
			case llm.Text:
				items = append(items, inputItem{Role: m.Role, Content: []inputContent{textContent(m.Role, part.Text)}})
			case llm.Image:
				items = append(items, inputItem{Role: llm.User, Content: []inputContent{imageContent(part)}})
			case llm.Reasoning:
				if part.API == from && len(part.Opaque) > 0 {
					items = append(items, inputItem{raw: reasoningItem(part)})
				}
			case llm.ServerCall:
				item, err := encodeServerCall(part)
				if err != nil {
					return nil, err
				}
				items = append(items, inputItem{raw: item})
			case llm.ToolCall:
				arguments := string(part.Arguments)
				items = append(items, inputItem{Type: "function_call", CallID: part.ID, Name: part.Name, Arguments: &arguments})
			case llm.ToolResult:
				items = append(items, inputItem{Type: "function_call_output", CallID: part.ID, Output: &part.Text})
				if len(part.Images) > 0 {
					resultImages = append(resultImages, textContent(llm.User, llm.ImagesLabel(part.ID)))
				}
				for _, image := range part.Images {
					resultImages = append(resultImages, imageContent(image))
				}
			}
		}
		if len(resultImages) > 0 {
			items = append(items, inputItem{Role: llm.User, Content: resultImages})
		}
	}
	return encodeItems(items)
}

// encodeItems encodes items into one buffer without reflection. The complete conversation is sent
// with every request, and encoding/json would take as long as everything else between a prompt and
// its request.
func encodeItems(items []inputItem) (json.RawMessage, error) {
	out := append(make([]byte, 0, sizeOf(items)), '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = item.append(out); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

// sizeOf estimates the encoded size of items, including some space for escaping.
func sizeOf(items []inputItem) int {
	size := 2
	for _, i := range items {
		size += 100 + len(i.raw) + len(textOf(i.Arguments)) + len(textOf(i.Output))
		for _, c := range i.Content {
			size += 60 + len(textOf(c.Text)) + len(c.ImageURL)
		}
	}
	return size + size/16
}

// append encodes an item exactly as encoding/json would.
func (i inputItem) append(out []byte) ([]byte, error) {
	if i.raw != nil {
		buf := bytes.NewBuffer(out)
		if err := json.Compact(buf, i.raw); err != nil {
			return nil, fmt.Errorf("an item of the conversation: %w", err)
		}
		return buf.Bytes(), nil
	}
	o := llm.NewObject(out)
	o.Optional("type", i.Type)
	o.Optional("role", string(i.Role))
	if len(i.Content) > 0 {
		out := append(o.Key("content"), '[')
		for n, c := range i.Content {
			if n > 0 {
				out = append(out, ',')
			}
			out = c.append(out)
		}
		o.Value(append(out, ']'))
	}
	o.Optional("call_id", i.CallID)
	o.Optional("name", i.Name)
	o.Pointer("arguments", i.Arguments)
	o.Pointer("output", i.Output)
	return o.End(), nil
}

func (c inputContent) append(out []byte) []byte {
	o := llm.NewObject(out)
	o.Text("type", c.Type)
	o.Pointer("text", c.Text)
	o.Optional("detail", c.Detail)
	o.Optional("image_url", c.ImageURL)
	return o.End()
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func imageContent(i llm.Image) inputContent {
	return inputContent{Type: "input_image", Detail: "auto", ImageURL: i.DataURL()}
}

// textContent returns the long form of a text, because compatible servers expect it.
func textContent(role llm.Role, text string) inputContent {
	kind := "input_text"
	if role == llm.Assistant {
		kind = "output_text"
	}
	return inputContent{Type: kind, Text: &text}
}

func responsesTools(specs []llm.ToolSpec, server llm.ServerTools) ([]any, error) {
	var list []any
	for _, t := range specs {
		if !isObject(t.Schema) {
			return nil, fmt.Errorf("schema of tool %s is not a JSON object", t.Name)
		}
		list = append(list, functionTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: t.Schema})
	}
	if server.WebSearch {
		list = append(list, map[string]string{"type": "web_search"})
	}
	if server.ImageGeneration {
		list = append(list, map[string]string{"type": "image_generation", "output_format": "png"})
	}
	return list, nil
}

func isObject(raw json.RawMessage) bool {
	return json.Valid(raw) && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
}

// reasoningItem returns the provider's item. It adds the required summary if it is missing, because
// some servers only stream it.
func reasoningItem(r llm.Reasoning) json.RawMessage {
	var item map[string]json.RawMessage
	if err := json.Unmarshal(r.Opaque, &item); err != nil || item["summary"] != nil {
		return r.Opaque
	}
	type summaryText struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	summary := []summaryText{}
	if r.Text != "" {
		summary = append(summary, summaryText{"summary_text", r.Text})
	}
	raw, err := json.Marshal(summary)
	if err != nil {
		return r.Opaque
	}
	item["summary"] = raw
	whole, err := json.Marshal(item)
	if err != nil {
		return r.Opaque
	}
	return whole
}
