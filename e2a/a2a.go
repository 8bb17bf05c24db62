package e2a

import (
	"encoding/json"
	"maps"
	"strings"
	"time"
)

// A2AMessage is a message as it came over A2A.
type A2AMessage struct {
	TaskID, ContextID string
	Message           map[string]any // role, parts, messageId
	Metadata          map[string]any
	Configuration     map[string]any
	Channel           string
	Origin            IdentityOrigin // empty is the user
	RequestID         string
	Stream            bool
	Now               time.Time
	Details           map[string]any
}

const converterA2A = "eca/e2a.FromA2A"

// FromA2A makes an envelope of a message over A2A (contract 5.2). Beyond what the reference
// makes, the message's parts become content blocks, so that there is a prompt.
func FromA2A(m A2AMessage) Envelope {
	details := map[string]any{"kind": "a2a_send_message", "abstract_operation": "SendMessage"}
	maps.Copy(details, m.Details)
	params := map[string]any{"message": m.Message, "configuration": filled(m.Configuration)}
	if parts, ok := m.Message["parts"].([]any); ok {
		if blocks := contentBlocks(parts); len(blocks) > 0 {
			params["content_blocks"] = blocks
		}
	}
	var modes []string
	if list, ok := m.Configuration["acceptedOutputModes"].([]any); ok {
		for _, mode := range list {
			modes = append(modes, plain(mode))
		}
	}
	method := MethodPrompt
	return Envelope{
		ProtocolVersion:     ProtocolVersion,
		Provenance:          converted(ProtocolA2A, converterA2A, m.Now, details),
		RequestID:           some(m.RequestID),
		TaskID:              some(m.TaskID),
		ContextID:           some(m.ContextID),
		SessionID:           some(m.ContextID),
		MessageID:           firstText(m.Message["messageId"]),
		Timestamp:           some(stamp(m.Now)),
		IdentityOrigin:      orUser(m.Origin),
		Channel:             some(m.Channel),
		Method:              &method,
		Params:              params,
		IsStream:            m.Stream,
		ExpectedOutputModes: modes,
		A2AMetadata:         maps.Clone(m.Metadata),
	}
}

// contentBlocks makes blocks as ACP has them of a message's parts, of A2A 1.0 and 0.3 alike.
func contentBlocks(parts []any) []any {
	var blocks []any
	for _, p := range parts {
		part, ok := p.(map[string]any)
		if !ok {
			continue
		}
		if file, ok := part["file"].(map[string]any); ok { // 0.3
			part = map[string]any{"raw": file["bytes"], "url": file["uri"], "mediaType": file["mimeType"], "filename": file["name"]}
		}
		if block := contentBlock(part); block != nil {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

func contentBlock(part map[string]any) map[string]any {
	mime, _ := part["mediaType"].(string)
	name := firstText(part["filename"])
	if text, ok := part["text"].(string); ok {
		return map[string]any{"type": "text", "text": text}
	}
	if raw := firstText(part["raw"]); raw != nil {
		if strings.HasPrefix(mime, "image/") {
			return map[string]any{"type": "image", "mime_type": mime, "data": *raw}
		}
		uri := "attachment"
		if name != nil {
			uri = *name
		}
		return map[string]any{"type": "resource", "resource": map[string]any{"uri": uri, "mime_type": mime, "blob": *raw}}
	}
	if url := firstText(part["url"]); url != nil {
		link := map[string]any{"type": "resource_link", "uri": *url, "name": *url}
		if name != nil {
			link["name"] = *name
		}
		if mime != "" {
			link["mime_type"] = mime
		}
		return link
	}
	if data, ok := part["data"]; ok {
		text, err := json.Marshal(data)
		if err != nil {
			return nil
		}
		return map[string]any{"type": "text", "text": string(text)}
	}
	return nil
}

// ToA2AEvent makes one event of A2A's stream of a frame (contract 5.5); false is a frame
// that is none. Payloads pass as they are: they are A2A's JSON already.
func ToA2AEvent(r Response) (map[string]any, bool) {
	if r.Kind != KindA2AStreamEvent {
		return nil, false
	}
	branches := A2ABranches()
	if p, ok := r.Projections["a2a"].(map[string]any); ok {
		var names []string
		for _, name := range branches {
			names = append(names, name)
		}
		if _, ok := one(p, names); ok {
			return maps.Clone(p), true
		}
	}
	branch, _ := r.Body["branch"].(string)
	payload, ok := r.Body["payload"].(map[string]any)
	if name := branches[branch]; ok && name != "" {
		return map[string]any{name: payload}, true
	}
	return nil, false
}
