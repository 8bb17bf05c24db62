package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"github.com/seed-dec29ce4/eca/internal/sse"
	"github.com/seed-dec29ce4/eca/llm"
)

// Responses is a model behind the Responses API.
type Responses struct{ at llm.Endpoint }

var _ llm.Model = (*Responses)(nil)

// NewResponses returns a client for the Responses endpoint.
func NewResponses(at llm.Endpoint) *Responses { return &Responses{at} }

// Reads implements llm.Reader.
func (r *Responses) Reads(_, api string) bool { return api == origin(r.at, APIResponses) }

// Stream implements llm.Model.
func (r *Responses) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	req, names := llm.Conform(req, llm.Form{Name: 64, ID: 64})
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		yield = names.Back(yield)
		body, err := responsesBody(req, origin(r.at, APIResponses))
		if err != nil {
			return llm.EncodeError(err)
		}
		return r.at.Post(ctx, body, req.Headers, func(answer io.Reader) error {
			s := responsesStream{Emitter: llm.Emitter{Yield: yield, Origin: origin(r.at, APIResponses)}, at: r.at, calls: map[string]string{}, ended: map[string]bool{}}
			return s.read(llm.NewSSEReader(answer))
		})
	})
}

// responsesBody encodes a request. Nothing is stored at the provider; reasoning
// travels encrypted with the history instead.
func responsesBody(req llm.Request, from string) ([]byte, error) {
	p := responses.ResponseNewParams{
		Model: req.Model,
		Store: param.NewOpt(false),
	}
	input, err := responsesInput(req.Messages, from)
	if err != nil {
		return nil, err
	}
	more := map[string]any{"stream": true, "input": input}
	if system := req.Instructions(); system != "" {
		p.Instructions = param.NewOpt(system)
	}
	if req.MaxOutput > 0 {
		p.MaxOutputTokens = param.NewOpt(req.MaxOutput)
	}
	if req.CacheKey != "" {
		p.PromptCacheKey = param.NewOpt(req.CacheKey)
	}
	p.PromptCacheRetention = responses.ResponseNewParamsPromptCacheRetention(retention(req))
	if req.Reasoning {
		p.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortMedium, Summary: shared.ReasoningSummaryAuto}
		p.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	if len(req.Tools) > 0 {
		p.ParallelToolCalls = param.NewOpt(true)
		if more["tools"], err = responsesTools(req.Tools); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, llm.MergePayloads(more, req.Extra))
}

