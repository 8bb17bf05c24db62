package providers

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/llm/ollama"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// catalogFile is the name of the catalogue in the cache folder, as in the reference server.
const catalogFile = "models-dev.json"

// RefreshCatalog updates the public catalogue of models. It makes no request if no usable provider
// needs the catalogue. A provider that the user configured may get all its models from the
// catalogue.
func (m *Models) RefreshCatalog(ctx context.Context) {
	if err := m.UpdateCatalog(ctx, true); err != nil && ctx.Err() == nil {
		m.opts.Log.Debug("cannot update the catalogue of models", "err", err)
	}
}

// UpdateCatalog is like RefreshCatalog, but returns the error. It fetches the catalogue only if
// online is set.
func (m *Models) UpdateCatalog(ctx context.Context, online bool) error {
	v := m.view()
	needed := false
	for name, p := range v.all {
		url, _ := v.cfg.Origin("providers", name, "url")
		needed = needed || p.API != apiCassette && (v.hasSelectableModels(name, p) || v.offered(name, p) && !url.IsDefault())
	}
	fetch := !v.cfg.PureConfig && !v.cfg.Conformance().Offline && (v.cfg.FetchModels == nil || *v.cfg.FetchModels)
	if !needed {
		return nil
	}
	return m.catalog.Refresh(ctx, fetch && online)
}

// modelsOf returns the sorted names of a usable provider's models: the configured models, and those
// that the provider listed, or, if it has not listed any, those in the catalogue. If the
// configuration forbids asking the provider and has models for it, these are all. The catalogue
// does not know the models of a Bedrock account, or of the user's own server.
func (v *view) modelsOf(name string, p provider) []string {
	names := slices.Collect(maps.Keys(p.Models))
	listed, _ := v.listedModels(name, p)
	onlyConfigured := p.FetchModels != nil && !*p.FetchModels && len(names) > 0
	switch {
	case len(listed) > 0:
		names = slices.AppendSeq(names, maps.Keys(listed))
	case onlyConfigured, !inCatalog(p):
	default:
		names = append(names, v.catalog.Models(name, p.URL)...)
	}
	if name == copilot && len(names) == 0 {
		names = []string{copilotDefault} // until it lists its models
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// inCatalog reports whether the catalogue can know the models of a provider.
func inCatalog(p provider) bool {
	return p.API != apiCassette && p.API != bedrock.API && p.API != ollama.API && (p.auth.State != auth.Local || !localhost.IsURL(p.URL))
}

// facts returns what is known about a provider's model. The configuration comes first, then the
// provider, then the catalogue (eca-features.md 6.1).
func (v *view) facts(name string, p provider, model string) llm.Facts {
	mc := p.Models[model]
	sent := cmp.Or(mc.ModelName, model)
	f := configuredFacts(mc)
	listed, _ := v.listedModels(name, p)
	f.Fill(listed[sent])
	if p.API == apiCassette {
		f.Fill(assumedFacts(true, false))
		return f
	}
	public := v.catalog.Facts(name, p.URL, sent, model)
	if p.API == ollama.API { // Ollama's limits depend on the machine's memory
		public.Context, public.Output = llm.Fact[int64]{}, llm.Fact[int64]{}
	}
	f.Fill(public)
	reasons := formatOf(p.API).reasons
	f.Fill(assumedFacts(false, reasons != nil && reasons(sent)))
	if f.Context.Known() && f.Output.Value >= f.Context.Value {
		f.Output = llm.Fact[int64]{} // ignored, because it leaves no room for a prompt
	}
	return f
}

// configuredFacts returns the facts in the configuration.
func configuredFacts(mc config.Model) llm.Facts {
	return llm.Facts{
		Context: tokens(mc.Limit.Context), Output: tokens(mc.Limit.Output),
		InputCost: configuredFact(mc.Cost.Input), OutputCost: configuredFact(mc.Cost.Output),
		CacheReadCost: configuredFact(mc.Cost.CacheRead), CacheWriteCost: configuredFact(mc.Cost.CacheWrite),
		Reasoning: configuredFact(mc.Reason), Images: configuredFact(mc.ImageInput),
	}
}

func configuredFact[T any](v *T) llm.Fact[T] {
	if v == nil {
		return llm.Fact[T]{}
	}
	return llm.Fact[T]{Value: *v, Source: llm.FromConfig}
}

func tokens(n int64) llm.Fact[int64] {
	if n <= 0 {
		return llm.Fact[int64]{}
	}
	return configuredFact(&n)
}

// assumedFacts returns the facts that are assumed for an unknown model. Such a model is not sent images:
// it might refuse them, and then every later request of the chat would fail.
func assumedFacts(images, reasoning bool) llm.Facts {
	flag := func(v bool) llm.Fact[bool] { return llm.Fact[bool]{Value: v, Source: llm.Assumed} }
	return llm.Facts{Images: flag(images), Reasoning: flag(reasoning), Tools: flag(true)}
}

// limit and price convert facts to the types of the engine.
func limit(f llm.Facts) config.Limit {
	return config.Limit{Context: f.Context.Value, Output: f.Output.Value}
}

func price(f llm.Facts) config.Cost {
	known := func(f llm.Fact[float64]) *float64 {
		if !f.Known() {
			return nil
		}
		return &f.Value
	}
	return config.Cost{Input: known(f.InputCost), Output: known(f.OutputCost), CacheRead: known(f.CacheReadCost), CacheWrite: known(f.CacheWriteCost)}
}

func serverTools(mc config.Model) llm.ServerTools {
	return llm.ServerTools{WebSearch: mc.WebSearch, ImageGeneration: mc.ImageGen}
}

// variantsOf returns the variants of a provider's model.
func (v *view) variantsOf(name string, p provider, model string, reasoning bool) catalog.Payloads {
	mc, api := p.Models[model], p.API
	if mc.ModelName != "" {
		model = mc.ModelName
	}
	if api == "openai" {
		api = openai.APIResponses
	}
	return v.rules.Of(name, api, model, mc.Variants, reasoning)
}
