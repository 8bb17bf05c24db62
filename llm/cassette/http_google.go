package cassette

import (
	"encoding/json"
	"fmt"

	"github.com/seed-dec29ce4/eca/llm"
)

// googleFormat is Gemini's native API.
type googleFormat struct {
	serverSentEvents
	names  map[string]string // tool names by call id
	sealed bool              // the first call, which carries the signature of the reasoning, has been sent
}

func (*googleFormat) request(body []byte) (llm.Request, error) {
	type part struct {
		Text     string `json:"text"`
		Response *struct {
			ID       string            `json:"id"`
			Response map[string]string `json:"response"`
		} `json:"functionResponse"`
	}
	var in struct {
		System   struct{ Parts []part } `json:"systemInstruction"`
		Contents []struct {
			Role  string
			Parts []part
		} `json:"contents"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{}
	for _, p := range in.System.Parts {
		req.System += p.Text
	}
	for _, c := range in.Contents {
		if c.Role != "user" {
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant})
			continue
		}
		for _, p := range c.Parts {
			if r := p.Response; r != nil {
				req.Messages = appendResult(req.Messages, llm.ToolResult{ID: r.ID, Text: r.Response["output"] + r.Response["error"]})
			} else {
				req.Messages = appendUser(req.Messages, p.Text)
			}
		}
	}
	return req, nil
}

func (f *googleFormat) events(d llm.Delta) [][]byte {
	one := func(part object) [][]byte {
		return [][]byte{frame("", object{"candidates": []any{object{"content": object{"role": "model", "parts": []any{part}}, "index": 0}}})}
	}
	switch d.Kind {
	case llm.TextDelta:
		return one(object{"text": d.Text})
	case llm.ReasoningDelta:
		return one(object{"text": d.Text, "thought": true})
	case llm.ToolStart:
		f.names[d.ID] = d.Name
	case llm.ToolEnd:
		part := object{"functionCall": object{"id": d.ID, "name": f.names[d.ID], "args": arguments(d.Text)}}
		if !f.sealed {
			f.sealed = true
			part["thoughtSignature"] = "sealed-" + d.ID
		}
		return one(part)
	}
	return nil
}

// arguments returns a call's arguments as an object, as in Google's and Ollama's formats. Invalid
// JSON is sent as a string, so that tests can send it.
func arguments(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func (*googleFormat) end(s *Step) [][]byte {
	u := s.usage()
	reason := "STOP"
	switch s.stop() {
	case llm.StopLength:
		reason = "MAX_TOKENS"
	case llm.StopRefusal:
		reason = "SAFETY"
	}
	return [][]byte{frame("", object{
		"candidates": []any{object{"content": object{"role": "model", "parts": []any{}}, "finishReason": reason, "index": 0}},
		"usageMetadata": object{
			"promptTokenCount": u.Input + u.CacheRead, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output,
		},
	})}
}

func (f *googleFormat) errorEvent(e *Error) []byte { return frame("", f.failure(e)) }

func (*googleFormat) failure(e *Error) object {
	out := object{"code": e.Status, "message": e.Message}
	if e.RetryAfter > 0 {
		out["details"] = []any{object{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%gs", e.RetryAfter)}}
	}
	return object{"error": out}
}
