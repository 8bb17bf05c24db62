package cassette

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/llm"
)

// messagesFormat is Anthropic's Messages API. Its blocks are numbered, and one is open
// at a time.
type messagesFormat struct {
	serverSentEvents
	started bool
	index   int
	open    string // type of the open block; empty without one
}

func (*messagesFormat) request(body []byte) (llm.Request, error) {
	var in struct {
		Model    string          `json:"model"`
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Role    string `json:"role"`
			Content []struct {
				Type      string          `json:"type"`
				Text      string          `json:"text"`
				ToolUseID string          `json:"tool_use_id"`
				Content   json.RawMessage `json:"content"`
			} `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{Model: in.Model, System: contentText(in.System)}
	for _, m := range in.Messages {
		if m.Role == "assistant" {
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant})
			continue
		}
		for _, b := range m.Content {
			switch b.Type {
			case "tool_result":
				req.Messages = appendResult(req.Messages, llm.ToolResult{ID: b.ToolUseID, Text: contentText(b.Content)})
			case "text":
				req.Messages = appendUser(req.Messages, b.Text)
			}
		}
	}
	return req, nil
}

func (f *messagesFormat) events(d llm.Delta) [][]byte {
	switch d.Kind {
	case llm.TextDelta:
		var out [][]byte
		if f.open != "text" {
			out = f.begin(object{"type": "text", "text": ""})
		}
		return append(out, f.delta(object{"type": "text_delta", "text": d.Text}))
	case llm.ReasoningStart:
		return f.begin(object{"type": "thinking", "thinking": "", "signature": ""})
	case llm.ReasoningDelta:
		return [][]byte{f.delta(object{"type": "thinking_delta", "thinking": d.Text})}
	case llm.ReasoningEnd:
		return append([][]byte{f.delta(object{"type": "signature_delta", "signature": "sealed-" + d.ID})}, f.close()...)
	case llm.ToolStart:
		return f.begin(object{"type": "tool_use", "id": d.ID, "name": d.Name, "input": object{}})
	case llm.ToolArgs:
		return [][]byte{f.delta(object{"type": "input_json_delta", "partial_json": d.Text})}
	case llm.ToolEnd:
		return f.close()
	}
	return nil
}

// begin starts the message if necessary, closes the open block and opens a new one.
func (f *messagesFormat) begin(b object) [][]byte {
	out := append(f.start(), f.close()...)
	f.open, _ = b["type"].(string)
	return append(out, f.event("content_block_start", object{"index": f.index, "content_block": b}))
}

func (f *messagesFormat) delta(d object) []byte {
	return f.event("content_block_delta", object{"index": f.index, "delta": d})
}

func (f *messagesFormat) close() [][]byte {
	if f.open == "" {
		return nil
	}
	f.open = ""
	f.index++
	return [][]byte{f.event("content_block_stop", object{"index": f.index - 1})}
}

// start returns the events that begin the message, once.
func (f *messagesFormat) start() [][]byte {
	if f.started {
		return nil
	}
	f.started = true
	return [][]byte{
		f.event("message_start", object{"message": object{
			"id": "msg_1", "type": "message", "role": "assistant", "content": []any{}, "usage": object{"input_tokens": 0, "output_tokens": 0},
		}}),
		f.event("ping", object{}),
	}
}

func (f *messagesFormat) end(s *Step) [][]byte {
	u := s.usage()
	reason := messagesReason(s, "refusal")
	out := append(f.start(), f.close()...)
	return append(out,
		f.event("message_delta", object{"delta": object{"stop_reason": reason, "stop_sequence": nil}, "usage": object{
			"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite,
			"cache_creation": object{"ephemeral_5m_input_tokens": u.CacheWrite - u.CacheWriteLong, "ephemeral_1h_input_tokens": u.CacheWriteLong},
		}}),
		f.event("message_stop", object{}),
	)
}

func (f *messagesFormat) errorEvent(e *Error) []byte {
	kind := e.kind("rate_limit_error", "overloaded_error", "invalid_request_error")
	return f.event("error", object{"error": object{"type": kind, "message": e.Message}})
}

func (*messagesFormat) event(name string, v object) []byte {
	v["type"] = name
	return frame(name, v)
}

// messagesReason is the stop reason of a step; the APIs with Anthropic's messages differ in that of a
// refusal.
func messagesReason(s *Step, refusal string) string {
	switch s.stop() {
	case llm.StopToolCalls:
		return "tool_use"
	case llm.StopLength:
		return "max_tokens"
	case llm.StopRefusal:
		return refusal
	}
	return "end_turn"
}
