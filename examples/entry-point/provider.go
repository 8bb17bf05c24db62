package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// message is a message of a request, in the wire format openai-chat.
type message struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// request is a request to a model.
type request struct {
	Messages []message `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// text returns the content, which is a string or a list of parts.
func (m *message) text() string {
	var s string
	if json.Unmarshal(m.Content, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(m.Content, &parts)
	var out []string
	for _, p := range parts {
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}

// newProvider returns a handler that serves the searcher as a model: POST .../chat/completions,
// streaming. It has no state between requests.
func newProvider() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
			http.NotFound(w, r)
			return
		}
		const limit = 64 << 20
		var req request
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit)).Decode(&req); err != nil {
			http.Error(w, fmt.Sprintf(`{"error": {"message": %q}}`, err.Error()), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		move := nextAction(&req)
		delta, reason := map[string]any{"content": move.answer}, "stop"
		if move.tool != "" {
			args, _ := json.Marshal(move.args) // strings and numbers
			delta = map[string]any{"tool_calls": []any{map[string]any{
				"index": 0, "id": fmt.Sprintf("call_%d", len(req.Messages)), "type": "function",
				"function": map[string]any{"name": move.tool, "arguments": string(args)},
			}}}
			reason = "tool_calls"
		}
		for _, choice := range []map[string]any{{"index": 0, "delta": delta}, {"index": 0, "delta": map[string]any{}, "finish_reason": reason}} {
			data, _ := json.Marshal(map[string]any{"choices": []any{choice}})
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		}
		_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
	})
}
