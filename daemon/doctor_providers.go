package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// providerChecks has a check for each provider that the user has something to do with;
// the other presets are only named.
func (d *Daemon) providerChecks(offline bool) []doctor.Check {
	var out []doctor.Check
	var presets []string
	chosen := d.models.choices()
	for _, p := range d.models.describe() {
		switch {
		case !p.Configured:
			out = append(out, providerCheck(p.Spelled, func(context.Context) []doctor.Finding {
				return []doctor.Finding{finding(doctor.Warning, "provider "+p.Spelled, "logged in, but not configured")}
			}))
		case chosen[p.ID] || p.Missing == "":
			out = append(out, providerCheck(p.Spelled, func(ctx context.Context) []doctor.Finding {
				f := d.checkProvider(ctx, p, offline)
				f.Subject = "provider " + p.Spelled
				if at := strings.Trim(p.API+", "+p.URL, ", "); at != "" {
					f.Text = at + ": " + f.Text
				}
				return []doctor.Finding{f}
			}))
		case p.API == ollama.API && !offline: // may run without anybody's word
			out = append(out, providerCheck(p.Spelled, func(ctx context.Context) []doctor.Finding {
				f := d.checkProvider(ctx, p, offline)
				if f.Status == doctor.Problem {
					f = finding(doctor.Note, "", "does not run here")
				}
				f.Subject = "provider " + p.Spelled
				return []doctor.Finding{f}
			}))
		default:
			presets = append(presets, p.ID)
		}
	}
	if len(presets) > 0 {
		out = append(out, providerCheck("", func(context.Context) []doctor.Finding {
			return []doctor.Finding{finding(doctor.Note, "not set up", "%s", strings.Join(presets, ", "))}
		}))
	}
	return out
}

func providerCheck(name string, run func(context.Context) []doctor.Finding) doctor.Check {
	return doctor.Check{Section: "Models", Subject: "provider " + name, Run: run}
}

// checkProvider looks at one provider, and asks it unless that is forbidden.
func (d *Daemon) checkProvider(ctx context.Context, described llm.Provider, offline bool) doctor.Finding {
	m, name := d.models, described.ID
	if problem := m.problem(name); problem != "" {
		return finding(doctor.Problem, "", "%s", problem)
	}
	m.mu.Lock()
	p := m.providers()[name]
	client := m.http(p.Provider, m.limits(p.Provider).Connect)
	m.mu.Unlock()
	has := d.keySource(described)
	switch {
	case !config.IsWebURL(p.URL): // a cassette
		return finding(doctor.OK, "", "%s, can be used", has)
	case offline:
		return finding(doctor.OK, "", "%s, not asked", has)
	case !listsModels(p.Provider):
		err := reach(ctx, client, p.URL)
		switch {
		case err != nil && ctx.Err() != nil:
			return finding(doctor.Problem, "", "%s, no answer within %s", has, checkTime)
		case err != nil:
			return finding(doctor.Problem, "", "%s, does not answer: %v", has, netclient.Explain(err, ""))
		}
		return finding(doctor.OK, "", "%s (not tried), answers; has no list of models that is asked for, %d configured", has, len(p.Models))
	}
	listed, err := m.ask(ctx, ctx, name, p)
	if err == nil {
		return finding(doctor.OK, "", "%s, answers and lists %s", has, counted(len(listed), "model"))
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("no answer within %s", checkTime)
	}
	var failed *llm.Error
	if errors.As(err, &failed) && len(p.Models) > 0 && slices.Contains([]int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}, failed.Status) {
		return finding(doctor.Warning, "", "%s, has no list of models (%v); %d configured", has, err, len(p.Models))
	}
	return finding(doctor.Problem, "", "%s, does not list its models: %v", has, err)
}

// keySource says where a provider's key comes from.
func (d *Daemon) keySource(p llm.Provider) string {
	switch origin, _ := d.Config().Origin("providers", p.ID, "key"); p.Auth.Source {
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
	return "needs no key"
}
