package cassette

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/sse"
	"github.com/seed-dec29ce4/eca/llm"
)

// Handler serves a cassette like a provider's streaming server: the end of a request's path chooses
// the wire format. Everything else is 404. onRequest, if not nil, is called with the path and body of
// every request to a model.
func (p *Player) Handler(onRequest func(path string, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var format wireFormat
		switch {
		case r.Method != http.MethodPost:
			http.NotFound(w, r)
			return
		case strings.HasSuffix(r.URL.Path, "/chat/completions"):
			format = &chatFormat{}
		case strings.HasSuffix(r.URL.Path, "/responses"):
			format = &responsesFormat{}
		case strings.HasSuffix(r.URL.Path, "/messages"):
			format = &messagesFormat{}
		case strings.HasSuffix(r.URL.Path, "/converse-stream"):
			format = &bedrockFormat{}
		case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
			format = &googleFormat{names: map[string]string{}}
		case strings.HasSuffix(r.URL.Path, "/api/chat"):
			format = &ollamaFormat{names: map[string]string{}}
		case strings.HasSuffix(r.URL.Path, "/api/show"):
			showOllama(w)
			return
		default:
			http.Error(w, fmt.Sprintf("the cassette serves no POST %s; add its path to Handler (llm/cassette/http.go)", r.URL.Path), http.StatusNotFound)
			return
		}
		body, err := readAll(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if onRequest != nil {
			onRequest(r.URL.Path, body)
		}
		req, err := format.request(body)
		if err != nil {
			writeError(w, format, &Error{Status: http.StatusBadRequest, Message: err.Error()})
			return
		}
		p.serve(w, r, format, req)
	})
}

func (p *Player) serve(w http.ResponseWriter, r *http.Request, format wireFormat, req llm.Request) {
	s, v, err := p.step(req)
	if err != nil {
		writeError(w, format, &Error{Status: http.StatusBadRequest, Message: err.Error()})
		return
	}
	fault := p.nextError(s)
	if fault != nil && !fault.Late {
		writeError(w, format, fault)
		return
	}
	w.Header().Set("Content-Type", format.contentType())
	w.WriteHeader(http.StatusOK)
	flush := func() {}
	if f, ok := w.(http.Flusher); ok {
		flush = f.Flush
	}
	flush()
	sent, due := 0, pace(s)
	for d := range deltas(s, v) {
		if due(r.Context()) != nil {
			return
		}
		for _, ev := range format.events(d) {
			if _, err := w.Write(ev); err != nil {
				return
			}
		}
		// A real provider flushes each delta. Repeated ones without a delay are flushed in batches, as
		// the network delivers many.
		if sent++; s.Repeat == 0 || s.Delay > 0 || sent%64 == 0 {
			flush()
		}
	}
	flush()
	switch {
	case fault != nil:
		_, _ = w.Write(format.errorEvent(fault))
		flush()
	case s.Hang:
		<-r.Context().Done()
	case s.Raw != "":
		_, _ = w.Write([]byte(s.Raw))
		flush()
	case s.Cut:
		panic(http.ErrAbortHandler) // closes the connection in the middle
	default:
		for _, ev := range format.end(s) {
			_, _ = w.Write(ev)
		}
	}
}

func readAll(r *http.Request) ([]byte, error) {
	const limit = 64 << 20
	return io.ReadAll(io.LimitReader(r.Body, limit))
}

// writeError answers in OpenAI's form unless the format has its own. The time to retry is in a
// header, except for Google, which has it in the body.
func writeError(w http.ResponseWriter, format wireFormat, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	body := object{"error": object{"message": e.Message, "type": "cassette"}}
	if custom, ok := format.(interface{ failure(e *Error) object }); ok {
		body = custom.failure(e)
	}
	if _, inBody := format.(*googleFormat); e.RetryAfter > 0 && !inBody {
		w.Header().Set("Retry-After", strconv.FormatFloat(e.RetryAfter, 'f', -1, 64))
	}
	w.WriteHeader(e.Status)
	_ = json.NewEncoder(w).Encode(body)
}

