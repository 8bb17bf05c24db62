package bedrock

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/llm"
)

// The request's wire types.
type (
	converseRequest struct {
		System    []contentBlock   `json:"system,omitempty"`
		Messages  []converseTurn   `json:"messages"`
		Inference *inferenceConfig `json:"inferenceConfig,omitempty"`
		Tools     *toolConfig      `json:"toolConfig,omitempty"`
		Fields    any              `json:"additionalModelRequestFields,omitempty"` // specific to the model
	}
	inferenceConfig struct {
		MaxTokens int64 `json:"maxTokens,omitempty"`
	}
	toolConfig struct {
		Tools []tool `json:"tools"`
	}
	tool struct { // exactly one field is set
		Spec       *toolSpec   `json:"toolSpec,omitempty"`
		CachePoint *cachePoint `json:"cachePoint,omitempty"`
	}
	toolSpec struct {
		Name        string     `json:"name"`
		Description string     `json:"description,omitempty"`
		InputSchema toolSchema `json:"inputSchema"`
	}
	toolSchema struct {
		JSON json.RawMessage `json:"json"`
	}
	cachePoint struct {
		Type string `json:"type"`
		TTL  string `json:"ttl,omitempty"`
	}
)

// encode returns the body of a request. Only reasoning of origin may be sent (see Converse.origin).
func encode(req llm.Request, origin string) ([]byte, error) {
	cache := cachingOf(req)
	r := converseRequest{Messages: turns(req, origin), Tools: toolsOf(req, cache)}
	if req.System != "" {
		r.System = []contentBlock{{Text: req.System}}
		if cache.system {
			r.System = append(r.System, contentBlock{CachePoint: cache.point})
		}
	}
	if req.SystemTail != "" {
		r.System = append(r.System, contentBlock{Text: req.SystemTail})
	}
	cache.mark(r.Messages)
	// A field to which the payload adds values must exist.
	extra := converseExtra(req.Extra)
	if req.MaxOutput > 0 || extra["inferenceConfig"] != nil {
		r.Inference = &inferenceConfig{req.MaxOutput}
	}
	if extra[fields] != nil {
		r.Fields = map[string]any{}
	}
	if req.Reasoning && !choosesReasoning(extra) {
		if t := thinking(req.Model, req.MaxOutput); t != nil {
			r.Fields = t
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	return llm.MergeExtra(body, extra)
}

// toolsOf returns the tools. Converse refuses a history with calls if the request has no tools. In
// that case, toolsOf returns the tools that the history calls, by name only.
func toolsOf(req llm.Request, cache caching) *toolConfig {
	specs := req.Tools
	if len(specs) == 0 {
		specs = calledTools(req.Messages)
	}
	var out []tool
	for _, t := range specs {
		out = append(out, tool{Spec: &toolSpec{Name: t.Name, Description: t.Description, InputSchema: toolSchema{t.Schema}}})
	}
	if out == nil {
		return nil
	}
	if cache.tools {
		out = append(out, tool{CachePoint: cache.point})
	}
	return &toolConfig{out}
}

func calledTools(msgs []llm.Message) []llm.ToolSpec {
	var out []llm.ToolSpec
	for _, m := range msgs {
		for _, part := range m.Parts {
			call, ok := part.(llm.ToolCall)
			if !ok || slices.ContainsFunc(out, func(t llm.ToolSpec) bool { return t.Name == call.Name }) {
				continue
			}
			out = append(out, llm.ToolSpec{
				Name: call.Name, Description: "Called earlier in this conversation. Do not call it now.", Schema: json.RawMessage(`{"type":"object"}`),
			})
		}
	}
	return out
}

// converseExtra maps the user's payload to the structure of Converse. Members of Converse stay;
// common names of sampling parameters go to inferenceConfig; other keys are passed to the model.
func converseExtra(extra map[string]any) map[string]any {
	out := map[string]any{}
	setMember := func(member, key string, v any) {
		m, _ := out[member].(map[string]any)
		if m = maps.Clone(m); m == nil {
			m = map[string]any{}
		}
		m[key] = v
		out[member] = m
	}
	keys := slices.Sorted(maps.Keys(extra))
	for _, k := range keys {
		if isMember(k) {
			out[k] = extra[k]
		}
	}
	for _, k := range keys {
		if isMember(k) {
			continue
		}
		switch k {
		case "model", "stream": // set by the URL
		case "max_tokens", "maxTokens", "max_completion_tokens":
			setMember("inferenceConfig", "maxTokens", extra[k])
		case "temperature":
			setMember("inferenceConfig", "temperature", extra[k])
		case "top_p", "topP":
			setMember("inferenceConfig", "topP", extra[k])
		case "stop", "stop_sequences", "stopSequences":
			setMember("inferenceConfig", "stopSequences", extra[k])
		default:
			setMember(fields, k, extra[k])
		}
	}
	return out
}

// fields is the member of the request that is passed to the model unchanged.
const fields = "additionalModelRequestFields"

// isMember reports whether a key is a member of a Converse request.
func isMember(key string) bool {
	return slices.Contains([]string{
		fields, "additionalModelResponseFieldPaths", "guardrailConfig", "inferenceConfig", "messages", "outputConfig",
		"performanceConfig", "promptVariables", "requestMetadata", "serviceTier", "system", "toolConfig",
	}, key)
}

// choosesReasoning reports whether the user's payload sets how the model reasons. If so, eca
// does not set it.
func choosesReasoning(extra map[string]any) bool {
	m, _ := extra[fields].(map[string]any)
	return slices.ContainsFunc([]string{"thinking", "reasoning_config", "reasoningConfig", "reasoning_effort"}, func(key string) bool {
		_, ok := m[key]
		return ok
	})
}
