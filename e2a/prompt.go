package e2a

import (
	"encoding/json"
	"maps"
)

// ACPPromptParams returns the params of an envelope in ACP's form (e2a.md 4). For session/prompt it
// adds prompt and session_id if they are missing, and the envelope's acp_meta to _meta. session_id and
// acp_meta are added even if there is a prompt: the first implementation's document says so, although
// its code does not do it. A missing prompt is taken from content_blocks, or the first nonempty string of
// text, content and query.
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

// merge returns a new object with the members of both. If both have a member, that of over counts.
func merge(o, over Object) Object {
	out := Object{}
	maps.Copy(out, o)
	maps.Copy(out, over)
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
