package google

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// serverTool is a call of the API's own tools.
type serverTool struct {
	Type string          `json:"toolType"`
	Args json.RawMessage `json:"args"`
}

// grounding has the searches and sources of an answer.
type grounding struct {
	Queries []string `json:"webSearchQueries"`
	Chunks  []struct {
		Web struct {
			URI   string `json:"uri"`
			Title string `json:"title"`
		} `json:"web"`
	} `json:"groundingChunks"`
}

// serverCallParts returns the parts of a call as they were received.
func serverCallParts(c llm.ServerCall) []part {
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

// image handles a generated image.
func (s *stream) image(p *answerPart) {
	s.emitCalls()
	if len(s.signatures) > 0 { // the text before it must keep its signature
		s.Think("")
	}
	s.endThinking()
	s.images++
	end := llm.Delta{ID: "image_" + strconv.Itoa(s.images), Name: llm.ImageGeneration, Result: llm.GeneratedImage(p.Inline.MimeType, p.Inline.Data)}
	end.Opaque, _ = json.Marshal([]part{{Signature: p.Signature}}) // strings always encode
	s.EmitServerCall(false, json.RawMessage("{}"), end)
}

// openServerCall is a call of the API's own tools that is waiting for its result.
type openServerCall struct {
	id    string // assigned by this package
	parts []part
}

// serverPart handles a call of the API's own tools, or the result that follows it.
func (s *stream) serverPart(p *answerPart) {
	s.emitCalls()
	s.endThinking()
	raw := part{ServerCall: p.ServerCall, ServerResponse: p.ServerResponse, Signature: p.Signature}
	if len(p.ServerCall) > 0 {
		s.endServerCall(nil) // the previous call has no result
		var decoded serverTool
		_ = json.Unmarshal(p.ServerCall, &decoded) // an unreadable call is sent back but not shown
		name := llm.WebSearch
		if decoded.Type != "" && !strings.HasPrefix(decoded.Type, "GOOGLE_SEARCH") {
			name = strings.ToLower(decoded.Type)
		}
		s.serverCalls++
		s.open = &openServerCall{"served_" + strconv.Itoa(s.serverCalls), []part{raw}}
		s.Emit(llm.Delta{Kind: llm.ServerStart, ID: s.open.id, Name: name})
		s.Emit(llm.Delta{Kind: llm.ServerRun, ID: s.open.id, Text: string(llm.ArgumentsObject(decoded.Args)), API: s.Origin})
	} else {
		s.endServerCall(&raw)
	}
}

// endServerCall ends the call that is waiting for its result, if there is one. A call without a result
// is not sent back.
func (s *stream) endServerCall(result *part) {
	if s.open == nil {
		return
	}
	end := llm.Delta{Kind: llm.ServerEnd, ID: s.open.id, Result: &llm.ServerResult{Failed: result == nil}}
	if result != nil {
		end.Opaque, _ = json.Marshal(append(s.open.parts, *result)) // decoded parts always encode
	}
	s.open = nil
	s.Emit(end)
}

// storeGrounding stores the grounding of the answer. Each event contains that of earlier events.
func (s *stream) storeGrounding(g *grounding) {
	if g != nil && len(g.Queries)+len(g.Chunks) > 0 {
		s.grounding = *g
	}
}

// endGrounding emits the sources of the answer, and its searches if no parts reported them.
func (s *stream) endGrounding() {
	s.endServerCall(nil)
	if len(s.grounding.Queries) > 0 && s.serverCalls == 0 {
		end := llm.Delta{ID: "served_1", Name: llm.WebSearch, Result: &llm.ServerResult{}}
		s.EmitServerCall(false, map[string][]string{"queries": s.grounding.Queries}, end)
	}
	for _, c := range s.grounding.Chunks {
		if c.Web.URI != "" {
			s.Emit(llm.Delta{Kind: llm.SourceDelta, Text: c.Web.URI, Name: c.Web.Title})
		}
	}
}
