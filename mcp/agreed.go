package mcp

import (
	"encoding/json"
)

// Described is a tool's description of itself.
type Described struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// AgreedTool is the description that the user agreed to.
type AgreedTool struct{ Description string }

// Described returns the tool's current description of itself.
func (t *Tool) Described() Described { return t.now }

// Changed reports whether the tool's description differs from the one that the user agreed to.
func (t *Tool) Changed() (before AgreedTool, changed bool) {
	if t.agreed == nil {
		return AgreedTool{}, false
	}
	return *t.agreed, true
}

// agree marks the tools of a list whose descriptions differ from those that the user agreed to.
// Until the user agrees to them, the model gets the old description, and the parameters without any
// descriptive text.
func (s *server) agree(list []*Tool) []*Tool {
	if s.m.deps.Agreed == nil {
		return list
	}
	var all []Described
	for _, t := range list {
		all = append(all, t.now)
	}
	changed := s.m.deps.Agreed(s.name, all)
	for _, t := range list {
		before, ok := changed[t.now.Name]
		if !ok {
			continue
		}
		t.agreed = &before
		t.spec.Description, t.spec.Schema = before.Description, withoutWords(t.spec.Schema)
		t.spec.Changed = "the server says something else about this tool than when you agreed to it; it said: " + quote(before.Description) + "; it says now: " + quote(t.now.Description)
		if before.Description == t.now.Description {
			t.spec.Changed = "the server has changed the parameters of this tool since you agreed to it"
		}
	}
	return list
}

func quote(text string) string { return "“" + plain(text, maxShort) + "”" }

// Relist lists a server's tools again, after the user agreed to their descriptions.
func (m *Manager) Relist(name string) {
	if s, ok := m.server(name); ok {
		s.enqueue(func() {
			if s.conn != nil {
				s.conn.outdated(toolsList)
			}
		})
	}
}

// withoutWords removes from a schema everything that only informs a reader.
func withoutWords(schema json.RawMessage) json.RawMessage {
	var value any
	if json.Unmarshal(schema, &value) != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	out, err := json.Marshal(silent(value, false))
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

// silent returns a part of a schema without descriptive text. names means that the keys of an
// object are names of properties.
func silent(value any, names bool) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			_, isText := member.(string)
			switch {
			case !names && (key == "description" || key == "title" || key == "$comment") && isText, !names && (key == "examples" || key == "default"):
				delete(v, key)
			case !names && (key == "enum" || key == "const" || key == "required"):
			default:
				v[key] = silent(member, !names && hasNames(key))
			}
		}
	case []any:
		for i := range v {
			v[i] = silent(v[i], false)
		}
	}
	return value
}
