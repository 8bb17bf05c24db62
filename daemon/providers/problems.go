package providers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/catalog"
)

// Problems returns problems for providers and models that the user configured and that certainly
// cannot work. It makes no request. A missing key is not a problem, because the user can still log
// in.
func (m *Models) Problems(cfg *config.Loaded, rules *catalog.Variants, storedLogins map[string]auth.Credential) []config.Problem {
	v := &view{Models: m, cfg: cfg, rules: rules, storedLogins: storedLogins, all: m.providers(cfg, storedLogins)}
	var out []config.Problem
	for _, name := range slices.Sorted(maps.Keys(v.all)) {
		path := []string{"providers", name}
		if origin, ok := cfg.Origin(path...); !ok || origin.IsDefault() {
			continue
		}
		if why := v.whyUnusable(name, v.all[name]); why != "" {
			out = append(out, cfg.Problem(path, "%s: %s", config.KeyPath(cfg.SpelledPath(path...)), why))
		}
	}
	cfg.EachModel(func(path []string, model string) {
		if origin, ok := cfg.Origin(path...); !ok || origin.IsDefault() || model == "" || config.CheckExpressions(path, model) != nil {
			return // an invalid expression is reported already
		}
		why := v.whyImpossible(model)
		if !strings.Contains(model, "/") {
			why = v.withoutProviderText(model)
		}
		if why != "" {
			out = append(out, cfg.Problem(path, "%s: %s", config.KeyPath(cfg.SpelledPath(path...)), why))
		}
	})
	out = append(out, v.fallbackProblems()...)
	return append(out, variantProblems(v)...)
}

// variantProblems returns the agents whose variant their model certainly does not have. If an agent has
// no model of its own, any model may have the variant.
func variantProblems(v *view) (out []config.Problem) {
	for _, name := range slices.Sorted(maps.Keys(v.cfg.Agents)) {
		agent, path := v.cfg.Agents[name], []string{"agent", name, "variant"}
		if agent.Variant == "" || agent.Variant == catalog.Default || config.CheckExpressions(path, agent.Variant) != nil {
			continue
		}
		lacks, names := "no model has a variant", allVariants(v)
		if provider, model, full := strings.Cut(agent.DefaultModel, "/"); full && v.all[provider].API != "" {
			lacks, names = "the model "+v.cfg.SpelledModel(agent.DefaultModel)+" has no variant", v.variantsOf(provider, v.all[provider], model, true).Names()
		}
		if slices.Contains(names, agent.Variant) {
			continue
		}
		hint := suggest.DidYouMean(agent.Variant, names)
		if hint == "" && len(names) > 0 {
			hint = "; there are " + strings.Join(names, ", ")
		}
		out = append(out, v.cfg.Problem(path, "%s: %s %q%s", config.KeyPath(v.cfg.SpelledPath(path...)), lacks, agent.Variant, hint))
	}
	return out
}

// allVariants lists the variants that any model may have, sorted.
func allVariants(v *view) []string {
	all := v.rules.All()
	for _, p := range v.all {
		for _, m := range p.Models {
			maps.Copy(all, m.Variants)
		}
	}
	return all.Names()
}

// namedModel is a full model name in the configuration, of a provider that is asked for its models
// or cannot be used.
type namedModel struct {
	key, at  []string // the paths of the key and of the name, which differ in a list
	model    string
	provider string
}

func namedModels(v *view) (out []namedModel) {
	add := func(key, at []string, model string) {
		provider, _, full := strings.Cut(model, "/")
		p, known := v.all[provider]
		if origin, ok := v.cfg.Origin(at...); full && known && (hasModelList(p.Provider) || !usable(p.Provider)) && (!ok || !origin.IsDefault()) {
			out = append(out, namedModel{key, at, model, provider})
		}
	}
	v.cfg.EachModel(func(path []string, model string) { add(path, path, model) })
	v.cfg.EachFallbackList(func(path []string, _ string, list []string) {
		for i, model := range list {
			add(path, append(slices.Clone(path), strconv.Itoa(i)), model)
		}
	})
	return out
}

// UnlistedModels asks the providers of configured models which models they have. It returns errors
// for models that they lack, and notes for models whose providers need a login, or could not be asked
// before ctx ended. Models of providers that are not asked are among the Problems.
func (m *Models) UnlistedModels(ctx context.Context) []config.Finding {
	v := m.view()
	var asked []string
	for _, n := range namedModels(v) {
		if p := v.all[n.provider]; usable(p.Provider) && p.Key != redact.Mark { // the mark replaces the output of a command that is not run
			asked = append(asked, n.provider)
		}
	}
	if len(asked) > 0 {
		m.ListModels(ctx, asked...)
	}
	return m.KnownUnlistedModels()
}

