package providers

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/anthropic"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/llm/google"
	"github.com/seed-dec29ce4/eca/llm/ollama"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// catalogFile is the catalogue's name in the cache folder; the reference server's too.
const catalogFile = "models-dev.json"

// RefreshCatalog brings what is publicly known of models up to date. Without a provider
// there is nothing to look up, and no request is made. A provider that the user wrote down
// may have models only by the catalogue.
func (m *Models) RefreshCatalog(ctx context.Context) {
	if err := m.UpdateCatalog(ctx, true); err != nil && ctx.Err() == nil {
		m.opts.Log.Debug("the catalogue of models is as it was", "err", err)
	}
}

// UpdateCatalog is RefreshCatalog that says why the catalogue is as it was; online
// allows to fetch it.
func (m *Models) UpdateCatalog(ctx context.Context, online bool) error {
	v := m.view()
	needed := false
	for name, p := range v.all {
		url, _ := v.cfg.Origin("providers", name, "url")
		needed = needed || p.API != apiCassette && (v.hasSelectableModels(name, p) || v.offered(name, p) && !url.IsDefault())
	}
	fetch := !v.cfg.PureConfig && v.cfg.Env != config.EnvTest && (v.cfg.FetchModels == nil || *v.cfg.FetchModels)
	if !needed {
		return nil
	}
	return m.catalog.Refresh(ctx, fetch && online)
}

// list names the models of a usable provider, sorted: those that are configured, and
// those it says it has; if it does not say, those it is known to have. A provider that
// must not be asked has what is configured, if that is anything. No list knows the models
// of a Bedrock account, or of the user's own server.
func (v *view) list(name string, p provider) []string {
	names := slices.Collect(maps.Keys(p.Models))
	listed, _ := v.fetchedOf(name, p)
	silent := p.FetchModels != nil && !*p.FetchModels && len(names) > 0
	switch {
	case len(listed) > 0:
		names = slices.AppendSeq(names, maps.Keys(listed))
	case silent, !catalogued(p):
	default:
		names = append(names, v.catalog.Models(name, p.URL)...)
	}
	if name == copilot && len(names) == 0 {
		names = []string{copilotDefault} // until it says what it has
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// catalogued says whether the catalogue can know the models of a provider.
func catalogued(p provider) bool {
	return p.API != apiCassette && p.API != bedrock.API && p.API != ollama.API && (p.auth.State != auth.Local || !localhost.IsURL(p.URL))
}

// facts says what is known of a provider's model. The user's word comes first, then the
// provider's, then the catalogue's (eca-features 6.1).
func (v *view) facts(name string, p provider, model string) llm.Facts {
	mc := p.Models[model]
	sent := cmp.Or(mc.ModelName, model)
	f := configured(mc)
	listed, _ := v.fetchedOf(name, p)
	f.Fill(listed[sent])
	if p.API == apiCassette {
		f.Fill(assumed(true, false))
		return f
	}
	public := v.catalog.Facts(name, p.URL, sent, model)
	if p.API == ollama.API { // gives a model what the machine has memory for
		public.Context, public.Output = llm.Fact[int64]{}, llm.Fact[int64]{}
	}
	f.Fill(public)
	f.Fill(assumed(false, likelyReasons(p.API, sent)))
	if f.Context.Known() && f.Output.Value >= f.Context.Value {
		f.Output = llm.Fact[int64]{} // an answer that leaves no room for a question is ignored
	}
	return f
}

// configured are the facts that the user gives.
func configured(mc config.Model) llm.Facts {
	return llm.Facts{
		Context: tokens(mc.Limit.Context), Output: tokens(mc.Limit.Output),
		InputCost: given(mc.Cost.Input), OutputCost: given(mc.Cost.Output),
		CacheReadCost: given(mc.Cost.CacheRead), CacheWriteCost: given(mc.Cost.CacheWrite),
		Reasoning: given(mc.Reason), Images: given(mc.ImageInput),
	}
}

func given[T any](v *T) llm.Fact[T] {
	if v == nil {
		return llm.Fact[T]{}
	}
	return llm.Fact[T]{Value: *v, Source: llm.FromConfig}
}

func tokens(n int64) llm.Fact[int64] {
	if n <= 0 {
		return llm.Fact[int64]{}
	}
	return given(&n)
}

// assumed is what holds for a model that nobody knows. Images are not sent to it: it
// might refuse them, and with them everything that is said after.
func assumed(images, reasoning bool) llm.Facts {
	flag := func(v bool) llm.Fact[bool] { return llm.Fact[bool]{Value: v, Source: llm.Assumed} }
	return llm.Facts{Images: flag(images), Reasoning: flag(reasoning), Tools: flag(true)}
}

// likelyReasons says whether a model that nobody knows is asked to reason: not where it
// would refuse the request if it cannot.
func likelyReasons(api, model string) bool {
	switch api {
	case bedrock.API:
		return bedrock.Reasons(model)
	case google.API, ollama.API:
		return false
	}
	return !strings.HasPrefix(model, "gpt-4") && !strings.HasPrefix(model, "gpt-3") && anthropic.CanThink(model)
}

// limit and price are facts as the engine takes them.
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

// searchPrice is what 1000 searches cost by the providers' own lists; nil if that is unknown.
func searchPrice(api string) *float64 {
	prices := map[string]float64{anthropic.API: 10, openai.APIResponses: 10, "openai": 10, google.API: 14}
	if price, ok := prices[api]; ok {
		return &price
	}
	return nil
}

// variantsOf returns the variants of a provider's model;
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
