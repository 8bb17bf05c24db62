package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// Chat is a model behind a Chat Completions endpoint.
type Chat struct{ at llm.Endpoint }

var _ llm.Model = (*Chat)(nil)

// NewChat returns a client for the Chat Completions endpoint.
func NewChat(at llm.Endpoint) *Chat { return &Chat{at} }

// Stream implements llm.Model.
func (c *Chat) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		body, err := chatBody(req, origin(c.at, APIChat))
		if err != nil {
			yield(llm.Delta{}, &llm.Error{Kind: llm.ErrBadRequest, Message: "The request could not be encoded: " + err.Error(), Cause: err})
			return
		}
		err = c.at.Post(ctx, body, req.Headers, func(answer io.Reader) error {
			s := chatStream{at: c.at, yield: yield}
			return s.read(llm.NewSSEReader(answer))
		})
		if err != nil && !errors.Is(err, llm.ErrStopped) {
			yield(llm.Delta{}, err)
		}
	}
}

// The request's wire types.
type (
	chatRequest struct {
		Model         string            `json:"model"`
		Messages      []chatMessage     `json:"messages"`
		Tools         []chatTool        `json:"tools,omitempty"`
		Stream        bool              `json:"stream"`
		StreamOptions chatStreamOptions `json:"stream_options"`
		MaxTokens     int64             `json:"max_completion_tokens,omitempty"`
	}
	chatStreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	}
	chatMessage struct {
		Role       string     `json:"role"`
		Content    *string    `json:"content"`
		Reasoning  string     `json:"reasoning_content,omitempty"`
		ToolCalls  []chatCall `json:"tool_calls,omitempty"`
		ToolCallID string     `json:"tool_call_id,omitempty"`
	}
	chatCall struct {
		ID       string       `json:"id"`
		Type     string       `json:"type"`
		Function chatFunction `json:"function"`
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

func chatBody(req llm.Request, from string) ([]byte, error) {
	r := chatRequest{
		Model: req.Model, Stream: true, StreamOptions: chatStreamOptions{true}, MaxTokens: req.MaxOutput,
	}
	if req.System != "" {
		r.Messages = append(r.Messages, chatMessage{Role: "system", Content: &req.System})
	}
	for _, m := range req.Messages {
		r.Messages = append(r.Messages, chatMessages(m, from)...)
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, chatTool{"function", chatToolSpec{t.Name, t.Description, t.Schema}})
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, req.Extra)
}

// chatMessages splits a message: results are messages of their own there.
func chatMessages(m llm.Message, from string) []chatMessage {
	var out []chatMessage
	var text, reasoning []string
	var calls []chatCall
	for _, part := range m.Parts {
		switch part := part.(type) {
		case llm.Text:
			text = append(text, part.Text)
		case llm.Reasoning:
			if part.API == from {
				reasoning = append(reasoning, part.Text)
			}
		case llm.ToolCall:
			calls = append(calls, chatCall{part.ID, "function", chatFunction{part.Name, string(part.Arguments)}})
		case llm.ToolResult:
			out = append(out, chatMessage{Role: "tool", Content: &part.Text, ToolCallID: part.ID})
		}
	}
	if len(text) > 0 || len(calls) > 0 {
		joined := strings.Join(text, "\n")
		msg := chatMessage{Role: string(m.Role), Reasoning: strings.Join(reasoning, "\n"), ToolCalls: calls}
		if len(text) > 0 {
			msg.Content = &joined
		}
		out = append(out, msg)
	}
	return out
}