// KnownUnlistedModels is like UnlistedModels, but makes no request: it uses the lists that providers
// have returned so far.
func (m *Models) KnownUnlistedModels() (out []config.Finding) {
	v := m.view()
	for _, n := range namedModels(v) {
		known, certain := v.isListed(n.model)
		severity, why := config.SeverityError, v.unlistedText(n.model)
		switch p := v.all[n.provider]; {
		case !usable(p.Provider) && v.whyUnusable(n.provider, p) != "": // reported already
			continue
		case !usable(p.Provider):
			severity, why = config.SeverityNote, fmt.Sprintf("%s cannot be used: provider %s needs %s", v.cfg.SpelledModel(n.model), v.cfg.Spelled(n.provider), v.missingText(n.provider, p))
		case known:
			continue
		case !certain:
			severity, why = config.SeverityNote, fmt.Sprintf("%s is not checked, because eca has no list of the models of provider %s", v.cfg.SpelledModel(n.model), v.cfg.Spelled(n.provider))
		}
		p := v.cfg.Problem(n.at, "%s: %s", config.KeyPath(v.cfg.SpelledPath(n.key...)), why)
		out = append(out, config.Finding{Source: p.Source, Line: p.Line, Column: p.Column, Key: config.KeyPath(n.key), Severity: severity, Message: p.Cause})
	}
	return out
}

// whyUnusable returns what a provider lacks that only the configuration can supply, or "".
func (v *view) whyUnusable(name string, p provider) string {
	unset := len(v.cfg.Unset("providers", name, "url")) > 0 // already reported
	switch {
	case p.API == "", p.URL == "" && !unset && p.API != bedrock.API && name != copilot:
		return "it needs " + v.missingText(name, p)
	case p.Key != "" && !headerSafe(p.Key):
		return badKey(v, name, p)
	case p.API == apiCassette:
		return unreadableCassette(v, name, p.Provider)
	case usable(p.Provider) && !hasModelList(p.Provider) && !inCatalog(p) && len(v.modelsOf(name, p)) == 0:
		return v.addModelsText(name)
	}
	return ""
}

// badKey describes a key that cannot be sent in a header. It does not show the key.
func badKey(v *view, name string, p provider) string {
	return "the " + v.keySource(llm.Provider{ID: name, Auth: p.auth}) + " cannot be sent: it has a space, a line break or another character that is not visible ASCII"
}

// addModelsText returns how to add models to a provider that is not asked for its models.
func (v *view) addModelsText(name string) string {
	return "it has no models: name them in " + v.keyPath(name, "models")
}

// whyImpossible returns why a model cannot exist, or "" if it can or if that has been reported
// already.
func (v *view) whyImpossible(model string) string {
	name, _, full := strings.Cut(model, "/")
	if !full || name == demoProvider {
		return ""
	}
	p, known := v.all[name]
	if !known || !usable(p.Provider) || hasModelList(p.Provider) {
		return ""
	}
	if list := v.modelsOf(name, p); len(list) == 0 || slices.Contains(list, strings.TrimPrefix(model, name+"/")) {
		return ""
	}
	return v.unlistedText(model)
}

// withoutProviderText returns the message that a model does not name its provider.
func (v *view) withoutProviderText(model string) string {
	hint := ""
	for _, id := range v.spelledIDs() {
		if _, of, _ := strings.Cut(id, "/"); of == model {
			hint = "; did you mean " + id + "?"
			break
		}
	}
	return model + " does not name its provider: write provider/model" + hint
}

// maxNamed is the largest number of models for which an error lists all models of a provider.
const maxNamed = 5

// unlistedText returns the message that a provider does not have a model.
func (v *view) unlistedText(id string) string {
	provider, model, _ := strings.Cut(id, "/")
	hint := suggest.DidYouMean(v.cfg.SpelledModel(id), v.spelledIDs())
	if list := v.modelsOf(provider, v.all[provider]); hint == "" && len(list) <= maxNamed {
		hint = "; it has " + strings.Join(list, ", ")
	} else if hint == "" {
		hint = "; `eca models` lists what it has"
	}
	return "provider " + v.cfg.Spelled(provider) + " has no " + model + hint
}
