package openai

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"

	"github.com/seed-dec29ce4/eca/internal/sse"
	"github.com/seed-dec29ce4/eca/llm"
)

// Responses is a model behind the Responses API.
type Responses struct{ endpoint llm.Endpoint }

var _ llm.Model = (*Responses)(nil)

// NewResponses returns a client for the Responses endpoint.
func NewResponses(at llm.Endpoint) *Responses { return &Responses{at} }

// ReadsReasoning implements llm.ReasoningReader.
func (r *Responses) ReadsReasoning(_, api string) bool {
	return api == origin(r.endpoint, APIResponses)
}

// Stream implements llm.Model.
func (r *Responses) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	req, names := llm.Conform(req, llm.Form{Name: 64, ID: 64})
	req.Messages = llm.Portable(req.Messages, origin(r.endpoint, APIResponses))
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		yield = names.RestoreNames(yield)
		body, err := responsesBody(req, origin(r.endpoint, APIResponses))
		if err != nil {
			return llm.EncodeError(err)
		}
		return r.endpoint.Post(ctx, body, req.Headers, func(answer io.Reader) error {
			s := responsesStream{Emitter: llm.Emitter{Yield: yield, Origin: origin(r.endpoint, APIResponses)}, endpoint: r.endpoint, calls: map[string]string{}, endedCalls: map[string]bool{}, serverCalls: map[string]bool{}}
			return s.read(llm.NewSSEReader(answer))
		})
	})
}

// responsesRequest is a request without its conversation and tools. It uses the module's optional
// values but not its ResponseNewParams, because the types of complete requests make the program
// four megabytes larger.
type responsesRequest struct {
	Model                string            `json:"model"`
	Store                param.Opt[bool]   `json:"store,omitzero"`
	Instructions         param.Opt[string] `json:"instructions,omitzero"`
	MaxOutputTokens      param.Opt[int64]  `json:"max_output_tokens,omitzero"`
	PromptCacheKey       param.Opt[string] `json:"prompt_cache_key,omitzero"`
	PromptCacheRetention param.Opt[string] `json:"prompt_cache_retention,omitzero"`
	Reasoning            *reasoningOptions `json:"reasoning,omitempty"`
	Include              []string          `json:"include,omitempty"`
	ParallelToolCalls    param.Opt[bool]   `json:"parallel_tool_calls,omitzero"`
}

// optional returns an optional value that is omitted if it is the zero value.
func optional[T comparable](v T) param.Opt[T] {
	var zero T
	if v == zero {
		return param.Opt[T]{}
	}
	return param.NewOpt(v)
}

type reasoningOptions struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary"`
}

// responsesBody encodes a request. Nothing is stored at the provider; encrypted reasoning is sent
// with the history instead.
func responsesBody(req llm.Request, from string) ([]byte, error) {
	input, err := responsesInput(req.Messages, from)
	if err != nil {
		return nil, err
	}
	more := map[string]any{"stream": true, "input": input}
	r := responsesRequest{
		Model: req.Model, Store: param.NewOpt(false), Instructions: optional(req.Instructions()), MaxOutputTokens: optional(max(0, req.MaxOutput)),
		PromptCacheKey: optional(req.CacheKey), PromptCacheRetention: optional(retention(req)), ParallelToolCalls: optional(len(req.Tools) > 0),
	}
	if req.Reasoning {
		r.Reasoning = &reasoningOptions{Effort: "medium", Summary: "auto"}
		r.Include = []string{"reasoning.encrypted_content"}
	}
	if req.ServerTools.WebSearch {
		r.Include = append(r.Include, "web_search_call.action.sources")
	}
	tools, err := responsesTools(req.Tools, req.ServerTools)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		more["tools"] = tools
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, llm.MergePayloads(more, req.Extra))
}

// responsesEvent has the used fields of all stream events.
type responsesEvent struct {
	Type         string          `json:"type"`
	Delta        string          `json:"delta"`
	ItemID       string          `json:"item_id"`
	SummaryIndex int             `json:"summary_index"`
	Item         json.RawMessage `json:"item"`
	Annotation   citation        `json:"annotation"`
	Response     json.RawMessage `json:"response"`
	Code         json.RawMessage `json:"code"` // a word, or a status
	Message      string          `json:"message"`
}

