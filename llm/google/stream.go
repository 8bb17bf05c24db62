package google

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sse"
	"github.com/seed-dec29ce4/eca/llm"
)

// The stream's wire types. Each event is a whole response with the next parts.
type (
	chunk struct {
		Candidates []struct {
			Content struct {
				Parts []answerPart `json:"parts"`
			} `json:"content"`
			FinishReason  string     `json:"finishReason"`
			FinishMessage string     `json:"finishMessage"`
			Grounding     *grounding `json:"groundingMetadata"`
		} `json:"candidates"`
		Feedback struct {
			BlockReason string `json:"blockReason"`
			Message     string `json:"blockReasonMessage"`
		} `json:"promptFeedback"`
		Usage *usage          `json:"usageMetadata"`
		Error json.RawMessage `json:"error"`
	}
	answerPart struct {
		Text      string `json:"text"`
		Thought   bool   `json:"thought"`
		Signature string `json:"thoughtSignature"`
		Call      *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Inline *struct {
			MimeType string `json:"mimeType"`
			Data     string `json:"data"`
		} `json:"inlineData"`
		ServerCall     json.RawMessage `json:"toolCall"`
		ServerResponse json.RawMessage `json:"toolResponse"`
	}
	// usage counts cached tokens as part of the prompt, and thoughts beside the answer.
	usage struct {
		Prompt     int64 `json:"promptTokenCount"`
		ToolPrompt int64 `json:"toolUsePromptTokenCount"`
		Cached     int64 `json:"cachedContentTokenCount"`
		Candidates int64 `json:"candidatesTokenCount"`
		Thoughts   int64 `json:"thoughtsTokenCount"`
	}
)

func (u usage) tokens() llm.Usage {
	return llm.Usage{Input: max(0, u.Prompt-u.Cached) + u.ToolPrompt, Output: u.Candidates + u.Thoughts, CacheRead: u.Cached}
}

// stream turns events into deltas.
type stream struct {
	llm.Emitter
	provider string

	signed  []signature // to go with the next reasoning block that ends
	calls   []string    // ids
	held    []heldCall  // the last calls, not passed on yet
	finish  string      // the reason to stop, once it is known
	message string      // what was said about it
	usage   usage

	images      int         // that the model made
	servedCalls int         // of the API's own tools
	open        *servedCall // the last of them; or nil
	grounding   grounding
}

// heldCall is a call that waits for its signature, which may come in an event after it.
type heldCall struct{ id, name, args, signature string }

func (s *stream) read(events *sse.Reader) error {
	for {
		ev, err := events.Next()
		if err != nil {
			if s.finish != "" { // there is no event after the last
				return s.end()
			}
			return err
		}
		var c chunk
		if err := json.Unmarshal(ev.Data, &c); err != nil {
			return llm.UnreadableEvent(s.provider, ev.Data, err)
		}
		if len(c.Error) > 0 && !bytes.Equal(c.Error, []byte("null")) {
			return s.failed(ev.Data)
		}
		if err := s.chunk(&c); err != nil {
			return err
		}
	}
}