// responsesEvent has the fields of all stream events that we use.
type responsesEvent struct {
	Type         string          `json:"type"`
	Delta        string          `json:"delta"`
	ItemID       string          `json:"item_id"`
	SummaryIndex int             `json:"summary_index"`
	Item         json.RawMessage `json:"item"`
	Response     json.RawMessage `json:"response"`
	Code         string          `json:"code"`
	Message      string          `json:"message"`
	Error        struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// responsesStream turns stream events into deltas.
type responsesStream struct {
	llm.Emitter
	at    llm.Endpoint
	calls map[string]string // item id -> call id, of calls that were announced
	ended map[string]bool   // call ids
}

func (s *responsesStream) read(events *sse.Reader) error {
	for {
		raw, err := events.Next()
		if err != nil {
			return err
		}
		if string(raw.Data) == "[DONE]" {
			continue // not part of this format, but some compatible servers send it
		}
		var ev responsesEvent
		if err := json.Unmarshal(raw.Data, &ev); err != nil {
			return &llm.Error{Kind: llm.ErrProtocol, Message: s.at.Name() + " sent something that is no JSON in its stream", Cause: err}
		}
		if raw.Name == "error" && ev.Type != "error" { // some servers put the kind of the error there
			ev.Code, ev.Type = cmp.Or(ev.Code, ev.Type), "error"
		}
		done, err := s.event(ev)
		if done || err != nil {
			return err
		}
	}
}

// event handles one event; done reports the terminal one.
func (s *responsesStream) event(ev responsesEvent) (done bool, err error) {
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		if ev.Delta != "" {
			err = s.Emit(llm.Delta{Kind: llm.TextDelta, Text: ev.Delta})
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		err = s.Emit(llm.Delta{Kind: llm.ReasoningDelta, ID: ev.ItemID, Text: ev.Delta})
	case "response.reasoning_summary_part.added":
		if ev.SummaryIndex > 0 {
			err = s.Emit(llm.Delta{Kind: llm.ReasoningDelta, ID: ev.ItemID, Text: "\n\n"})
		}
	case "response.function_call_arguments.delta":
		if id, ok := s.calls[ev.ItemID]; ok {
			err = s.Emit(llm.Delta{Kind: llm.ToolArgs, ID: id, Text: ev.Delta})
		}
	case "response.output_item.added":
		err = s.itemAdded(ev.Item)
	case "response.output_item.done":
		err = s.itemDone(ev.Item)
	case "response.completed", "response.incomplete":
		return true, s.finish(ev.Response)
	case "response.failed":
		return true, s.failed(ev.Response)
	case "error":
		// The code and the message come in two places, depending on the server.
		return true, llm.StreamError(s.at.Name(), cmp.Or(ev.Code, ev.Error.Code), cmp.Or(ev.Message, ev.Error.Message))
	}
	return false, err
}

func (s *responsesStream) itemAdded(raw json.RawMessage) error {
	var item responses.ResponseOutputItemUnion
	if err := json.Unmarshal(raw, &item); err != nil {
		return &llm.Error{Kind: llm.ErrProtocol, Message: s.at.Name() + " sent an unreadable output item", Cause: err}
	}
	switch item.Type {
	case "function_call":
		s.calls[item.ID] = item.CallID
		return s.Emit(llm.Delta{Kind: llm.ToolStart, ID: item.CallID, Name: item.Name})
	case "reasoning":
		return s.Emit(llm.Delta{Kind: llm.ReasoningStart, ID: item.ID})
	}
	return nil
}

func (s *responsesStream) itemDone(raw json.RawMessage) error {
	var item responses.ResponseOutputItemUnion
	if err := json.Unmarshal(raw, &item); err != nil {
		return &llm.Error{Kind: llm.ErrProtocol, Message: s.at.Name() + " sent an unreadable output item", Cause: err}
	}
	switch item.Type {
	case "function_call":
		if _, started := s.calls[item.ID]; !started {
			if err := s.itemAdded(raw); err != nil {
				return err
			}
		}
		s.ended[item.CallID] = true
		return s.Emit(llm.Delta{Kind: llm.ToolEnd, ID: item.CallID, Text: item.AsFunctionCall().Arguments})
	case "reasoning":
		d := llm.Delta{Kind: llm.ReasoningEnd, ID: item.ID, API: s.Origin}
		if item.EncryptedContent != "" {
			d.Opaque = append(json.RawMessage(nil), raw...)
		}
		return s.Emit(d)
	}
	return nil
}

// finish reports usage and the reason to stop, and first the calls that the final
// response alone has whole.
func (s *responsesStream) finish(raw json.RawMessage) error {
	var resp struct {
		Output []json.RawMessage `json:"output"`
		Usage  struct {
			InputTokens        int64 `json:"input_tokens"`
			OutputTokens       int64 `json:"output_tokens"`
			InputTokensDetails struct {
				CachedTokens     int64 `json:"cached_tokens"`
				CacheWriteTokens int64 `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
		} `json:"usage"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	}
	if err := json.Unmarshal(raw, &resp); err != nil {
		return &llm.Error{Kind: llm.ErrProtocol, Message: s.at.Name() + " sent an unreadable final response", Cause: err}
	}
	if resp.IncompleteDetails.Reason == "" {
		if err := s.endCalls(resp.Output); err != nil {
			return err
		}
	}
	u := resp.Usage
	read, written := u.InputTokensDetails.CachedTokens, u.InputTokensDetails.CacheWriteTokens
	usage := llm.Usage{Input: max(0, u.InputTokens-read-written), Output: u.OutputTokens, CacheRead: read, CacheWrite: written}
	if err := s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: usage}); err != nil {
		return err
	}
	stop := llm.StopEnd
	switch {
	case resp.IncompleteDetails.Reason == "content_filter":
		stop = llm.StopRefusal
	case resp.IncompleteDetails.Reason != "":
		stop = llm.StopLength
	case len(s.ended) > 0:
		stop = llm.StopToolCalls
	}
	return s.Emit(llm.Delta{Kind: llm.StopDelta, Stop: stop})
}

// endCalls takes calls from the final response that had no event of their own.
func (s *responsesStream) endCalls(output []json.RawMessage) error {
	for _, raw := range output {
		var item struct {
			Type   string `json:"type"`
			CallID string `json:"call_id"`
		}
		if json.Unmarshal(raw, &item) != nil || item.Type != "function_call" || s.ended[item.CallID] {
			continue
		}
		if err := s.itemDone(raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *responsesStream) failed(raw json.RawMessage) error {
	var resp struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &resp)
	return llm.StreamError(s.at.Name(), resp.Error.Code, resp.Error.Message)
}
