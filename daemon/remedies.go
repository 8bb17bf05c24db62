package daemon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// Errors of providers say what to do about them: where the key or the url that did not work
// comes from, and how it is changed.

// remedied adds remedies to the errors of a provider's model.
type remedied struct {
	llm.Model
	remedy func(*llm.Error) string
}

// Stream implements llm.Model.
func (r *remedied) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range r.Model.Stream(ctx, req) {
			var failed *llm.Error
			if errors.As(err, &failed) {
				if text := r.remedy(failed); text != "" {
					told := *failed
					told.Message += ". " + text
					err = &told
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// remedy says what to do about a provider's error; empty if nothing is known to help.
func (m *models) remedy(name string, e *llm.Error) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.remedyLocked(name, e)
}

func (m *models) remedyLocked(name string, e *llm.Error) string {
	p, ok := m.providers()[name]
	if !ok {
		return ""
	}
	unset := m.unsetText(name)
	from := m.urlSource(name, p.Provider)
	if from != "" {
		from = "Its url comes from " + from
	}
	switch {
	case unset != "" && !slices.Contains([]llm.ErrorKind{llm.ErrRateLimited, llm.ErrContextOverflow, llm.ErrInvalidImage}, e.Kind):
		return "The value of " + unset
	case e.Kind == llm.ErrAuth:
		return m.keyRemedy(name, p)
	case e.Kind == llm.ErrNetwork, e.Kind == llm.ErrUnreachable:
		return from
	case e.Kind == llm.ErrTimeout && m.opts.RetryTotal > 0: // which made the limit shorter
		return strings.TrimPrefix(from+". ", ". ") + "firstByteTimeoutSeconds and streamIdleTimeoutSeconds of the configuration say how long to wait"
	case e.Address != "" && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Kind == llm.ErrProtocol):
		return strings.TrimSuffix("The request went to "+e.Address+". "+from, ". ") + ". `eca models` lists the models"
	}
	return ""
}

// unsetText names the environment variables that a provider's key, url or headers are made
// of and that are not set; empty if there are none. m.mu is held.
func (m *models) unsetText(name string) string {
	var out []string
	for _, path := range m.cfg.UnsetBelow("providers", name) {
		if len(path) < 3 || !slices.Contains([]string{"key", "url", "extraHeaders"}, path[2]) || path[2] == "key" && m.providers()[name].Key != "" && m.cfg.Providers[name].Key == "" {
			continue
		}
		origin, _ := m.cfg.Origin(path...)
		if origin.Shared() { // it took the place of the text with the variable
			continue
		}
		out = append(out, fmt.Sprintf("%s of %s is made of the environment variable %s, which is not set", m.keyPath(name, path[2:]...), origin, strings.Join(m.cfg.Unset(path...), ", ")))
	}
	return strings.Join(out, "; ")
}

// keyRemedy says where a provider's key comes from and how another one takes its place.
func (m *models) keyRemedy(name string, p provider) string {
	login := fmt.Sprintf("`eca login %s` (in a chat: `/login %s`)", m.cfg.Spelled(name), m.cfg.Spelled(name))
	origin, _ := m.cfg.Origin("providers", name, "key")
	switch {
	case p.auth.Type == auth.OAuth:
		return "Log in again: " + login
	case p.auth.Source == auth.FromConfig:
		return fmt.Sprintf("The key is %s of %s: change it there", m.keyPath(name, "key"), origin)
	case p.auth.Source == auth.FromLogin:
		return "The key was entered by logging in; enter another: " + login
	case p.auth.Variable != "":
		return fmt.Sprintf("The key comes from the environment variable %s: change it there, or enter one that wins: %s", p.auth.Variable, login)
	case p.auth.State == auth.Authenticated:
		return ""
	}
	return "No key was sent: " + login
}

// urlSource names where a provider's url comes from; empty if it is the built-in one.
func (m *models) urlSource(name string, p config.Provider) string {
	_, variables := m.cfg.Variables(name)
	for _, variable := range variables {
		if m.opts.Getenv(variable) != "" && m.opts.Getenv(variable) == p.URL {
			return "the environment variable " + variable
		}
	}
	if origin, _ := m.cfg.Origin("providers", name, "url"); !origin.IsDefault() && origin.Source != "" {
		return fmt.Sprintf("%s of %s", m.keyPath(name, "url"), origin)
	}
	return ""
}

// keyPath names a key of a provider's configuration as the user's files write it.
func (m *models) keyPath(provider string, keys ...string) string {
	return config.KeyPath(m.cfg.SpelledPath(append([]string{"providers", provider}, keys...)...))
}

// chosen says whether anything of a provider is the user's doing: an entry in the
// configuration, a variable, a login. m.mu is held.
func (m *models) chosen(name string, p provider) bool {
	origin, _ := m.cfg.Origin("providers", name)
	keys, urls := m.cfg.Variables(name)
	isSet := func(variable string) bool { return m.opts.Getenv(variable) != "" }
	return !origin.IsDefault() || p.auth.Source != "" || slices.ContainsFunc(keys, isSet) || slices.ContainsFunc(urls, isSet)
}

// choices says of each provider whether it was chosen.
func (m *models) choices() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]bool{}
	for name, p := range m.providers() {
		out[name] = m.chosen(name, p)
	}
	return out
}

