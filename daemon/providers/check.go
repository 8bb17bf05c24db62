package providers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// checks holds the provider checks of one doctor run.
type checks struct {
	*Models
	offline bool
	pending sync.WaitGroup // providers that have not been checked yet

	mu     sync.Mutex               // guards failed
	failed map[string]doctor.Status // by provider: its status, if it is not OK
}

// Checks returns a check for the default model, and one for each provider that the user has
// configured or logged in to; other presets are only listed.
func (m *Models) Checks(offline bool) []doctor.Check {
	c := &checks{Models: m, offline: offline, failed: map[string]doctor.Status{}}
	out := []doctor.Check{{Section: "Models", Subject: "default model", Run: c.defaultModel}}
	var presets []string
	v := m.view()
	for _, p := range v.describe() {
		switch {
		case !p.Configured:
			out = append(out, providerCheck(p.Spelled, func(context.Context) []doctor.Finding {
				return []doctor.Finding{doctor.Found(doctor.Warning, "provider "+p.Spelled, "logged in, but not configured")}
			}))
		case v.isSetUp(p.ID, v.all[p.ID]) || p.Missing == "":
			out = append(out, c.provider(p, func(f doctor.Finding) doctor.Finding {
				if at := strings.Trim(p.API+", "+p.URL, ", "); at != "" {
					f.Text = at + ": " + f.Text
				}
				return f
			}))
		case p.API == ollama.API && !offline: // may run without any configuration
			out = append(out, c.provider(p, func(f doctor.Finding) doctor.Finding {
				if f.Status == doctor.Problem {
					f = doctor.Found(doctor.Note, "", "does not run here")
				}
				return f
			}))
		default:
			presets = append(presets, p.ID)
		}
	}
	if len(presets) > 0 {
		out = append(out, providerCheck("", func(context.Context) []doctor.Finding {
			return []doctor.Finding{doctor.Found(doctor.Note, "not set up", "%s", strings.Join(presets, ", "))}
		}))
	}
	return out
}

// provider returns the check of one provider; outcome can change its finding.
func (c *checks) provider(p llm.Provider, outcome func(doctor.Finding) doctor.Finding) doctor.Check {
	c.pending.Add(1)
	return providerCheck(p.Spelled, func(ctx context.Context) []doctor.Finding {
		defer c.pending.Done()
		f := outcome(c.check(ctx, p, c.offline))
		f.Subject = "provider " + p.Spelled
		if f.Status != doctor.OK {
			c.mu.Lock()
			c.failed[p.ID] = f.Status
			c.mu.Unlock()
		}
		return []doctor.Finding{f}
	})
}

// defaultModel reports the default model. It first waits for the checks of the providers.
func (c *checks) defaultModel(ctx context.Context) []doctor.Finding {
	c.pending.Wait() // each check ends with ctx
	v := c.view()
	id := v.defaultID()
	out := doctor.Found(doctor.OK, "default model", "%s; defaultModel is not set, chosen among those that can be used", v.cfg.SpelledModel(id))
	switch wanted := v.cfg.DefaultModel; {
	case wanted != "":
		out = c.wantedModel(v, wanted)
	case id == "":
		out = doctor.Found(doctor.Warning, "default model", "none: no provider that can be used has a model")
	case id == DemoModel:
		out = doctor.Found(doctor.Warning, "default model", "%s: no provider can be used, so answers are a script; log in to one (eca login PROVIDER) or set its key, such as ANTHROPIC_API_KEY", id)
	default:
		out = c.withProviderStatus(v, id, out)
	}
	count := doctor.Found(doctor.Note, "models to choose from", "%d", len(v.ids()))
	if c.offline {
		count.Text += " (providers were not asked)"
	}
	return []doctor.Finding{out, count}
}

// wantedModel checks the model that defaultModel is set to.
func (c *checks) wantedModel(v *view, wanted string) doctor.Finding {
	origin, _ := v.cfg.Origin("defaultModel")
	model, err := v.resolve(wanted, "")
	if err == nil {
		if known, certain := v.isListed(model.ID); !known && certain {
			err = errors.New(v.unlistedText(model.ID))
		}
	}
	spelled := v.cfg.SpelledModel(wanted)
	if err == nil {
		return c.withProviderStatus(v, model.ID, doctor.Found(doctor.OK, "default model", "%s, as %s says", spelled, origin))
	}
	instead := "and no other model can be used"
	if id := v.defaultID(); id != "" && id != wanted {
		instead = v.cfg.SpelledModel(id) + " is used"
	} else if id == wanted {
		instead = "prompts to it fail"
	}
	return doctor.Found(doctor.Problem, "default model", "%s (%s) cannot be used, %s: %v", spelled, origin, instead, err)
}

