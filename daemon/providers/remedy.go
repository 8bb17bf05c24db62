package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// This file adds to errors of providers what the user can do about them: where the key or URL that
// did not work comes from, and how to change it.

// remedyModel adds remedies to the errors of a provider's model.
type remedyModel struct {
	llm.Model
	remedy func(*llm.Error) string
}

// Stream implements llm.Model.
func (r *remedyModel) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		received := false
		for d, err := range r.Model.Stream(ctx, req) {
			received = received || err == nil && !slices.Contains([]llm.DeltaKind{llm.UsageDelta, llm.RetryDelta, llm.AttemptDelta}, d.Kind)
			var failed *llm.Error
			if errors.As(err, &failed) && (failed.Kind != llm.ErrPrematureStop || !received) {
				text := r.remedy(failed)
				if failed.Status == http.StatusNotFound && !failed.Page {
					text = joinSentences(text, "`eca models` lists the models")
				}
				if text != "" {
					explained := *failed
					explained.Message = strings.TrimRight(explained.Message, ". ") + ". " + text
					err = &explained
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// remedy returns what to do about a provider's error, or "" if nothing is known to help.
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
	sentTo := "The request went to " + e.Address
	switch {
	case unset != "" && !slices.Contains([]llm.ErrorKind{llm.ErrRateLimited, llm.ErrContextOverflow, llm.ErrInvalidImage}, e.Kind) &&
		(e.Kind != llm.ErrUnreachable || len(v.cfg.Unset("providers", name, "url")) > 0):
		return "The value of " + unset
	case e.Page: // the status may come from something other than the API
		text := joinSentences(sentTo, "Perhaps a proxy or a login page answers there, or the url lacks a part such as /v1", from)
		if remedy := v.keyRemedy(name, p); e.Status == http.StatusUnauthorized && remedy != "" {
			text += ". If it is the API that refused: " + strings.ToLower(remedy[:1]) + remedy[1:]
		}
		return text
	case e.OutOfCredit():
		return "Waiting does not help: add credit or raise the limit of the account at the provider, or use a model of another provider"
	case e.Kind == llm.ErrAuth:
		return v.keyRemedy(name, p)
	case e.Kind == llm.ErrNetwork, e.Kind == llm.ErrUnreachable:
		return connectionRemedy(e.Cause, from)
	case e.Kind == llm.ErrTimeout && v.opts.RetryTotal > 0: // RetryTotal shortened the limit
		return joinSentences(from, "firstByteTimeoutSeconds and streamIdleTimeoutSeconds in the configuration set how long to wait")
	case e.Kind == llm.ErrMalformed:
		return joinSentences("If this happens again, a proxy changes the stream, or the url is that of another API", from)
	case e.Kind == llm.ErrPrematureStop && !errors.Is(e.Cause, io.ErrUnexpectedEOF): // a connection that broke
		return joinSentences("If this happens again, the api or the url of the provider may be another one", from)
	case e.NotStreamed:
		return joinSentences("eca needs answers that are streamed: make the proxy pass them on without buffering, or set the url to the server of the model", sentTo, from)
	case e.Address != "" && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed || e.Kind == llm.ErrProtocol):
		return joinSentences(sentTo, from)
	}
	return ""
}

// joinSentences joins the sentences that are not empty, without a final period.
func joinSentences(sentences ...string) string {
	return strings.Join(slices.DeleteFunc(sentences, func(s string) bool { return s == "" }), ". ")
}

// connectionRemedy returns what to do if a server could not be reached, perhaps for a reason between
// this machine and the server. from says where its URL comes from; empty for the built-in one.
func connectionRemedy(err error, from string) string {
	why, ok := errors.AsType[*netclient.Error](err)
	switch {
	case !ok:
		return from
	case why.Kind == netclient.KindProxy, why.Kind == netclient.KindProxyAuth:
		return "The proxy comes from an environment variable, which `eca doctor` names"
	case why.Kind == netclient.KindDNS && from == "":
		return "Check this machine's connection; if it needs a proxy, set https_proxy"
	}
	return from
}

// withRetryLimit adds to a remedy how to change the limits that ended the retries.
func withRetryLimit(v *view, name string, e *llm.Error, remedy string) string {
	parts := []string{remedy}
	if most := v.retryPolicy(v.all[name].Provider).MaxWait; e.Retryable() && e.RetryAfter > most {
		parts = append(parts, fmt.Sprintf("eca waits for %s at most before it repeats a request; %s sets that limit", most, v.keyPath(name, "rateLimitMaxWaitSeconds")))
	}
	if e.RetryLimit != 0 && e.RetryLimit == v.opts.RetryTotal && e.Kind != llm.ErrTimeout { // timeouts have a limit of their own
		parts = append(parts, fmt.Sprintf("eca gave up, because it retries for %s at most; %s sets a number of retries instead", e.RetryLimit, v.keyPath(name, "retry", "maxRetries")))
	}
	return joinSentences(parts...)
}

// unsetText lists the environment variables that a provider's key, URL or headers refer to and that
// are not set. It returns "" if all are set.
func (v *view) unsetText(name string) string {
	var out []string
	for _, path := range v.cfg.UnsetBelow("providers", name) {
		if len(path) < 3 || !slices.Contains([]string{"key", "keyEnv", "url", "urlEnv", "extraHeaders"}, path[2]) || path[2] == "key" && v.all[name].Key != "" && v.cfg.Providers[name].Key == "" {
			continue
		}
		origin, _ := v.cfg.Origin(path...)
		if origin.Shared() { // a shared key replaced the value with the variable
			continue
		}
		out = append(out, fmt.Sprintf("%s of %s refers to the environment variable %s, which is not set", v.keyPath(name, path[2:]...), origin, strings.Join(v.cfg.Unset(path...), ", ")))
	}
	return strings.Join(out, "; ")
}

// keyRemedy returns where a provider's key comes from and how to replace it.
func (v *view) keyRemedy(name string, p provider) string {
	login := fmt.Sprintf("`eca login %s` (in a chat: `/login %s`)", v.cfg.Spelled(name), v.cfg.Spelled(name))
	origin, _ := v.cfg.Origin("providers", name, "key")
	switch {
	case p.auth.Type == auth.OAuth:
		return "Log in again: " + login
	case p.auth.Source == auth.FromConfig:
		if from := v.cfg.Sources("providers", name, "key"); len(from) > 0 {
			return fmt.Sprintf("The key is %s of %s, which takes it from %s: change it there", v.keyPath(name, "key"), origin, strings.Join(from, " and "))
		}
		return fmt.Sprintf("The key is %s of %s: change it there", v.keyPath(name, "key"), origin)
	case p.auth.Source == auth.FromLogin:
		return "The key was entered by logging in; enter another: " + login
	case p.auth.Variable != "":
		return fmt.Sprintf("The key comes from the environment variable %s: change it there, or enter one that wins: %s", p.auth.Variable, login)
	case p.auth.State == auth.Authenticated:
		return ""
	}
	if u, err := url.Parse(p.URL); err == nil && u.User != nil {
		return fmt.Sprintf("The user and the password are in the provider's url: correct them in %s", cmp.Or(v.urlSource(name, p.Provider), v.keyPath(name, "url")))
	}
	if origin.Source != "" {
		return fmt.Sprintf("No key was sent, because %s of %s has no value: correct it there, or enter a key with %s", v.keyPath(name, "key"), origin, login)
	}
	return fmt.Sprintf("No key was sent: enter one with %s, or set %s in the configuration", login, v.keyPath(name, "key"))
}

// urlSource returns where a provider's URL comes from, or "" for the built-in one.
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

// keyPath returns the path of a key in a provider's configuration, in the spelling of the user's
// files.
func (v *view) keyPath(provider string, keys ...string) string {
	return config.KeyPath(v.cfg.SpelledPath(append([]string{"providers", provider}, keys...)...))
}

// isSetUp reports whether the user set up a provider: with an entry in the configuration, a
// variable, or a login.
func (v *view) isSetUp(name string, p provider) bool {
	origin, _ := v.cfg.Origin("providers", name)
	keys, urls := v.cfg.Variables(name)
	isSet := func(variable string) bool { return v.opts.Getenv(variable) != "" }
	return !origin.IsDefault() || p.auth.Source != "" || slices.ContainsFunc(keys, isSet) || slices.ContainsFunc(urls, isSet)
}

// configured reports whether the user configured anything. If so, the demo model does not answer
// instead of the intended model.
func (v *view) configured() bool {
	if _, err := v.opts.Credentials().All(); err != nil || len(v.storedLogins) > 0 || v.cfg.Configured() {
		return true
	}
	for name, p := range v.all {
		// A local Ollama is a default of eca, not the user's choice.
		if v.isSetUp(name, p) && (p.API != ollama.API || !localhost.IsURL(p.URL)) {
			return true
		}
	}
	return false
}

// AnyProviderSetUp reports whether the user set up any provider, with an entry, a variable or a login.
func (m *Models) AnyProviderSetUp() bool {
	v := m.view()
	for name, p := range v.all {
		if v.isSetUp(name, p) {
			return true
		}
	}
	return false
}

// Unavailable returns why providers that the user set up have no models: they could not be asked,
// or listed none. It is empty until they have been asked. A local Ollama that is not running is
// included only if no other model can be used, because the user may not use it.
func (m *Models) Unavailable() []string {
	v := m.view()
	ids := v.ids()
	others := len(ids) > 0 && ids[0] != DemoModel
	var out []string
	for _, name := range slices.Sorted(maps.Keys(v.all)) {
		p := v.all[name]
		f, asked := v.lists[name]
		if !asked || !v.isSetUp(name, p) || !hasModelList(p.Provider) || !sameModels(f.provider, p.Provider) || len(v.modelsOf(name, p)) > 0 || others && p.API == ollama.API && localhost.IsURL(p.URL) {
			continue
		}
		out = append(out, v.noModelsReason(name, p))
	}
	return out
}

// noModelsReason returns the reason why a provider that was asked has no models.
func (v *view) noModelsReason(name string, p provider) string {
	switch f := v.lists[name]; {
	case f.unreachable && localhost.IsURL(p.URL):
		return fmt.Sprintf("provider %s does not list its models: %s. Start its server, or correct %s", v.cfg.Spelled(name), f.failure, v.keyPath(name, "url"))
	case f.failure != "":
		return fmt.Sprintf("provider %s does not list its models: %s", v.cfg.Spelled(name), f.failure)
	case p.API == ollama.API:
		return fmt.Sprintf("provider %s has no models; fetch one: ollama pull NAME", v.cfg.Spelled(name))
	}
	return fmt.Sprintf("provider %s lists no models: name them in %s", v.cfg.Spelled(name), v.keyPath(name, "models"))
}

// errNoModel returns an error that says why no model can be used, and what to do.
func (v *view) errNoModel() error {
	var why, local []string
	for _, name := range slices.Sorted(maps.Keys(v.all)) {
		p := v.all[name]
		if !v.isSetUp(name, p) {
			continue
		}
		switch {
		case !usable(p.Provider):
			why = append(why, fmt.Sprintf("provider %s needs %s", v.cfg.Spelled(name), v.missingText(name, p)))
		case v.lists[name].failure != "":
			text := v.noModelsReason(name, p)
			if p.API == ollama.API && localhost.IsURL(p.URL) { // the user may not use it
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

// demoAlternative returns an error that says which model to use instead of the demo model.
func (v *view) demoAlternative() error {
	if ids := v.ids(); len(ids) > 0 {
		return errors.New("choose another, such as " + v.cfg.SpelledModel(ids[0]))
	}
	return v.errNoModel()
}
