package cassette

import (
	"encoding/json"
	"net/http"

	"github.com/seed-dec29ce4/eca/llm"
)

// ollamaFormat is Ollama's native API.
type ollamaFormat struct{ names map[string]string } // tool names by call id

func (*ollamaFormat) contentType() string { return "application/x-ndjson" }

func (*ollamaFormat) request(body []byte) (llm.Request, error) { return chatRequest(body) }

func (f *ollamaFormat) events(d llm.Delta) [][]byte {
	one := func(message object) [][]byte {
		message["role"] = "assistant"
		return [][]byte{jsonLine(object{"model": "m", "message": message, "done": false})}
	}
	switch d.Kind {
	case llm.TextDelta:
		return one(object{"content": d.Text})
	case llm.ReasoningDelta:
		return one(object{"content": "", "thinking": d.Text})
	case llm.ToolStart:
		f.names[d.ID] = d.Name
	case llm.ToolEnd:
		return one(object{"content": "", "tool_calls": []any{object{"id": d.ID, "function": object{"name": f.names[d.ID], "arguments": arguments(d.Text)}}}})
	}
	return nil
}

func (*ollamaFormat) end(s *Step) [][]byte {
	u := s.usage()
	reason := "stop"
	if s.stop() == llm.StopLength {
		reason = "length"
	}
	return [][]byte{jsonLine(object{
		"model": "m", "message": object{"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
		"prompt_eval_count": u.Input + u.CacheRead, "eval_count": u.Output,
	})}
}

func (*ollamaFormat) failure(e *Error) object { return object{"error": e.Message} }

func (f *ollamaFormat) errorEvent(e *Error) []byte { return jsonLine(f.failure(e)) }

// jsonLine encodes a value as one line of an NDJSON stream.
func jsonLine(v any) []byte {
	data, _ := json.Marshal(v) // maps of plain values always encode
	return append(data, '\n')
}

// showOllama answers /api/show with a model that has all capabilities.
func showOllama(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"capabilities":["completion","tools","vision","thinking"],"model_info":{"test.context_length":8192}}`))
}