// withProviderStatus lowers the status of a finding that a model works, if its provider has a
// problem or has not been asked whether it has the model.
func (c *checks) withProviderStatus(v *view, id string, f doctor.Finding) doctor.Finding {
	provider, _, _ := strings.Cut(id, "/")
	c.mu.Lock()
	status := c.failed[provider]
	c.mu.Unlock()
	known, certain := v.isListed(id)
	switch {
	case status == doctor.Problem:
		f.Status, f.Text = doctor.Warning, f.Text+"; its provider does not work, see below"
	case !known && !certain:
		f.Status, f.Text = doctor.Note, f.Text+"; its provider was not asked whether it has it"
	}
	return f
}

func providerCheck(name string, run func(context.Context) []doctor.Finding) doctor.Check {
	return doctor.Check{Section: "Models", Subject: "provider " + name, Run: run}
}

// check checks one provider, and sends it a request unless offline is set.
func (m *Models) check(ctx context.Context, described llm.Provider, offline bool) doctor.Finding {
	v, name := m.view(), described.ID
	if problem := v.problem(name); problem != "" {
		return doctor.Found(doctor.Problem, "", "%s", problem)
	}
	p := v.all[name]
	if !hasModelList(p.Provider) && len(v.modelsOf(name, p)) == 0 {
		_ = m.UpdateCatalog(ctx, !offline) // the catalogue may have some; its errors have a check of their own
		if v = m.view(); len(v.modelsOf(name, p)) == 0 {
			return doctor.Found(doctor.Problem, "", "%s", v.addModelsText(name))
		}
	}
	key := v.keySource(described)
	switch {
	case p.API == apiCassette:
		return doctor.Found(doctor.OK, "", "%s, can be used", key)
	case offline:
		return doctor.Found(doctor.Note, "", "%s, not asked", key)
	case !hasModelList(p.Provider):
		err := reach(ctx, m.http(p.Provider, v.limits(p.Provider).Connect), p.URL)
		switch {
		case err != nil && ctx.Err() != nil:
			return doctor.Found(doctor.Problem, "", "%s, no answer within %s", key, doctor.CheckTimeout)
		case err != nil:
			return doctor.Found(doctor.Problem, "", "%s, does not answer: %v", key, netclient.Explain(err, ""))
		}
		return doctor.Found(doctor.OK, "", "%s (not tried), answers; has no list of models that is asked for, %d configured", key, len(p.Models))
	}
	listed, err := m.fetchModels(ctx, ctx, name, p)
	switch {
	case err == nil && len(listed)+len(p.Models) == 0:
		return doctor.Found(doctor.Warning, "", "%s, answers, but lists no models; name them in %s", key, v.keyPath(name, "models"))
	case err == nil:
		return doctor.Found(doctor.OK, "", "%s, answers and lists %s", key, doctor.Count(len(listed), "model"))
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", doctor.CheckTimeout)
	}
	var failed *llm.Error
	if errors.As(err, &failed) && !failed.Page && len(p.Models) > 0 && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, failed.Status) {
		return doctor.Found(doctor.Warning, "", "%s, has no list of models (%v); %d configured", key, err, len(p.Models))
	}
	if start := startServer(name, p.URL, err); start != "" {
		err = fmt.Errorf("%s %s", sentence(err), start)
	}
	return doctor.Found(doctor.Problem, "", "%s, does not list its models: %v", key, err)
}

// keySource describes where a provider's key comes from.
func (v *view) keySource(p llm.Provider) string {
	origin, set := v.cfg.Origin("providers", p.ID, "key")
	switch p.Auth.Source {
	case auth.FromConfig:
		return "key from " + origin.String()
	case auth.FromLogin:
		return "key that was entered"
	case auth.FromEnvironment:
		if p.Auth.Variable != "" {
			return "key from " + p.Auth.Variable
		}
		return "credentials of AWS's own tools"
	}
	if set {
		return "key from " + origin.String() + " has no value"
	}
	return "needs no key"
}

// problem returns why a configured provider cannot be used, or "".
func (v *view) problem(name string) string {
	p := v.all[name]
	if !usable(p.Provider) {
		return "needs " + v.missingText(name, p)
	}
	if _, err := v.client(name, p); err != nil {
		return err.Error()
	}
	return ""
}

// reach requests a URL. Any response counts as success, because it shows that the server answers.
func reach(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("the url is invalid")
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
