package providers

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// offered reports whether a provider's models can be selected. An Ollama server must have answered
// first, because users start it themselves.
func (v *view) offered(name string, p provider) bool {
	if p.API != ollama.API || !hasModelList(p.Provider) {
		return complete(p.Provider)
	}
	_, answered := v.listedModels(name, p)
	return answered
}

// hasSelectableModels reports whether a provider has models to select, or is asked for them. A
// running Ollama need not be the user's choice, and another local server may be only a preset, so
// they count only if they have models.
func (v *view) hasSelectableModels(name string, p provider) bool {
	return v.offered(name, p) && (hasModelList(p.Provider) && p.API != ollama.API || len(v.modelsOf(name, p)) > 0)
}

// needsKey reports whether a provider needs a key. If the configuration does not set that, it needs
// one unless it is on this machine.
func needsKey(p config.Provider) bool {
	if p.RequiresAuth != nil {
		return *p.RequiresAuth
	}
	return p.API != apiCassette && p.API != ollama.API && !localhost.IsURL(p.URL)
}

// apiCassette is the API of a provider that plays a file. Its URL is the file's path.
const apiCassette = "cassette"

// ids returns the sorted models of usable providers, or the demo model if nothing is configured.
func (v *view) ids() []string {
	var ids []string
	found := false
	for name, p := range v.all {
		if !v.hasSelectableModels(name, p) {
			continue
		}
		found = true
		for _, model := range v.modelsOf(name, p) {
			ids = append(ids, name+"/"+model)
		}
	}
	if !found && !v.configured() {
		return []string{DemoModel}
	}
	if v.demoIsDefault() {
		ids = append(ids, DemoModel)
	}
	slices.Sort(ids)
	return ids
}

// demoIsDefault reports whether the user made the demo model the default.
func (v *view) demoIsDefault() bool {
	_, known := v.all[demoProvider]
	return v.cfg.DefaultModel == DemoModel && !known
}

