package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// provider is a configured provider as it is reached: with the key that is used.
type provider struct {
	config.Provider
	auth auth.Status
}

// providers returns the configured providers by name; m.mu is held.
//
// Of several keys the configuration's own wins: it was written down for this place.
// Then comes the one the user entered, before <PROVIDER>_API_KEY: who gives eca a key
// wants it to be used, and a variable may be there for other programs (eca-features
// 5.2).
func (m *models) providers() map[string]provider {
	entered, _ := m.creds().All() // the error is among the configuration's problems
	out := make(map[string]provider, len(m.cfg.Providers))
	for name, cfg := range m.cfg.Providers {
		p := provider{Provider: cfg}
		if cfg.FetchModels == nil {
			p.FetchModels = m.cfg.FetchModels
		}
		origin, _ := m.cfg.Origin("providers", name, "key")
		variable, _ := origin.Variable()
		c, loggedIn := entered[name]
		switch {
		case cfg.Key != "" && !origin.Shared():
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromConfig}
		case loggedIn:
			p.Key = c.Key.Reveal()
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromLogin}
		case cfg.Key != "":
			p.auth = auth.Status{State: auth.Authenticated, Type: auth.APIKey, Source: auth.FromEnvironment, Variable: variable}
		case m.signs(cfg):
			// AWS's own tools need no key of ours. It is not shown as a variable: which
			// of several places it comes from can change with every request.
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

// signs says whether a provider is asked with credentials of AWS. People have them for
// other purposes, so that they count only where models of Bedrock are configured.
func (m *models) signs(p config.Provider) bool {
	return p.API == bedrock.API && len(p.Models) > 0 && m.aws().Check() == nil
}

// describe lists the configured providers, and those somebody has logged in to, by name.
func (m *models) describe() []llm.Provider {
	entered, _ := m.creds().All()
	m.mu.Lock()
	defer m.mu.Unlock()
	providers := m.providers()
	var out []llm.Provider
	for name, p := range providers {
		if p.auth.State == auth.Local && usable(p.Provider) && !m.offered(name, p) {
			p.auth.State = auth.NotRunning
		}
		d := llm.Provider{
			ID: name, Label: label(name), Configured: true, Auth: p.auth, Methods: methods(p.Provider),
			API: p.API, URL: bareURL(p.Provider), FetchModels: p.FetchModels,
			Headers: slices.Sorted(maps.Keys(p.ExtraHeaders)),
		}
		if f := m.fetched[name]; f.failed != "" && sameModels(f.from, p.Provider) {
			d.Unlisted = f.failed
		}
		switch {
		case !usable(p.Provider):
			d.Missing = m.missing(name, p)
		case !m.offered(name, p):
			d.Missing = "its server to run"
		default:
			for _, model := range m.list(name, p) {
				d.Models = append(d.Models, llm.ProviderModel{Name: model, Facts: m.facts(name, p, model)})
			}
			if len(d.Models) == 0 && !listsModels(p.Provider) {
				d.Missing = "models in the configuration"
			}
		}
		out = append(out, d)
	}
	for name, c := range entered {
		if _, configured := providers[name]; !configured {
			out = append(out, llm.Provider{
				ID: name, Label: label(name), Auth: auth.Status{State: auth.Authenticated, Type: c.Type, Source: auth.FromLogin},
			})
		}
	}
	slices.SortFunc(out, func(a, b llm.Provider) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// label is what people call a provider, where that is not its name.
func label(name string) string {
	return map[string]string{
		"anthropic": "Anthropic", "azure": "Azure", "bedrock": "AWS Bedrock", "deepseek": "DeepSeek", "google": "Google", "litellm": "LiteLLM", "lmstudio": "LM Studio",
		"mistral": "Mistral", "moonshot": "Moonshot", "ollama": "Ollama", "openai": "OpenAI", "openrouter": "OpenRouter", "z-ai": "Z-AI",
	}[name]
}

// bareURL is a provider's URL without what may be secret in it.
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

// Keys of what a user enters to log in (eca-protocol 4.11).
const (
	fieldKey    = "api-key"
	fieldURL    = "url"
	fieldModels = "models"
)

// methods lists the ways to log in to a provider: an API key, if it has the kind of API
// that takes one.
func methods(p config.Provider) []auth.Method {
	if p.API == "" || p.API == apiCassette || p.API == ollama.API && !needsKey(p) {
		return nil
	}
	return []auth.Method{{Key: auth.APIKey, Label: "API key"}}
}

// fields lists what must be entered: the key, and what neither the configuration nor
// the provider itself can say.
func fields(p config.Provider) []auth.Field {
	out := []auth.Field{{Key: fieldKey, Label: "API key", Secret: true}}
	if p.URL == "" {
		out = append(out, auth.Field{Key: fieldURL, Label: "URL of the API"})
	}
	if len(p.Models) == 0 && p.FetchModels != nil && !*p.FetchModels {
		out = append(out, auth.Field{Key: fieldModels, Label: "Models, separated by commas"})
	}
	return out
}

// Providers lists the providers the user has.
func (d *Daemon) Providers() []llm.Provider { return d.models.describe() }

// Login returns what must be entered to log in to a provider. An empty method means the
// only one. The error is an *auth.InvalidError.
func (d *Daemon) Login(name, method string) ([]auth.Field, error) {
	p, err := d.loginProvider(name)
	if err != nil {
		return nil, err
	}
	if method != "" && method != auth.APIKey {
		return nil, &auth.InvalidError{Reason: fmt.Sprintf("provider %s has no login method %.64q; it has: %s", name, method, auth.APIKey)}
	}
	return fields(p), nil
}

// LoginInput stores what was entered; values of fields that Login does not name are
// ignored. The notice, if any, says why the key is not the one that is used. The error
// is an *auth.InvalidError if what was entered can not be right.
func (d *Daemon) LoginInput(ctx context.Context, name string, values map[string]string) (notice string, err error) {
	p, err := d.loginProvider(name)
	if err != nil {
		return "", err
	}
	c, err := credential(fields(p), values)
	if err != nil {
		return "", err
	}
	if err := d.creds.Load().Set(ctx, name, c); err != nil {
		return "", err
	}
	d.reload()
	return d.keyNotice(name, "The key you entered for provider %s is stored, but not used: %s has one that wins. Remove it there to use yours."), nil
}

// Logout forgets what was entered for a provider. The notice, if any, says where a key
// still comes from. The error is an *auth.InvalidError if nobody knows the provider.
func (d *Daemon) Logout(ctx context.Context, name string) (notice string, err error) {
	existed, err := d.creds.Load().Delete(ctx, name)
	if err != nil {
		return "", err
	}
	if _, configured := d.Config().Providers[name]; !configured && !existed {
		return "", unknownProvider(name)
	}
	d.reload()
	return d.keyNotice(name, "Provider %s still has a key: it comes from %s, where eca does not remove it."), nil
}

// keyNotice says where a provider's key comes from, unless it was entered.
func (d *Daemon) keyNotice(name, format string) string {
	d.models.mu.Lock()
	defer d.models.mu.Unlock()
	p, ok := d.models.providers()[name]
	if !ok || p.auth.State != auth.Authenticated || p.auth.Source == auth.FromLogin {
		return ""
	}
	origin, _ := d.Config().Origin("providers", name, "key")
	return fmt.Sprintf(format, name, cmp.Or(origin.String(), "what AWS's own tools use"))
}

func (d *Daemon) loginProvider(name string) (config.Provider, error) {
	p, ok := d.Config().Providers[name]
	switch {
	case !ok:
		return p, unknownProvider(name)
	case p.API == "":
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s has no api in the configuration; it can not be used yet", name)}
	case len(methods(p)) == 0:
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s needs no login", name)}
	}
	return p, nil
}

func unknownProvider(name string) error {
	return &auth.InvalidError{Reason: fmt.Sprintf("there is no provider %.64q in the configuration", name)}
}

// credential checks what was entered.
func credential(fields []auth.Field, values map[string]string) (auth.Credential, error) {
	c := auth.Credential{Type: auth.APIKey}
	for _, f := range fields {
		v := strings.TrimSpace(values[f.Key])
		if v == "" {
			return c, &auth.InvalidError{Reason: fmt.Sprintf("%s (%s) is missing", f.Key, f.Label)}
		}
		switch f.Key {
		case fieldKey:
			if !headerSafe(v) {
				return c, &auth.InvalidError{Reason: fmt.Sprintf("the API key must be at most %d visible ASCII characters without spaces", maxKey)}
			}
			c.Key = auth.NewSecret(v)
		case fieldURL:
			u, err := url.Parse(v)
			if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
				return c, &auth.InvalidError{Reason: "the URL must begin with http:// or https:// and name a host"}
			}
			c.URL = v
		case fieldModels:
			for name := range strings.SplitSeq(v, ",") {
				if name = strings.TrimSpace(name); name != "" && !slices.Contains(c.Models, name) {
					c.Models = append(c.Models, name)
				}
			}
		}
	}
	return c, nil
}

// maxKey bounds a key; tokens of a few thousand characters exist.
const maxKey = 16 << 10

// headerSafe says whether a key can be sent: what is pasted with a line break or with
// typographic quotes fails here, with a reason, and not at the first prompt.
func headerSafe(key string) bool {
	return len(key) <= maxKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}
