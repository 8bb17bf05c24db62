package openai

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/seed-dec29ce4/eca/llm"
)

// NonStreaming is a model behind a Chat Completions endpoint, without streaming. It returns only
// text, and is for servers that do not stream and for short answers.
type NonStreaming struct {
	endpoint llm.Endpoint
}

var _ llm.Model = (*NonStreaming)(nil)

// NewNonStreaming returns a client for the Chat Completions endpoint. Only the total
// limit of the endpoint's time limits applies.
func NewNonStreaming(at llm.Endpoint) *NonStreaming { return &NonStreaming{at} }

// Stream implements llm.Model: it yields one TextDelta with the complete text.
func (c *NonStreaming) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		text, usage, err := c.ask(ctx, req)
		switch {
		case err != nil:
			yield(llm.Delta{}, err)
		case text != "" && !yield(llm.Delta{Kind: llm.TextDelta, Text: text}, nil):
		case !yield(llm.Delta{Kind: llm.UsageDelta, Usage: usage}, nil):
		default:
			yield(llm.Delta{Kind: llm.StopDelta, Stop: llm.StopEnd}, nil)
		}
	}
}

func (c *NonStreaming) ask(ctx context.Context, req llm.Request) (text string, usage llm.Usage, err error) {
	req.Extra = llm.DeepMerge(req.Extra, map[string]any{"stream": false, "stream_options": nil})
	body, err := chatBody(req, chatEncoder{origin: origin(c.endpoint, APIChat), dialect: dialectOf(c.endpoint.URL)})
	if err != nil {
		return "", usage, llm.EncodeError(err)
	}
	if c.endpoint.Limits.Total > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.endpoint.Limits.Total)
		defer cancel()
	}
	var answer struct {
		Choices []struct {
			Message struct {
				Content *string `json:"content"`
				Refusal string  `json:"refusal"`
			} `json:"message"`
		} `json:"choices"`
		Usage llm.Optional[struct {
			Prompt     llm.Count `json:"prompt_tokens"`
			Completion llm.Count `json:"completion_tokens"`
		}] `json:"usage"`
	}
	if err := c.endpoint.Exchange(ctx, json.RawMessage(body), &answer); err != nil {
		return "", usage, err
	}
	if len(answer.Choices) == 0 {
		return "", usage, &llm.Error{Kind: llm.ErrProtocol, Message: c.endpoint.Name() + " sent no answer"}
	}
	m := answer.Choices[0].Message
	usage.Input, usage.Output = int64(answer.Usage.Value.Prompt), int64(answer.Usage.Value.Completion)
	if m.Content == nil {
		return m.Refusal, usage, nil
	}
	return *m.Content, usage, nil
}
