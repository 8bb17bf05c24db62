package e2a

import "maps"

// ACPPromptParams returns the parameters of an ACP prompt that an envelope stands for
// (contract 4): its params, and for session/prompt what they lack of prompt, session_id and
// _meta. Unlike the reference's code, and like its document, the latter two are added when
// there is a prompt already, and of text, content and query the first string that says
// something counts.
func ACPPromptParams(e Envelope) map[string]any {
	params := filled(maps.Clone(e.Params))
	if e.Method == nil || *e.Method != MethodPrompt {
		return params
	}
	if _, there := params["prompt"]; !there {
		if blocks := promptBlocks(params); blocks != nil {
			params["prompt"] = blocks
		}
	}
	if _, there := params["session_id"]; !there && e.SessionID != nil && *e.SessionID != "" {
		params["session_id"] = *e.SessionID
	}
	if len(e.ACPMeta) > 0 {
		was, _ := params["_meta"].(map[string]any)
		meta := filled(maps.Clone(was))
		maps.Copy(meta, e.ACPMeta)
		params["_meta"] = meta
	}
	return params
}

func promptBlocks(params map[string]any) []any {
	if blocks, ok := params["content_blocks"].([]any); ok && len(blocks) > 0 {
		return append([]any(nil), blocks...)
	}
	for _, key := range []string{"text", "content", "query"} {
		if s, ok := params[key].(string); ok && s != "" {
			return []any{map[string]any{"type": "text", "text": s}}
		}
	}
	return nil
}
