package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// Keys of what a user enters to log in (eca-protocol 4.11).
const (
	fieldKey    = "api-key"
	fieldURL    = "url"
	fieldModels = "models"
	fieldCode   = "code"
)

// methods lists the ways to log in to a provider: by OAuth, if the configuration says
// how, and by an API key, if it has the kind of API that takes one.
func methods(name string, p config.Provider) []auth.Method {
	if p.API == "" || p.API == apiCassette {
		return nil
	}
	out := oauthMethods(name, p)
	if name != copilot && (p.API != ollama.API || needsKey(p)) {
		out = append(out, auth.Method{Key: auth.APIKey, Label: "API key"})
	}
	return out
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

// providerNamed returns the provider that a user means by a name, also one that only a login
// is left of; an unknown name stays as it is.
func (d *Daemon) providerNamed(name string) string {
	provider, known := d.Config().ProviderNamed(name)
	if known {
		return provider
	}
	entered, _ := d.creds.Load().All() // the error is among the configuration's problems
	if _, loggedIn := entered[config.Kebab(name)]; loggedIn {
		return config.Kebab(name)
	}
	return name
}

// LoggedIn says whether a login to a provider is stored.
func (d *Daemon) LoggedIn(name string) bool {
	entered, _ := d.creds.Load().All() // the error is among the configuration's problems
	_, ok := entered[d.providerNamed(name)]
	return ok
}

// Login returns what a user does next to log in to a provider. An empty method means the
// only one, or lets the user choose. A login by OAuth goes on in the background. The
// error is an *auth.InvalidError, or ctx's.
func (d *Daemon) Login(ctx context.Context, name, method string) (auth.Step, error) {
	name = d.providerNamed(name)
	p, err := d.loginProvider(name)
	if err != nil {
		return auth.Step{}, err
	}
	all := methods(name, p)
	if method == "" {
		if len(all) > 1 {
			return auth.Step{Action: auth.ActionChoose, Methods: all, Message: hint(name)}, nil
		}
		method = all[0].Key
	}
	if method == "manual" { // the reference server's name for it
		method = auth.APIKey
	}
	if !slices.ContainsFunc(all, func(m auth.Method) bool { return m.Key == method }) {
		reason := fmt.Sprintf("provider %s has no login method %.64q; it has: %s", d.Config().Spelled(name), method, oneOf(all))
		return auth.Step{}, &auth.InvalidError{Reason: cmp.Or(notOffered(name, method), reason)}
	}
	switch method {
	case methodBrowser:
		return d.loginBrowser(ctx, name, p)
	case methodDevice:
		return d.loginDevice(ctx, name, p)
	}
	return auth.Step{Action: auth.ActionInput, Fields: fields(p), Message: hint(name)}, nil
}

// LoginInput stores what was entered, or finishes a login in a browser with what was
// pasted; values of fields that Login does not name are ignored. The notice, if any, says
// why the login is not the one that is used. The error is an *auth.InvalidError if what
// was entered can not be right.
func (d *Daemon) LoginInput(ctx context.Context, name string, values map[string]string) (notice string, err error) {
	name = d.providerNamed(name)
	p, err := d.loginProvider(name)
	if err != nil {
		return "", err
	}
	if _, key := values[fieldKey]; !key && values[fieldCode] != "" {
		if a := d.logins.find(name); a != nil && a.paste != nil {
			return a.answer(ctx, values[fieldCode])
		}
		return "", &auth.InvalidError{Reason: fmt.Sprintf("no login of provider %s waits for a code; begin it again", d.Config().Spelled(name))}
	}
	if name == copilot {
		return "", &auth.InvalidError{Reason: "GitHub Copilot takes no API key; log in by code"}
	}
	c, err := credential(fields(p), values)
	if err != nil {
		return "", err
	}
	d.logins.cancel(name)
	if err := d.creds.Load().Set(ctx, name, c); err != nil {
		return "", err
	}
	d.reload()
	return d.keyNotice(name, "The key you entered for provider %s is stored, but not used: %s has one that wins. Remove it there to use yours."), nil
}

// CheckKey asks a provider whether it accepts what was entered, before it is stored. The
// outcome says so, or why that is not known; the error says that it does not accept it.
func (d *Daemon) CheckKey(ctx context.Context, name string, values map[string]string) (outcome string, err error) {
	name = d.providerNamed(name)
	configured, err := d.loginProvider(name)
	if err != nil {
		return "", err
	}
	c, err := credential(fields(configured), values)
	if err != nil {
		return "", err
	}
	configured.Key, configured.URL = c.Key.Reveal(), cmp.Or(configured.URL, c.URL)
	if !listsModels(configured) {
		return fmt.Sprintf("Whether %s accepts the key will show with the first prompt: it has no list of models to ask for.", d.Config().Spelled(name)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyCheckTime)
	defer cancel()
	d.models.mu.Lock()
	at := d.models.endpoint(name, configured)
	d.models.mu.Unlock()
	at, err = at.Authorized(ctx)
	var listed map[string]llm.Facts
	if err == nil {
		listed, err = listModels(ctx, configured.API, at)
	}
	var failed *llm.Error
	switch {
	case err == nil:
		return fmt.Sprintf("%s accepts the key and lists %s.", d.Config().Spelled(name), counted(len(listed), "model")), nil
	case errors.As(err, &failed) && failed.Kind == llm.ErrAuth:
		return "", fmt.Errorf("%s does not accept the key, so it was not stored: %w", d.Config().Spelled(name), err)
	}
	return unchecked(d.Config().Spelled(name), configured.URL, err), nil
}

// unchecked says that a key is stored without a check, and why.
func unchecked(name, address string, err error) string {
	var failed *llm.Error
	switch typed := errors.As(err, &failed); {
	case !typed && errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("%s did not answer within %s", name, keyCheckTime)
	case typed && failed.Kind == llm.ErrUnreachable && localhost.IsURL(address): // it is the user's to start
		return fmt.Sprintf("The key could not be checked: %v", err)
	}
	return fmt.Sprintf("The key is stored without a check: %s `eca doctor` checks it again.", sentence(err))
}

// sentence is an error as a sentence.
func sentence(err error) string { return strings.TrimRight(err.Error(), ". ") + "." }

// keyCheckTime bounds how long a provider is asked about a key.
const keyCheckTime = 10 * time.Second

// Logout forgets what was entered for a provider. The notice, if any, says where a key
// still comes from. The error is an *auth.InvalidError if nobody knows the provider.
func (d *Daemon) Logout(ctx context.Context, name string) (notice string, err error) {
	name = d.providerNamed(name)
	d.logins.cancel(name)
	existed, err := d.creds.Load().Delete(ctx, name)
	if err != nil {
		return "", err
	}
	if _, configured := d.Config().Providers[name]; !configured && !existed {
		return "", d.unknownProvider(name)
	}
	d.reload()
	return d.keyNotice(name, "Provider %s still has a key: it comes from %s, where eca does not remove it."), nil
}

// CancelLogin ends a provider's login that waits for the user.
func (d *Daemon) CancelLogin(name string) { d.logins.cancel(d.providerNamed(name)) }

// LoginDone has Watch tell clients what a login changes, which was made outside of their
// requests.
func (d *Daemon) LoginDone(string) {
	select {
	case d.loginDone <- struct{}{}:
	default:
	}
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
	return fmt.Sprintf(format, d.Config().Spelled(name), cmp.Or(origin.String(), "what AWS's own tools use"))
}

func (d *Daemon) loginProvider(name string) (config.Provider, error) {
	p, ok := d.Config().Providers[name]
	switch {
	case !ok:
		return p, d.unknownProvider(name)
	case p.API == "":
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s has no api in the configuration; it can not be used yet", d.Config().Spelled(name))}
	case len(methods(name, p)) == 0 && name == copilot:
		return p, &auth.InvalidError{Reason: notOffered(name, "")}
	case len(methods(name, p)) == 0:
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s needs no login", d.Config().Spelled(name))}
	}
	return p, nil
}

func (d *Daemon) unknownProvider(name string) error {
	hint := d.Config().SimilarProvider(name)
	return &auth.InvalidError{Reason: fmt.Sprintf("there is no provider %.64q in the configuration%s", name, hint)}
}

// credential checks what was entered.
func credential(fields []auth.Field, values map[string]string) (auth.Credential, error) {
	c := auth.Credential{Type: auth.APIKey}
	for _, f := range fields {
		v := strings.TrimSpace(values[f.Key])
		if v == "" {
			return c, &auth.InvalidError{Reason: fmt.Sprintf("%s (%s) is missing: it is empty", f.Key, f.Label)}
		}
		switch f.Key {
		case fieldKey:
			if !headerSafe(v) {
				return c, &auth.InvalidError{Reason: fmt.Sprintf("the API key must be at most %d visible ASCII characters without spaces", maxKey)}
			}
			c.Key = auth.NewSecret(v)
		case fieldURL:
			if !config.IsWebURL(v) {
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

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