// chatChunk is one element of the stream.
type chatChunk struct {
	Choices []struct {
		Delta struct {
			Content          string `json:"content"`
			ReasoningContent string `json:"reasoning_content"`
			Reasoning        string `json:"reasoning"`
			Refusal          string `json:"refusal"`
			ToolCalls        []struct {
				Index    *int   `json:"index"`
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *struct {
		PromptTokens        int64 `json:"prompt_tokens"`
		CompletionTokens    int64 `json:"completion_tokens"`
		PromptTokensDetails struct {
			CachedTokens int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// chatStream turns chunks into deltas.
type chatStream struct {
	at        llm.Endpoint
	yield     func(llm.Delta, error) bool
	calls     []chatPending
	reasoning string // id of the open reasoning block
	blocks    int
	finish    string
	usage     llm.Usage
}

// chatPending is a call whose arguments are still arriving.
type chatPending struct {
	index     int    // the provider's
	sentID    string // the provider's, may repeat
	id, name  string // id is unique within the answer
	arguments []byte
}

func (s *chatStream) emit(d llm.Delta) error {
	if !s.yield(d, nil) {
		return llm.ErrStopped
	}
	return nil
}

func (s *chatStream) read(sse *llm.SSEReader) error {
	for {
		raw, err := sse.Next()
		if err != nil {
			// Some servers close after the finish reason without [DONE].
			if s.finish != "" {
				return s.end()
			}
			return err
		}
		if string(raw.Data) == "[DONE]" {
			if s.finish == "" {
				return &llm.Error{Kind: llm.ErrPrematureStop, Message: s.at.Provider + " ended the answer without a finish reason"}
			}
			return s.end()
		}
		var chunk chatChunk
		if err := json.Unmarshal(raw.Data, &chunk); err != nil {
			return &llm.Error{Kind: llm.ErrProtocol, Message: s.at.Provider + " sent something that is no JSON in its stream", Cause: err}
		}
		if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
			return &llm.Error{Kind: llm.ErrUnknown, Message: s.at.Provider + " failed: " + llm.ErrorText(raw.Data)}
		}
		if err := s.chunk(&chunk); err != nil {
			return err
		}
	}
}

func (s *chatStream) chunk(c *chatChunk) error {
	if u := c.Usage; u != nil {
		cached := u.PromptTokensDetails.CachedTokens
		s.usage = llm.Usage{Input: u.PromptTokens - cached, Output: u.CompletionTokens, CacheRead: cached}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := &c.Choices[0]
	if choice.FinishReason != "" {
		s.finish = choice.FinishReason
	}
	d := &choice.Delta
	if text := d.ReasoningContent + d.Reasoning; text != "" {
		if err := s.reason(text); err != nil {
			return err
		}
	}
	if text := d.Content + d.Refusal; text != "" {
		if err := s.endReasoning(); err != nil {
			return err
		}
		if err := s.emit(llm.Delta{Kind: llm.TextDelta, Text: text}); err != nil {
			return err
		}
	}
	for _, tc := range d.ToolCalls {
		if err := s.endReasoning(); err != nil {
			return err
		}
		call, err := s.call(tc.Index, tc.ID, tc.Function.Name)
		if err != nil {
			return err
		}
		if tc.Function.Arguments == "" || call == nil {
			continue
		}
		call.arguments = append(call.arguments, tc.Function.Arguments...)
		if err := s.emit(llm.Delta{Kind: llm.ToolArgs, ID: call.id, Text: tc.Function.Arguments}); err != nil {
			return err
		}
	}
	return nil
}

// call finds the pending call a fragment belongs to, or opens it. Fragments name
// their call by index, by id, or not at all (then it is the last); some servers give
// every call the index 0, and only a new id tells that a new call begins.
func (s *chatStream) call(index *int, id, name string) (*chatPending, error) {
	n := len(s.calls)
	for i := n - 1; i >= 0; i-- {
		p := &s.calls[i]
		switch {
		case index != nil && p.index != *index:
			continue
		case id != "" && id != p.sentID && (index == nil || name != ""):
			continue
		}
		return p, nil
	}
	if id == "" && name == "" {
		return nil, nil // arguments of no call
	}
	p := chatPending{index: n, sentID: id, id: id, name: name}
	if index != nil {
		p.index = *index
	}
	if id == "" || slices.ContainsFunc(s.calls, func(c chatPending) bool { return c.id == id }) {
		p.id = id + "call_" + strconv.Itoa(n)
	}
	s.calls = append(s.calls, p)
	return &s.calls[n], s.emit(llm.Delta{Kind: llm.ToolStart, ID: p.id, Name: name})
}

func (s *chatStream) reason(text string) error {
	if s.reasoning == "" {
		s.blocks++
		s.reasoning = "reasoning_" + strconv.Itoa(s.blocks)
		if err := s.emit(llm.Delta{Kind: llm.ReasoningStart, ID: s.reasoning}); err != nil {
			return err
		}
	}
	return s.emit(llm.Delta{Kind: llm.ReasoningDelta, ID: s.reasoning, Text: text})
}

func (s *chatStream) endReasoning() error {
	if s.reasoning == "" {
		return nil
	}
	id := s.reasoning
	s.reasoning = ""
	return s.emit(llm.Delta{Kind: llm.ReasoningEnd, ID: id, API: origin(s.at, APIChat)})
}

// end delivers what is known only at the end: calls, usage, the reason to stop.
func (s *chatStream) end() error {
	if err := s.endReasoning(); err != nil {
		return err
	}
	for i := range s.calls {
		c := &s.calls[i]
		if err := s.emit(llm.Delta{Kind: llm.ToolEnd, ID: c.id, Text: string(c.arguments)}); err != nil {
			return err
		}
	}
	if err := s.emit(llm.Delta{Kind: llm.UsageDelta, Usage: s.usage}); err != nil {
		return err
	}
	stop := llm.StopEnd
	switch {
	case len(s.calls) > 0:
		stop = llm.StopToolCalls
	case s.finish == "length":
		stop = llm.StopLength
	case s.finish == "content_filter":
		stop = llm.StopRefusal
	}
	return s.emit(llm.Delta{Kind: llm.StopDelta, Stop: stop})
}
