package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// fileVersion changes when an older eca could no longer read or keep the file. A new
// kind of credential is no such change.
const fileVersion = 1

// document is the content of the file. What this version does not know in it is kept.
type document struct {
	rest        map[string]json.RawMessage // all keys but those below
	entries     map[string]json.RawMessage // by provider
	credentials map[string]Credential      // the entries this version knows
}

// entry is one credential in the file.
type entry struct {
	Type   string   `json:"type"`
	Key    string   `json:"key,omitempty"`
	URL    string   `json:"url,omitempty"`
	Models []string `json:"models,omitempty"`
}

func newDocument() document {
	return document{rest: map[string]json.RawMessage{}, entries: map[string]json.RawMessage{}, credentials: map[string]Credential{}}
}

// parse reads the file's content. Errors name places, never content: it is secret.
func parse(data []byte) (document, error) {
	d := newDocument()
	if err := json.Unmarshal(data, &d.rest); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return document{}, fmt.Errorf("it is not valid JSON at byte %d", syntax.Offset)
		}
		return document{}, errors.New("it is not a JSON object")
	}
	var version int
	switch err := json.Unmarshal(d.rest["version"], &version); {
	case err != nil || version < 1:
		return document{}, errors.New(`it has no "version"`)
	case version > fileVersion:
		return document{}, errors.New("it was written by a newer version of eca")
	}
	if raw, ok := d.rest["providers"]; ok {
		if json.Unmarshal(raw, &d.entries) != nil || d.entries == nil {
			return document{}, errors.New(`its "providers" is not an object`)
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(d.entries)) {
		c, err := decode(d.entries[provider])
		if err != nil {
			return document{}, fmt.Errorf("its entry for provider %q %w", provider, err)
		}
		if c.Type == APIKey {
			d.credentials[provider] = c
		}
	}
	return d, nil
}

// decode reads an entry; of kinds this version does not know it reads the kind alone.
func decode(raw json.RawMessage) (Credential, error) {
	var kind struct{ Type string }
	if json.Unmarshal(raw, &kind) != nil || kind.Type == "" {
		return Credential{}, errors.New(`has no "type"`)
	}
	if kind.Type != APIKey {
		return Credential{Type: kind.Type}, nil
	}
	var e entry
	if json.Unmarshal(raw, &e) != nil || e.Key == "" {
		return Credential{}, errors.New("has no key")
	}
	return Credential{Type: e.Type, Key: NewSecret(e.Key), URL: e.URL, Models: e.Models}, nil
}

func (d document) encode() ([]byte, error) {
	entries, err := json.Marshal(d.entries)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(d.rest)
	out["version"] = json.RawMessage(fmt.Sprint(fileVersion))
	out["providers"] = entries
	data, err := json.MarshalIndent(out, "", "  ")
	return append(data, '\n'), err
}
