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

// SandboxNetwork is toolCall.sandboxNetwork: all of the network for what on and required bind, or hosts.
type SandboxNetwork struct {
	All   bool     `json:"-"`     // written as true
	Allow []string `json:"allow"` // hosts
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *SandboxNetwork) UnmarshalJSON(data []byte) error {
	*n = SandboxNetwork{}
	if json.Unmarshal(data, &n.All) == nil {
		return nil
	}
	type plain SandboxNetwork
	return json.Unmarshal(data, (*plain)(n))
}

// MarshalJSON implements json.Marshaler.
func (n SandboxNetwork) MarshalJSON() ([]byte, error) {
	if len(n.Allow) == 0 {
		return json.Marshal(n.All)
	}
	type plain SandboxNetwork
	return json.Marshal(plain(n))
}

// PathEntry is one element of rules, commands or skills: a file or a folder.
type PathEntry struct {
	Path string `json:"path"`
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
	Commit string `json:"commit"` // of a git repository: the one that counts; empty: the one fetched last
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

// ProviderAuth is providers.<name>.auth: the OAuth 2 server that logs users in, and as
// which client eca, which has none of its own, asks it.
type ProviderAuth struct {
	URL          string            `json:"url"`          // the issuer, whose metadata says what is not set below; of GitHub Copilot: the GitHub host
	ClientID     string            `json:"clientId"`     // of the user's own application
	ClientSecret string            `json:"clientSecret"` // empty for public clients
	Scopes       Strings           `json:"scopes"`       // one may be written as a string
	AuthorizeURL string            `json:"authorizeUrl"`
	TokenURL     string            `json:"tokenUrl"`
	DeviceURL    string            `json:"deviceUrl"`
	RedirectURL  string            `json:"redirectUrl"` // as registered; default: http://127.0.0.1/callback at any port
	Params       map[string]string `json:"params"`      // further parameters of the request for a login
}

// Auth is the auth section.
type Auth struct {
	Store string `json:"store"` // where logins are kept: auto (default), keychain or file
}
