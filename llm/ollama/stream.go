package ollama

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

// line is one document of the stream. Done is set in the last one.
type line struct {
	Message struct {
		Content   string `json:"content"`
		Thinking  string `json:"thinking"`
		ToolCalls []struct {
			ID       string `json:"id"`
			Function struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done       bool                    `json:"done"`
	DoneReason string                  `json:"done_reason"`
	Prompt     llm.Optional[llm.Count] `json:"prompt_eval_count"`
	Answer     llm.Optional[llm.Count] `json:"eval_count"`
	Error      json.RawMessage         `json:"error"`

	unfinished bool // the stream ended without a last line
}

// stream turns lines into deltas.
type stream struct {
	llm.Emitter
	provider string

	calls     []string // ids
	hasOutput bool     // text or a call has been received
}

// payload returns the document in a line. Proxies may send lines as server-sent events, with a
// prefix and with lines that contain no document; ok is false for those.
func payload(raw []byte) (document []byte, ok bool) {
	if rest, found := bytes.CutPrefix(raw, []byte("data:")); found {
		raw = bytes.TrimSpace(rest)
	}
	ok = len(raw) > 0 && raw[0] != ':' && string(raw) != "[DONE]" &&
		!bytes.HasPrefix(raw, []byte("event:")) && !bytes.HasPrefix(raw, []byte("id:")) && !bytes.HasPrefix(raw, []byte("retry:"))
	return raw, ok
}

func (s *stream) read(lines *llm.NDJSONReader) error {
	for {
		raw, err := lines.Next()
		if errors.Is(err, io.EOF) && s.hasOutput {
			return s.end(&line{unfinished: true})
		}
		if err != nil {
			return err
		}
		raw, ok := payload(raw)
		if !ok {
			continue
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return llm.UnreadableEvent(s.provider, raw, err)
		}
		if len(l.Error) > 0 && string(l.Error) != "null" {
			return s.streamError(raw)
		}
		s.message(&l)
		if l.Done || l.DoneReason != "" {
			return s.end(&l)
		}
		if err := s.Err(); err != nil {
			return err
		}
	}
}

// streamError converts an error that arrived in the stream. It has no status and is treated as a server
// error.
func (s *stream) streamError(raw []byte) error {
	e := llm.StatusError(s.provider, &http.Response{StatusCode: http.StatusInternalServerError}, llm.ErrorText(raw), time.Time{})
	e.Status, e.Message = 0, s.provider+" failed: "+llm.ErrorText(raw)
	explain(e)
	return e
}

func (s *stream) message(l *line) {
	if t := l.Message.Thinking; t != "" {
		s.Think(t)
	}
	if t := l.Message.Content; t != "" {
		s.hasOutput = true
		s.EndThinking(nil)
		s.Emit(llm.Delta{Kind: llm.TextDelta, Text: t})
	}
	for _, c := range l.Message.ToolCalls {
		s.call(c.ID, c.Function.Name, c.Function.Arguments)
	}
}

// call passes on a call. Calls arrive complete. Older servers do not send an id.
func (s *stream) call(id, name string, arguments json.RawMessage) {
	s.EndThinking(nil)
	for n := len(s.calls) + 1; id == "" || slices.Contains(s.calls, id); n++ {
		id = "call_" + strconv.Itoa(n)
	}
	s.calls, s.hasOutput = append(s.calls, id), true
	args := string(arguments)
	var quoted string
	switch {
	case args == "", args == "null":
		args = "{}"
	case json.Unmarshal(arguments, &quoted) == nil: // a JSON string, as in other APIs
		args = quoted
	}
	s.Emit(llm.Delta{Kind: llm.ToolStart, ID: id, Name: name})
	s.Emit(llm.Delta{Kind: llm.ToolEnd, ID: id, Text: args})
}

func (s *stream) end(l *line) error {
	s.EndThinking(nil)
	u := llm.Usage{Input: int64(l.Prompt.Value), Output: int64(l.Answer.Value)}
	if u.Total() > 0 && !l.Prompt.Invalid && !l.Answer.Invalid { // otherwise the usage is unknown
		s.Emit(llm.Delta{Kind: llm.UsageDelta, Usage: u})
	}
	stop := llm.StopEnd
	switch {
	case len(s.calls) > 0:
		stop = llm.StopToolCalls
	case l.DoneReason == "length":
		stop = llm.StopLength
	case l.unfinished:
		stop = llm.StopUnmarked
	}
	return s.Stop(stop)
}
