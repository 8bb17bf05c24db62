// Package providers knows the configured providers and their models: which model a name
// means, how its provider is reached and with which key, what is known of the model, and how
// the user logs in to a provider.
//
// Models lives as long as the daemon. It keeps what outlasts a configuration: clients, the
// models that providers listed, keys of GitHub Copilot, and the catalogue. The
// meaning of a configuration is decided by a view, which is made of one configuration, of the
// credentials as they are stored then, and of the lists so far. A view does not change, so
// that all it says belongs together; it is made for one question and thrown away. A login
// counts as soon as any process has stored it, without another configuration.
//
// The package does not read the configuration, and keeps no chats. Entry points: New, and
// Models.With for the models of one configuration; NewLogins for logins.
package providers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/catalog"
)

// Options are what Models needs. None may be nil.
type Options struct {
	Current     func() (*config.Loaded, *catalog.Variants) // the configuration in effect; nil before there is one
	Credentials func() *auth.Store
	Settle      func(context.Context) // waits until the configuration's commands are done, and takes their results
	Changed     func()                // some providers have listed their models while others take long
	Network     *netclient.Network
	Record      func(m llm.Model, id string) llm.Model // has what a model is asked be on record

	Getenv     func(string) string
	CacheDir   string
	CatalogURL string // empty: it is not fetched
	RecordDir  string // empty: nothing is recorded
	Version    string
	RetryTotal time.Duration // see daemon.Options
	Log        *slog.Logger
	Now        func() time.Time
	Sleep      func(context.Context, time.Duration) error
	Random     func() float64
}

// Models turns configured providers into models that can be used.
type Models struct {
	opts     Options
	recorder *cassette.Recorder // nil unless recording
	catalog  *catalog.Catalog

	copilotTurn chan struct{} // of one: held while a key of Copilot is fetched

	mu         sync.Mutex                 // guards what follows
	clients    map[string]*providerClient // by provider; made when first needed
	fetched    map[string]fetched         // by provider, from the network
	asking     map[string]int             // by provider: how often it is being asked for its models
	copilotHas copilotKey
}

// New returns the models of the configuration in effect.
func New(o Options) *Models {
	m := &Models{
		opts: o, clients: map[string]*providerClient{}, fetched: map[string]fetched{}, asking: map[string]int{},
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

// httpVersion1 is the providers.<name>.httpClient.version that forbids HTTP/2.
const httpVersion1 = "http-1.1"

// http returns the client for a provider whose connections must stand within a limit.
func (m *Models) http(p config.Provider, connect time.Duration) *http.Client {
	return m.opts.Network.Client(netclient.Options{Connect: connect, HTTP1: p.HTTPClient.Version == httpVersion1})
}

// clean removes from a text the secrets that are in use now: users log in while others
// record.
func (m *Models) clean(text string) string {
	v := m.view()
	var secrets []string
	for _, c := range v.entered {
		secrets = append(secrets, c.Secrets()...)
	}
	m.mu.Lock()
	secrets = append(secrets, m.copilotHas.key)
	m.mu.Unlock()
	for _, p := range v.all {
		secrets = append(secrets, p.Key)
		for _, value := range p.ExtraHeaders {
			secrets = append(secrets, value)
		}
	}
	return redact.New(secrets...).String(text)
}

// view is what one configuration means now.
type view struct {
	*Models
	cfg     *config.Loaded
	rules   *catalog.Variants
	entered map[string]auth.Credential
	all     map[string]provider // by name
	fetched map[string]fetched
	asking  map[string]int
}

// view returns that of the configuration in effect.
func (m *Models) view() *view { return m.viewOf(m.opts.Current()) }

func (m *Models) viewOf(cfg *config.Loaded, rules *catalog.Variants) *view {
	if cfg == nil {
		cfg = &config.Loaded{Config: &config.Config{}}
	}
	entered, _ := m.opts.Credentials().All() // the error is among the configuration's problems
	v := &view{Models: m, cfg: cfg, rules: rules, entered: entered, all: m.providers(cfg, entered)}
	m.mu.Lock()
	defer m.mu.Unlock()
	v.fetched, v.asking = maps.Clone(m.fetched), maps.Clone(m.asking)
	return v
}

// Resolve implements Resolver by the configuration in effect. It waits for a key that a
// command of the configuration still has to tell.
func (m *Models) Resolve(name, current string) (Model, error) {
	m.opts.Settle(context.Background()) // each command has its time limit
	return m.view().resolve(name, current)
}

// With returns the models of one configuration.
func (m *Models) With(cfg *config.Loaded, rules *catalog.Variants) Resolver {
	return configuredModels{m, cfg, rules}
}

type configuredModels struct {
	*Models
	cfg   *config.Loaded
	rules *catalog.Variants
}

// Resolve implements Resolver. While a command of the configuration has not told its value,
// there is no configuration to keep to yet.
func (c configuredModels) Resolve(name, current string) (Model, error) {
	if c.cfg.Pending {
		return c.Models.Resolve(name, current)
	}
	return c.viewOf(c.cfg, c.rules).resolve(name, current)
}

// WarmCatalog reads the catalogue's index, so that no request waits for it later.
func (m *Models) WarmCatalog() { m.catalog.Warm() }

// IDs lists the full ids of the models that can be used.
func (m *Models) IDs() []string { return m.view().ids() }

// Choice returns the models that can be used and the default, which may be empty, without
// using the network.
func (m *Models) Choice() (ids []string, standard string) {
	v := m.view()
	return v.ids(), v.defaultID()
}

// OnlyDemo says that the demo model is all there is.
func (m *Models) OnlyDemo() bool {
	ids := m.IDs()
	return len(ids) == 1 && ids[0] == DemoModel
}

// Variants lists the variants of a model; ok is false if the model cannot be used.
func (m *Models) Variants(model string) (variants []string, ok bool) {
	if model == "" {
		return []string{}, false
	}
	v := m.view()
	_, err := v.resolve(model, "")
	return v.variants(model), err == nil
}

// Providers lists the configured providers, and those somebody has logged in to, by name.
func (m *Models) Providers() []llm.Provider { return m.view().describe() }

// ModelHost is the host that a model's provider is reached at; empty if it is not reached
// over the network.
func (m *Models) ModelHost(id string) string {
	provider, _, _ := strings.Cut(id, "/")
	return hostOf(m.view().all[provider].URL)
}

// AnswerLimits are the time limits of a model's provider.
func (m *Models) AnswerLimits(id string) llm.Limits {
	provider, _, _ := strings.Cut(id, "/")
	v := m.view()
	return v.limits(v.all[provider].Provider)
}

// CheckModel returns the full id of a model that a name means. A provider's model that its
// list does not have is an error, if that list is known for certain: the provider told it,
// or only the configuration has one. The provider is asked if need be.
func (m *Models) CheckModel(ctx context.Context, name string) (string, error) {
	found, err := m.Resolve(name, "")
	var unlisted *unlistedError
	if errors.As(err, &unlisted) { // by a provider that was not asked yet, perhaps
		m.ListModels(ctx)
		found, err = m.Resolve(name, "")
	}
	if err != nil {
		return "", err
	}
	v := m.view()
	known, certain := v.listed(found.ID)
	if !known && !certain {
		provider, _, _ := strings.Cut(found.ID, "/")
		m.ListModels(ctx, provider)
		v = m.view()
		known, certain = v.listed(found.ID)
	}
	if !known && certain {
		return "", fmt.Errorf("the model %s is not known: %s", name, v.unlisted(found.ID))
	}
	return found.ID, nil
}
