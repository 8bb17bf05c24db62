package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/localhost"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// models turns configured providers into models that can be used.
type models struct {
	opts     Options
	creds    func() *auth.Store
	network  *netclient.Network
	recorder *cassette.Recorder // nil unless recording
	catalog  *catalog.Catalog
	calls    *journal.Journal
	settle   func()        // waits until the configuration's commands are done
	partly   chan struct{} // some providers have told their models while others take long

	mu      sync.Mutex // guards what follows
	cfg     *config.Loaded
	rules   *catalog.Variants
	clients map[string]*providerClient // by provider; made when first needed
	fetched map[string]fetched         // by provider, from the network
	asking  map[string]int             // by provider: how often it is being asked for its models

	copilotHas  copilotKey
	copilotTurn chan struct{} // held by who gets a key of Copilot
}

func newModels(o Options, creds func() *auth.Store, network *netclient.Network) *models {
	m := &models{
		opts: o, creds: creds, cfg: &config.Loaded{Config: &config.Config{}}, clients: map[string]*providerClient{}, fetched: map[string]fetched{}, asking: map[string]int{},
		network:     network,
		partly:      make(chan struct{}, 1),
		copilotTurn: make(chan struct{}, 1),
	}
	m.catalog = catalog.New(catalog.Options{
		Path: filepath.Join(o.CacheDir, catalogFile), URL: o.CatalogURL, Client: m.http(config.Provider{}, llm.DefaultLimits().Connect), Now: o.Now,
	})
	if o.RecordDir != "" {
		m.recorder = cassette.NewRecorder(o.RecordDir, m.clean, func(err error) { o.Log.Warn("recording failed", "err", err) })
	}
	return m
}

// configure takes a new configuration; running requests keep their clients.
func (m *models) configure(cfg *config.Loaded, rules *catalog.Variants) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cfg, m.rules = cfg, rules
}

// clean removes from a text the secrets that are in use now: users log in while others
// record.
func (m *models) clean(text string) string {
	var secrets []string
	entered, _ := m.creds().All()
	for _, c := range entered {
		secrets = append(secrets, c.Secrets()...)
	}
	m.mu.Lock()
	secrets = append(secrets, m.copilotHas.key)
	for _, p := range m.providers() {
		secrets = append(secrets, p.Key)
		for _, v := range p.ExtraHeaders {
			secrets = append(secrets, v)
		}
	}
	m.mu.Unlock()
	return redact.New(secrets...).String(text)
}

// fetched is what came of asking a provider for its models when it was configured, and
// reached, like from.
type fetched struct {
	from    config.Provider
	models  map[string]llm.Facts
	failed  string // why there are none
	refused bool   // the key is not accepted
}

// fetchedOf returns the models a provider was found to have; ok is false if it has not
// answered since it changed.
func (m *models) fetchedOf(name string, p provider) (models map[string]llm.Facts, ok bool) {
	f, ok := m.fetched[name]
	if !ok || f.failed != "" || !sameModels(f.from, p.Provider) {
		return nil, false
	}
	return f.models, true
}

// sameModels says whether two providers must list the same models.
func sameModels(a, b config.Provider) bool {
	return a.API == b.API && a.URL == b.URL && a.Key == b.Key && maps.Equal(a.ExtraHeaders, b.ExtraHeaders) && listsModels(a) == listsModels(b)
}

// listsModels says whether to ask a provider for its models.
func listsModels(p config.Provider) bool {
	return usable(p) && p.API != apiCassette && p.API != bedrock.API && (p.FetchModels == nil || *p.FetchModels)
}

// usable says whether a provider has all it needs.
func usable(p config.Provider) bool {
	return p.API != "" && p.URL != "" && (p.Key != "" || !needsKey(p))
}

// offered says whether a provider's models can be chosen. A server that users start
// themselves must have answered.
func (m *models) offered(name string, p provider) bool {
	if !usable(p.Provider) || p.API != ollama.API || !listsModels(p.Provider) {
		return usable(p.Provider)
	}
	_, answered := m.fetchedOf(name, p)
	return answered
}

// counts says whether there is a provider to choose models of. That Ollama runs is no
// word of the user's, and another local server may be only a preset: without models they
// are of no use.
func (m *models) counts(name string, p provider) bool {
	return m.offered(name, p) && (listsModels(p.Provider) && p.API != ollama.API || len(m.list(name, p)) > 0)
}

// needsKey says whether a provider must be given a key: as configured, else unless it
// is on this machine.
func needsKey(p config.Provider) bool {
	if p.RequiresAuth != nil {
		return *p.RequiresAuth
	}
	return p.API != apiCassette && p.API != ollama.API && !localhost.IsURL(p.URL)
}

// apiCassette is a provider that plays a file: its url is the file's path.
const apiCassette = "cassette"

