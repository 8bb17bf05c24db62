package ollama

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// The request's wire types.
type (
	request struct {
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Tools    []tool    `json:"tools,omitempty"`
		Stream   bool      `json:"stream"`
		Think    *bool     `json:"think,omitempty"`
		// Both are false, so that a conversation that does not fit is an error. Otherwise the
		// server would drop the oldest messages, and during the answer the beginning of the prompt.
		Truncate bool    `json:"truncate"`
		Shift    bool    `json:"shift"`
		Options  options `json:"options"`
	}
	options struct {
		Context int64 `json:"num_ctx,omitempty"`
		Predict int64 `json:"num_predict,omitempty"`
	}
	message struct {
		Role       string     `json:"role"`
		Content    string     `json:"content"`
		Thinking   string     `json:"thinking,omitempty"`
		Images     [][]byte   `json:"images,omitempty"`
		ToolCalls  []toolCall `json:"tool_calls,omitempty"`
		ToolName   string     `json:"tool_name,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	toolCall struct {
		ID       string       `json:"id,omitempty"`
		Function toolFunction `json:"function"`
	}
	toolFunction struct {
		Index     int             `json:"index"`
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	tool struct {
		Type     string   `json:"type"`
		Function toolSpec `json:"function"`
	}
	toolSpec struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

// encode returns the body of a request to a model with the given traits. Only thinking of origin is
// sent back (see Model.origin).
func encode(req llm.Request, t traits, origin string) ([]byte, error) {
	r := request{
		Model: req.Model, Stream: true,
		// A different context size makes the server load the model again, so it does not depend on
		// the purpose of the request.
		Options: options{Context: cmp.Or(req.Context, t.context), Predict: req.MaxOutput},
	}
	if slices.Contains(t.capabilities, thinking) {
		r.Think = &req.Reasoning
	}
	if system := req.Instructions(); system != "" {
		r.Messages = append(r.Messages, message{Role: "system", Content: system})
	}
	h := history{origin: origin, acceptsImages: t.can(vision), names: map[string]string{}}
	for _, m := range req.Messages {
		if m.Role == llm.Assistant {
			r.Messages = append(r.Messages, h.assistant(m)...)
		} else {
			r.Messages = append(r.Messages, h.user(m)...)
		}
	}
	if t.can(tools) {
		for _, s := range req.Tools {
			r.Tools = append(r.Tools, tool{"function", toolSpec{s.Name, s.Description, s.Schema}})
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, req.Extra)
}

// history encodes messages in order.
type history struct {
	origin        string
	acceptsImages bool              // the model accepts images
	names         map[string]string // names of tools by call id
}

func (h *history) assistant(m llm.Message) []message {
	out := message{Role: "assistant"}
	var texts, thoughts []string
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			texts = append(texts, p.Text)
		case llm.Reasoning:
			if p.API == h.origin {
				thoughts = append(thoughts, p.Text)
			}
		case llm.ToolCall:
			h.names[p.ID] = p.Name
			out.ToolCalls = append(out.ToolCalls, toolCall{p.ID, toolFunction{len(out.ToolCalls), p.Name, llm.ArgumentsObject(p.Arguments)}})
		}
	}
	if out.Content = strings.Join(texts, "\n"); out.Content == "" && len(out.ToolCalls) == 0 {
		return nil
	}
	out.Thinking = strings.Join(thoughts, "\n")
	return []message{out}
}

// user encodes a user message: one message for each result, then the user's text and images.
func (h *history) user(m llm.Message) []message {
	var out []message
	var texts []string
	var images [][]byte
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			texts = append(texts, p.Text)
		case llm.Image:
			if h.acceptsImages {
				images = append(images, p.Data)
			} else {
				texts = append(texts, p.Placeholder())
			}
		case llm.ToolResult:
			out = append(out, h.result(p))
		}
	}
	if text := strings.Join(texts, "\n"); text != "" || len(images) > 0 {
		out = append(out, message{Role: "user", Content: text, Images: images})
	}
	return out
}

func (h *history) result(r llm.ToolResult) message {
	lines := []string{r.Text}
	out := message{Role: "tool", ToolName: h.names[r.ID], ToolCallID: r.ID}
	if r.Failed {
		lines[0] = "Error: " + r.Text // the API has no field for failures
	}
	for _, i := range r.Images {
		if h.acceptsImages {
			out.Images = append(out.Images, i.Data)
		} else {
			lines = append(lines, i.Placeholder())
		}
	}
	out.Content = strings.Join(lines, "\n")
	return out
}
