package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/ollama"
)

// modelList is the outcome of asking a provider for its models.
type modelList struct {
	provider    config.Provider // the provider's configuration at that time; the list is valid only for it
	models      map[string]llm.Facts
	failure     string // why the list is missing
	keyRefused  bool
	unreachable bool // there was no answer
}

// listedModels returns the models that a provider listed; ok is false if it has not listed any since
// its configuration changed.
func (v *view) listedModels(name string, p provider) (models map[string]llm.Facts, ok bool) {
	f, ok := v.lists[name]
	if !ok || f.failure != "" || !sameModels(f.provider, p.Provider) {
		return nil, false
	}
	return f.models, true
}

// sameModels reports whether two provider configurations must list the same models.
func sameModels(a, b config.Provider) bool {
	return a.API == b.API && a.URL == b.URL && a.Key == b.Key && maps.Equal(a.ExtraHeaders, b.ExtraHeaders) && hasModelList(a) == hasModelList(b)
}

// hasModelList reports whether a provider is asked for its models.
func hasModelList(p config.Provider) bool {
	return usable(p) && formatOf(p.API).list != nil && (p.FetchModels == nil || *p.FetchModels)
}

// complete reports whether a provider has all the values that it needs. Its models can then be
// selected even if requests cannot be sent with these values: clients of the reference server rely
// on that, and the first prompt reports what is wrong.
func complete(p config.Provider) bool {
	return p.API != "" && p.URL != "" && (p.Key != "" || !needsKey(p))
}

// usable reports whether a provider is complete and requests can be sent with its values.
func usable(p config.Provider) bool {
	return complete(p) && (p.API == apiCassette || config.IsWebURL(p.URL)) && (p.Key == "" || headerSafe(p.Key))
}

// fetchTimeout limits asking one provider for its models.
const fetchTimeout = 10 * time.Second

// partialListDelay is how long eca waits for all providers before it shows the models of those that
// have answered.
const partialListDelay = 2 * time.Second

// ListModels asks providers for their models, concurrently, and updates the catalogue. It asks the
// providers in only, or all if only is nil, and skips those that have answered before. A provider that does
// not answer keeps its configured models. Ollama is asked each time, because its models change and
// its server starts and stops.
func (m *Models) ListModels(ctx context.Context, only ...string) {
	v := m.view()
	providers := maps.Clone(v.all)
	maps.DeleteFunc(providers, func(name string, p provider) bool {
		_, known := v.listedModels(name, p)
		return known && p.API != ollama.API || !hasModelList(p.Provider) || only != nil && !slices.Contains(only, name)
	})
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	timer := time.AfterFunc(partialListDelay, m.opts.Changed)
	defer timer.Stop()
	var wg sync.WaitGroup
	wg.Go(func() { m.RefreshCatalog(limited) })
	for name, p := range providers {
		wg.Go(func() { _, _ = m.fetchModels(ctx, limited, name, p) })
	}
	wg.Wait()
}

// AskLocalModels asks Ollama's servers for their models.
func (m *Models) AskLocalModels(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for name, p := range m.view().all {
		if p.API == ollama.API && hasModelList(p.Provider) {
			_, _ = m.fetchModels(ctx, limited, name, p) // the server may not be running
		}
	}
}

// fetchModels asks a provider for its models until limited ends, and stores the outcome unless ctx was
// cancelled.
func (m *Models) fetchModels(ctx, limited context.Context, name string, p provider) (map[string]llm.Facts, error) {
	at := m.view().endpoint(name, p.Provider)
	m.mu.Lock()
	m.fetching[name]++
	m.mu.Unlock()
	found := modelList{provider: p.Provider}
	var err error
	if at, err = at.Authorize(limited); err == nil {
		found.models, err = listModels(limited, p.API, at)
	}
	if err != nil {
		m.opts.Log.Debug("cannot list models", "provider", name, "err", err)
	}
	v := m.view()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fetching[name]--
	var failed *llm.Error
	if errors.Is(limited.Err(), context.DeadlineExceeded) && err != nil {
		found.unreachable = true
		err = fmt.Errorf("%s does not answer; try again, or set providers.%s.fetchModels to false", cmp.Or(hostOf(p.URL), name), v.cfg.Spelled(name))
	}
	if errors.As(err, &failed) {
		found.keyRefused = failed.Status == http.StatusUnauthorized
		found.unreachable = slices.Contains([]llm.ErrorKind{llm.ErrNetwork, llm.ErrUnreachable, llm.ErrTimeout}, failed.Kind)
		if remedy := v.remedy(name, failed); remedy != "" {
			explained := *failed
			explained.Message = strings.TrimRight(explained.Message, ". ") + ". " + remedy
			err = &explained
		}
	}
	if err != nil {
		found.failure = err.Error()
	}
	sameProvider := sameModels(v.all[name].Provider, p.Provider)
	if sameProvider && (err == nil || ctx.Err() == nil) { // a cancelled request is not a failure of the provider
		m.lists[name] = found
	}
	return found.models, err
}

// listModels asks a server for its models in its wire format.
func listModels(ctx context.Context, api string, at llm.Endpoint) (map[string]llm.Facts, error) {
	if at.Provider == copilot {
		return copilotModels(ctx, at)
	}
	return formatOf(api).list(ctx, at)
}
