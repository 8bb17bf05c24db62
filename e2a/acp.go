package e2a

import (
	"encoding/json"
	"maps"
	"time"
)

// ACPCall is a call as it came over ACP.
type ACPCall struct {
	Method    string
	Params    map[string]any
	ID        any    // of JSON-RPC; nil for a notification
	SessionID string // if it is not in the params
	Channel   string
	Origin    IdentityOrigin // empty is the user
	RequestID string         // of the envelope
	Now       time.Time
	Details   map[string]any // more for the provenance
}

// converterACP names who made an envelope of a call.
const converterACP = "eca/e2a.FromACP"

// FromACP makes an envelope of a call over ACP (contract 5.1). The session is the
// params' sessionId, or session_id.
func FromACP(c ACPCall) Envelope {
	details := map[string]any{"kind": "jsonrpc_request", "jsonrpc_method": c.Method}
	if c.ID != nil {
		details["jsonrpc_id"] = c.ID
	}
	maps.Copy(details, c.Details)
	meta, _ := c.Params["_meta"].(map[string]any)
	return Envelope{
		ProtocolVersion: ProtocolVersion,
		Provenance:      converted(ProtocolACP, converterACP, c.Now, details),
		RequestID:       some(c.RequestID),
		JSONRPCID:       c.ID,
		SessionID:       firstText(c.SessionID, c.Params["sessionId"], c.Params["session_id"]),
		Timestamp:       some(stamp(c.Now)),
		IdentityOrigin:  orUser(c.Origin),
		Channel:         some(c.Channel),
		Method:          &c.Method,
		Params:          maps.Clone(c.Params),
		IsStream:        c.Method == MethodPrompt,
		ACPMeta:         maps.Clone(meta),
	}
}

func converted(protocol, converter string, at time.Time, details map[string]any) Provenance {
	return Provenance{SourceProtocol: protocol, Converter: &converter, ConvertedAt: some(stamp(at)), Details: details}
}

func orUser(o IdentityOrigin) IdentityOrigin {
	if o == "" {
		return OriginUser
	}
	return o
}

// some returns a string, or null for an empty one.
func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// firstText returns the first value that is a string and says something.
func firstText(values ...any) *string {
	for _, v := range values {
		if s, ok := v.(string); ok && s != "" {
			return &s
		}
	}
	return nil
}

// Wire says how names are spelled in what goes out.
type Wire bool

// Spellings.
const (
	AsReference Wire = false // snake case, and an id for notifications, as the reference has it
	AsACP       Wire = true  // what ACP's peers understand
)

// ToACPCall makes a JSON-RPC call of an envelope (contract 5.3). Methods that are not ACP's
// pass as they are: who sends them to an ACP peer has mapped them before.
func ToACPCall(e Envelope, wire Wire) map[string]any {
	var method any
	if e.Method != nil {
		method = *e.Method
		if *e.Method == MethodExt && e.ExtMethod != nil && *e.ExtMethod != "" {
			method = *e.ExtMethod
		}
	}
	call := map[string]any{"jsonrpc": "2.0", "id": e.JSONRPCID, "method": method, "params": ACPPromptParams(e)}
	if wire == AsACP {
		call["params"] = acpNames(call["params"], 0)
		if e.JSONRPCID == nil {
			delete(call, "id")
		}
	}
	return call
}

// acpNames spells the names as ACP does: of the parameters themselves, and inside content
// blocks. What users may have put into metadata stays.
func acpNames(v any, depth int) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = acpNames(item, depth)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			switch {
			case key == "session_id" && depth == 0:
				key = "sessionId"
			case key == "mime_type":
				key = "mimeType"
			}
			if key == "prompt" || key == "content_blocks" || key == "resource" {
				value = acpNames(value, depth+1)
			}
			out[key] = value
		}
		return out
	}
	return v
}

// ToACPResponse makes a JSON-RPC response of a frame (contract 5.4); false is a frame that
// is none. stopReasons, which the reference does not have, makes a prompt's result of a
// final e2a.complete too.
func ToACPResponse(r Response, stopReasons bool) (map[string]any, bool) {
	answer := func(key string, v any) (map[string]any, bool) {
		return map[string]any{"jsonrpc": "2.0", "id": r.JSONRPCID, key: v}, true
	}
	if p, ok := acpProjection(r); ok {
		return p, true
	}
	switch r.Kind {
	case KindACPPromptResult:
		return answer("result", filled(r.Body))
	case KindACPError:
		return answer("error", filled(r.Body))
	case KindError:
		return answer("error", acpError(r.Body))
	case KindComplete:
		if stopReasons && r.IsFinal {
			return answer("result", map[string]any{"stopReason": StopReason(r)})
		}
	}
	return nil, false
}

// acpProjection returns the response that a frame brings along.
func acpProjection(r Response) (map[string]any, bool) {
	p, ok := r.Projections["acp"].(map[string]any)
	if !ok || p["jsonrpc"] != "2.0" {
		return nil, false
	}
	_, result := p["result"]
	_, failed := p["error"]
	if !result && !failed {
		return nil, false
	}
	p = maps.Clone(p)
	if _, there := p["id"]; !there {
		p["id"] = r.JSONRPCID
	}
	return p, true
}

// internalError is JSON-RPC's code for a failure of the other side.
const internalError = -32603

func acpError(body map[string]any) map[string]any {
	out := map[string]any{"code": internalError, "message": ""}
	if m := body["message"]; m != nil {
		out["message"] = plain(m)
	}
	data := map[string]any{}
	for _, key := range []string{"details", "external"} {
		if v := body[key]; v != nil {
			data[key] = v
		}
	}
	if code, ok := whole(body["code"]); ok {
		out["code"] = code
	} else if body["code"] != nil {
		data["e2a_code"] = body["code"]
	}
	if len(data) > 0 {
		out["data"] = data
	}
	return out
}

// whole returns a number that is one of JSON-RPC's codes. A boolean is none.
func whole(v any) (int64, bool) {
	switch v := v.(type) {
	case int:
		return int64(v), true
	case int64:
		return v, true
	case float64:
		return int64(v), v == float64(int64(v))
	case json.Number:
		n, err := v.Int64()
		return n, err == nil
	}
	return 0, false
}

// StopReason returns why a turn ended, from the final frame's result: end_turn when it does
// not say.
func StopReason(r Response) string {
	result, _ := r.Body["result"].(map[string]any)
	if s := firstText(result["stop_reason"], result["stopReason"]); s != nil {
		return *s
	}
	return "end_turn"
}
