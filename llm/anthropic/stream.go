package anthropic

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/seed-dec29ce4/eca/internal/sse"
	"github.com/seed-dec29ce4/eca/llm"
)

// streamEvent has the used fields of all stream events.
type streamEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Usage llm.Optional[usage] `json:"usage"`
	} `json:"message"`
	Block streamBlock `json:"content_block"`
	Delta struct {
		Type        string `json:"type"`
		Text        string `json:"text"`
		Thinking    string `json:"thinking"`
		Signature   string `json:"signature"`
		PartialJSON string `json:"partial_json"`
		Citation    struct {
			URL   string `json:"url"`
			Title string `json:"title"`
		} `json:"citation"`
		StopReason string `json:"stop_reason"`
	} `json:"delta"`
	Usage llm.Optional[usage] `json:"usage"`
}

type streamBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
}

type usage struct {
	Input      llm.Count `json:"input_tokens"`
	Output     llm.Count `json:"output_tokens"`
	CacheRead  llm.Count `json:"cache_read_input_tokens"`
	CacheWrite llm.Count `json:"cache_creation_input_tokens"`
	Creation   *struct {
		Long llm.Count `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Server struct {
		WebSearches llm.Count `json:"web_search_requests"`
	} `json:"server_tool_use"`
}

// stream turns the events of one answer into deltas.
type stream struct {
	llm.Emitter
	provider  string
	tools     llm.Aliases
	retention llm.Retention

	blocks       []part
	hasCalls     bool
	stop         string
	usage        llm.Usage
	usageInvalid bool   // the usage was sent in an invalid form
	longWrites   *int64 // tokens written to the cache for an hour; nil if not reported

	searches []*search
}

// stopPaused is the stop reason of an answer that continues when it is sent back.
const stopPaused = "pause_turn"

// part is a block of the answer that is thinking, a call, or a search by the API itself.
type part struct {
	index        int    // the provider's index; may repeat
	id           string // unique in the answer
	call         bool
	server       bool
	ended        bool
	thinkingData thinkingData
	arguments    []byte
	input        json.RawMessage // arguments that some compatible servers send with the start
}

// answer reads a stream, or the single JSON object that some servers send instead.
func (s *stream) answer(body io.Reader) error {
	raw, streamed, err := llm.UnstreamedObject(body)
	if err != nil {
		return err
	}
	if raw == nil {
		return s.read(llm.NewSSEReader(streamed))
	}
	var whole struct {
		Content    []streamBlock       `json:"content"`
		StopReason string              `json:"stop_reason"`
		Usage      llm.Optional[usage] `json:"usage"`
	}
	if err := json.Unmarshal(raw, &whole); err != nil || len(whole.Content) == 0 {
		return &llm.Error{Kind: llm.ErrProtocol, Message: s.provider + " did not stream but answered: " + llm.ErrorText(raw), Cause: err}
	}
	s.count(whole.Usage)
	s.stop = cmp.Or(whole.StopReason, "end_turn")
	for i, b := range whole.Content {
		b.Type = cmp.Or(b.Type, "text")
		s.begin(&streamEvent{Index: i, Block: b})
		s.close(i)
	}
	return s.end()
}

func (s *stream) read(events *sse.Reader) error {
	for {
		raw, err := events.Next()
		if errors.Is(err, io.EOF) && s.stop != "" {
			return s.end() // the answer is complete, only the last event is missing
		}
		if err != nil {
			return err
		}
		if string(raw.Data) == "[DONE]" {
			continue // not part of this format, but some compatible servers send it
		}
		var ev streamEvent
		if err := json.Unmarshal(raw.Data, &ev); err != nil && ev.Type == "" {
			failed := llm.UnreadableEvent(s.provider, raw.Data, err)
			if s.stop != "" && failed.Kind == llm.ErrMalformed {
				continue // the answer is complete
			}
			return failed
		}
		if ev.Type == "" || ev.Type == "error" {
			if err := llm.EventError(s.provider, raw.Data); err != nil {
				return err
			}
		}
		done, err := s.event(&ev)
		if done || err != nil {
			return err
		}
		if err := s.Err(); err != nil {
			return err
		}
	}
}

// event handles one event; done reports the terminal one.
func (s *stream) event(ev *streamEvent) (done bool, err error) {
	switch ev.Type {
	case "message_start":
		s.count(ev.Message.Usage)
	case "content_block_start":
		s.begin(ev)
	case "content_block_delta":
		s.delta(ev)
	case "content_block_stop":
		s.close(ev.Index)
	case "message_delta":
		s.count(ev.Usage)
		if ev.Delta.StopReason != "" {
			s.stop = ev.Delta.StopReason
		}
	case "message_stop":
		return true, s.end()
	case "error":
		return true, llm.StreamError(s.provider, "", "") // read has handled errors with a message
	}
	return false, nil
}

// count records numbers of tokens. They are totals; some servers send all of them at the start,
// some at the end, and zeros elsewhere. If some are invalid, none of them is used, because a part would
// be too low.
func (s *stream) count(sent llm.Optional[usage]) {
	u := sent.Value
	s.usageInvalid = s.usageInvalid || sent.Invalid
	for to, n := range map[*int64]llm.Count{&s.usage.Input: u.Input, &s.usage.Output: u.Output, &s.usage.CacheRead: u.CacheRead, &s.usage.CacheWrite: u.CacheWrite, &s.usage.WebSearches: u.Server.WebSearches} {
		if n > 0 {
			*to = int64(n)
		}
	}
	if u.Creation != nil && (s.longWrites == nil || u.Creation.Long > 0) {
		long := int64(u.Creation.Long)
		s.longWrites = &long
	}
}

// begin opens a block. Blocks of unknown types are left out.
func (s *stream) begin(ev *streamEvent) {
	s.close(ev.Index)
	s.endThinking(ev.Index)
	b := ev.Block
	p := part{index: ev.Index, id: b.ID}
	for n := len(s.blocks) + 1; p.id == "" || s.block(p.id) != nil; n++ {
		p.id = "block_" + strconv.Itoa(n)
	}
	switch b.Type {
	case "text":
		s.text(b.Text)
	case "thinking", "redacted_thinking":
		p.thinkingData = thinkingData{b.Signature, b.Data}
		s.blocks = append(s.blocks, p)
		s.Emit(llm.Delta{Kind: llm.ReasoningStart, ID: p.id})
		s.thinking(p.id, b.Thinking)
	case "tool_use":
		p.call, p.input, s.hasCalls = true, b.Input, true
		s.blocks = append(s.blocks, p)
		s.Emit(llm.Delta{Kind: llm.ToolStart, ID: p.id, Name: s.tools.Name(b.Name)})
	case blockSearch:
		s.beginSearch(&p, b)
	case blockResults:
		s.endSearch(b)
	}
}

func (s *stream) delta(ev *streamEvent) {
	d := &ev.Delta
	s.endThinking(ev.Index)
	switch {
	case d.Type == "text_delta":
		s.text(d.Text)
		return
	case d.Type == "citations_delta" && d.Citation.URL != "":
		s.Emit(llm.Delta{Kind: llm.SourceDelta, Text: d.Citation.URL, Name: d.Citation.Title})
	}
	p := s.open(ev.Index)
	switch {
	case p == nil:
	case d.Type == "input_json_delta" && p.server:
		p.arguments = append(p.arguments, d.PartialJSON...)
	case d.Type == "thinking_delta" && p.isThinking():
		s.thinking(p.id, d.Thinking)
	case d.Type == "signature_delta" && p.isThinking():
		p.thinkingData.Signature += d.Signature
	case d.Type == "input_json_delta" && p.call && d.PartialJSON != "":
		p.arguments = append(p.arguments, d.PartialJSON...)
		s.Emit(llm.Delta{Kind: llm.ToolArgs, ID: p.id, Text: d.PartialJSON})
	}
}

func (p *part) isThinking() bool { return !p.call && !p.server }

// block returns the block with an id, or nil.
func (s *stream) block(id string) *part {
	for i := range s.blocks {
		if s.blocks[i].id == id {
			return &s.blocks[i]
		}
	}
	return nil
}

// open returns the block with an index that has not ended, or nil.
func (s *stream) open(index int) *part {
	for i := len(s.blocks) - 1; i >= 0; i-- {
		if p := &s.blocks[i]; p.index == index && !p.ended {
			return p
		}
	}
	return nil
}

func (s *stream) text(text string) {
	if text != "" {
		s.Emit(llm.Delta{Kind: llm.TextDelta, Text: text})
	}
}

func (s *stream) thinking(id, text string) {
	if text != "" {
		s.Emit(llm.Delta{Kind: llm.ReasoningDelta, ID: id, Text: text})
	}
}

// close ends the block with an index, if one is open.
func (s *stream) close(index int) {
	p := s.open(index)
	if p == nil {
		return
	}
	p.ended = true
	switch {
	case p.server:
		s.emitSearchArguments(p)
	case !p.call: // end decides whether a call is complete
		opaque, _ := json.Marshal(p.thinkingData) // strings always encode
		s.Emit(llm.Delta{Kind: llm.ReasoningEnd, ID: p.id, API: s.Origin, Opaque: opaque})
	}
}

// endThinking ends open thinking blocks when another block continues, because some servers do not
// send their end.
func (s *stream) endThinking(other int) {
	for i := range s.blocks {
		if p := &s.blocks[i]; p.isThinking() && !p.ended && p.index != other {
			s.close(p.index)
		}
	}
}

// end emits what is known only at the end: complete calls, usage and the stop reason.
func (s *stream) end() error {
	if s.stop == "" {
		return &llm.Error{Kind: llm.ErrPrematureStop, Message: s.provider + " ended the answer without a stop reason"}
	}
	s.pauseSearches()
	cut := s.stop == "max_tokens" || s.stop == "model_context_window_exceeded"
	for i := range s.blocks {
		p := &s.blocks[i]
		switch {
		case !p.call:
			s.close(p.index)
			continue
		case len(p.arguments) == 0:
			p.arguments = llm.ArgumentsObject(p.input)
			if (cut || !p.ended) && string(p.arguments) == "{}" {
				continue // the answer was cut off before the arguments; this is not a call without arguments
			}
		}
		s.Emit(llm.Delta{Kind: llm.ToolEnd, ID: p.id, Text: string(p.arguments)})
	}
	s.usage.CacheWriteLong = s.retention.LongWrites(s.usage.CacheWrite, s.longWrites)
	if s.usageInvalid {
		s.usage = llm.Usage{WebSearches: s.usage.WebSearches}
	}
	s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: s.usage})
	stop := llm.StopEnd
	switch {
	case s.stop == "model_context_window_exceeded":
		return &llm.Error{Kind: llm.ErrContextOverflow, Message: s.provider + " stopped: the conversation and the answer exceed the model's context"}
	case s.stop == "refusal":
		stop = llm.StopRefusal
	case s.stop == "max_tokens":
		stop = llm.StopLength
	case s.hasCalls:
		stop = llm.StopToolCalls
	case s.stop == stopPaused:
		stop = llm.StopPaused
	}
	return s.Stop(stop)
}