// defaultID picks the default model (eca-features.md 6.4).
func (v *view) defaultID() string {
	ids := v.ids()
	// The user's choice counts even if no list names the model.
	if v.demoIsDefault() {
		return DemoModel
	}
	if provider, _, ok := strings.Cut(v.cfg.DefaultModel, "/"); ok && complete(v.all[provider].Provider) {
		return v.cfg.DefaultModel
	}
	for _, preferred := range []string{"anthropic/claude-sonnet-4-6", "openai/gpt-5.2", "github-copilot/gpt-5.5", "ollama/"} {
		i, found := slices.BinarySearch(ids, preferred)
		if found || i < len(ids) && strings.HasSuffix(preferred, "/") && strings.HasPrefix(ids[i], preferred) {
			return ids[i]
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return ids[0]
}

// variants lists the variants of a model that a user can choose, sorted.
func (v *view) variants(id string) []string {
	name, model, _ := strings.Cut(id, "/")
	p, ok := v.all[name]
	if !ok {
		return []string{}
	}
	return v.variantsOf(name, p, model, v.facts(name, p, model).Reasoning.Value).Names()
}

// unlistedError means that no provider lists a model that was named without its provider.
type unlistedError struct{ name, hint string }

func (e *unlistedError) Error() string {
	return fmt.Sprintf("unknown model %s: no provider lists it%s", e.name, e.hint)
}

// spelledIDs is like ids, in the spelling of the user's files.
func (v *view) spelledIDs() []string {
	ids := v.ids()
	for i, id := range ids {
		ids[i] = v.cfg.SpelledModel(id)
	}
	return ids
}

// isListed reports whether the list of a model's provider contains the model, and whether that list
// is complete.
func (v *view) isListed(id string) (known, certain bool) {
	name, model, _ := strings.Cut(id, "/")
	p, ok := v.all[name]
	if !ok {
		return true, true // the demo provider
	}
	list := v.modelsOf(name, p)
	return slices.Contains(list, model), v.hasCompleteList(name, p)
}

// hasCompleteList reports whether the list of a provider's models is complete: the provider returned
// it, or the provider is not asked and has a list.
func (v *view) hasCompleteList(name string, p provider) bool {
	_, fetched := v.listedModels(name, p)
	return fetched || !hasModelList(p.Provider) && len(v.modelsOf(name, p)) > 0
}

// resolve implements Resolve without requests.
func (v *view) resolve(name, current string) (Model, error) {
	if name == "" {
		if name = v.defaultID(); name == "" {
			return Model{}, v.errNoModel()
		}
	}
	given := name
	name, current = v.cfg.ModelNamed(name), v.cfg.ModelNamed(current)
	provider, model, full := strings.Cut(name, "/")
	p, known := v.all[provider]
	switch {
	case strings.TrimSpace(name) == "", full && (provider == "" || strings.TrimSpace(model) == ""):
		return Model{}, fmt.Errorf("%q is not the name of a model: it must be provider/model (`eca models` lists them)", given)
	case full && provider == demoProvider && !known && (name != current || !v.configured() || v.demoIsDefault()): // the user named it, or it is the only model
		return v.demo()
	case full && provider == demoProvider && !known:
		return Model{}, fmt.Errorf("the demo model answers only while nothing is configured; %w", v.demoAlternative())
	case full && known:
	default:
		listing, err := v.providerListing(name, current)
		var unlisted *unlistedError
		if errors.As(err, &unlisted) && full {
			err = fmt.Errorf("the model %s cannot be used: there is no provider %s%s", given, provider, v.cfg.SimilarProvider(provider))
		}
		if err != nil {
			return Model{}, err
		}
		provider, model, p = listing, name, v.all[listing]
	}
	if !usable(p.Provider) {
		return Model{}, fmt.Errorf("the model %s cannot be used: provider %s needs %s", given, v.cfg.Spelled(provider), v.missingText(provider, p))
	}
	client, err := v.client(provider, p)
	if err != nil {
		return Model{}, err
	}
	mc, f := p.Models[model], v.facts(provider, p, model)
	out := Model{
		ID: provider + "/" + model, Spelled: v.cfg.Spelled(provider) + "/" + model, Name: cmp.Or(mc.ModelName, model), Client: llm.WithReasoningHistory(llm.WithRetention(client.Model, llm.Retention(p.CacheRetention)), mc.History),
		Headers: mc.ExtraHeaders, Extra: mc.ExtraPayload, Variants: v.variantsOf(provider, p, model, f.Reasoning.Value),
		Limit: limit(f), Cost: price(f), Reasoning: f.Reasoning.Value, NoImages: !f.Images.Value, NoTools: !f.Tools.Value,
		ServerTools: serverTools(mc), Impossible: v.whyImpossible(provider + "/" + model),
		Retry: v.retryPolicy(p.Provider),
	}
	out.Cost.WebSearch = mc.Cost.WebSearch
	if known := formatOf(p.API).searchPrice; out.Cost.WebSearch == nil && known > 0 {
		out.Cost.WebSearch = &known
	}
	out.Client = v.opts.Record(out.Client, out.ID)
	out.ReadsReasoning = client.readsReasoning(mc, out.Name)
	if !out.Reasoning {
		out.Extra = catalog.WithoutReasoning(out.Extra)
	}
	return out, nil
}

// providerListing returns the provider for a model name without one: the current model's provider,
// unless its list is complete and lacks the model; otherwise the default model's provider if it
// lists the model; otherwise the only provider that lists it.
func (v *view) providerListing(name, current string) (string, error) {
	var listing []string
	ids := v.ids()
	for _, id := range ids {
		if of, model, _ := strings.Cut(id, "/"); model == name {
			listing = append(listing, of)
		}
	}
	currentProvider, _, _ := strings.Cut(current, "/")
	ofDefault, _, _ := strings.Cut(v.defaultID(), "/")
	if p, ok := v.all[currentProvider]; ok && usable(p.Provider) && (slices.Contains(listing, currentProvider) || !v.hasCompleteList(currentProvider, p)) {
		return currentProvider, nil
	}
	if slices.Contains(listing, ofDefault) {
		return ofDefault, nil
	}
	switch len(listing) {
	case 0:
		var names []string
		for _, id := range ids {
			_, model, _ := strings.Cut(id, "/")
			names = append(names, model)
		}
		hint := suggest.DidYouMean(name, names)
		if hint == "" {
			hint = "; name it as provider/model (`eca models` lists them)"
		}
		return "", &unlistedError{name, hint}
	case 1:
		return listing[0], nil
	}
	var full []string
	for _, of := range listing {
		full = append(full, v.cfg.Spelled(of)+"/"+name)
	}
	return "", fmt.Errorf("several providers have a model %s; name it as provider/model: %s", name, strings.Join(full, ", "))
}

// missingText returns what a provider needs before its models can be used.
func (v *view) missingText(name string, p provider) string {
	switch {
	case p.API == "":
		text := "an api (one of " + wireFormats() + "): set " + v.keyPath(name, "api")
		if near := v.cfg.PresetLike(name); near != "" {
			text += "; or did you mean the provider " + near + "?"
		}
		return text
	case p.URL != "" && p.API != apiCassette && !config.IsWebURL(p.URL):
		source := cmp.Or(v.urlSource(name, p.Provider), v.keyPath(name, "url"))
		return fmt.Sprintf("a url like https://HOST or http://HOST:PORT (%s is %q)", source, p.URL)
	case p.API == bedrock.API && p.auth.State != auth.Authenticated: // the URL may follow from the credentials
	case p.URL == "" && p.API == bedrock.API:
		return "a region: set AWS_REGION, or " + v.keyPath(name, "url") + " to the region's runtime endpoint"
	case p.URL == "" && (len(v.cfg.Unset("providers", name, "url")) > 0 || p.URLEnv != ""):
		return "a url: " + v.unsetText(name)
	case p.URL == "" && p.API == apiCassette:
		return "a url: set " + v.keyPath(name, "url") + " to the path of a cassette"
	case p.URL == "" && name != copilot: // Copilot's URL comes from a login
		_, variables := v.cfg.Variables(name)
		return "a url: set " + v.keyPath(name, "url") + " or the environment variable " + variables[0]
	}
	if p.Key != "" && !headerSafe(p.Key) {
		return "another key: " + badKey(v, name, p)
	}
	if p.auth.State == auth.Expired {
		return "a new login: the last one has expired, or was for another server (/login " + v.cfg.Spelled(name) + ", or eca login " + v.cfg.Spelled(name) + ")"
	}
	if len(v.cfg.Unset("providers", name, "key")) > 0 || len(v.cfg.Unset("providers", name, "keyEnv")) > 0 {
		return "a key: " + v.unsetText(name)
	}
	if p.KeyRC != "" {
		return fmt.Sprintf("a key: no netrc file has the entry %q of %s", p.KeyRC, v.keyPath(name, "keyRc"))
	}
	if wrong := v.cfg.MistakesBelow("providers", name, "key"); len(wrong) > 0 {
		return "a key: " + wrong[0].String()
	}
	if name == copilot {
		return "a login. " + alternativeTo(copilot, "")
	}
	variables, _ := v.cfg.Variables(name)
	text := "a key: log in to it, or set " + v.keyPath(name, "key") + " or the environment variable " + variables[0]
	if p.API == bedrock.API {
		text += "; or AWS's own credentials, and models in the configuration"
		if err := v.aws().Check(); err != nil {
			text += ": " + err.Error()
		}
	}
	if _, err := v.opts.Credentials().All(); err != nil {
		text += "; " + err.Error()
	}
	return text
}

// DemoModel is the id of the demo model.
const DemoModel = demoProvider + "/offline"

const demoProvider = "demo"

func (m *Models) demo() (Model, error) {
	player, err := cassette.Demo()
	if err != nil {
		return Model{}, err
	}
	free := 0.0
	return Model{
		ID: DemoModel, Spelled: DemoModel, Name: "offline", Client: m.opts.Record(m.withRecording(player), DemoModel),
		Cost: config.Cost{Input: &free, Output: &free},
	}, nil
}
