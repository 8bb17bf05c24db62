package a2a

import (
	"encoding/json"
	"slices"
	"strings"
)

// modernName returns the 1.0 name of a method. legacy reports whether the given name is from 0.3.
func modernName(method string) (name string, legacy bool) {
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

// fromLegacy converts a message of 0.3 into one of 1.0, in place.
func fromLegacy(m *message) {
	switch m.Role {
	case "user":
		m.Role = roleUser
	case "agent":
		m.Role = roleAgent
	}
	for i, p := range m.Parts {
		m.Parts[i] = p.modern()
	}
}

// legacyEvent is an event of a 0.3 stream that is not a task.
type legacyEvent struct {
	Append    *bool           `json:"append,omitempty"`
	Artifact  *artifact       `json:"artifact,omitempty"`
	ContextID string          `json:"contextId"`
	Final     *bool           `json:"final,omitempty"`
	Kind      string          `json:"kind"`
	LastChunk *bool           `json:"lastChunk,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"`
	Status    *status         `json:"status,omitempty"`
	TaskID    string          `json:"taskId"`
}

// toLegacy converts a task or an event to the form of 0.3.
func toLegacy(v any) any {
	switch v := v.(type) {
	case *task:
		return legacyTask(v)
	case event:
		switch {
		case v.Task != nil:
			return legacyTask(v.Task)
		case v.Status != nil:
			s := legacyStatus(v.Status.Status)
			final := v.Status.Status.State.ended() || v.Status.Status.State == inputRequired
			return legacyEvent{Kind: "status-update", TaskID: v.Status.TaskID, ContextID: v.Status.ContextID, Status: &s, Final: &final, Metadata: v.Status.Metadata}
		default:
			a := v.Artifact
			artifact := legacyArtifact(a.Artifact)
			return legacyEvent{Kind: "artifact-update", TaskID: a.TaskID, ContextID: a.ContextID, Artifact: &artifact, Append: &a.Append, LastChunk: &a.LastChunk}
		}
	}
	return v
}

func legacyTask(of *task) *task {
	t := *of
	t.Kind, t.Status = "task", legacyStatus(t.Status)
	t.History, t.Artifacts = append([]message{}, t.History...), append([]artifact{}, t.Artifacts...)
	for i, m := range t.History {
		t.History[i] = legacyMessage(m)
	}
	for i, a := range t.Artifacts {
		t.Artifacts[i] = legacyArtifact(a)
	}
	return &t
}

func legacyStatus(s status) status {
	s.State = state(strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(string(s.State), "TASK_STATE_")), "_", "-"))
	if s.Message != nil {
		m := legacyMessage(*s.Message)
		s.Message = &m
	}
	return s
}

func legacyMessage(m message) message {
	m.Kind, m.Role, m.Parts = "message", strings.ToLower(strings.TrimPrefix(m.Role, "ROLE_")), legacyParts(m.Parts)
	m.Extensions, m.ReferenceTaskIDs = nil, nil
	return m
}

func legacyArtifact(a artifact) artifact {
	a.Parts = legacyParts(a.Parts)
	return a
}

func legacyParts(parts []part) []part {
	parts = slices.Clone(parts)
	for i, p := range parts {
		parts[i] = p.legacy()
	}
	return parts
}
