package bedrock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/seed-dec29ce4/eca/llm"
)

// streamEvent has the used fields of all stream events.
type streamEvent struct {
	Index int `json:"contentBlockIndex"`
	Start struct {
		ToolUse *struct {
			ID   string `json:"toolUseId"`
			Name string `json:"name"`
		} `json:"toolUse"`
	} `json:"start"`
	Delta struct {
		Text      string                 `json:"text"`
		ToolUse   struct{ Input string } `json:"toolUse"`
		Reasoning *reasoningDelta        `json:"reasoningContent"`
	} `json:"delta"`
	StopReason string `json:"stopReason"`
	Usage      llm.Optional[struct {
		Input      llm.Count `json:"inputTokens"`
		Output     llm.Count `json:"outputTokens"`
		CacheRead  llm.Count `json:"cacheReadInputTokens"`
		CacheWrite llm.Count `json:"cacheWriteInputTokens"`
		Details    []struct {
			Tokens llm.Count `json:"inputTokens"`
			TTL    string    `json:"ttl"`
		} `json:"cacheDetails"` // tokens written to the cache, by TTL
	}] `json:"usage"`
}

type reasoningDelta struct {
	Text      string `json:"text"`
	Signature string `json:"signature"`
	Redacted  []byte `json:"redactedContent"`
}

// block is a call or a block of reasoning that has not ended.
type block struct {
	id        string
	call      bool // otherwise reasoning
	text      []byte
	signature string
	redacted  []byte
}

// stream turns events into deltas.
type stream struct {
	llm.Emitter
	provider string
	open     map[int]*block
	ids      map[string]bool // of calls
	thoughts int             // blocks of reasoning so far
	reason   string          // the stop reason; empty until the model stops
}

func (s *stream) read(r *eventReader) error {
	for {
		m, err := r.next()
		switch {
		case err != nil && s.reason != "":
			return s.stop(nil) // the answer is complete, only the usage is missing
		case errors.Is(err, errCorrupt):
			return &llm.Error{Kind: llm.ErrMalformed, Message: s.provider + ": " + err.Error(), Cause: err}
		case err != nil:
			return err
		case m.kind != "event":
			return s.exception(m)
		}
		var ev streamEvent
		err = json.Unmarshal(m.payload, &ev)
		switch {
		case err != nil && s.reason != "":
			return s.stop(nil)
		case err != nil:
			return &llm.Error{Kind: llm.ErrMalformed, Message: s.provider + " sent an event that cannot be read", Cause: err}
		}
		if m.event == "metadata" && s.reason != "" {
			return s.stop(&ev)
		}
		s.event(m.event, &ev)
		if err := s.Err(); err != nil {
			return err
		}
	}
}

// event handles one event, except the last one.
func (s *stream) event(name string, ev *streamEvent) {
	switch name {
	case "contentBlockStart":
		if call := ev.Start.ToolUse; call != nil {
			s.startCall(ev.Index, call.ID, call.Name)
		}
	case "contentBlockDelta":
		s.delta(ev)
	case "contentBlockStop":
		s.endBlock(ev.Index)
	case "messageStop":
		s.reason = cmp.Or(ev.StopReason, "end_turn")
		for _, i := range slices.Sorted(maps.Keys(s.open)) {
			s.endBlock(i)
		}
	}
}

func (s *stream) startCall(index int, id, name string) {
	if id == "" || s.ids[id] {
		id += "call_" + strconv.Itoa(len(s.ids))
	}
	s.ids[id] = true
	s.open[index] = &block{id: id, call: true}
	s.Emit(llm.Delta{Kind: llm.ToolStart, ID: id, Name: name})
}

func (s *stream) delta(ev *streamEvent) {
	b := s.open[ev.Index]
	switch input := ev.Delta.ToolUse.Input; {
	case ev.Delta.Reasoning != nil:
		s.think(ev.Index, ev.Delta.Reasoning)
	case input != "" && b != nil && b.call:
		b.text = append(b.text, input...)
		s.Emit(llm.Delta{Kind: llm.ToolArgs, ID: b.id, Text: input})
	case ev.Delta.Text != "":
		s.Emit(llm.Delta{Kind: llm.TextDelta, Text: ev.Delta.Text})
	}
}