// ids lists the models of usable providers, sorted; where nothing is configured, the demo
// model.
func (m *models) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idsLocked()
}

func (m *models) idsLocked() []string {
	var ids []string
	any := false
	for name, p := range m.providers() {
		if !m.counts(name, p) {
			continue
		}
		any = true
		for _, model := range m.list(name, p) {
			ids = append(ids, name+"/"+model)
		}
	}
	if !any && !m.configured() {
		return []string{demoModel}
	}
	slices.Sort(ids)
	return ids
}

func (m *models) onlyDemo() bool {
	ids := m.ids()
	return len(ids) == 1 && ids[0] == demoModel
}

// defaultID picks the default model (eca-features 6.4).
func (m *models) defaultID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.defaultLocked()
}

func (m *models) defaultLocked() string {
	ids := m.idsLocked()
	// The user's word counts also when no list names the model.
	if provider, _, ok := strings.Cut(m.cfg.DefaultModel, "/"); ok && usable(m.providers()[provider].Provider) {
		return m.cfg.DefaultModel
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
func (m *models) variants(id string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, model, _ := strings.Cut(id, "/")
	p, ok := m.providers()[name]
	if !ok {
		return []string{}
	}
	return m.variantsOf(name, p, model, m.facts(name, p, model).Reasoning.Value).Names()
}

// Resolve implements chat.Models. It waits for a key that a command of the configuration
// still has to tell.
func (m *models) Resolve(name, current string) (chat.Model, error) {
	m.settle()
	return m.resolve(name, current)
}

// CheckModel returns the full id of a model that a name means. A provider's model that its
// list does not have is an error, if that list is known for certain: the provider told it,
// or there is none but the configuration's. The provider is asked if need be.
func (d *Daemon) CheckModel(ctx context.Context, name string) (string, error) {
	found, err := d.models.Resolve(name, "")
	var unlisted *unlistedError
	if errors.As(err, &unlisted) { // by a provider that was not asked yet, perhaps
		d.models.sync(ctx)
		found, err = d.models.Resolve(name, "")
	}
	if err != nil {
		return "", err
	}
	known, certain := d.models.listed(found.ID)
	if !known && !certain {
		provider, _, _ := strings.Cut(found.ID, "/")
		d.models.sync(ctx, provider)
		known, certain = d.models.listed(found.ID)
	}
	if !known && certain {
		cfg := d.Config()
		provider, model, _ := strings.Cut(found.ID, "/")
		hint := suggest.DidYouMean(cfg.SpelledModel(found.ID), d.models.spelledIDs())
		if hint == "" {
			hint = "; `eca models` lists what it has"
		}
		return "", fmt.Errorf("the model %s is not known: provider %s has no %s%s", name, cfg.Spelled(provider), model, hint)
	}
	return found.ID, nil
}

// unlistedError says that no provider lists a model that was named without its provider.
type unlistedError struct{ name, hint string }

func (e *unlistedError) Error() string {
	return fmt.Sprintf("the model %s is not known: no provider lists it%s", e.name, e.hint)
}

// spelledIDs lists the models of usable providers as the user's files spell them.
func (m *models) spelledIDs() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.idsLocked()
	for i, id := range ids {
		ids[i] = m.cfg.SpelledModel(id)
	}
	return ids
}

// listed says whether the list of a model's provider has it, and whether that is all that
// the provider has.
func (m *models) listed(id string) (known, certain bool) {
	name, model, _ := strings.Cut(id, "/")
	m.mu.Lock()
	defer m.mu.Unlock()
	p, ok := m.providers()[name]
	if !ok {
		return true, true // the demo's
	}
	list := m.list(name, p)
	return slices.Contains(list, model), m.listsCertainly(name, p)
}

// listsCertainly says whether the list of a provider's models is all that it has: it told
// them, or is not asked. m.mu is held.
func (m *models) listsCertainly(name string, p provider) bool {
	_, told := m.fetchedOf(name, p)
	return told || !listsModels(p.Provider) && len(m.list(name, p)) > 0
}

// resolve is Resolve with what is known.
func (m *models) resolve(name, current string) (chat.Model, error) {
	if name == "" {
		if name = m.defaultID(); name == "" {
			m.mu.Lock()
			defer m.mu.Unlock()
			return chat.Model{}, m.errNoModel()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	given := name
	name, current = m.cfg.ModelNamed(name), m.cfg.ModelNamed(current)
	provider, model, full := strings.Cut(name, "/")
	providers := m.providers()
	p, known := providers[provider]
	switch {
	case full && provider == demoProvider && !known && (name != current || !m.configured()): // asked for by name, or all there is
		return m.demo()
	case full && provider == demoProvider && !known:
		return chat.Model{}, fmt.Errorf("the demo model answers only while nothing is configured; %w", m.insteadOfDemo())
	case full && known:
	default:
		of, err := m.providerListing(providers, name, current)
		var unlisted *unlistedError
		if errors.As(err, &unlisted) && full {
			err = fmt.Errorf("the model %s can not be used: there is no provider %s%s", given, provider, m.cfg.SimilarProvider(provider))
		}
		if err != nil {
			return chat.Model{}, err
		}
		provider, model, p = of, name, providers[of]
	}
	if !usable(p.Provider) {
		return chat.Model{}, fmt.Errorf("the model %s can not be used: provider %s needs %s", given, m.cfg.Spelled(provider), m.missing(provider, p))
	}
	client, err := m.client(provider, p)
	if err != nil {
		return chat.Model{}, err
	}
	mc, f := p.Models[model], m.facts(provider, p, model)
	out := chat.Model{
		ID: provider + "/" + model, Name: cmp.Or(mc.ModelName, model), Client: llm.WithReasoningHistory(llm.WithRetention(client.Model, llm.Retention(p.CacheRetention)), mc.History),
		Headers: mc.ExtraHeaders, Extra: mc.ExtraPayload, Variants: m.variantsOf(provider, p, model, f.Reasoning.Value),
		Limit: limit(f), Cost: price(f), Reasoning: f.Reasoning.Value, NoImages: !f.Images.Value, NoTools: !f.Tools.Value,
		Retry: m.retryPolicy(p.Provider),
	}
	out.Client = m.calls.Model(out.Client, out.ID)
	out.Reads = client.reads(mc, out.Name)
	if !out.Reasoning {
		out.Extra = catalog.WithoutReasoning(out.Extra)
	}
	return out, nil
}

// providerListing returns the provider that is meant by a model's name alone: the current
// model's, unless that is known for certain not to have it, else the default model's if it
// lists it, else the only one that lists it. m.mu is held.
func (m *models) providerListing(providers map[string]provider, name, current string) (string, error) {
	var listing []string
	ids := m.idsLocked()
	for _, id := range ids {
		if of, model, _ := strings.Cut(id, "/"); model == name {
			listing = append(listing, of)
		}
	}
	ofCurrent, _, _ := strings.Cut(current, "/")
	ofDefault, _, _ := strings.Cut(m.defaultLocked(), "/")
	if p, ok := providers[ofCurrent]; ok && usable(p.Provider) && (slices.Contains(listing, ofCurrent) || !m.listsCertainly(ofCurrent, p)) {
		return ofCurrent, nil
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
		full = append(full, m.cfg.Spelled(of)+"/"+name)
	}
	return "", fmt.Errorf("several providers have a model %s; name it as provider/model: %s", name, strings.Join(full, ", "))
}

func (m *models) missing(name string, p provider) string {
	switch {
	case p.API == "":
		text := "an api (one of " + apis + "): set " + m.keyPath(name, "api")
		if near := m.cfg.PresetLike(name); near != "" {
			text += "; or did you mean the provider " + near + "?"
		}
		return text
	case p.URL != "" && p.API != apiCassette && !config.IsWebURL(p.URL):
		return fmt.Sprintf("a url that begins with http:// or https:// (%s is %q)", m.keyPath(name, "url"), p.URL)
	case p.API == bedrock.API && p.auth.State != auth.Authenticated: // the url may follow from who asks
	case p.URL == "" && p.API == bedrock.API:
		return "a region: set AWS_REGION, or " + m.keyPath(name, "url") + " to the region's runtime endpoint"
	case p.URL == "" && len(m.cfg.Unset("providers", name, "url")) > 0:
		return "a url: " + m.unsetText(name)
	case p.URL == "" && name != copilot: // a login tells it
		return "a url"
	}
	if p.auth.State == auth.Expired {
		return "a new login: the last one has expired, or was for another server (/login " + m.cfg.Spelled(name) + ", or eca login " + m.cfg.Spelled(name) + ")"
	}
	if len(m.cfg.Unset("providers", name, "key")) > 0 {
		return "a key: " + m.unsetText(name)
	}
	if name == copilot {
		return "a login. " + notOffered(copilot, "")
	}
	variables, _ := m.cfg.Variables(name)
	text := "a key: log in to it, or set " + m.keyPath(name, "key") + " or the environment variable " + variables[0]
	if p.API == bedrock.API {
		text += "; or AWS's own credentials, and models in the configuration"
		if err := m.aws().Check(); err != nil {
			text += ": " + err.Error()
		}
	}
	if _, err := m.creds().All(); err != nil {
		text += "; " + err.Error()
	}
	return text
}

func (m *models) demo() (chat.Model, error) {
	player, err := cassette.Demo()
	if err != nil {
		return chat.Model{}, err
	}
	return chat.Model{ID: demoModel, Name: "offline", Client: m.calls.Model(m.recorded(player), demoModel)}, nil
}
