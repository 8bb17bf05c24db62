package providers

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
				text := r.remedy(failed)
				if failed.Status == http.StatusNotFound && !failed.Page {
					text = strings.TrimPrefix(text+". `eca models` lists the models", ". ")
				}
				if text != "" {
					told := *failed
					told.Message = strings.TrimRight(told.Message, ". ") + ". " + text
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
func (v *view) remedy(name string, e *llm.Error) string {
	p, ok := v.all[name]
	if !ok {
		return ""
	}
	unset := v.unsetText(name)
	from := v.urlSource(name, p.Provider)
	if from != "" {
		from = "Its url comes from " + from
	}
	switch {
	case unset != "" && !slices.Contains([]llm.ErrorKind{llm.ErrRateLimited, llm.ErrContextOverflow, llm.ErrInvalidImage}, e.Kind) &&
		(e.Kind != llm.ErrUnreachable || len(v.cfg.Unset("providers", name, "url")) > 0):
		return "The value of " + unset
	case e.Page: // its status may be that of something else than the API
		text := strings.TrimSuffix("The request went to "+e.Address+". Perhaps a proxy or a login page answers there, or the url lacks a part such as /v1. "+from, ". ")
		if remedy := v.keyRemedy(name, p); e.Status == http.StatusUnauthorized && remedy != "" {
			text += ". If it is the API that refused: " + strings.ToLower(remedy[:1]) + remedy[1:]
		}
		return text
	case e.Unpaid():
		return "Waiting does not help: add credit or raise the limit of the account at the provider, or use a model of another provider"
	case e.Kind == llm.ErrAuth:
		return v.keyRemedy(name, p)
	case e.Kind == llm.ErrNetwork, e.Kind == llm.ErrUnreachable:
		return from
	case e.Kind == llm.ErrTimeout && v.opts.RetryTotal > 0: // which made the limit shorter
		return strings.TrimPrefix(from+". ", ". ") + "firstByteTimeoutSeconds and streamIdleTimeoutSeconds of the configuration say how long to wait"
	case e.Kind == llm.ErrMalformed:
		return strings.TrimSuffix("If this happens again, a proxy changes the stream, or the url is that of another API. "+from, ". ")
	case e.Whole:
		return "eca needs answers that are streamed: make the proxy before the model pass them on as they come, or set the url to the server of the model. " + strings.TrimSuffix("The request went to "+e.Address+". "+from, ". ")
	case e.Address != "" && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Kind == llm.ErrProtocol):
		return strings.TrimSuffix("The request went to "+e.Address+". "+from, ". ")
	}
	return ""
}

// unsetText names the environment variables that a provider's key, url or headers are made
// of and that are not set; may be empty.
func (v *view) unsetText(name string) string {
	var out []string
	for _, path := range v.cfg.UnsetBelow("providers", name) {
		if len(path) < 3 || !slices.Contains([]string{"key", "url", "extraHeaders"}, path[2]) || path[2] == "key" && v.all[name].Key != "" && v.cfg.Providers[name].Key == "" {
			continue
		}
		origin, _ := v.cfg.Origin(path...)
		if origin.Shared() { // it took the place of the text with the variable
			continue
		}
		out = append(out, fmt.Sprintf("%s of %s is made of the environment variable %s, which is not set", v.keyPath(name, path[2:]...), origin, strings.Join(v.cfg.Unset(path...), ", ")))
	}
	return strings.Join(out, "; ")
}

// keyRemedy says where a provider's key comes from and how another one takes its place.
func (v *view) keyRemedy(name string, p provider) string {
	login := fmt.Sprintf("`eca login %s` (in a chat: `/login %s`)", v.cfg.Spelled(name), v.cfg.Spelled(name))
	origin, _ := v.cfg.Origin("providers", name, "key")
	switch {
	case p.auth.Type == auth.OAuth:
		return "Log in again: " + login
	case p.auth.Source == auth.FromConfig:
		return fmt.Sprintf("The key is %s of %s: change it there", v.keyPath(name, "key"), origin)
	case p.auth.Source == auth.FromLogin:
		return "The key was entered by logging in; enter another: " + login
	case p.auth.Variable != "":
		return fmt.Sprintf("The key comes from the environment variable %s: change it there, or enter one that wins: %s", p.auth.Variable, login)
	case p.auth.State == auth.Authenticated:
		return ""
	}
	return fmt.Sprintf("No key was sent: enter one with %s, or set %s in the configuration", login, v.keyPath(name, "key"))
}

// urlSource names where a provider's url comes from; empty if it is the built-in one.
func (v *view) urlSource(name string, p config.Provider) string {
	_, variables := v.cfg.Variables(name)
	for _, variable := range variables {
		if v.opts.Getenv(variable) != "" && v.opts.Getenv(variable) == p.URL {
			return "the environment variable " + variable
		}
	}
	if origin, _ := v.cfg.Origin("providers", name, "url"); !origin.IsDefault() && origin.Source != "" {
		return fmt.Sprintf("%s of %s", v.keyPath(name, "url"), origin)
	}
	return ""
}

