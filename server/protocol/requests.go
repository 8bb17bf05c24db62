package protocol

import (
	"encoding/json"
	"strings"
)

// Capabilities of a client that decide which requests it gets (eca-protocol.md 3.1); absent means
// false.
type Capabilities struct {
	Diagnostics, Definition, References bool // codeAssistant.editor
	AskQuestion                         bool // codeAssistant.chatCapabilities
	Remount                             bool // chatCapabilities too, an extension: the client's page can be reopened without state
	Search                              bool // chatCapabilities too, an extension: chat/search
}

// UnmarshalJSON accepts anything. A capability is true unless its value is null, false, 0 or empty.
// Old clients send their capabilities without the enclosing codeAssistant object.
func (c *Capabilities) UnmarshalJSON(raw []byte) error {
	all := members(raw)
	if inner, ok := all["codeAssistant"]; ok {
		all = members(inner)
	}
	editor, chat := members(all["editor"]), members(all["chatCapabilities"])
	*c = Capabilities{
		Diagnostics: truthy(editor["diagnostics"]),
		Definition:  truthy(editor["definition"]),
		References:  truthy(editor["references"]),
		AskQuestion: truthy(chat["askQuestion"]),
		Remount:     truthy(chat["remount"]),
		Search:      truthy(chat["search"]),
	}
	return nil
}

// members returns the members of an object, and nil for anything else.
func members(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	_ = json.Unmarshal(raw, &m)
	return m
}

func truthy(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "false", "0", `""`, `"false"`:
		return false
	}
	return true
}

// DiagnosticsParams of editor/getDiagnostics (eca-protocol.md 6). Without a URI, all files are meant.
type DiagnosticsParams struct {
	URI string `json:"uri,omitempty"`
}

// Outcome has the fields that all answers of clients share. One client answers an unsupported
// request with the result {status: "error", message} (eca-protocol.md 11).
type Outcome struct {
	Status  Text `json:"status"` // success, starting, no-server or error; may be absent
	Message Text `json:"message"`
}

// DiagnosticsResult (eca-protocol.md 6).
type DiagnosticsResult struct {
	Outcome
	Diagnostics List[Diagnostic] `json:"diagnostics"`
}

// Diagnostic (eca-protocol.md 6). The first published protocol counts its range from 1; all clients
// count from 0.
type Diagnostic struct {
	URI      Text         `json:"uri"`
	Severity Severity     `json:"severity"`
	Source   Text         `json:"source"`
	Range    Maybe[Range] `json:"range"`
	Code     Word         `json:"code"`
	Message  Text         `json:"message"`
}

// NavigationParams of editor/getDefinition and editor/getReferences (eca-protocol.md 6). Position is
// 1-based and counts UTF-16 code units.
type NavigationParams struct {
	URI                string   `json:"uri"`
	Position           Position `json:"position"`
	IncludeDeclaration *bool    `json:"includeDeclaration,omitempty"` // references only
}

// NavigationResult (eca-protocol.md 6).
type NavigationResult struct {
	Outcome
	Locations List[Location] `json:"locations"`
}

// Location is a 1-based range in a file.
type Location struct {
	URI   Text         `json:"uri"`
	Range Maybe[Range] `json:"range"`
}

// QuestionParams of chat/askQuestion (eca-protocol.md 6).
type QuestionParams struct {
	ChatID        string           `json:"chatId"`
	Question      string           `json:"question"`
	Options       []QuestionOption `json:"options"` // never null
	ToolCallID    string           `json:"toolCallId,omitempty"`
	AllowFreeform bool             `json:"allowFreeform"`
	RequestID     string           `json:"requestId"`
}

// QuestionOption is one possible answer.
type QuestionOption struct {
	Label       string `json:"label"`
	Description string `json:"description,omitempty"`
	Grants      bool   `json:"grants,omitempty"` // the choice applies to the future too, not only to this call
}

// QuestionResult (eca-protocol.md 6).
type QuestionResult struct {
	Outcome
	Answer    Word `json:"answer"`
	Cancelled Flag `json:"cancelled"`
}

// Severity of a diagnostic: error, warning, info or hint; empty if unknown.
type Severity string

// UnmarshalJSON accepts anything: clients also send information and unknown, and language servers
// send 1 to 4.
func (s *Severity) UnmarshalJSON(raw []byte) error {
	*s = ""
	word := strings.ToLower(strings.Trim(string(raw), `"`))
	for i, prefix := range []string{"err", "warn", "info", "hint"} {
		if strings.HasPrefix(word, prefix) || word == string(rune('1'+i)) {
			*s = []Severity{"error", "warning", "info", "hint"}[i]
		}
	}
	return nil
}

// Word is a text that may come as a number, a boolean, or an object with a field named value.
// Anything else is read as empty.
type Word string

// UnmarshalJSON accepts anything.
func (w *Word) UnmarshalJSON(raw []byte) error {
	*w = ""
	switch {
	case len(raw) == 0 || raw[0] == '[' || string(raw) == "null":
	case raw[0] == '"':
		return json.Unmarshal(raw, (*string)(w))
	case raw[0] == '{':
		var inner struct{ Value json.RawMessage }
		if json.Unmarshal(raw, &inner) == nil && len(inner.Value) > 0 && inner.Value[0] != '{' {
			return w.UnmarshalJSON(inner.Value)
		}
	default:
		*w = Word(raw)
	}
	return nil
}

// Maybe is an optional value; a value of another type counts as absent.
type Maybe[T any] struct{ Value *T }

// UnmarshalJSON accepts anything.
func (m *Maybe[T]) UnmarshalJSON(raw []byte) error {
	m.Value = nil
	var v *T
	if json.Unmarshal(raw, &v) == nil {
		m.Value = v
	}
	return nil
}
