package providers

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// provider is a configured provider with the key that is used for it.
type provider struct {
	config.Provider
	auth auth.Status
}

// providers returns the configured providers by name.
//
// If there are several keys, one in the configuration itself wins, because it was written for eca.
// The user's login comes next, before variables and netrc files, which may be meant for other
// programs (eca-features.md 5.2).
func (m *Models) providers(loaded *config.Loaded, storedLogins map[string]auth.Credential) map[string]provider {
	out := make(map[string]provider, len(loaded.Providers))
	for name, cfg := range loaded.Providers {
		if name == googleProvider {
			if origin, ok := loaded.Origin("providers", name, "api"); ok && origin.IsDefault() && !googleNative(cfg.URL) {
				cfg.API = openai.APIChat
				cfg.Path = cmp.Or(cfg.Path, "/chat/completions")
			}
		}
		p := provider{Provider: cfg}
		if cfg.FetchModels == nil {
			p.FetchModels = loaded.FetchModels
		}
		origin, _ := loaded.Origin("providers", name, "key")
		variable, fromEnv := origin.Variable()
		c, loggedIn := storedLogins[name]
		switch {
		case cfg.Key != "" && !origin.Shared():
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromConfig}
		case loggedIn && c.Type == auth.OAuth:
			// An expired login is not replaced with a key that happens to exist: requests with that
			// key may cost money.
			p.Key, p.auth = "", m.oauthStatus(cfg, c)
			needs := p.auth.State == auth.Expired
			p.RequiresAuth = &needs
		case loggedIn:
			p.Key = c.Key.Reveal()
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromLogin}
		case fromEnv:
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromEnvironment, Variable: variable}
		case cfg.Key != "": // from the netrc file that keyRc names
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromConfig}
		case m.usesAWSCredentials(cfg):
			// The credentials come from AWS's own tools. No variable is shown, because they can
			// come from a different place with each request.
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromEnvironment}
			p.RequiresAuth = new(bool)
		case needsKey(cfg):
			p.auth = auth.Status{State: auth.Unauthenticated}
		default:
			p.auth = auth.Status{State: auth.Local}
		}
		if cfg.URL == "" {
			p.URL = c.URL
		}
		if p.URL == "" && cfg.API == bedrock.API && p.auth.State == auth.Authenticated {
			if region := m.aws().Region(); region != "" {
				p.URL = bedrock.URL(region)
			}
		}
		if len(cfg.Models) == 0 && len(c.Models) > 0 {
			p.Models = map[string]config.Model{}
			for _, name := range c.Models {
				p.Models[name] = config.Model{}
			}
		}
		out[name] = p
	}
	return out
}

// googleProvider is configured for Google's own API. The reference server supports only Google's
// OpenAI-compatible API, so a URL that was written for it, or the URL of a proxy, selects that API.
const googleProvider = "google"

// googleNative reports whether a URL is that of Google's own API: it ends with the version.
func googleNative(at string) bool {
	u, err := url.Parse(strings.TrimRight(at, "/"))
	if err != nil {
		return true
	}
	last := path.Base(u.Path)
	return strings.HasPrefix(last, "v1") || u.Path == "" && strings.HasSuffix(u.Hostname(), ".googleapis.com")
}

// usesAWSCredentials reports whether requests to a provider use AWS credentials. Users may have
// such credentials for other purposes, so they are used only if Bedrock models are configured.
func (m *Models) usesAWSCredentials(p config.Provider) bool {
	return p.API == bedrock.API && len(p.Models) > 0 && m.aws().Check() == nil
}

// describe lists the configured providers and those that the user has logged in to, sorted by name.
func (v *view) describe() []llm.Provider {
	var out []llm.Provider
	for name, p := range v.all {
		if p.auth.State == auth.Local && usable(p.Provider) && !v.offered(name, p) {
			p.auth.State = auth.NotRunning
		}
		d := llm.Provider{
			ID: name, Spelled: v.cfg.Spelled(name), Label: label(name), Configured: true, Auth: p.auth, Methods: methods(name, p.Provider),
			API: p.API, URL: bareURL(p.Provider), FetchModels: p.FetchModels,
			Headers: slices.Sorted(maps.Keys(p.ExtraHeaders)),
		}
		if f := v.lists[name]; f.failure != "" && sameModels(f.provider, p.Provider) {
			d.ListError, d.KeyRefused = f.failure, f.keyRefused
		}
		d.FetchingModels = v.fetching[name] > 0
		unreadable := unreadableCassette(v, name, p.Provider)
		switch {
		case !usable(p.Provider):
			d.Missing = v.missingText(name, p)
		case !v.offered(name, p):
			d.Missing = "its server to run"
		case unreadable != "":
			d.Missing = "another url: " + unreadable
		default:
			for _, model := range v.modelsOf(name, p) {
				d.Models = append(d.Models, llm.ProviderModel{Name: model, Facts: v.facts(name, p, model), ServerTools: serverTools(p.Models[model])})
			}
			if len(d.Models) == 0 && !hasModelList(p.Provider) {
				d.Missing = "models in the configuration"
			}
		}
		out = append(out, d)
	}
	for name, c := range v.storedLogins {
		if _, configured := v.all[name]; !configured {
			out = append(out, llm.Provider{
				ID: name, Spelled: name, Label: label(name), Auth: unconfiguredStatus(c),
			})
		}
	}
	slices.SortStableFunc(out, func(a, b llm.Provider) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// hostOf returns the host and port of a URL, or "".
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// label returns the usual name of a provider, if that is not its ID.
func label(name string) string {
	return map[string]string{
		"anthropic": "Anthropic", copilot: "GitHub Copilot", "azure": "Azure", "bedrock": "AWS Bedrock", "deepseek": "DeepSeek", "google": "Google", "litellm": "LiteLLM", "lmstudio": "LM Studio",
		"mistral": "Mistral", "moonshot": "Moonshot", "ollama": "Ollama", "openai": "OpenAI", "openrouter": "OpenRouter", "z-ai": "Z-AI",
	}[name]
}

// bareURL returns a provider's URL without the parts that may contain secrets.
func bareURL(p config.Provider) string {
	if p.API == apiCassette {
		return p.URL
	}
	u, err := url.Parse(p.URL)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// unconfiguredStatus returns the status of a login to a provider that is no longer configured.
func unconfiguredStatus(c auth.Credential) auth.Status {
	st := auth.Status{State: auth.Authenticated, Type: c.Type, Source: auth.FromLogin, Mode: c.Method, Expires: c.Expires}
	if c.Ended {
		st.State = auth.Expired
	}
	return st
}
