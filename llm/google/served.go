package google

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// servedPart is a call of the API's own tools.
type servedPart struct {
	Type string          `json:"toolType"`
	Args json.RawMessage `json:"args"`
}

// grounding is what an answer that searched rests on.
type grounding struct {
	Queries []string `json:"webSearchQueries"`
	Chunks  []struct {
		Web struct {
			URI   string `json:"uri"`
			Title string `json:"title"`
		} `json:"web"`
	} `json:"groundingChunks"`
}

// servedParts are the parts of a call as they came.
func servedParts(c llm.ServerCall) []part {
	var out []part
	if json.Unmarshal(c.Opaque, &out) != nil {
		return nil
	}
	for i, image := range c.Images {
		if i < len(out) {
			out[i].Inline = &blob{image.MediaType, image.Data}
		}
	}
	return out
}

// image takes an image that the model has made.
func (s *stream) image(p *answerPart) error {
	if err := s.passCalls(); err != nil {
		return err
	}
	if len(s.signed) > 0 { // the text before it must keep its signature
		if err := s.Think(""); err != nil {
			return err
		}
	}
	if err := s.endThinking(); err != nil {
		return err
	}
	s.images++
	end := llm.Delta{ID: "image_" + strconv.Itoa(s.images), Name: llm.ImageGeneration, Result: llm.MadeImage(p.Inline.MimeType, p.Inline.Data)}
	end.Opaque, _ = json.Marshal([]part{{Signature: p.Signature}}) // strings always encode
	return s.Served(false, json.RawMessage("{}"), end)
}

// servedCall is a call of the API's own tools whose result has not come yet.
type servedCall struct {
	id    string // ours
	parts []part
}

// served takes a call of the API's own tools, or its result, which follows it.
func (s *stream) served(p *answerPart) error {
	if err := s.passCalls(); err != nil {
		return err
	}
	if err := s.endThinking(); err != nil {
		return err
	}
	raw := part{ServerCall: p.ServerCall, ServerResponse: p.ServerResponse, Signature: p.Signature}
	if len(p.ServerCall) > 0 {
		if err := s.endServed(nil); err != nil { // one without a result
			return err
		}
		var told servedPart
		_ = json.Unmarshal(p.ServerCall, &told) // what cannot be read is not shown, but goes back
		name := llm.WebSearch
		if told.Type != "" && !strings.HasPrefix(told.Type, "GOOGLE_SEARCH") {
			name = strings.ToLower(told.Type)
		}
		s.servedCalls++
		s.open = &servedCall{"served_" + strconv.Itoa(s.servedCalls), []part{raw}}
		if err := s.Emit(llm.Delta{Kind: llm.ServerStart, ID: s.open.id, Name: name}); err != nil {
			return err
		}
		return s.Emit(llm.Delta{Kind: llm.ServerRun, ID: s.open.id, Text: string(llm.ArgumentsObject(told.Args)), API: s.Origin})
	}
	return s.endServed(&raw)
}

// endServed ends the call that waits for its result, if one does. Without a result it does not go
// back.
func (s *stream) endServed(result *part) error {
	if s.open == nil {
		return nil
	}
	end := llm.Delta{Kind: llm.ServerEnd, ID: s.open.id, Result: &llm.ServerResult{Failed: result == nil}}
	if result != nil {
		end.Opaque, _ = json.Marshal(append(s.open.parts, *result)) // parts of what was decoded always encode
	}
	s.open = nil
	return s.Emit(end)
}

// ground keeps what the answer rests on. Each event repeats what came before it.
func (s *stream) ground(g *grounding) {
	if g != nil && len(g.Queries)+len(g.Chunks) > 0 {
		s.grounding = *g
	}
}

// endGrounding passes on the sources of the answer, and its searches if there were no parts for
// them.
func (s *stream) endGrounding() error {
	if err := s.endServed(nil); err != nil {
		return err
	}
	if len(s.grounding.Queries) > 0 && s.servedCalls == 0 {
		end := llm.Delta{ID: "served_1", Name: llm.WebSearch, Result: &llm.ServerResult{}}
		if err := s.Served(false, map[string][]string{"queries": s.grounding.Queries}, end); err != nil {
			return err
		}
	}
	for _, c := range s.grounding.Chunks {
		if c.Web.URI == "" {
			continue
		}
		if err := s.Emit(llm.Delta{Kind: llm.SourceDelta, Text: c.Web.URI, Name: c.Web.Title}); err != nil {
			return err
		}
	}
	return nil
}
