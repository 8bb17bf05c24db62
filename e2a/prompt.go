package e2a

import (
	"encoding/json"
	"maps"
)

// ACPPromptParams returns the parameters of the ACP prompt that an envelope represents (contract
// 4): its params, and for session/prompt the missing members among prompt, session_id and _meta.
// Unlike the reference's code, and like its document, it adds the latter two even if there is a
// prompt. Of text, content and query it uses the first nonempty string.
func ACPPromptParams(e Envelope) Object {
	params := with(e.Params, nil)
	if e.Method == nil || *e.Method != MethodPrompt {
		return params
	}
	if _, there := params["prompt"]; !there {
		if blocks := promptBlocks(params); blocks != nil {
			params["prompt"] = blocks
		}
	}
	if _, there := params["session_id"]; !there && e.SessionID != nil && *e.SessionID != "" {
		params["session_id"] = raw(*e.SessionID)
	}
	if len(e.ACPMeta) > 0 {
		params["_meta"] = raw(with(asObject(params["_meta"]), e.ACPMeta))
	}
	return params
}

// with returns a copy of an object with the members of another one, which take precedence.
func with(o, more Object) Object {
	out := Object{}
	maps.Copy(out, o)
	maps.Copy(out, more)
	return out
}

func promptBlocks(params Object) json.RawMessage {
	if blocks, ok := asList(params["content_blocks"]); ok && len(blocks) > 0 {
		return params["content_blocks"]
	}
	if s := firstText(params["text"], params["content"], params["query"]); s != nil {
		return raw([]Block{TextBlock(*s)})
	}
	return nil
}

// some returns a string, or nil for an empty one.
func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// firstText returns the first nonempty string.
func firstText(values ...json.RawMessage) *string {
	for _, v := range values {
		if s := asText(v); s != nil && *s != "" {
			return s
		}
	}
	return nil
}
