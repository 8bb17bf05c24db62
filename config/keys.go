package config

import (
	"encoding/json"
	"maps"
)

// Strings is a list that may be written as one string.
type Strings []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Strings) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = nil
		if string(data) != "null" {
			*s = Strings{one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// PathEntry is one element of rules, commands or skills: a file or a folder.
type PathEntry struct {
	Path string `json:"path"`
}

// Hook is one hooks.<name> (eca-features 18.1).
type Hook struct {
	Type        string       `json:"type"`    // the event
	Matcher     any          `json:"matcher"` // a pattern, or selectors with argsMatchers
	Actions     []HookAction `json:"actions"`
	Visible     *bool        `json:"visible"` // nil: yes
	Description string       `json:"description"`
	RunOnError  bool         `json:"runOnError"` // of postToolCall: after failed calls too
}

// HookAction is a command that a hook runs: either Shell or File.
type HookAction struct {
	Type    string `json:"type"` // shell
	Shell   string `json:"shell"`
	File    string `json:"file"`
	Timeout *int   `json:"timeout"` // in milliseconds; nil: 30,000
}

// CustomTool is one customTools.<name> (eca-features 17).
type CustomTool struct {
	Description string         `json:"description"`
	Command     string         `json:"command"`
	Schema      map[string]any `json:"schema"`
}

// Plugins is the plugins section (eca-features 21): what to install, and beside that
// the sources by name.
type Plugins struct {
	Install []string                `json:"install"`
	Sources map[string]PluginSource `json:"-" rest:"true"`
}

// PluginSource is one plugins.<name>: where a marketplace is.
type PluginSource struct {
	Source string `json:"source"` // git URL or folder
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Plugins) UnmarshalJSON(data []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*p = Plugins{}
	for name, value := range raw {
		if name == "install" {
			if err := json.Unmarshal(value, &p.Install); err != nil {
				return err
			}
			continue
		}
		var s PluginSource
		if err := json.Unmarshal(value, &s); err != nil {
			return err
		}
		if p.Sources == nil {
			p.Sources = map[string]PluginSource{}
		}
		p.Sources[name] = s
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (p Plugins) MarshalJSON() ([]byte, error) {
	out := map[string]any{}
	for name, s := range maps.All(p.Sources) {
		out[name] = s
	}
	if p.Install != nil {
		out["install"] = p.Install
	}
	return json.Marshal(out)
}

// Remote is the remote section (eca-features 24).
type Remote struct {
	Enabled  bool   `json:"enabled"`
	Host     string `json:"host"`
	BindHost string `json:"bindHost"`
	Port     int    `json:"port"`
	Password string `json:"password"`
	TLS      struct {
		CertFile string `json:"certFile"`
		KeyFile  string `json:"keyFile"`
		CertURL  string `json:"certUrl"`
		KeyURL   string `json:"keyUrl"`
	} `json:"tls"`
}

// Network is the network section (eca-features 8).
type Network struct {
	CACertFile          string `json:"caCertFile"`
	ClientCert          string `json:"clientCert"`
	ClientKey           string `json:"clientKey"`
	ClientKeyPassphrase string `json:"clientKeyPassphrase"`
}

// Index is the index section.
type Index struct {
	IgnoreFiles []IgnoreFile `json:"ignoreFiles"`
	RepoMap     struct {
		MaxTotalEntries  int `json:"maxTotalEntries"`
		MaxEntriesPerDir int `json:"maxEntriesPerDir"`
	} `json:"repoMap"`
}

// IgnoreFile is one index.ignoreFiles.
type IgnoreFile struct {
	Type string `json:"type"` // gitignore
}

// HTTPClient is providers.<name>.httpClient.
type HTTPClient struct {
	Version string `json:"version"` // http-1.1 or http-2
}

// ProviderAuth is providers.<name>.auth: who is asked when a user logs in.
type ProviderAuth struct {
	URL      string `json:"url"`
	ClientID string `json:"clientId"`
}
