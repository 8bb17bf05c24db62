package cassette

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"

	"github.com/seed-dec29ce4/eca/llm"
)

// bedrockFormat is the ConverseStream operation of Amazon Bedrock.
type bedrockFormat struct {
	block int  // index of the open or next content block
	text  bool // a text block is open
}

func (*bedrockFormat) contentType() string { return "application/vnd.amazon.eventstream" }

func (*bedrockFormat) request(body []byte) (llm.Request, error) {
	type block struct {
		Text       string `json:"text"`
		ToolResult *struct {
			ID      string          `json:"toolUseId"`
			Content json.RawMessage `json:"content"`
		} `json:"toolResult"`
		CachePoint any `json:"cachePoint"`
	}
	var in struct {
		System   []block `json:"system"`
		Messages []struct {
			Role    string  `json:"role"`
			Content []block `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{}
	for _, b := range in.System {
		req.System += b.Text
	}
	for _, m := range in.Messages {
		if m.Role != "user" {
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant})
			continue
		}
		for _, b := range m.Content {
			switch {
			case b.CachePoint != nil:
			case b.ToolResult != nil:
				req.Messages = appendResult(req.Messages, llm.ToolResult{ID: b.ToolResult.ID, Text: contentText(b.ToolResult.Content)})
			default:
				req.Messages = appendUser(req.Messages, b.Text)
			}
		}
	}
	return req, nil
}

func (f *bedrockFormat) events(d llm.Delta) [][]byte {
	delta := func(v object) []byte {
		return eventMessage("event", "contentBlockDelta", object{"contentBlockIndex": f.block, "delta": v})
	}
	stop := func() []byte {
		f.block++
		return eventMessage("event", "contentBlockStop", object{"contentBlockIndex": f.block - 1})
	}
	var out [][]byte
	if f.text && d.Kind != llm.TextDelta {
		f.text = false
		out = append(out, stop())
	}
	switch d.Kind {
	case llm.TextDelta:
		f.text = true
		out = append(out, delta(object{"text": d.Text}))
	case llm.ReasoningDelta:
		out = append(out, delta(object{"reasoningContent": object{"text": d.Text}}))
	case llm.ReasoningEnd:
		out = append(out, delta(object{"reasoningContent": object{"signature": "signed-" + d.ID}}), stop())
	case llm.ToolStart:
		out = append(out, eventMessage("event", "contentBlockStart", object{
			"contentBlockIndex": f.block, "start": object{"toolUse": object{"toolUseId": d.ID, "name": d.Name}},
		}))
	case llm.ToolArgs:
		out = append(out, delta(object{"toolUse": object{"input": d.Text}}))
	case llm.ToolEnd:
		out = append(out, stop())
	}
	return out
}

func (*bedrockFormat) end(s *Step) [][]byte {
	u := s.usage()
	reason := messagesReason(s, "content_filtered")
	return [][]byte{
		eventMessage("event", "messageStop", object{"stopReason": reason}),
		eventMessage("event", "metadata", object{"usage": object{
			"inputTokens": u.Input, "outputTokens": u.Output, "cacheReadInputTokens": u.CacheRead, "cacheWriteInputTokens": u.CacheWrite, "totalTokens": u.Total(),
			"cacheDetails": []any{object{"ttl": "1h", "inputTokens": u.CacheWriteLong}, object{"ttl": "5m", "inputTokens": u.CacheWrite - u.CacheWriteLong}},
		}}),
	}
}

func (*bedrockFormat) errorEvent(e *Error) []byte {
	kind := e.kind("throttlingException", "serviceUnavailableException", "validationException")
	return eventMessage("exception", kind, object{"message": e.Message})
}

// eventMessage encodes one message of an AWS event stream: its lengths and their checksum, text
// headers, the payload, and a checksum of the whole message.
func eventMessage(kind, name string, payload any) []byte {
	data, _ := json.Marshal(payload) // maps of plain values always encode
	var headers []byte
	for _, h := range [][2]string{{":message-type", kind}, {":" + kind + "-type", name}, {":content-type", "application/json"}} {
		const text = 7
		headers = append(append(headers, byte(len(h[0]))), h[0]...)
		headers = binary.BigEndian.AppendUint16(append(headers, text), uint16(len(h[1])))
		headers = append(headers, h[1]...)
	}
	const overhead = 16 // bytes that are neither headers nor payload
	out := binary.BigEndian.AppendUint32(nil, uint32(overhead+len(headers)+len(data)))
	out = binary.BigEndian.AppendUint32(out, uint32(len(headers)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, headers...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}