// configured says whether the user configured anything: then the demo model does not
// answer in place of what was meant. m.mu is held.
func (m *models) configured() bool {
	if entered, err := m.creds().All(); err != nil || len(entered) > 0 || m.cfg.Configured() {
		return true
	}
	for name, p := range m.providers() {
		// That Ollama may run on this machine is assumed anyway.
		if m.chosen(name, p) && (p.API != ollama.API || !localhost.IsURL(p.URL)) {
			return true
		}
	}
	return false
}

// errNoModel says why no model can be used, and what to do. m.mu is held.
func (m *models) errNoModel() error {
	var why, local []string
	providers := m.providers()
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		p := providers[name]
		if !m.chosen(name, p) {
			continue
		}
		switch {
		case !usable(p.Provider):
			why = append(why, fmt.Sprintf("provider %s needs %s", m.cfg.Spelled(name), m.missing(name, p)))
		case m.fetched[name].failed != "":
			text := fmt.Sprintf("provider %s does not list its models: %s", m.cfg.Spelled(name), m.fetched[name].failed)
			if p.API == ollama.API && localhost.IsURL(p.URL) { // it may just not be in use
				local = append(local, text)
			} else {
				why = append(why, text)
			}
		case p.API == ollama.API:
			local = append(local, "provider "+m.cfg.Spelled(name)+" has not answered")
		default:
			why = append(why, "provider "+m.cfg.Spelled(name)+" has no models: name them in "+m.keyPath(name, "models"))
		}
	}
	if why == nil {
		why = []string{"no provider is configured: log in to one (`eca login anthropic`, `eca login openai`), set ANTHROPIC_API_KEY or OPENAI_API_KEY, or add one to the configuration"}
		found, _ := config.Check(m.cfg) // the error is one of our schema
		for _, f := range found {
			if f.Severity != config.SeverityNote {
				why = append(why, f.String())
			}
		}
	}
	if why = append(why, local...); len(why) == 1 {
		return fmt.Errorf("%w %s", chat.ErrNoModel, why[0])
	}
	return fmt.Errorf("%w\n- %s", chat.ErrNoModel, strings.Join(why, "\n- "))
}

// insteadOfDemo says which model to use where the demo's was asked for. m.mu is held.
func (m *models) insteadOfDemo() error {
	if ids := m.idsLocked(); len(ids) > 0 {
		return errors.New("choose another, such as " + m.cfg.SpelledModel(ids[0]))
	}
	return m.errNoModel()
}
