package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// fileVersion increases when older versions of eca can no longer read or preserve the file. A new
// kind of credential does not require that.
const fileVersion = 1

// document is the content of the file. Fields that this version does not know are kept.
type document struct {
	topLevel        map[string]json.RawMessage // all keys of the file; those that this version does not know are written back
	entries         map[string]json.RawMessage // by provider
	credentials     map[string]Credential      // the entries this version knows
	keychainEntries map[string]entry           // the entries whose secrets are in the keychain
}

// entry is one credential in the file.
type entry struct {
	Type   string   `json:"type"`
	Of     string   `json:"of,omitempty"`    // if Type is keychain: the type of the credential in the keychain
	Name   string   `json:"name,omitempty"`  // the name of the secrets in the keychain
	Stamp  string   `json:"stamp,omitempty"` // random for each write, so that readers notice a change in the keychain
	URL    string   `json:"url,omitempty"`
	Models []string `json:"models,omitempty"`
	secrets

	Expires int64    `json:"expires,omitempty"` // seconds since 1970
	Ended   bool     `json:"ended,omitempty"`
	Method  string   `json:"method,omitempty"`
	For     *Binding `json:"for,omitempty"`
}

// secrets are the secrets of a credential. If there is a keychain, they are stored there as JSON.
type secrets struct {
	Key     string `json:"key,omitempty"`
	Access  string `json:"access,omitempty"`
	Refresh string `json:"refresh,omitempty"`

	ClientSecret string `json:"clientSecret,omitempty"`
}

// inKeychain is the type of an entry whose secrets are in the keychain. Older versions of eca
// preserve such entries, as they do with all unknown types.
const inKeychain = "keychain"

// isKnownType reports whether this version supports a type of credential.
func isKnownType(kind string) bool { return kind == APIKey || kind == OAuth }

func newEntry(c Credential) entry {
	e := entry{
		Type: c.Type, URL: c.URL, Models: c.Models, Ended: c.Ended, Method: c.Method,
		secrets: secrets{c.Key.Reveal(), c.Access.Reveal(), c.Refresh.Reveal(), c.ClientSecret.Reveal()},
	}
	if !c.Expires.IsZero() {
		e.Expires = c.Expires.Unix()
	}
	if c.For != (Binding{}) {
		e.For = &c.For
	}
	return e
}

// credential is the inverse of newEntry. The entry must contain its secrets.
func (e entry) credential() (Credential, error) {
	c := Credential{Type: e.Type, URL: e.URL, Models: e.Models, Ended: e.Ended, Method: e.Method}
	if e.Type == inKeychain {
		c.Type = e.Of
	}
	if e.Expires > 0 {
		c.Expires = time.Unix(e.Expires, 0)
	}
	if e.For != nil {
		c.For = *e.For
	}
	c.Key, c.Access, c.Refresh, c.ClientSecret = secret(e.Key), secret(e.Access), secret(e.Refresh), secret(e.ClientSecret)
	switch {
	case c.Type == APIKey && e.Key == "":
		return Credential{}, errors.New("has no key")
	case c.Type == OAuth && e.Access == "" && !e.Ended:
		return Credential{}, errors.New("has no token")
	}
	return c, nil
}

// secret returns a value as a Secret; an empty value stays empty.
func secret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return NewSecret(s)
}

func newDocument() document {
	return document{topLevel: map[string]json.RawMessage{}, entries: map[string]json.RawMessage{}, credentials: map[string]Credential{}, keychainEntries: map[string]entry{}}
}

// parse parses the content of the file. Errors contain positions but no content, because it is secret.
func parse(data []byte) (document, error) {
	d := newDocument()
	if err := json.Unmarshal(data, &d.topLevel); err != nil {
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			return document{}, fmt.Errorf("it is not valid JSON (byte %d)", syntax.Offset)
		}
		return document{}, errors.New("it is not a JSON object")
	}
	var version int
	switch err := json.Unmarshal(d.topLevel["version"], &version); {
	case err != nil || version < 1:
		return document{}, errors.New(`its "version" is missing or invalid`)
	case version > fileVersion:
		return document{}, errors.New("it was written by a newer version of eca")
	}
	if raw, ok := d.topLevel["providers"]; ok {
		if json.Unmarshal(raw, &d.entries) != nil || d.entries == nil {
			return document{}, errors.New(`its "providers" is not an object`)
		}
	}
	for _, provider := range slices.Sorted(maps.Keys(d.entries)) {
		e, err := decode(d.entries[provider])
		if err != nil {
			return document{}, fmt.Errorf("its entry for provider %q %w", provider, err)
		}
		switch {
		case e.Type == inKeychain && isKnownType(e.Of):
			d.keychainEntries[provider] = e
		case isKnownType(e.Type):
			if d.credentials[provider], err = e.credential(); err != nil {
				return document{}, fmt.Errorf("its entry for provider %q %w", provider, err)
			}
		}
	}
	return d, nil
}

// decode decodes an entry. If the type is unknown, only the type is decoded.
func decode(raw json.RawMessage) (entry, error) {
	var kind struct{ Type, Of string }
	if json.Unmarshal(raw, &kind) != nil || kind.Type == "" {
		var named struct{ Type string } // an unknown type may use "of" differently, so a bad "of" alone is not an error
		if json.Unmarshal(raw, &named) != nil || named.Type == "" {
			return entry{}, errors.New(`has no "type"`)
		}
		return entry{Type: named.Type}, nil
	}
	if !isKnownType(kind.Type) && (kind.Type != inKeychain || !isKnownType(kind.Of)) {
		return entry{Type: kind.Type}, nil
	}
	var e entry
	switch {
	case json.Unmarshal(raw, &e) != nil:
		if kind.Type == APIKey {
			return entry{}, errors.New("has no key")
		}
		return entry{}, errors.New("has values of the wrong type")
	case e.Type == inKeychain && e.Name == "":
		return entry{}, errors.New("does not name its secret")
	}
	return e, nil
}

func (d document) encode() ([]byte, error) {
	entries, err := json.Marshal(d.entries)
	if err != nil {
		return nil, err
	}
	out := maps.Clone(d.topLevel)
	out["version"] = json.RawMessage(fmt.Sprint(fileVersion))
	out["providers"] = entries
	data, err := json.MarshalIndent(out, "", "  ")
	return append(data, '\n'), err
}
