package mcp

import (
	"encoding/json"
)

// Described is a server's description of a tool.
type Described struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// AgreedTool is the description of a tool that the user agreed to.
type AgreedTool struct{ Description string }

// Described returns the server's current description of the tool.
func (t *Tool) Described() Described { return t.described }

// Changed reports whether the tool's description differs from the one that the user agreed to, which
// it returns in this case.
func (t *Tool) Changed() (before AgreedTool, changed bool) {
	if t.agreed == nil {
		return AgreedTool{}, false
	}
	return *t.agreed, true
}

// markChanged marks the tools of a list whose descriptions differ from those that the user agreed to.
// Until the user agrees to them, the model gets the old description, and the parameters without any
// descriptive text.
func (s *server) markChanged(list []*Tool) []*Tool {
	if s.m.deps.Agreed == nil {
		return list
	}
	var all []Described
	for _, t := range list {
		all = append(all, t.described)
	}
	changed := s.m.deps.Agreed(s.name, all)
	for _, t := range list {
		before, ok := changed[t.described.Name]
		if !ok {
			continue
		}
		t.agreed = &before
		t.spec.Description, t.spec.Schema = before.Description, withoutDescriptions(t.spec.Schema)
		t.spec.Changed = "the server changed this tool's description since you agreed to it; before: " + quote(before.Description) + "; now: " + quote(t.described.Description)
		if before.Description == t.described.Description {
			t.spec.Changed = "the server changed this tool's parameters since you agreed to it"
		}
	}
	return list
}

func quote(text string) string { return "“" + displayText(text, maxShort) + "”" }

// Relist lists a server's tools again, after the user agreed to their descriptions.
func (m *Manager) Relist(name string) {
	if s, ok := m.server(name); ok {
		s.enqueue(func() {
			if s.conn != nil {
				s.conn.markStale(toolsList)
			}
		})
	}
}

// withoutDescriptions removes the descriptive text from a schema.
func withoutDescriptions(schema json.RawMessage) json.RawMessage {
	var value any
	if json.Unmarshal(schema, &value) != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	out, err := json.Marshal(stripDescriptions(value, false))
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

// stripDescriptions removes descriptive text from a part of a schema. names means that the keys of an
// object are names of properties, not keywords of JSON Schema.
func stripDescriptions(value any, names bool) any {
	switch v := value.(type) {
	case map[string]any:
		for key, member := range v {
			_, isText := member.(string)
			switch {
			case !names && (key == "description" || key == "title" || key == "$comment") && isText, !names && (key == "examples" || key == "default"):
				delete(v, key)
			case !names && (key == "enum" || key == "const" || key == "required"):
			default:
				v[key] = stripDescriptions(member, !names && hasNames(key))
			}
		}
	case []any:
		for i := range v {
			v[i] = stripDescriptions(v[i], false)
		}
	}
	return value
}
