package openai

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// Chat is a model behind a Chat Completions endpoint.
type Chat struct {
	endpoint llm.Endpoint
	options  ChatOptions
}

// ChatOptions configure the peculiarities of a server.
type ChatOptions struct {
	Think Think
}

var _ llm.Model = (*Chat)(nil)

// NewChat returns a client for the Chat Completions endpoint.
func NewChat(at llm.Endpoint, o ChatOptions) *Chat { return &Chat{at, o} }

// ReadsReasoning implements llm.ReasoningReader.
func (c *Chat) ReadsReasoning(_, api string) bool { return api == origin(c.endpoint, APIChat) }

// Stream implements llm.Model.
func (c *Chat) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	req, names := llm.Conform(req, llm.Form{Name: 64, ID: 40})
	req.Messages = llm.Portable(req.Messages, "")
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		yield = names.RestoreNames(yield)
		body, err := chatBody(req, chatEncoder{origin: origin(c.endpoint, APIChat), dialect: dialectOf(c.endpoint.URL)})
		if err != nil {
			return llm.EncodeError(err)
		}
		return c.endpoint.Post(ctx, body, req.Headers, func(answer io.Reader) error {
			s := chatStream{Emitter: llm.Emitter{Yield: yield, Origin: origin(c.endpoint, APIChat)}, endpoint: c.endpoint, text: thinkText{Think: c.options.Think}}
			if wantsClaudeCache(req) {
				s.retention = req.Retention
			}
			return s.answer(answer)
		})
	})
}

// The request's wire types.
type (
	chatRequest struct {
		Model         string             `json:"model"`
		Messages      []chatMessage      `json:"messages"`
		Tools         []chatTool         `json:"tools,omitempty"`
		Stream        bool               `json:"stream"`
		StreamOptions *chatStreamOptions `json:"stream_options,omitempty"`
		MaxTokens     int64              `json:"max_completion_tokens,omitempty"`
		OldMaxTokens  int64              `json:"max_tokens,omitempty"`
		CacheKey      string             `json:"prompt_cache_key,omitempty"`
		Retention     string             `json:"prompt_cache_retention,omitempty"`
	}
	chatStreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chatMessage struct {
		Role             string     `json:"role"`
		Content          any        `json:"content"` // a string, a []chatPart, or null
		ReasoningContent string     `json:"reasoning_content,omitempty"`
		Reasoning        string     `json:"reasoning,omitempty"`
		ReasoningText    string     `json:"reasoning_text,omitempty"`
		ToolCalls        []chatCall `json:"tool_calls,omitempty"`
		ToolCallID       string     `json:"tool_call_id,omitempty"`
	}
	chatPart struct {
		Type         string            `json:"type"`
		Text         string            `json:"text,omitempty"`
		ImageURL     *chatImage        `json:"image_url,omitempty"`
		CacheControl *llm.CacheControl `json:"cache_control,omitempty"`
	}
	chatImage struct {
		URL string `json:"url"`
	}
	chatCall struct {
		ID       string          `json:"id"`
		Type     string          `json:"type"`
		Function chatFunction    `json:"function"`
		Extra    json.RawMessage `json:"extra_content,omitempty"` // data that was received with the call, such as Google's signatures
	}
	chatFunction struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	chatTool struct {
		Type     string       `json:"type"`
		Function chatToolSpec `json:"function"`
	}
	chatToolSpec struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
)

func chatBody(req llm.Request, e chatEncoder) ([]byte, error) {
	r := chatRequest{Model: req.Model, Stream: true, MaxTokens: req.MaxOutput}
	if e.oldLimit {
		r.MaxTokens, r.OldMaxTokens = 0, req.MaxOutput
	}
	if e.isOpenAI {
		r.CacheKey, r.Retention = req.CacheKey, retention(req)
	}
	if !e.strict {
		r.StreamOptions = &chatStreamOptions{true}
	}
	if system := req.Instructions(); system != "" {
		r.Messages = append(r.Messages, chatMessage{Role: "system", Content: system})
	}
	for _, m := range req.Messages {
		r.Messages = append(r.Messages, e.messages(m)...)
	}
	if e.strict {
		r.Messages = answeredResults(r.Messages)
	}
	markCache(req, r.Messages)
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, chatTool{"function", chatToolSpec{t.Name, t.Description, t.Schema}})
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, req.Extra)
}

// answeredResults inserts a message of the model between results and a following user message,
// because strict servers refuse a user message directly after results.
func answeredResults(msgs []chatMessage) []chatMessage {
	var out []chatMessage
	for i, m := range msgs {
		if i > 0 && m.Role == string(llm.User) && msgs[i-1].Role == "tool" {
			out = append(out, chatMessage{Role: string(llm.Assistant), Content: "I have the results."})
		}
		out = append(out, m)
	}
	return out
}

// chatEncoder encodes the history for one server.
type chatEncoder struct {
	dialect
	origin string // reasoning of other origins is dropped
}

// messages encodes a message. In this format, results are separate messages. They can contain only
// text, so their images follow in a user message.
func (e chatEncoder) messages(m llm.Message) []chatMessage {
	var out []chatMessage
	var content []chatPart
	var calls []chatCall
	reasoning := map[string][]string{} // by the member it came in
	for _, part := range m.Parts {
		switch part := part.(type) {
		case llm.Text:
			content = append(content, chatPart{Type: "text", Text: part.Text})
		case llm.Image:
			content = append(content, chatPart{Type: "image_url", ImageURL: &chatImage{part.DataURL()}})
		case llm.Reasoning:
			if part.API != e.origin {
				continue
			}
			if tags, ok := tagsOf(part); ok {
				content = append(content, chatPart{Type: "text", Text: tags.Start + part.Text + tags.End})
			} else {
				reasoning[memberOf(part)] = append(reasoning[memberOf(part)], part.Text)
			}
		case llm.ToolCall:
			c := chatCall{ID: e.id(part.ID), Type: "function", Function: chatFunction{part.Name, string(part.Arguments)}}
			if part.API == e.origin {
				c.Extra = part.Opaque
			}
			calls = append(calls, c)
		case llm.ToolResult:
			out = append(out, chatMessage{Role: "tool", Content: part.Text, ToolCallID: e.id(part.ID)})
			for i, img := range part.Images {
				if i == 0 {
					content = append(content, chatPart{Type: "text", Text: llm.ImagesLabel(e.id(part.ID))})
				}
				content = append(content, chatPart{Type: "image_url", ImageURL: &chatImage{img.DataURL()}})
			}
		}
	}
	if len(content) > 0 || len(calls) > 0 {
		out = append(out, chatMessage{
			Role: string(m.Role), Content: chatContent(content), ToolCalls: calls,
			ReasoningContent: strings.Join(reasoning[inReasoningContent], "\n"),
			Reasoning:        strings.Join(reasoning[inReasoningOnly], "\n"),
			ReasoningText:    strings.Join(reasoning[inReasoningText], "\n"),
		})
	}
	return out
}

// chatContent returns a string if there are no images, because some servers accept nothing else.
func chatContent(parts []chatPart) any {
	var text []string
	for _, p := range parts {
		if p.ImageURL != nil {
			// A part without text is refused.
			return slices.DeleteFunc(parts, func(p chatPart) bool { return p.Type == "text" && p.Text == "" })
		}
		text = append(text, p.Text)
	}
	if text == nil {
		return nil
	}
	return strings.Join(text, "\n")
}