// responsesStream turns stream events into deltas.
type responsesStream struct {
	llm.Emitter
	endpoint   llm.Endpoint
	calls      map[string]string // call ids of announced calls, by item id
	endedCalls map[string]bool   // by call id
	hasText    bool              // text has been received

	serverCalls map[string]bool // by item id of calls that the provider runs: whether the call has ended
	searches    int64           // number of search queries
}

func (s *responsesStream) read(events *sse.Reader) error {
	for {
		raw, err := events.Next()
		if err != nil {
			return err
		}
		if string(raw.Data) == "[DONE]" {
			// Not part of this format, but some compatible servers send it, sometimes instead of
			// the last event.
			if (s.hasText || len(s.endedCalls) > 0) && len(s.endedCalls) >= len(s.calls) {
				return s.stop(llm.StopUnmarked)
			}
			continue
		}
		var ev responsesEvent
		if err := json.Unmarshal(raw.Data, &ev); err != nil {
			return llm.UnreadableEvent(s.endpoint.Name(), raw.Data, err)
		}
		if ev.Type == "" || ev.Type == "error" && ev.Message == "" {
			if err := llm.EventError(s.endpoint.Name(), raw.Data); err != nil {
				return err
			}
		}
		if raw.Name == "error" && ev.Type != "error" { // some servers send the kind of the error as the type
			if len(ev.Code) == 0 {
				ev.Code = json.RawMessage(ev.Type)
			}
			ev.Type = "error"
		}
		done, err := s.event(ev)
		if done || err != nil {
			return err
		}
		if err := s.Err(); err != nil {
			return err
		}
	}
}

// event handles one event; done reports the terminal one.
func (s *responsesStream) event(ev responsesEvent) (done bool, err error) {
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		if ev.Delta != "" {
			s.hasText = true
			s.Emit(llm.Delta{Kind: llm.TextDelta, Text: ev.Delta})
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		s.Emit(llm.Delta{Kind: llm.ReasoningDelta, ID: ev.ItemID, Text: ev.Delta})
	case "response.reasoning_summary_part.added":
		if ev.SummaryIndex > 0 {
			s.Emit(llm.Delta{Kind: llm.ReasoningDelta, ID: ev.ItemID, Text: "\n\n"})
		}
	case "response.function_call_arguments.delta":
		if id, ok := s.calls[ev.ItemID]; ok {
			s.Emit(llm.Delta{Kind: llm.ToolArgs, ID: id, Text: ev.Delta})
		}
	case "response.output_text.annotation.added":
		s.cite(ev.Annotation)
	case "response.output_item.added", "response.output_item.done":
		item, err := s.item(ev.Item)
		switch {
		case err != nil:
			return false, err
		case ev.Type == "response.output_item.added":
			s.itemAdded(item)
			return false, nil
		}
		return false, s.itemDone(item, ev.Item)
	case "response.completed", "response.incomplete":
		return true, s.finish(ev.Response)
	case "response.failed":
		return true, s.responseError(ev.Response)
	case "error":
		return true, llm.StreamError(s.endpoint.Name(), strings.Trim(string(ev.Code), `"`), ev.Message)
	}
	return false, nil
}

// outputItem is an item of an answer. Items of unused types have only a type.
type outputItem struct {
	Type             string          `json:"type"`
	ID               string          `json:"id"`
	CallID           string          `json:"call_id"`
	Name             string          `json:"name"`
	Arguments        json.RawMessage `json:"arguments"` // a string in calls of functions
	EncryptedContent string          `json:"encrypted_content"`
}

func (s *responsesStream) item(raw json.RawMessage) (item outputItem, err error) {
	if err := json.Unmarshal(raw, &item); err != nil {
		return item, &llm.Error{Kind: llm.ErrMalformed, Message: s.endpoint.Name() + " sent an unreadable output item", Cause: err}
	}
	return item, nil
}

