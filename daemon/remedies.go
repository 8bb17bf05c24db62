package daemon

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
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
	p, ok := m.providers()[name]
	if !ok {
		return ""
	}
	switch e.Kind {
	case llm.ErrAuth:
		return m.keyRemedy(name, p)
	case llm.ErrNetwork, llm.ErrUnreachable:
		if from := m.urlSource(name, p.Provider); from != "" {
			return "Its url comes from " + from
		}
	}
	return ""
}

// keyRemedy says where a provider's key comes from and how another one takes its place.
func (m *models) keyRemedy(name string, p provider) string {
	login := fmt.Sprintf("`eca login %s` (in a chat: `/login %s`)", name, name)
	origin, _ := m.cfg.Origin("providers", name, "key")
	switch {
	case p.auth.Type == auth.OAuth:
		return "Log in again: " + login
	case p.auth.Source == auth.FromConfig:
		return fmt.Sprintf("The key is providers.%s.key of %s: change it there", name, origin)
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
	if variable := variablesOf(name)[1]; m.opts.Getenv(variable) != "" && m.opts.Getenv(variable) == p.URL {
		return "the environment variable " + variable
	}
	if origin, _ := m.cfg.Origin("providers", name, "url"); !origin.IsDefault() && origin.Source != "" {
		return fmt.Sprintf("providers.%s.url of %s", name, origin)
	}
	return ""
}

// variablesOf names the environment variables with a provider's key and url.
func variablesOf(provider string) [2]string {
	upper := strings.ToUpper(strings.ReplaceAll(provider, "-", "_"))
	return [2]string{upper + "_API_KEY", upper + "_API_URL"}
}

// chosen says whether anything of a provider is the user's doing: an entry in the
// configuration, a variable, a login. m.mu is held.
func (m *models) chosen(name string, p provider) bool {
	origin, _ := m.cfg.Origin("providers", name)
	vars := variablesOf(name)
	return !origin.IsDefault() || p.auth.Source != "" || m.opts.Getenv(vars[0]) != "" || m.opts.Getenv(vars[1]) != ""
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
		if m.chosen(name, p) && (p.API != ollama.API || !isLoopback(p.URL)) {
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
			why = append(why, fmt.Sprintf("provider %s needs %s", name, m.missing(name, p)))
		case m.fetched[name].failed != "":
			text := fmt.Sprintf("provider %s does not list its models: %s", name, m.fetched[name].failed)
			if from := m.urlSource(name, p.Provider); from != "" {
				text += " (its url comes from " + from + ")"
			}
			if p.API == ollama.API && isLoopback(p.URL) { // it may just not be in use
				local = append(local, text)
			} else {
				why = append(why, text)
			}
		case p.API == ollama.API:
			local = append(local, "provider "+name+" has not answered")
		default:
			why = append(why, "provider "+name+" has no models: name them in providers."+name+".models")
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
	return fmt.Errorf("%w %s", chat.ErrNoModel, strings.Join(append(why, local...), "; "))
}

// insteadOfDemo says which model to use where the demo's was asked for. m.mu is held.
func (m *models) insteadOfDemo() error {
	if ids := m.idsLocked(); len(ids) > 0 {
		return errors.New("choose another, such as " + ids[0])
	}
	return m.errNoModel()
}

// unsetKey says which variables a provider's key is made of that are not set.
func (m *models) unsetKey(name string) string {
	unset := m.cfg.Unset("providers", name, "key")
	if len(unset) == 0 {
		return ""
	}
	origin, _ := m.cfg.Origin("providers", name, "key")
	return fmt.Sprintf("a key: providers.%s.key of %s is made of the environment variable %s, which is not set", name, origin, strings.Join(unset, ", "))
}

// nearProvider suggests a provider for a name that no provider has.
func nearProvider(providers map[string]provider, name string) string {
	return suggest.DidYouMean(name, slices.Sorted(maps.Keys(providers)))
}
