package providers

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
	"github.com/seed-dec29ce4/eca/daemon/login"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// Keys of the values that a user enters to log in (eca-protocol.md 4.11).
const (
	fieldKey    = "api-key"
	fieldURL    = "url"
	fieldModels = "models"
	fieldCode   = "code"
)

// methods lists the ways to log in to a provider: by OAuth, if it is configured, and by API key, if
// the provider's API uses keys.
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

// fields lists the values that the user must enter: the key, and values that neither the
// configuration nor the provider supplies.
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

// Logins logs users in to providers and out.
type Logins struct {
	models   *Models
	attempts *login.Attempts
	reload   func() bool
	changed  func()
}

// NewLogins returns the logins to the configured providers. reload applies stored credentials;
// changed notifies clients after a login that they did not request. EndProviderLogins must be
// called.
func NewLogins(m *Models, reload func() bool, changed func()) *Logins {
	return &Logins{models: m, attempts: login.New(), reload: reload, changed: changed}
}

// EndProviderLogins cancels pending logins.
func (l *Logins) EndProviderLogins() { l.attempts.Close() }

func (l *Logins) config() *config.Loaded { return l.models.view().cfg }

// providerNamed returns the ID of the provider that a user means by a name, even if the provider is
// no longer configured and only a login is left. It returns an unknown name unchanged.
func (l *Logins) providerNamed(name string) string {
	provider, known := l.config().ProviderNamed(name)
	if known {
		return provider
	}
	if _, loggedIn := l.models.view().storedLogins[config.Kebab(name)]; loggedIn {
		return config.Kebab(name)
	}
	return name
}

// LoggedIn reports whether a login to a provider is stored.
func (l *Logins) LoggedIn(name string) bool {
	_, ok := l.models.view().storedLogins[l.providerNamed(name)]
	return ok
}

// Login returns the user's next step to log in to a provider. An empty method selects the only one,
// or lets the user choose. A login by OAuth continues in the background. The error is an
// *auth.InvalidError or that of ctx.
func (l *Logins) Login(ctx context.Context, name, method string) (auth.Step, error) {
	name = l.providerNamed(name)
	p, err := l.loginProvider(name)
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
		reason := fmt.Sprintf("provider %s has no login method %.64q; it has: %s", l.config().Spelled(name), method, oneOf(all))
		return auth.Step{}, &auth.InvalidError{Reason: cmp.Or(alternativeTo(name, method), reason)}
	}
	switch method {
	case methodBrowser:
		return l.loginBrowser(ctx, name, p)
	case methodDevice:
		return l.loginDevice(ctx, name, p)
	}
	return auth.Step{Action: auth.ActionInput, Fields: fields(p), Message: hint(name)}, nil
}

// LoginInput stores the entered values, or completes a browser login with a pasted code. It ignores
// fields that Login did not request. A notice says why the login is stored but not used. The error
// is an *auth.InvalidError if the values are invalid.
func (l *Logins) LoginInput(ctx context.Context, name string, values map[string]string) (notice string, err error) {
	name = l.providerNamed(name)
	p, err := l.loginProvider(name)
	if err != nil {
		return "", err
	}
	if _, key := values[fieldKey]; !key && values[fieldCode] != "" {
		if a := l.attempts.Find(name); a != nil && a.Pasting() {
			return a.Answer(ctx, values[fieldCode])
		}
		return "", &auth.InvalidError{Reason: fmt.Sprintf("no login to provider %s is waiting for a code; start it again", l.config().Spelled(name))}
	}
	if name == copilot {
		return "", &auth.InvalidError{Reason: "GitHub Copilot does not use API keys; log in with a code"}
	}
	c, err := credential(fields(p), values)
	if err != nil {
		return "", err
	}
	l.attempts.Cancel(name)
	if err := l.models.opts.Credentials().Set(ctx, name, c); err != nil {
		return "", err
	}
	l.reload()
	return l.keyNotice(name, "The key you entered for provider %s is stored, but not used: %s has one that wins. Remove it there to use yours."), nil
}