// failed maps an error that arrived inside of the stream.
func (s *stream) failed(event []byte) error {
	var b struct {
		Error struct {
			Code int `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal(event, &b) // without a code it counts as the server's fault
	e := llm.StatusError(s.provider, &http.Response{StatusCode: cmp.Or(b.Error.Code, http.StatusInternalServerError)}, llm.ErrorText(event), time.Time{})
	explain(e, event)
	return e
}

func (s *stream) chunk(c *chunk) error {
	if c.Usage != nil {
		s.usage = *c.Usage
	}
	if r := c.Feedback.BlockReason; r != "" {
		return &llm.Error{Kind: llm.ErrBadRequest, Message: s.because("blocked the request", r, c.Feedback.Message)}
	}
	if len(c.Candidates) == 0 {
		return nil
	}
	first := &c.Candidates[0]
	for i := range first.Content.Parts {
		if err := s.part(&first.Content.Parts[i]); err != nil {
			return err
		}
	}
	s.ground(first.Grounding)
	if r := first.FinishReason; r != "" && r != "FINISH_REASON_UNSPECIFIED" {
		s.finish, s.message = r, first.FinishMessage
	}
	return nil
}

func (s *stream) part(p *answerPart) error {
	switch {
	case p.Call != nil:
		s.call(p)
		return nil
	case len(p.ServerCall) > 0, len(p.ServerResponse) > 0:
		return s.served(p)
	case p.Inline != nil && p.Thought:
		return nil // a draft
	case p.Inline != nil:
		return s.image(p)
	case p.Thought:
		if err := s.passCalls(); err != nil {
			return err
		}
		if p.Signature != "" {
			s.signed = append(s.signed, signature{On: onThought, Value: p.Signature})
		}
		return s.Think(p.Text)
	case p.Text != "":
		if err := s.passCalls(); err != nil {
			return err
		}
		if err := s.endThinking(); err != nil {
			return err
		}
		if err := s.Emit(llm.Delta{Kind: llm.TextDelta, Text: p.Text}); err != nil {
			return err
		}
	}
	switch {
	case p.Signature == "":
	case len(s.held) > 0 && s.held[0].signature == "": // of parallel calls the first has it
		s.held[0].signature = p.Signature
	default:
		s.signed = append(s.signed, signature{On: onText, Value: p.Signature})
	}
	return nil
}

// call takes a call, which arrives whole. Ids are optional in this API.
func (s *stream) call(p *answerPart) {
	c := heldCall{id: p.Call.ID, name: p.Call.Name, args: string(p.Call.Args), signature: p.Signature}
	for n := len(s.calls) + 1; c.id == "" || slices.Contains(s.calls, c.id); n++ {
		c.id = "call_" + strconv.Itoa(n)
	}
	if c.args == "" || c.args == "null" {
		c.args = "{}"
	}
	s.calls = append(s.calls, c.id)
	s.held = append(s.held, c)
}

// passCalls passes on the calls that were held. Their signatures go before them with the
// reasoning, if needed in an empty block: without them the next request fails.
func (s *stream) passCalls() error {
	if len(s.held) == 0 {
		return nil
	}
	for i, c := range s.held {
		if c.signature != "" {
			s.signed = append(s.signed, signature{On: onCall, Call: len(s.calls) - len(s.held) + i, Value: c.signature})
		}
	}
	if len(s.signed) > 0 {
		if err := s.Think(""); err != nil {
			return err
		}
	}
	if err := s.endThinking(); err != nil {
		return err
	}
	for _, c := range s.held {
		for _, d := range []llm.Delta{{Kind: llm.ToolStart, ID: c.id, Name: c.name}, {Kind: llm.ToolArgs, ID: c.id, Text: c.args}, {Kind: llm.ToolEnd, ID: c.id, Text: c.args}} {
			if err := s.Emit(d); err != nil {
				return err
			}
		}
	}
	s.held = nil
	return nil
}

// endThinking ends the open reasoning block, which takes the signatures so far with it.
func (s *stream) endThinking() error {
	if !s.Thinking() {
		return nil
	}
	var opaque json.RawMessage
	if len(s.signed) > 0 {
		opaque, _ = json.Marshal(s.signed) // strings and numbers always encode
	}
	s.signed = nil
	return s.EndThinking(opaque)
}

// end delivers what is known only at the end. Signatures of an answer without calls may
// be dropped, and are: an empty reasoning block after it would be all that shows.
func (s *stream) end() error {
	stop := llm.StopEnd
	switch s.finish {
	case "STOP":
	case "MAX_TOKENS":
		stop = llm.StopLength
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY":
		stop = llm.StopRefusal
	case "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL":
		// A slip of the model, and usually gone the next time.
		return &llm.Error{Kind: llm.ErrPrematureStop, Message: s.because("broke off the answer", s.finish, s.message)}
	default:
		return &llm.Error{Kind: llm.ErrUnknown, Message: s.because("broke off the answer", s.finish, s.message)}
	}
	if len(s.calls) > 0 && stop != llm.StopRefusal {
		stop = llm.StopToolCalls // also at the limit: calls arrive whole
		if err := s.passCalls(); err != nil {
			return err
		}
	}
	if err := s.endThinking(); err != nil {
		return err
	}
	if err := s.endGrounding(); err != nil {
		return err
	}
	usage := s.usage.tokens()
	usage.WebSearches = int64(max(len(s.grounding.Queries), s.servedCalls))
	if err := s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: usage}); err != nil {
		return err
	}
	return s.Emit(llm.Delta{Kind: llm.StopDelta, Stop: stop})
}

func (s *stream) because(what, reason, message string) string {
	if message != "" {
		reason += ": " + message
	}
	return fmt.Sprintf("%s %s (%s)", s.provider, what, reason)
}