// wireFormat reads requests and writes deltas in one of the formats.
type wireFormat interface {
	contentType() string
	request(body []byte) (llm.Request, error)
	events(d llm.Delta) [][]byte
	end(s *Step) [][]byte
	errorEvent(e *Error) []byte // encodes an error within the stream
}

// kind chooses the name of an error by its status.
func (e *Error) kind(rate, overloaded, request string) string {
	switch {
	case e.Status == http.StatusTooManyRequests:
		return rate
	case e.Status >= 500:
		return overloaded
	}
	return request
}

func frame(name string, v any) []byte {
	data, _ := json.Marshal(v) // maps of plain values always encode
	return sse.Append(nil, "", name, data)
}

type object = map[string]any

// serverSentEvents provides the content type of formats that use server-sent events.
type serverSentEvents struct{}

func (serverSentEvents) contentType() string { return sse.ContentType }

// responsesFormat is the Responses API.
type responsesFormat struct{ serverSentEvents }

func (*responsesFormat) request(body []byte) (llm.Request, error) {
	var in struct {
		Model        string `json:"model"`
		Instructions string `json:"instructions"`
		Input        []struct {
			Type    string          `json:"type"`
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			CallID  string          `json:"call_id"`
			Output  string          `json:"output"`
		} `json:"input"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{Model: in.Model, System: in.Instructions}
	for _, item := range in.Input {
		switch {
		case item.Type == "function_call_output":
			req.Messages = appendResult(req.Messages, llm.ToolResult{ID: item.CallID, Text: item.Output})
		case item.Role == "user":
			req.Messages = appendUser(req.Messages, contentText(item.Content))
		case item.Role == "assistant" || item.Type == "function_call":
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant})
		}
	}
	return req, nil
}

func (f *responsesFormat) events(d llm.Delta) [][]byte {
	one := func(v object) [][]byte { return [][]byte{frame(v["type"].(string), v)} }
	switch d.Kind {
	case llm.TextDelta:
		return one(object{"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": d.Text})
	case llm.ReasoningStart:
		return one(object{"type": "response.output_item.added", "output_index": 0, "item": object{"type": "reasoning", "id": d.ID, "summary": []any{}}})
	case llm.ReasoningDelta:
		return one(object{"type": "response.reasoning_summary_text.delta", "item_id": d.ID, "summary_index": 0, "delta": d.Text})
	case llm.ReasoningEnd:
		return one(object{"type": "response.output_item.done", "output_index": 0, "item": object{
			"type": "reasoning", "id": d.ID, "summary": []any{}, "encrypted_content": "sealed-" + d.ID,
		}})
	case llm.ToolStart:
		return one(object{"type": "response.output_item.added", "output_index": 1, "item": object{
			"type": "function_call", "id": "fc_" + d.ID, "call_id": d.ID, "name": d.Name, "arguments": "",
		}})
	case llm.ToolArgs:
		return one(object{"type": "response.function_call_arguments.delta", "item_id": "fc_" + d.ID, "output_index": 1, "delta": d.Text})
	case llm.ToolEnd:
		return one(object{"type": "response.output_item.done", "output_index": 1, "item": object{
			"type": "function_call", "id": "fc_" + d.ID, "call_id": d.ID, "arguments": d.Text,
		}})
	}
	return nil
}

func (*responsesFormat) end(s *Step) [][]byte {
	u := s.usage()
	resp := object{"id": "resp_1", "usage": object{
		"input_tokens": u.Input + u.CacheRead + u.CacheWrite, "output_tokens": u.Output,
		"input_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
	}}
	kind := "response.completed"
	if reason := map[llm.StopReason]string{llm.StopLength: "max_output_tokens", llm.StopRefusal: "content_filter"}[s.stop()]; reason != "" {
		kind = "response.incomplete"
		resp["incomplete_details"] = object{"reason": reason}
	}
	return [][]byte{frame(kind, object{"type": kind, "response": resp})}
}

func (*responsesFormat) errorEvent(e *Error) []byte {
	return frame("error", object{"type": "error", "code": e.kind("rate_limit_exceeded", "server_error", "invalid_prompt"), "message": e.Message})
}

// chatFormat is Chat Completions.
type chatFormat struct {
	serverSentEvents
	index map[string]int // by call id
}

func (*chatFormat) request(body []byte) (llm.Request, error) { return chatRequest(body) }

// chatRequest reads a request of Chat Completions or Ollama. They differ only in fields that a
// cassette does not use.
func chatRequest(body []byte) (llm.Request, error) {
	var in struct {
		Model    string `json:"model"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return llm.Request{}, err
	}
	req := llm.Request{Model: in.Model}
	for _, m := range in.Messages {
		switch m.Role {
		case "system", "developer":
			req.System = contentText(m.Content)
		case "user":
			req.Messages = appendUser(req.Messages, contentText(m.Content))
		case "tool":
			req.Messages = appendResult(req.Messages, llm.ToolResult{ID: m.ToolCallID, Text: contentText(m.Content)})
		default:
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant})
		}
	}
	return req, nil
}

