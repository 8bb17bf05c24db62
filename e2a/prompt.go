package e2a

import (
	"encoding/json"
	"maps"
)

// ACPPromptParams returns the params of an envelope in ACP's form (e2a.md 4). For session/prompt it
// adds prompt and session_id if they are missing, and the envelope's acp_meta to _meta. It adds the
// latter two even if there is a prompt, as the document of the first implementation says, in contrast
// to its code. A missing prompt is taken from content_blocks, or the first nonempty string of text, content
// and query.
func ACPPromptParams(e Envelope) Object {
	params := merge(e.Params, nil)
	if e.Method == nil || *e.Method != MethodPrompt {
		return params
	}
	if _, ok := params["prompt"]; !ok {
		if blocks := promptBlocks(params); blocks != nil {
			params["prompt"] = blocks
		}
	}
	if _, ok := params["session_id"]; !ok && e.SessionID != nil && *e.SessionID != "" {
		params["session_id"] = raw(*e.SessionID)
	}
	if len(e.ACPMeta) > 0 {
		params["_meta"] = raw(merge(asObject(params["_meta"]), e.ACPMeta))
	}
	return params
}

// merge returns a new object with the members of both, where those of more take precedence.
func merge(o, more Object) Object {
	out := Object{}
	maps.Copy(out, o)
	maps.Copy(out, more)
	return out
}

func promptBlocks(params Object) json.RawMessage {
	if blocks, ok := asList(params["content_blocks"]); ok && len(blocks) > 0 {
		return params["content_blocks"]
	}
	if s := firstString(params["text"], params["content"], params["query"]); s != nil {
		return raw([]Block{TextBlock(*s)})
	}
	return nil
}

// pointerTo returns a pointer to a string, or nil for an empty one.
func pointerTo(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// firstString returns the first nonempty string.
func firstString(values ...json.RawMessage) *string {
	for _, v := range values {
		if s := asString(v); s != nil && *s != "" {
			return s
		}
	}
	return nil
}
