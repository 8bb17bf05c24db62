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

// Logins logs users in to providers and out.
type Logins struct {
	models   *Models
	attempts *login.Attempts
	reload   func() bool
	changed  func()
}

// NewLogins returns the logins to the providers of a configuration. reload has what was stored
// take effect; changed tells clients what a login changed that was made outside of their
// requests. EndProviderLogins must be called.
func NewLogins(m *Models, reload func() bool, changed func()) *Logins {
	return &Logins{models: m, attempts: login.New(), reload: reload, changed: changed}
}

// EndProviderLogins ends the logins that wait.
func (l *Logins) EndProviderLogins() { l.attempts.Close() }

func (l *Logins) config() *config.Loaded { return l.models.view().cfg }

// providerNamed returns the provider that a user means by a name, also one that only a login
// is left of; an unknown name stays as it is.
func (l *Logins) providerNamed(name string) string {
	provider, known := l.config().ProviderNamed(name)
	if known {
		return provider
	}
	if _, loggedIn := l.models.view().entered[config.Kebab(name)]; loggedIn {
		return config.Kebab(name)
	}
	return name
}

// LoggedIn says whether a login to a provider is stored.
func (l *Logins) LoggedIn(name string) bool {
	_, ok := l.models.view().entered[l.providerNamed(name)]
	return ok
}

// Login returns what a user does next to log in to a provider. An empty method means the
// only one, or lets the user choose. A login by OAuth goes on in the background. The
// error is an *auth.InvalidError, or ctx's.
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
		return auth.Step{}, &auth.InvalidError{Reason: cmp.Or(notOffered(name, method), reason)}
	}
	switch method {
	case methodBrowser:
		return l.loginBrowser(ctx, name, p)
	case methodDevice:
		return l.loginDevice(ctx, name, p)
	}
	return auth.Step{Action: auth.ActionInput, Fields: fields(p), Message: hint(name)}, nil
}

// LoginInput stores what was entered, or finishes a login in a browser with what was
// pasted; values of fields that Login does not name are ignored. The notice, if any, says
// why the login is not the one that is used. The error is an *auth.InvalidError if what
// was entered cannot be right.
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
		return "", &auth.InvalidError{Reason: fmt.Sprintf("no login of provider %s waits for a code; begin it again", l.config().Spelled(name))}
	}
	if name == copilot {
		return "", &auth.InvalidError{Reason: "GitHub Copilot takes no API key; log in by code"}
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

// CheckKey asks a provider whether it accepts what was entered, before it is stored. The
// outcome says so, or why that is not known; the error says that it does not accept it.
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
	if !listsModels(configured) {
		return fmt.Sprintf("%s has no list of models, so the first prompt will show whether it accepts the key.", l.config().Spelled(name)), nil
	}
	ctx, cancel := context.WithTimeout(ctx, keyCheckTime)
	defer cancel()
	at := l.models.view().endpoint(name, configured)
	at, err = at.Authorized(ctx)
	var listed map[string]llm.Facts
	if err == nil {
		listed, err = listModels(ctx, configured.API, at)
	}
	var failed *llm.Error
	switch {
	case err == nil:
		return fmt.Sprintf("%s accepts the key and lists %s.", l.config().Spelled(name), doctor.Count(len(listed), "model")), nil
	case errors.As(err, &failed) && failed.Page:
		told := *failed
		told.Message += ". " + l.models.view().remedy(name, failed)
		err = &told
	}
	if failed != nil && failed.Kind == llm.ErrAuth { // whatever the answer looks like
		return "", fmt.Errorf("%s does not accept the key, so it was not stored: %w", l.config().Spelled(name), err)
	}
	return unchecked(l.config().Spelled(name), configured.URL, err), nil
}

// unchecked says that a key is stored without a check, and why.
func unchecked(name, address string, err error) string {
	var failed *llm.Error
	if !errors.As(err, &failed) && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("%s did not answer within %s", name, keyCheckTime)
	}
	if start := startServer(name, address, err); start != "" {
		err = fmt.Errorf("%s %s", sentence(err), start)
	}
	return fmt.Sprintf("The key is stored without a check: %s `eca doctor` checks it again.", sentence(err))
}

// startServer says how to start a provider's server on this machine, if an error says that it
// does not run; else it is empty.
func startServer(name, address string, err error) string {
	var failed *llm.Error
	if !errors.As(err, &failed) || failed.Kind != llm.ErrUnreachable || !localhost.IsURL(address) || !strings.Contains(failed.Message, "refused") {
		return ""
	}
	how := map[string]string{"ollama": " (ollama serve)", "lmstudio": " (lms server start)", "litellm": " (litellm)"}[name]
	return fmt.Sprintf("Nothing listens at %s: start the server%s", address, how)
}

// sentence is an error as a sentence.
func sentence(err error) string { return strings.TrimRight(err.Error(), ". ") + "." }

// keyCheckTime bounds how long a provider is asked about a key.
const keyCheckTime = 10 * time.Second

// Logout forgets what was entered for a provider. The notice, if any, says where a key
// still comes from. The error is an *auth.InvalidError if nobody knows the provider.
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

// CancelLogin ends a provider's login that waits for the user.
func (l *Logins) CancelLogin(name string) { l.attempts.Cancel(l.providerNamed(name)) }

// LoginDone has Watch tell clients what a login changes, which was made outside of their
// requests.
func (l *Logins) LoginDone(string) { l.changed() }

// keyNotice says where a provider's key comes from, unless it was entered.
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
		return p, &auth.InvalidError{Reason: notOffered(name, "")}
	case len(methods(name, p)) == 0:
		return p, &auth.InvalidError{Reason: fmt.Sprintf("provider %s needs no login", l.config().Spelled(name))}
	}
	return p, nil
}

func (l *Logins) unknownProvider(name string) error {
	hint := l.config().SimilarProvider(name)
	return &auth.InvalidError{Reason: fmt.Sprintf("there is no provider %.64q in the configuration%s", name, hint)}
}

// credential checks what was entered.
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

// maxKey bounds a key; tokens of a few thousand characters exist.
const maxKey = 16 << 10

// headerSafe says whether a key can be sent: what is pasted with a line break or with
// typographic quotes fails here, with a reason, and not at the first prompt.
func headerSafe(key string) bool {
	return len(key) <= maxKey && !strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' })
}