func (f *chatFormat) events(d llm.Delta) [][]byte {
	one := func(delta object) [][]byte {
		return [][]byte{frame("", object{"choices": []any{object{"index": 0, "delta": delta}}})}
	}
	switch d.Kind {
	case llm.TextDelta:
		return one(object{"content": d.Text})
	case llm.ReasoningDelta:
		return one(object{"reasoning_content": d.Text})
	case llm.ToolStart:
		if f.index == nil {
			f.index = map[string]int{}
		}
		f.index[d.ID] = len(f.index)
		return one(object{"tool_calls": []any{object{"index": f.index[d.ID], "id": d.ID, "type": "function", "function": object{"name": d.Name, "arguments": ""}}}})
	case llm.ToolArgs:
		return one(object{"tool_calls": []any{object{"index": f.index[d.ID], "function": object{"arguments": d.Text}}}})
	}
	return nil
}

func (*chatFormat) end(s *Step) [][]byte {
	u := s.usage()
	reason := "stop"
	switch s.stop() {
	case llm.StopToolCalls:
		reason = "tool_calls"
	case llm.StopLength:
		reason = "length"
	case llm.StopRefusal:
		reason = "content_filter"
	}
	return [][]byte{
		frame("", object{"choices": []any{object{"index": 0, "delta": object{}, "finish_reason": reason}}}),
		frame("", object{"choices": []any{}, "usage": object{
			"prompt_tokens": u.Input + u.CacheRead + u.CacheWrite, "completion_tokens": u.Output,
			"prompt_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		}}),
		[]byte("data: [DONE]\n\n"),
	}
}

func (*chatFormat) errorEvent(e *Error) []byte {
	return frame("", object{"error": object{"message": e.Message, "code": e.Status}})
}

// contentText returns the text of content that is a string or a list of text parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts)
	var out []string
	for _, p := range parts {
		out = append(out, p.Text)
	}
	return strings.Join(out, "\n")
}

// appendUser adds a user message. The wire formats send the blocks of one message one after the
// other, so contexts are joined to the preceding user message. After a user message, an empty text,
// which stands for an image, and a note about the images of a result are left out.
func appendUser(msgs []llm.Message, text string) []llm.Message {
	n := len(msgs)
	followsUser := n > 0 && msgs[n-1].Role == llm.User
	if followsUser && (text == "" || strings.HasPrefix(text, llm.ImagesOfResult)) {
		return msgs
	}
	if followsUser && strings.HasPrefix(text, "<context ") {
		msgs[n-1].Parts = append(msgs[n-1].Parts, llm.Text{Text: text})
		return msgs
	}
	return append(msgs, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}})
}

// appendResult adds a tool result to the message of its batch.
func appendResult(msgs []llm.Message, r llm.ToolResult) []llm.Message {
	if n := len(msgs); n > 0 && msgs[n-1].Role == llm.User {
		if _, ok := msgs[n-1].Parts[len(msgs[n-1].Parts)-1].(llm.ToolResult); ok {
			msgs[n-1].Parts = append(msgs[n-1].Parts, r)
			return msgs
		}
	}
	return append(msgs, llm.Message{Role: llm.User, Parts: []llm.Part{r}})
}
