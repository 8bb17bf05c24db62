package daemon

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// models turns configured providers into models that can be used.
type models struct {
	opts Options

	mu          sync.Mutex // guards what follows
	cfg         *config.Config
	clients     map[string]llm.Model           // by provider; made when first needed
	httpClients map[time.Duration]*http.Client // by connection limit
	fetched     map[string][]string            // model names by provider, from the network
	recorder    *cassette.Recorder
}

func newModels(o Options) *models {
	return &models{
		opts: o, cfg: &config.Config{}, clients: map[string]llm.Model{}, fetched: map[string][]string{},
		httpClients: map[time.Duration]*http.Client{},
	}
}

// configure takes a new configuration; running requests keep their clients.
func (m *models) configure(cfg *config.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cfg = cfg
	m.clients = map[string]llm.Model{}
	m.fetched = map[string][]string{}
	if m.opts.RecordDir == "" {
		return
	}
	var secrets []string
	for _, p := range cfg.Providers {
		secrets = append(secrets, p.Key)
		for _, v := range p.ExtraHeaders {
			secrets = append(secrets, v)
		}
	}
	m.recorder = cassette.NewRecorder(m.opts.RecordDir, redact.New(secrets...), func(err error) {
		m.opts.Log.Warn("recording failed", "err", err)
	})
}

func (m *models) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range m.httpClients {
		c.CloseIdleConnections()
	}
}

// usable says whether a provider has all it needs.
func usable(p config.Provider) bool {
	if p.API == "" || p.URL == "" {
		return false
	}
	if p.Key != "" || p.API == apiCassette || isLoopback(p.URL) {
		return true
	}
	return p.RequiresAuth != nil && !*p.RequiresAuth
}

// apiCassette is a provider that plays a file: its url is the file's path.
const apiCassette = "cassette"

// ids lists the models of usable providers, sorted; without any, the demo model.
func (m *models) ids() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.idsLocked()
}

func (m *models) idsLocked() []string {
	set := map[string]bool{}
	any := false
	for name, p := range m.cfg.Providers {
		if !usable(p) {
			continue
		}
		any = true
		for model := range p.Models {
			set[name+"/"+model] = true
		}
		for _, model := range m.fetched[name] {
			set[name+"/"+model] = true
		}
	}
	if !any {
		return []string{demoModel}
	}
	return slices.Sorted(maps.Keys(set))
}

func (m *models) onlyDemo() bool {
	ids := m.ids()
	return len(ids) == 1 && ids[0] == demoModel
}

// defaultID picks the default model (eca-features 6.4).
func (m *models) defaultID() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.idsLocked()
	// The user's word counts also when no list names the model.
	if provider, _, ok := strings.Cut(m.cfg.DefaultModel, "/"); ok && usable(m.cfg.Providers[provider]) {
		return m.cfg.DefaultModel
	}
	const preferred = "openai/gpt-5.2"
	switch {
	case slices.Contains(ids, preferred):
		return preferred
	case len(ids) > 0:
		return ids[0]
	}
	return ""
}

// variants lists the variants of a model that a user can choose, sorted.
func (m *models) variants(id string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	provider, name, _ := strings.Cut(id, "/")
	out := []string{}
	for v := range m.cfg.Providers[provider].Models[name].Variants {
		if v != "default" {
			out = append(out, v)
		}
	}
	slices.Sort(out)
	return out
}

// Resolve implements chat.Models.
func (m *models) Resolve(name, current string) (chat.Model, error) {
	if name == "" {
		if name = m.defaultID(); name == "" {
			return chat.Model{}, chat.ErrNoModel
		}
	}
	provider, model, full := strings.Cut(name, "/")
	m.mu.Lock()
	defer m.mu.Unlock()
	p, known := m.cfg.Providers[provider]
	switch {
	case full && provider == demoProvider && !known:
		return m.demo()
	case full && known:
	case full:
		if provider, model, p, known = m.bare(name, current); !known {
			return chat.Model{}, fmt.Errorf("the model %s can not be used: there is no provider %s", name, strings.SplitN(name, "/", 2)[0])
		}
	default:
		if provider, model, p, known = m.bare(name, current); !known {
			return chat.Model{}, fmt.Errorf("the model %s is not known; name it as provider/model", name)
		}
	}
	if !usable(p) {
		return chat.Model{}, fmt.Errorf("the model %s can not be used: provider %s needs %s", name, provider, missing(provider, p))
	}
	client, err := m.client(provider, p)
	if err != nil {
		return chat.Model{}, err
	}
	mc := p.Models[model]
	out := chat.Model{
		ID: provider + "/" + model, Name: model, Client: client, Headers: mc.ExtraHeaders, Extra: mc.ExtraPayload, Variants: mc.Variants, Limit: mc.Limit, Cost: mc.Cost,
		Reasoning: canReason(p.API, model, mc),
	}
	if mc.ModelName != "" {
		out.Name = mc.ModelName
	}
	return out, nil
}

// bare finds a name without provider: below the current model's provider, else below
// the only provider that lists it.
func (m *models) bare(name, current string) (provider, model string, p config.Provider, ok bool) {
	if cur, _, ok := strings.Cut(current, "/"); ok {
		if p, ok := m.cfg.Providers[cur]; ok && usable(p) {
			return cur, name, p, true
		}
	}
	for _, id := range m.idsLocked() {
		provider, model, _ := strings.Cut(id, "/")
		if model == name {
			return provider, model, m.cfg.Providers[provider], true
		}
	}
	return "", "", config.Provider{}, false
}

func missing(name string, p config.Provider) string {
	switch {
	case p.API == "":
		return "an api (openai-responses or openai-chat)"
	case p.URL == "":
		return "a url"
	}
	return "a key: set providers." + name + ".key or the environment variable " +
		strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "_API_KEY"
}

// canReason says whether to ask for reasoning: as configured, else for the models of
// the Responses API that are known to, which is the newer families.
func canReason(api, model string, mc config.Model) bool {
	if mc.Reason != nil {
		return *mc.Reason
	}
	if api != openai.APIResponses && api != "openai" {
		return false
	}
	return !strings.HasPrefix(model, "gpt-4") && !strings.HasPrefix(model, "gpt-3")
}

func (m *models) demo() (chat.Model, error) {
	player, err := cassette.Demo()
	if err != nil {
		return chat.Model{}, err
	}
	return chat.Model{ID: demoModel, Name: "offline", Client: m.recorded(player)}, nil
}
