package a2a

import (
	"maps"
	"strings"
)

// modern returns the 1.0 name of a method, and whether it was named as in 0.3.
func modern(method string) (name string, legacy bool) {
	name, legacy = map[string]string{
		"message/send":                        "SendMessage",
		"message/stream":                      "SendStreamingMessage",
		"tasks/get":                           "GetTask",
		"tasks/cancel":                        "CancelTask",
		"tasks/resubscribe":                   "SubscribeToTask",
		"agent/getAuthenticatedExtendedCard":  "GetExtendedAgentCard",
		"tasks/pushNotificationConfig/set":    "CreateTaskPushNotificationConfig",
		"tasks/pushNotificationConfig/get":    "GetTaskPushNotificationConfig",
		"tasks/pushNotificationConfig/list":   "ListTaskPushNotificationConfigs",
		"tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
	}[method]
	if !legacy {
		return method, false
	}
	return name, true
}

// fromLegacy turns a message of 0.3 into one of 1.0, in place.
func fromLegacy(m *message) {
	switch m.Role {
	case "user":
		m.Role = roleUser
	case "agent":
		m.Role = roleAgent
	}
	for i, p := range m.Parts {
		p = maps.Clone(p)
		delete(p, "kind")
		if file, ok := p["file"].(map[string]any); ok {
			delete(p, "file")
			for from, to := range map[string]string{"bytes": "raw", "uri": "url", "mimeType": "mediaType", "name": "filename"} {
				if v, ok := file[from]; ok && v != nil {
					p[to] = v
				}
			}
		}
		m.Parts[i] = p
	}
}

// toLegacy makes what 0.3 has of a task, or of an event's only member.
func toLegacy(v any) any {
	switch v := v.(type) {
	case *task:
		return legacyTask(v)
	case event:
		switch {
		case v.Task != nil:
			return legacyTask(v.Task)
		case v.Status != nil:
			s := v.Status.Status.State
			return legacyObject(map[string]any{
				"kind": "status-update", "taskId": v.Status.TaskID, "contextId": v.Status.ContextID, "status": legacyStatus(v.Status.Status),
				"final": s.ended() || s == inputRequired,
			}, v.Status.Metadata)
		default:
			a := v.Artifact
			return map[string]any{
				"kind": "artifact-update", "taskId": a.TaskID, "contextId": a.ContextID, "artifact": legacyArtifact(a.Artifact),
				"append": a.Append, "lastChunk": a.LastChunk,
			}
		}
	}
	return v
}

func legacyObject(o, metadata map[string]any) map[string]any {
	if metadata != nil {
		o["metadata"] = metadata
	}
	return o
}

func legacyTask(t *task) map[string]any {
	history, artifacts := make([]any, len(t.History)), make([]any, len(t.Artifacts))
	for i, m := range t.History {
		history[i] = legacyMessage(m)
	}
	for i, a := range t.Artifacts {
		artifacts[i] = legacyArtifact(a)
	}
	return legacyObject(map[string]any{
		"kind": "task", "id": t.ID, "contextId": t.ContextID, "status": legacyStatus(t.Status), "history": history, "artifacts": artifacts,
	}, t.Metadata)
}

func legacyStatus(s status) map[string]any {
	word := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s.State), "TASK_STATE_")), "_", "-")
	out := map[string]any{"state": word, "timestamp": s.Timestamp}
	if s.Message != nil {
		out["message"] = legacyMessage(*s.Message)
	}
	return out
}

func legacyMessage(m message) map[string]any {
	out := map[string]any{
		"kind": "message", "messageId": m.MessageID, "role": strings.ToLower(strings.TrimPrefix(m.Role, "ROLE_")), "parts": legacyParts(m.Parts),
	}
	if m.TaskID != "" {
		out["taskId"] = m.TaskID
	}
	if m.ContextID != "" {
		out["contextId"] = m.ContextID
	}
	return legacyObject(out, m.Metadata)
}

func legacyArtifact(a artifact) map[string]any {
	return legacyObject(map[string]any{"artifactId": a.ArtifactID, "name": a.Name, "parts": legacyParts(a.Parts)}, a.Metadata)
}

func legacyParts(parts []part) []any {
	out := make([]any, len(parts))
	for i, p := range parts {
		q := map[string]any{}
		switch {
		case p["text"] != nil:
			q["kind"], q["text"] = "text", p["text"]
		case p["data"] != nil:
			q["kind"], q["data"] = "data", p["data"]
		default:
			file := map[string]any{}
			for from, to := range map[string]string{"raw": "bytes", "url": "uri", "mediaType": "mimeType", "filename": "name"} {
				if v, ok := p[from]; ok {
					file[to] = v
				}
			}
			q["kind"], q["file"] = "file", file
		}
		if m, ok := p["metadata"]; ok {
			q["metadata"] = m
		}
		out[i] = q
	}
	return out
}
