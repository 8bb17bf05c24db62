package google

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// The request's wire types.
type (
	request struct {
		System     *content    `json:"systemInstruction,omitempty"`
		Contents   []content   `json:"contents"`
		Tools      []tools     `json:"tools,omitempty"`
		ToolConfig *toolConfig `json:"toolConfig,omitempty"`
		Generation *generation `json:"generationConfig,omitempty"`
	}
	content struct {
		Role  string `json:"role,omitempty"` // user or model
		Parts []part `json:"parts"`
	}
	// part has one of Text, Inline, Call, Response, ServerCall and ServerResponse.
	part struct {
		Text      *string   `json:"text,omitempty"`
		Thought   bool      `json:"thought,omitempty"`
		Inline    *blob     `json:"inlineData,omitempty"`
		Call      *call     `json:"functionCall,omitempty"`
		Response  *response `json:"functionResponse,omitempty"`
		Signature string    `json:"thoughtSignature,omitempty"`

		ServerCall     json.RawMessage `json:"toolCall,omitempty"` // a call of the API's own tools
		ServerResponse json.RawMessage `json:"toolResponse,omitempty"`
	}
	blob struct {
		MimeType string `json:"mimeType"`
		Data     []byte `json:"data"`
	}
	call struct {
		ID   string          `json:"id,omitempty"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	}
	response struct {
		ID       string            `json:"id,omitempty"`
		Name     string            `json:"name"`
		Response map[string]string `json:"response"`
	}
	tools struct {
		Functions []function `json:"functionDeclarations,omitempty"`
		Search    *struct{}  `json:"googleSearch,omitempty"`
	}
	// toolConfig lets models use functions and the API's own tools in one answer.
	toolConfig struct {
		Invocations bool `json:"includeServerSideToolInvocations"`
	}
	function struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters,omitempty"`
	}
	generation struct {
		MaxOutput  int64     `json:"maxOutputTokens,omitempty"`
		Thinking   *thinking `json:"thinkingConfig,omitempty"`
		Modalities []string  `json:"responseModalities,omitempty"`
	}
	thinking struct {
		Include bool `json:"includeThoughts"`
	}
)

func text(s string) part { return part{Text: &s} }

// encode returns the body of a request. Only reasoning of origin is sent back.
func encode(req llm.Request, origin string) ([]byte, error) {
	r := request{Contents: contents(llm.Portable(req.Messages, origin), origin)}
	if system := req.Instructions(); system != "" {
		r.System = &content{Parts: []part{text(system)}}
	}
	if req.MaxOutput > 0 || req.Reasoning || req.ServerTools.ImageGeneration {
		r.Generation = &generation{MaxOutput: req.MaxOutput}
	}
	if req.Reasoning {
		r.Generation.Thinking = &thinking{Include: true}
	}
	if req.ServerTools.ImageGeneration {
		r.Generation.Modalities = []string{"TEXT", "IMAGE"}
	}
	var functions []function
	for _, t := range req.Tools {
		params, err := parameters(t.Schema)
		if err != nil {
			return nil, fmt.Errorf("schema of tool %s: %w", t.Name, err)
		}
		functions = append(functions, function{t.Name, t.Description, params})
	}
	if len(functions) > 0 {
		r.Tools = []tools{{Functions: functions}}
	}
	if req.ServerTools.WebSearch {
		r.Tools = append(r.Tools, tools{Search: &struct{}{}})
		if len(functions) > 0 {
			r.ToolConfig = &toolConfig{Invocations: true}
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, req.Extra)
}

// contents encodes the history. Consecutive messages of one role are merged, because a function
// call must directly follow the user's text or a function's result.
func contents(msgs []llm.Message, origin string) []content {
	out := []content{}
	names := map[string]string{} // names of the called functions, by call id
	for _, m := range msgs {
		c := content{Role: "user"}
		if m.Role == llm.Assistant {
			c.Role, c.Parts = "model", modelParts(m, origin, names)
		} else {
			c.Parts = userParts(m, names)
		}
		switch last := len(out) - 1; {
		case len(c.Parts) == 0:
		case last >= 0 && out[last].Role == c.Role:
			out[last].Parts = append(out[last].Parts, c.Parts...)
		default:
			out = append(out, c)
		}
	}
	return out
}

// modelParts encodes a message of the model. It records the names of calls in names, because their
// results need them. It omits reasoning without a signature, because the API does not use it.
func modelParts(m llm.Message, origin string, names map[string]string) []part {
	var parts []part
	onCalls, calls := map[int]string{}, 0
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				parts = append(parts, text(p.Text))
			}
		case llm.Reasoning:
			for _, s := range signatures(p, origin) {
				switch last := len(parts) - 1; {
				case s.On == onCall:
					onCalls[s.Call] = s.Value
				case s.On == onThought:
					parts = append(parts, part{Text: &p.Text, Thought: true, Signature: s.Value})
				case last >= 0 && parts[last].Text != nil && !parts[last].Thought:
					parts[last].Signature = s.Value
				}
			}
		case llm.ServerCall:
			parts = append(parts, serverCallParts(p)...)
		case llm.ToolCall:
			parts = append(parts, part{Call: &call{p.ID, p.Name, llm.ArgumentsObject(p.Arguments)}, Signature: onCalls[calls]})
			names[p.ID] = p.Name
			calls++
		}
	}
	return parts
}

// userParts encodes a user message: results first, then their images, then the user's text and
// images.
func userParts(m llm.Message, names map[string]string) []part {
	var results, images, prompt []part
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			if p.Text != "" {
				prompt = append(prompt, text(p.Text))
			}
		case llm.Image:
			prompt = append(prompt, image(p))
		case llm.ToolResult:
			key := "output"
			if p.Failed {
				key = "error"
			}
			lines := []string{p.Text}
			for _, i := range p.Images {
				if accepts(i) {
					images = append(images, image(i))
				} else {
					lines = append(lines, i.Placeholder())
				}
			}
			results = append(results, part{Response: &response{p.ID, names[p.ID], map[string]string{key: strings.Join(lines, "\n")}}})
		}
	}
	return slices.Concat(results, images, prompt)
}

// accepts reports whether the API accepts the image's type.
func accepts(i llm.Image) bool {
	return slices.Contains([]string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}, i.MediaType)
}

func image(i llm.Image) part {
	if !accepts(i) {
		return text(i.Placeholder())
	}
	return part{Inline: &blob{i.MediaType, i.Data}}
}
