// Package providers manages the configured providers and their models: it resolves model names,
// connects to a provider with the right key, collects facts about models, and logs the user in to
// providers.
//
// Models lives as long as the daemon. It holds the state that outlives a configuration: clients,
// the models that providers listed, keys of GitHub Copilot, and the catalogue. A view combines one
// configuration, the credentials stored at that moment, and the lists received so far. A view does
// not change, so its answers are consistent; each query creates one and drops it. A login takes
// effect as soon as any process has stored it, without a reload of the configuration.
//
// The package does not read configuration files and does not know chats. Entry points: New, and
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

// Options are the dependencies of Models. No function may be nil.
type Options struct {
	Current       func() (*config.Loaded, *catalog.Variants) // the current configuration; nil before the first one
	Credentials   func() *auth.Store
	AwaitCommands func(context.Context) // waits for the configuration's commands and applies their results
	Changed       func()                // called when some providers have listed their models while others have not answered yet
	Network       *netclient.Network
	Record        func(m llm.Model, id string) llm.Model // wraps a model so that its requests are recorded

	Getenv     func(string) string
	CacheDir   string
	CatalogURL string // empty: the catalogue is not fetched
	RecordDir  string // empty: nothing is recorded
	Recordings cassette.Folders
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

	copilotLock chan struct{} // capacity 1: a semaphore held while a Copilot key is fetched

	mu            sync.Mutex                 // guards the fields below
	clients       map[string]*providerClient // by provider; created when first needed
	lists         map[string]modelList       // by provider, from the network
	fetching      map[string]int             // by provider: the number of running requests for its models
	copilotCached copilotKey
}

// New returns the models of the current configuration.
func New(o Options) *Models {
	m := &Models{
		opts: o, clients: map[string]*providerClient{}, lists: map[string]modelList{}, fetching: map[string]int{},
		copilotLock: make(chan struct{}, 1),
	}
	m.catalog = catalog.New(catalog.Options{
		Path: filepath.Join(o.CacheDir, catalogFile), URL: o.CatalogURL, Client: m.http(config.Provider{}, llm.DefaultLimits().Connect), Now: o.Now,
	})
	if o.RecordDir != "" {
		m.recorder = cassette.NewRecorder(o.RecordDir, o.Recordings, m.clean, func(err error) { o.Log.Warn("recording failed", "err", err) })
	}
	return m
}

// DeleteRecordings deletes the recordings of a chat, whichever process wrote them.
func (m *Models) DeleteRecordings(chat string) error {
	if m.recorder == nil {
		return m.opts.Recordings.Delete(chat)
	}
	return m.recorder.Delete(chat)
}

// httpVersion1 is the value of providers.<name>.httpClient.version that forbids HTTP/2.
const httpVersion1 = "http-1.1"

// http returns the HTTP client for a provider; connect is its connection timeout.
func (m *Models) http(p config.Provider, connect time.Duration) *http.Client {
	return m.opts.Network.Client(netclient.Options{Connect: connect, HTTP1: p.HTTPClient.Version == httpVersion1})
}

// clean removes the current secrets from a text. It reads them each time, because users can log in
// during a recording.
func (m *Models) clean(text string) string {
	v := m.view()
	var secrets []string
	for _, c := range v.storedLogins {
		secrets = append(secrets, c.Secrets()...)
	}
	m.mu.Lock()
	secrets = append(secrets, m.copilotCached.key)
	m.mu.Unlock()
	for _, p := range v.all {
		secrets = append(secrets, p.Key)
		for _, value := range p.ExtraHeaders {
			secrets = append(secrets, value)
		}
	}
	return redact.New(secrets...).String(text)
}

// view combines one configuration with the credentials and lists of models at one moment.
type view struct {
	*Models
	cfg          *config.Loaded
	rules        *catalog.Variants
	storedLogins map[string]auth.Credential
	all          map[string]provider // by name
	lists        map[string]modelList
	fetching     map[string]int
}

// view returns the view of the current configuration.
func (m *Models) view() *view { return m.viewOf(m.opts.Current()) }

func (m *Models) viewOf(cfg *config.Loaded, rules *catalog.Variants) *view {
	if cfg == nil {
		cfg = &config.Loaded{Config: &config.Config{}}
	}
	storedLogins, _ := m.opts.Credentials().All() // the error is among the configuration's problems
	v := &view{Models: m, cfg: cfg, rules: rules, storedLogins: storedLogins, all: m.providers(cfg, storedLogins)}
	m.mu.Lock()
	defer m.mu.Unlock()
	v.lists, v.fetching = maps.Clone(m.lists), maps.Clone(m.fetching)
	return v
}

// Resolve implements Resolver with the current configuration. It waits for commands of the
// configuration, because a key may be the output of one.
func (m *Models) Resolve(name, current string) (Model, error) {
	m.opts.AwaitCommands(context.Background()) // each command has its time limit
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

// Resolve implements Resolver. While commands of the configuration are running, the configuration
// is incomplete, so it uses the current one.
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
func (m *Models) Choice() (ids []string, defaultID string) {
	v := m.view()
	return v.ids(), v.defaultID()
}

// OnlyDemo reports whether the demo model is the only model.
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

// Providers lists the configured providers and those that the user has logged in to, sorted by
// name.
func (m *Models) Providers() []llm.Provider { return m.view().describe() }

// ModelHost returns the host of a model's provider, or "" if the provider is not reached over the
// network.
func (m *Models) ModelHost(id string) string {
	provider, _, _ := strings.Cut(id, "/")
	return hostOf(m.view().all[provider].URL)
}

// AnswerLimits returns the time limits of a model's provider.
func (m *Models) AnswerLimits(id string) llm.Limits {
	provider, _, _ := strings.Cut(id, "/")
	v := m.view()
	return v.limits(v.all[provider].Provider)
}

// CheckModel returns the full id of the model that a name refers to. It asks the provider for its
// models if necessary. It returns an error if the provider's list is complete and does not contain
// the model. A list is complete if the provider returned it, or if the provider is not asked and
// the configuration has the list.
func (m *Models) CheckModel(ctx context.Context, name string) (string, error) {
	found, err := m.Resolve(name, "")
	var unlisted *unlistedError
	if errors.As(err, &unlisted) { // perhaps a provider that has not been asked yet has it
		m.ListModels(ctx)
		found, err = m.Resolve(name, "")
	}
	if err != nil {
		return "", err
	}
	v := m.view()
	known, certain := v.isListed(found.ID)
	if !known && !certain {
		provider, _, _ := strings.Cut(found.ID, "/")
		m.ListModels(ctx, provider)
		v = m.view()
		known, certain = v.isListed(found.ID)
	}
	if !known && certain {
		return "", fmt.Errorf("unknown model %s: %s", name, v.unlistedText(found.ID))
	}
	return found.ID, nil
}