// keyPath names a key of a provider's configuration as the user's files write it.
func (v *view) keyPath(provider string, keys ...string) string {
	return config.KeyPath(v.cfg.SpelledPath(append([]string{"providers", provider}, keys...)...))
}

// chosen says whether anything of a provider is the user's doing: an entry in the
// configuration, a variable, a login.
func (v *view) chosen(name string, p provider) bool {
	origin, _ := v.cfg.Origin("providers", name)
	keys, urls := v.cfg.Variables(name)
	isSet := func(variable string) bool { return v.opts.Getenv(variable) != "" }
	return !origin.IsDefault() || p.auth.Source != "" || slices.ContainsFunc(keys, isSet) || slices.ContainsFunc(urls, isSet)
}

// configured says whether the user configured anything: then the demo model does not
// answer in place of what was meant.
func (v *view) configured() bool {
	if _, err := v.opts.Credentials().All(); err != nil || len(v.entered) > 0 || v.cfg.Configured() {
		return true
	}
	for name, p := range v.all {
		// That Ollama may run on this machine is assumed anyway.
		if v.chosen(name, p) && (p.API != ollama.API || !localhost.IsURL(p.URL)) {
			return true
		}
	}
	return false
}

// Chosen says whether the user chose a provider, by an entry, a variable or a login.
func (m *Models) Chosen() bool {
	v := m.view()
	for name, p := range v.all {
		if v.chosen(name, p) {
			return true
		}
	}
	return false
}

// Unavailable says why providers that the user chose have no models to offer: they could not be
// asked, or listed none. It is empty before they were asked. A local Ollama that does not run is
// named only if no other model can be used: it may just not be in use.
func (m *Models) Unavailable() []string {
	v := m.view()
	ids := v.ids()
	others := len(ids) > 0 && ids[0] != DemoModel
	var out []string
	for _, name := range slices.Sorted(maps.Keys(v.all)) {
		p := v.all[name]
		f, asked := v.fetched[name]
		if !asked || !v.chosen(name, p) || !listsModels(p.Provider) || !sameModels(f.from, p.Provider) || len(v.list(name, p)) > 0 || others && p.API == ollama.API && localhost.IsURL(p.URL) {
			continue
		}
		out = append(out, v.noList(name, p))
	}
	return out
}

// noList says what came of asking a provider for its models when it named none.
func (v *view) noList(name string, p provider) string {
	switch f := v.fetched[name]; {
	case f.unreached && localhost.IsURL(p.URL):
		return fmt.Sprintf("provider %s does not list its models: %s. Start its server, or correct that", v.cfg.Spelled(name), f.failed)
	case f.failed != "":
		return fmt.Sprintf("provider %s does not list its models: %s", v.cfg.Spelled(name), f.failed)
	case p.API == ollama.API:
		return fmt.Sprintf("provider %s has no models; fetch one: ollama pull NAME", v.cfg.Spelled(name))
	}
	return fmt.Sprintf("provider %s lists no models: name them in %s", v.cfg.Spelled(name), v.keyPath(name, "models"))
}

// errNoModel says why no model can be used, and what to do.
func (v *view) errNoModel() error {
	var why, local []string
	for _, name := range slices.Sorted(maps.Keys(v.all)) {
		p := v.all[name]
		if !v.chosen(name, p) {
			continue
		}
		switch {
		case !usable(p.Provider):
			why = append(why, fmt.Sprintf("provider %s needs %s", v.cfg.Spelled(name), v.missing(name, p)))
		case v.fetched[name].failed != "":
			text := v.noList(name, p)
			if p.API == ollama.API && localhost.IsURL(p.URL) { // it may just not be in use
				local = append(local, text)
			} else {
				why = append(why, text)
			}
		case p.API == ollama.API:
			local = append(local, "provider "+v.cfg.Spelled(name)+" has not answered")
		default:
			why = append(why, "provider "+v.cfg.Spelled(name)+" has no models: name them in "+v.keyPath(name, "models"))
		}
	}
	if why == nil {
		other := ""
		if local != nil {
			other = "other "
		}
		why = []string{"no " + other + "provider is configured: log in to one (`eca login anthropic`, `eca login openai`), set ANTHROPIC_API_KEY or OPENAI_API_KEY, or add one to the configuration"}
		for _, f := range v.cfg.Mistakes() {
			why = append(why, f.String())
		}
	}
	if why = append(why, local...); len(why) == 1 {
		return fmt.Errorf("%w %s", ErrNoModel, why[0])
	}
	return fmt.Errorf("%w\n- %s", ErrNoModel, strings.Join(why, "\n- "))
}

// insteadOfDemo says which model to use where the demo's was asked for.
func (v *view) insteadOfDemo() error {
	if ids := v.ids(); len(ids) > 0 {
		return errors.New("choose another, such as " + v.cfg.SpelledModel(ids[0]))
	}
	return v.errNoModel()
}
