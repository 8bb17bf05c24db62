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

// SandboxNetwork is the value of toolCall.sandboxNetwork: true gives full network access to commands
// that run in the sandbox because of the modes on and required; an object lists hosts.
type SandboxNetwork struct {
	All   bool     `json:"-"` // written as true
	Allow []string `json:"allow" doc:"Hosts that sandboxed commands without network reach through eca's proxy, as in sandboxHosts." each:"A host, *.suffix for all below one, or @npm, @pypi, @go, @crates."`
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
	Path string `json:"path" doc:"A file or a folder: absolute, ~/..., or relative to a workspace folder."`
}

// CustomTool is the value of customTools.<name> (eca-features.md 17).
type CustomTool struct {
	Description string         `json:"description" doc:"A description of the tool, for the model."`
	Command     string         `json:"command" doc:"The command; {{name}} stands for an argument."`
	Schema      map[string]any `json:"schema" doc:"Its arguments, as JSON Schema: properties and required." each:"A keyword of the schema."`
}

// Plugins is the plugins section (eca-features.md 21): the plugins to install, and the sources by
// name.
type Plugins struct {
	Install []string                `json:"install" doc:"What to install." each:"A plugin, as name or name@source."`
	Sources map[string]PluginSource `json:"-" rest:"true" doc:"A marketplace."`
}

// PluginSource is the value of plugins.<name>: the location of a marketplace.
type PluginSource struct {
	Source string `json:"source" doc:"Where it is: a git URL or a folder."`
	Commit string `json:"commit" doc:"The full id of the git commit to use. Without it: the commit that was fetched first, until /plugin-update."`
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

// Remote is the remote section (eca-features.md 24).
type Remote struct {
	Enabled  bool   `json:"enabled" doc:"Whether it runs."`
	Host     string `json:"host" doc:"The name under which clients reach it."`
	BindHost string `json:"bindHost" doc:"The address it listens at. Without it: this machine's own, or all if tls has a certificate."`
	Port     int    `json:"port" min:"0" max:"65535" doc:"The port it listens at. Without it: the first free one from 7777 to 7796."`
	Password string `json:"password" doc:"A password for clients. Without it, only devices that were paired with eca remote pair can connect."`

	Push bool `json:"push" doc:"Whether devices may subscribe to notifications, which eca sends over the push services of their browsers."`

	Hosts   []string `json:"hosts" doc:"Other names under which clients reach it, such as that of a proxy." each:"A name without a port."`
	Origins []string `json:"origins" doc:"Web pages elsewhere that may call it. Without it: https://web.eca.dev." each:"An origin, like https://example.com."`

	TLS struct {
		CertFile string `json:"certFile" doc:"A PEM file with the certificate."`
		KeyFile  string `json:"keyFile" doc:"A PEM file with the certificate's key."`
		CertURL  string `json:"certUrl" pending:"true" doc:"Where the certificate is fetched."`
		KeyURL   string `json:"keyUrl" pending:"true" doc:"Where the key is fetched."`
	} `json:"tls" doc:"Its certificate."`
}

// Network is the network section (eca-features.md 8).
type Network struct {
	CACertFile          string `json:"caCertFile" doc:"A PEM file with certificates of authorities, used in addition to the system's."`
	ClientCert          string `json:"clientCert" doc:"A PEM file with the certificate that eca shows; needs clientKey."`
	ClientKey           string `json:"clientKey" doc:"A PEM file with that certificate's key."`
	ClientKeyPassphrase string `json:"clientKeyPassphrase" doc:"The key's passphrase."`
}

// Index is the index section.
type Index struct {
	IgnoreFiles []IgnoreFile `json:"ignoreFiles" doc:"Files that the index leaves out." each:"A way to leave files out."`
	RepoMap     struct {
		MaxTotalEntries  int `json:"maxTotalEntries" default:"800" min:"0" doc:"The most entries of the whole map."`
		MaxEntriesPerDir int `json:"maxEntriesPerDir" default:"50" min:"0" doc:"The most entries of one folder."`
	} `json:"repoMap" doc:"The map of the repository."`
}

// IgnoreFile is an element of index.ignoreFiles.
type IgnoreFile struct {
	Type string `json:"type" enum:"gitignore" doc:"gitignore: files that .gitignore excludes."`
}

// HTTPClient is the value of providers.<name>.httpClient.
type HTTPClient struct {
	Version string `json:"version" enum:"http-1.1 http-2" strict:"true" doc:"The HTTP version."`
}

// ProviderAuth is providers.<name>.auth: the OAuth 2 server that logs users in, and the client that
// eca acts as, since it has no client of its own.
type ProviderAuth struct {
	URL          string            `json:"url" doc:"The issuer, whose metadata has the other addresses; for GitHub Copilot, the GitHub host."`
	ClientID     string            `json:"clientId" doc:"The id of your own application."`
	ClientSecret string            `json:"clientSecret" doc:"Its secret; leave it out for public clients."`
	Scopes       Strings           `json:"scopes" doc:"The scopes to request." each:"A scope."`
	AuthorizeURL string            `json:"authorizeUrl" doc:"Where users log in."`
	TokenURL     string            `json:"tokenUrl" doc:"Where tokens are issued."`
	DeviceURL    string            `json:"deviceUrl" doc:"Where logins with a code begin."`
	RedirectURL  string            `json:"redirectUrl" doc:"Where a login returns, as registered (default: http://127.0.0.1/callback at any port)."`
	Params       map[string]string `json:"params" doc:"Further parameters of the request for a login." each:"A parameter's value."`
}

// Auth is the auth section.
type Auth struct {
	Store string `json:"store" default:"auto" enum:"auto keychain file" doc:"Where logins are stored. auto: in the system's keychain, or, if that fails, in a file that only you can read. keychain: only in the keychain. file: only in the file."`
}
