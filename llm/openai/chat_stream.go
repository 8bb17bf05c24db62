package openai

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/sse"
	"github.com/seed-dec29ce4/eca/llm"
)

// chatChunk is one element of the stream.
type chatChunk struct {
	Choices []struct {
		Delta        chatDelta               `json:"delta"`
		Message      chatDelta               `json:"message"` // in an answer that is not streamed
		FinishReason string                  `json:"finish_reason"`
		Usage        llm.Optional[chatUsage] `json:"usage"` // some servers send it here
	} `json:"choices"`
	Usage llm.Optional[chatUsage] `json:"usage"`
	Error json.RawMessage         `json:"error"`
}

type chatDelta struct {
	Content          chatText `json:"content"`
	ReasoningContent string   `json:"reasoning_content"`
	Reasoning        string   `json:"reasoning"`
	ReasoningText    string   `json:"reasoning_text"`
	Refusal          string   `json:"refusal"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		Extra json.RawMessage `json:"extra_content"`
	} `json:"tool_calls"`
	Images []struct {
		ImageURL chatImage `json:"image_url"`
	} `json:"images"` // sent by OpenRouter
	Annotations []struct {
		Citation citation `json:"url_citation"`
	} `json:"annotations"`
}

// thinking returns the reasoning and the member that contains it. Servers that use two members send
// the same text in both.
func (d *chatDelta) thinking() (text, member string) {
	switch {
	case d.ReasoningContent != "":
		return d.ReasoningContent, inReasoningContent
	case d.Reasoning != "":
		return d.Reasoning, inReasoningOnly
	case d.ReasoningText != "":
		return d.ReasoningText, inReasoningText
	}
	return d.Content.reasoning, inContent
}

// chatUsage has the counters of cached tokens of different servers.
type chatUsage struct {
	PromptTokens        llm.Count `json:"prompt_tokens"`
	CompletionTokens    llm.Count `json:"completion_tokens"`
	PromptTokensDetails struct {
		CachedTokens     llm.Count `json:"cached_tokens"`
		CacheWriteTokens llm.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CachedTokens   llm.Count `json:"cached_tokens"`
	CacheHitTokens llm.Count `json:"prompt_cache_hit_tokens"`
	CacheCreation  llm.Count `json:"cache_creation_input_tokens"`
}

// usage converts the counters; the prompt's tokens include the cached ones.
func (u chatUsage) usage() llm.Usage {
	read := int64(cmp.Or(u.PromptTokensDetails.CachedTokens, u.CachedTokens, u.CacheHitTokens))
	write := int64(cmp.Or(u.PromptTokensDetails.CacheWriteTokens, u.CacheCreation))
	return llm.Usage{Input: max(0, int64(u.PromptTokens)-read-write), Output: int64(u.CompletionTokens), CacheRead: read, CacheWrite: write}
}

// chatStream turns chunks into deltas.
type chatStream struct {
	llm.Emitter
	endpoint      llm.Endpoint
	calls         []chatPending
	images        int // number of images so far
	text          thinkText
	member        string // the member that contained the open reasoning
	tagged        bool   // the open reasoning is between tags
	hasText       bool   // text other than reasoning has been received
	finish        string
	unmarked      bool // the answer ended without a finish reason
	usage         llm.Usage
	usageReported bool
	retention     llm.Retention // the requested retention
}

// chatPending is a call whose arguments are still arriving.
type chatPending struct {
	index     int    // the provider's index
	sentID    string // the provider's id; may repeat
	id        string // unique within the answer
	arguments []byte
	extra     json.RawMessage // sent back with the call
}

// answer reads a stream, or the single JSON object that some servers send instead.
func (s *chatStream) answer(body io.Reader) error {
	raw, stream, err := llm.UnstreamedObject(body)
	if err != nil {
		return err
	}
	if raw == nil {
		return s.read(llm.NewSSEReader(stream))
	}
	chunk, err := s.decode(raw)
	if err != nil {
		return err
	}
	if len(chunk.Choices) == 0 {
		return &llm.Error{Kind: llm.ErrProtocol, Message: s.endpoint.Name() + " did not stream but answered: " + llm.ErrorText(raw)}
	}
	chunk.Choices[0].Delta = chunk.Choices[0].Message
	s.chunk(chunk)
	return s.end()
}

func (s *chatStream) decode(raw []byte) (*chatChunk, error) {
	var chunk chatChunk
	if err := json.Unmarshal(raw, &chunk); err != nil {
		return nil, llm.UnreadableEvent(s.endpoint.Name(), raw, err)
	}
	if len(chunk.Error) > 0 {
		if err := llm.EventError(s.endpoint.Name(), raw); err != nil {
			return nil, err
		}
	}
	return &chunk, nil
}

func (s *chatStream) read(events *sse.Reader) error {
	for {
		raw, err := events.Next()
		if err != nil {
			// Some servers close after the finish reason without [DONE].
			if s.finish != "" {
				return s.end()
			}
			return err
		}
		if string(raw.Data) == "[DONE]" {
			if s.unmarked = s.finish == ""; s.unmarked && !s.complete() {
				return &llm.Error{Kind: llm.ErrPrematureStop, Message: s.endpoint.Name() + " ended the answer without a finish reason"}
			}
			return s.end()
		}
		chunk, err := s.decode(raw.Data)
		if s.finish != "" && err != nil && llm.AsError(err).Kind == llm.ErrMalformed {
			continue // the answer is complete
		}
		if err != nil {
			return err
		}
		s.chunk(chunk)
		if err := s.Err(); err != nil {
			return err
		}
	}
}

// complete reports whether an answer that has no finish reason can be used: it has text, and its
// calls have all their arguments.
func (s *chatStream) complete() bool {
	for _, c := range s.calls {
		if !json.Valid(c.arguments) {
			return false
		}
	}
	return s.hasText || len(s.calls) > 0 || s.images > 0
}

func (s *chatStream) chunk(c *chatChunk) {
	u := c.Usage
	if !u.Sent && len(c.Choices) > 0 {
		u = c.Choices[0].Usage
	}
	if u.Sent || u.Invalid {
		s.usage = u.Value.usage()
		s.usage.CacheWriteLong = s.retention.LongWrites(s.usage.CacheWrite, nil)
		if s.text.ReferenceSplits {
			s.emitUsage()
		}
	}
	if len(c.Choices) == 0 {
		return
	}
	choice := &c.Choices[0]
	if choice.FinishReason != "" {
		s.finish = choice.FinishReason
	}
	d := &choice.Delta
	if text, member := d.thinking(); text != "" {
		s.member = member
		s.Think(text)
	}
	if text := d.Content.text + d.Refusal; text != "" {
		s.say(text)
	}
	s.extras(d)
	for _, tc := range d.ToolCalls {
		s.endText()
		call := s.call(tc.Index, tc.ID, tc.Function.Name)
		if call != nil && len(tc.Extra) > 0 && string(tc.Extra) != "null" {
			call.extra = tc.Extra
		}
		if tc.Function.Arguments == "" || call == nil {
			continue
		}
		call.arguments = append(call.arguments, tc.Function.Arguments...)
		s.Emit(llm.Delta{Kind: llm.ToolArgs, ID: call.id, Text: tc.Function.Arguments})
	}
}

// extras passes on generated images and cited pages.
func (s *chatStream) extras(d *chatDelta) {
	for _, i := range d.Images {
		s.endText()
		header, data, _ := strings.Cut(i.ImageURL.URL, ",")
		media := strings.TrimSuffix(strings.TrimPrefix(header, "data:"), ";base64")
		s.images++
		end := llm.Delta{ID: "image_" + strconv.Itoa(s.images), Name: llm.ImageGeneration, Result: llm.GeneratedImage(media, data)}
		s.EmitServerCall(false, json.RawMessage("{}"), end)
	}
	for _, a := range d.Annotations {
		if a.Citation.URL != "" {
			s.Emit(llm.Delta{Kind: llm.SourceDelta, Text: a.Citation.URL, Name: a.Citation.Title})
		}
	}
}

// call returns the pending call that a fragment belongs to, or opens it. Fragments refer to their
// call by index, by id, or not at all (then it is the last one). Some servers give every call the
// index 0; there, a new id begins a new call.
func (s *chatStream) call(index *int, id, name string) *chatPending {
	n := len(s.calls)
	for i := n - 1; i >= 0; i-- {
		p := &s.calls[i]
		switch {
		case index != nil && p.index != *index:
			continue
		case id != "" && id != p.sentID && (index == nil || name != ""):
			continue
		}
		return p
	}
	if id == "" && name == "" {
		return nil // arguments without a call
	}
	p := chatPending{index: n, sentID: id, id: id}
	if index != nil {
		p.index = *index
	}
	if id == "" || slices.ContainsFunc(s.calls, func(c chatPending) bool { return c.id == id }) {
		p.id = id + "call_" + strconv.Itoa(n)
	}
	s.calls = append(s.calls, p)
	s.Emit(llm.Delta{Kind: llm.ToolStart, ID: p.id, Name: name})
	return &s.calls[n]
}

// say handles a piece of the answer's text, which may contain reasoning between tags.
func (s *chatStream) say(text string) {
	if !s.tagged {
		s.endReasoning()
	}
	if s.text.plain() {
		s.hasText = true
		s.Emit(llm.Delta{Kind: llm.TextDelta, Text: text})
		return
	}
	for _, p := range s.text.write(text) {
		s.piece(p)
	}
}

func (s *chatStream) piece(p thinkPiece) {
	switch {
	case p.reasoning && !s.Thinking() && strings.TrimSpace(p.text) == "": // empty tags
	case p.reasoning:
		s.tagged = true
		if s.Think(p.text); p.end {
			s.endReasoning()
		}
	case p.text != "":
		s.hasText = true
		s.Emit(llm.Delta{Kind: llm.TextDelta, Text: p.text})
	}
}

// endText ends open text and reasoning.
func (s *chatStream) endText() {
	s.piece(s.text.rest())
	s.endReasoning()
}

func (s *chatStream) endReasoning() {
	opaque := memberOpaque(s.member)
	if s.tagged {
		opaque = s.text.opaque()
	}
	s.tagged = false
	s.EndThinking(opaque)
}

func (s *chatStream) emitUsage() {
	if !s.usageReported {
		s.usageReported = true
		s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: s.usage})
	}
}

// end emits what is known only at the end: calls, usage and the stop reason.
func (s *chatStream) end() error {
	s.endText()
	for i := range s.calls {
		c := &s.calls[i]
		d := llm.Delta{Kind: llm.ToolEnd, ID: c.id, Text: string(c.arguments)}
		if c.extra != nil {
			d.API, d.Opaque = s.Origin, c.extra
		}
		s.Emit(d)
	}
	s.emitUsage()
	stop := llm.StopEnd
	switch {
	case s.finish == "content_filter":
		stop = llm.StopRefusal
	case len(s.calls) > 0:
		stop = llm.StopToolCalls
	case s.finish == "length":
		stop = llm.StopLength
	case s.unmarked:
		stop = llm.StopUnmarked
	}
	return s.Stop(stop)
}