// CheckKey asks a provider whether it accepts the entered key, before the key is stored. outcome
// says that it does, or why that is not known. err is set if the provider does not accept the key.
func (l *Logins) CheckKey(ctx context.Context, name string, values map[string]string) (outcome string, err error) {
	name = l.providerNamed(name)
	configured, err := l.loginProvider(name)
	if err != nil {
		return "", err
	}
	c, err := credential(fields(configured), values)
	if err != nil {
		return "", err
	}
	configured.Key, configured.URL = c.Key.Reveal(), cmp.Or(configured.URL, c.URL)
	if !hasModelList(configured) {
		return fmt.Sprintf("%s has no list of models, so the first prompt will show whether it accepts the key.", l.config().Spelled(name)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyCheckTimeout)
	defer cancel()
	at := l.models.view().endpoint(name, configured)
	at, err = at.Authorize(ctx)
	var listed map[string]llm.Facts
	if err == nil {
		listed, err = listModels(ctx, configured.API, at)
	}
	var failed *llm.Error
	switch {
	case err == nil:
		return fmt.Sprintf("%s accepts the key and lists %s.", l.config().Spelled(name), doctor.Count(len(listed), "model")), nil
	case errors.As(err, &failed) && failed.Page:
		explained := *failed
		explained.Message += ". " + l.models.view().remedy(name, failed)
		err = &explained
	}
	if failed != nil && failed.Kind == llm.ErrAuth { // even if the answer is a web page
		return "", fmt.Errorf("%s does not accept the key, so it was not stored: %w", l.config().Spelled(name), err)
	}
	return uncheckedNotice(l.config().Spelled(name), configured.URL, err), nil
}

// uncheckedNotice returns a message that a key is stored without a check, and why.
func uncheckedNotice(name, address string, err error) string {
	var failed *llm.Error
	if !errors.As(err, &failed) && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s did not answer within %s", name, keyCheckTimeout)
	}
	if start := startServer(name, address, err); start != "" {
		err = fmt.Errorf("%s %s", sentence(err), start)
	}
	return fmt.Sprintf("The key is stored without a check: %s `eca doctor` checks it again.", sentence(err))
}

// startServer returns how to start a provider's server on this machine if err means that it is not
// running, otherwise "".
func startServer(name, address string, err error) string {
	var failed *llm.Error
	if !errors.As(err, &failed) || failed.Kind != llm.ErrUnreachable || !localhost.IsURL(address) || !strings.Contains(failed.Message, "refused") {
		return ""
	}
	how := map[string]string{"ollama": " (ollama serve)", "lmstudio": " (lms server start)", "litellm": " (litellm)"}[name]
	return fmt.Sprintf("Nothing listens at %s: start the server%s", address, how)
}

// sentence returns an error's text as a sentence.
func sentence(err error) string { return strings.TrimRight(err.Error(), ". ") + "." }

// keyCheckTimeout limits the check of a key.
const keyCheckTimeout = 10 * time.Second

// Logout deletes the stored login to a provider. A notice says where the provider still gets a key
// from. The error is an *auth.InvalidError if the provider is unknown.
func (l *Logins) Logout(ctx context.Context, name string) (notice string, err error) {
	name = l.providerNamed(name)
	l.attempts.Cancel(name)
	existed, err := l.models.opts.Credentials().Delete(ctx, name)
	if err != nil {
		return "", err
	}
	if _, configured := l.config().Providers[name]; !configured && !existed {
		return "", l.unknownProvider(name)
	}
	l.reload()
	return l.keyNotice(name, "Provider %s still has a key: it comes from %s, where eca does not remove it."), nil
}

// CancelLogin cancels a provider's pending login.
func (l *Logins) CancelLogin(name string) { l.attempts.Cancel(l.providerNamed(name)) }

// LoginDone makes Watch notify clients after a login that they did not request.
func (l *Logins) LoginDone(string) { l.changed() }

// keyNotice formats a notice with the source of a provider's key. It returns "" if the key is a
// stored login.
func (l *Logins) keyNotice(name, format string) string {
	v := l.models.view()
	p, ok := v.all[name]
	if !ok || p.auth.State != auth.Authenticated || p.auth.Source == auth.FromLogin {
		return ""
	}
	origin, _ := v.cfg.Origin("providers", name, "key")
	return fmt.Sprintf(format, v.cfg.Spelled(name), cmp.Or(origin.String(), "what AWS's own tools use"))
}

func (l *Logins) loginProvider(name string) (config.Provider, error) {
	p, ok := l.config().Providers[name]
	switch {
	case !ok:
		return p, l.unknownProvider(name)
	case p.API == "":
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s has no api in the configuration; it cannot be used yet", l.config().Spelled(name))}
	case len(methods(name, p)) == 0 && name == copilot:
		return p, &auth.InvalidError{Reason: alternativeTo(name, "")}
	case len(methods(name, p)) == 0:
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s needs no login", l.config().Spelled(name))}
	}
	return p, nil
}

func (l *Logins) unknownProvider(name string) error {
	hint := l.config().SimilarProvider(name)
	return &auth.InvalidError{Reason: fmt.Sprintf("there is no provider %.64q in the configuration%s", name, hint)}
}

// credential checks the entered values and returns them as a credential.
func credential(fields []auth.Field, values map[string]string) (auth.Credential, error) {
	c := auth.Credential{Type: auth.APIKey}
	for _, f := range fields {
		v := strings.TrimSpace(values[f.Key])
		if v == "" {
			return c, &auth.InvalidError{Reason: fmt.Sprintf("%s (%s) is empty; enter it", f.Key, f.Label)}
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

// maxKey limits the length of a key; tokens of a few thousand characters exist.
const maxKey = 16 << 10

// headerSafe reports whether a key can be sent in a header. A key that was pasted with a line break
// or with typographic quotes is refused here, with a reason, instead of failing at the first
// prompt.
func headerSafe(key string) bool {
	return len(key) <= maxKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}