func (s *stream) think(index int, d *reasoningDelta) {
	b := s.open[index]
	if b == nil || b.call {
		s.thoughts++
		b = &block{id: "reasoning_" + strconv.Itoa(s.thoughts)}
		s.open[index] = b
		s.Emit(llm.Delta{Kind: llm.ReasoningStart, ID: b.id})
	}
	b.signature += d.Signature
	b.redacted = append(b.redacted, d.Redacted...)
	if d.Text != "" {
		b.text = append(b.text, d.Text...)
		s.Emit(llm.Delta{Kind: llm.ReasoningDelta, ID: b.id, Text: d.Text})
	}
}

func (s *stream) endBlock(index int) {
	b := s.open[index]
	delete(s.open, index)
	switch {
	case b == nil:
	case b.call:
		s.Emit(llm.Delta{Kind: llm.ToolEnd, ID: b.id, Text: string(b.text)})
	default:
		s.Emit(llm.Delta{Kind: llm.ReasoningEnd, ID: b.id, API: s.Origin, Opaque: b.replay()})
	}
}

// replay returns the block as it is sent back. Models accept only reasoning that is signed or
// encrypted.
func (b *block) replay() (raw json.RawMessage) {
	switch { // bytes and strings always encode
	case len(b.redacted) > 0:
		raw, _ = json.Marshal(map[string]any{"redactedContent": b.redacted})
	case b.signature != "":
		raw, _ = json.Marshal(map[string]any{"reasoningText": map[string]string{"text": string(b.text), "signature": b.signature}})
	}
	return raw
}

// stop emits the usage, if it was received, and the stop reason.
func (s *stream) stop(last *streamEvent) error {
	if last != nil && last.Usage.Sent {
		u := last.Usage.Value
		usage := llm.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)}
		for _, d := range u.Details {
			if d.TTL == llm.RetainLong.TTL() {
				usage.CacheWriteLong += int64(d.Tokens)
			}
		}
		s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: usage})
	}
	reason := llm.StopEnd
	switch {
	case s.reason == "model_context_window_exceeded":
		return &llm.Error{Kind: llm.ErrContextOverflow, Message: s.provider + " stopped: the conversation and the answer exceed the model's context"}
	case s.reason == "content_filtered", s.reason == "guardrail_intervened", s.reason == "refusal":
		reason = llm.StopRefusal
	case len(s.ids) > 0:
		reason = llm.StopToolCalls
	case s.reason == "max_tokens":
		reason = llm.StopLength
	case s.reason == "malformed_model_output", s.reason == "malformed_tool_use":
		// Another attempt may be well-formed, so this is retried like an answer that was cut off.
		return &llm.Error{Kind: llm.ErrPrematureStop, Message: fmt.Sprintf("%s: the model stopped after malformed output (%s)", s.provider, s.reason)}
	}
	return s.Stop(reason)
}

// exception converts an error that arrived in the stream.
func (s *stream) exception(m message) error {
	text := cmp.Or(m.text, llm.ErrorText(m.payload), "no further explanation")
	e := &llm.Error{Kind: llm.ErrUnknown, Message: fmt.Sprintf("%s failed: %s (%s)", s.provider, text, cmp.Or(m.exception, "unknown kind"))}
	switch m.exception {
	case "throttlingException":
		e.Kind = llm.ErrRateLimited // its message may contain "too many tokens"
		return e
	case "modelStreamErrorException", "modelTimeoutException", "modelNotReadyException", "internalServerException", "serviceUnavailableException":
		e.Kind = llm.ErrOverloaded
	case "validationException":
		e.Kind = llm.ErrBadRequest
	case "accessDeniedException":
		e.Kind = llm.ErrAuth
	}
	if tooLong(text) {
		e.Kind = llm.ErrContextOverflow
	}
	return e
}