func (s *responsesStream) itemAdded(item outputItem) {
	switch item.Type {
	case "function_call":
		s.calls[item.ID] = item.CallID
		s.Emit(llm.Delta{Kind: llm.ToolStart, ID: item.CallID, Name: item.Name})
	case "reasoning":
		s.Emit(llm.Delta{Kind: llm.ReasoningStart, ID: item.ID})
	case itemSearch, itemImage:
		s.serverCalls[item.ID] = false
		s.Emit(llm.Delta{Kind: llm.ServerStart, ID: item.ID, Name: serverTools()[item.Type]})
	}
}

func (s *responsesStream) itemDone(item outputItem, raw json.RawMessage) error {
	switch item.Type {
	case "function_call":
		if _, started := s.calls[item.ID]; !started {
			s.itemAdded(item)
		}
		s.endedCalls[item.CallID] = true
		var arguments string
		if json.Unmarshal(item.Arguments, &arguments) != nil {
			arguments = string(item.Arguments) // some servers send the object itself
		}
		s.Emit(llm.Delta{Kind: llm.ToolEnd, ID: item.CallID, Text: arguments})
	case "reasoning":
		d := llm.Delta{Kind: llm.ReasoningEnd, ID: item.ID, API: s.Origin}
		if item.EncryptedContent != "" {
			d.Opaque = append(json.RawMessage(nil), raw...)
		}
		s.Emit(d)
	case itemSearch, itemImage:
		return s.serverCallDone(raw)
	case "message":
		s.citations(raw)
	}
	return nil
}

// finish emits calls that are complete only in the final response, then usage and the stop reason.
func (s *responsesStream) finish(raw json.RawMessage) error {
	var resp struct {
		Output []json.RawMessage `json:"output"`
		Usage  llm.Optional[struct {
			InputTokens        llm.Count `json:"input_tokens"`
			OutputTokens       llm.Count `json:"output_tokens"`
			InputTokensDetails struct {
				CachedTokens     llm.Count `json:"cached_tokens"`
				CacheWriteTokens llm.Count `json:"cache_write_tokens"`
			} `json:"input_tokens_details"`
		}] `json:"usage"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	}
	if err := json.Unmarshal(raw, &resp); err != nil {
		return &llm.Error{Kind: llm.ErrMalformed, Message: s.endpoint.Name() + " sent an unreadable final response", Cause: err}
	}
	if resp.IncompleteDetails.Reason == "" {
		if err := s.endCalls(resp.Output); err != nil {
			return err
		}
	}
	u := resp.Usage.Value
	read, written := int64(u.InputTokensDetails.CachedTokens), int64(u.InputTokensDetails.CacheWriteTokens)
	usage := llm.Usage{Input: max(0, int64(u.InputTokens)-read-written), Output: int64(u.OutputTokens), CacheRead: read, CacheWrite: written, WebSearches: s.searches}
	s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: usage})
	stop := llm.StopEnd
	switch {
	case resp.IncompleteDetails.Reason == "content_filter":
		stop = llm.StopRefusal
	case resp.IncompleteDetails.Reason != "":
		stop = llm.StopLength
	}
	return s.stop(stop)
}

// stop emits the stop reason. It is StopToolCalls if there are calls, unless the provider cut off
// the answer.
func (s *responsesStream) stop(reason llm.StopReason) error {
	if len(s.endedCalls) > 0 && (reason == llm.StopEnd || reason == llm.StopUnmarked) {
		reason = llm.StopToolCalls
	}
	return s.Stop(reason)
}

// endCalls handles calls in the final response that had no events.
func (s *responsesStream) endCalls(output []json.RawMessage) error {
	for _, raw := range output {
		item, err := s.item(raw)
		if _, isServerCall := serverTools()[item.Type]; err != nil || !isServerCall && (item.Type != "function_call" || s.endedCalls[item.CallID]) {
			continue
		}
		if err := s.itemDone(item, raw); err != nil {
			return err
		}
	}
	return nil
}

func (s *responsesStream) responseError(raw json.RawMessage) error {
	var resp struct {
		Error struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	_ = json.Unmarshal(raw, &resp)
	return llm.StreamError(s.endpoint.Name(), resp.Error.Code, resp.Error.Message)
}
