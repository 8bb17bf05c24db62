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
	"github.com/seed-dec29ce4/eca/llm/anthropic"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/google"
	"github.com/seed-dec29ce4/eca/llm/ollama"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// fetched is what came of asking a provider for its models when it was configured, and
// reached, like from.
type fetched struct {
	from      config.Provider
	models    map[string]llm.Facts
	failed    string // why the list is missing
	refused   bool   // the key is not accepted
	unreached bool   // there was no answer
}

// fetchedOf returns the models a provider was found to have; ok is false if it has not
// answered since it changed.
func (v *view) fetchedOf(name string, p provider) (models map[string]llm.Facts, ok bool) {
	f, ok := v.fetched[name]
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

// complete says whether a provider has a value for all it needs. Its models can be selected,
// also if requests cannot be sent with these values: clients of the reference server rely on
// that, and the prompt then says what is wrong.
func complete(p config.Provider) bool {
	return p.API != "" && p.URL != "" && (p.Key != "" || !needsKey(p))
}

// usable says whether a provider is complete, and requests can be sent with its values.
func usable(p config.Provider) bool {
	return complete(p) && (p.API == apiCassette || config.IsWebURL(p.URL)) && (p.Key == "" || headerSafe(p.Key))
}

// fetchTimeout bounds asking one provider for its models.
const fetchTimeout = 10 * time.Second

// partlyAfter is how long providers are waited for before the models of those that have
// answered are shown.
const partlyAfter = 2 * time.Second

// ListModels asks providers which models they have, or only those that are named, all at once, except
// those that have answered already, and brings the catalogue up to date. A provider that does
// not answer keeps its configured models. Ollama is asked each time: its models come and go, and
// so does the server.
func (m *Models) ListModels(ctx context.Context, only ...string) {
	v := m.view()
	providers := maps.Clone(v.all)
	maps.DeleteFunc(providers, func(name string, p provider) bool {
		_, known := v.fetchedOf(name, p)
		return known && p.API != ollama.API || !listsModels(p.Provider) || only != nil && !slices.Contains(only, name)
	})
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	timer := time.AfterFunc(partlyAfter, m.opts.Changed)
	defer timer.Stop()
	var wg sync.WaitGroup
	wg.Go(func() { m.RefreshCatalog(limited) })
	for name, p := range providers {
		wg.Go(func() { _, _ = m.ask(ctx, limited, name, p) })
	}
	wg.Wait()
}

// AskLocalModels asks Ollama's servers for their models.
func (m *Models) AskLocalModels(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for name, p := range m.view().all {
		if p.API == ollama.API && listsModels(p.Provider) {
			_, _ = m.ask(ctx, limited, name, p) // it may not run
		}
	}
}

// ask asks a provider for its models within the limits of a context, and keeps what came
// of it unless ctx was ended.
func (m *Models) ask(ctx, limited context.Context, name string, p provider) (map[string]llm.Facts, error) {
	at := m.view().endpoint(name, p.Provider)
	m.mu.Lock()
	m.asking[name]++
	m.mu.Unlock()
	found := fetched{from: p.Provider}
	var err error
	if at, err = at.Authorized(limited); err == nil {
		found.models, err = listModels(limited, p.API, at)
	}
	if err != nil {
		m.opts.Log.Debug("models could not be listed", "provider", name, "err", err)
	}
	v := m.view()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking[name]--
	var failed *llm.Error
	if errors.Is(limited.Err(), context.DeadlineExceeded) && err != nil {
		found.unreached = true
		err = fmt.Errorf("%s does not answer; try again, or set providers.%s.fetchModels to false", cmp.Or(hostOf(p.URL), name), v.cfg.Spelled(name))
	}
	if errors.As(err, &failed) {
		found.refused = failed.Status == http.StatusUnauthorized
		found.unreached = slices.Contains([]llm.ErrorKind{llm.ErrNetwork, llm.ErrUnreachable, llm.ErrTimeout}, failed.Kind)
		if remedy := v.remedy(name, failed); remedy != "" {
			told := *failed
			told.Message = strings.TrimRight(told.Message, ". ") + ". " + remedy
			err = &told
		}
	}
	if err != nil {
		found.failed = err.Error()
	}
	still := sameModels(v.all[name].Provider, p.Provider)
	if still && (err == nil || ctx.Err() == nil) { // being stopped says nothing of the provider
		m.fetched[name] = found
	}
	return found.models, err
}

// listModels asks a server for its models in the way of its wire format.
func listModels(ctx context.Context, api string, at llm.Endpoint) (map[string]llm.Facts, error) {
	if at.Provider == copilot {
		return copilotModels(ctx, at)
	}
	switch api {
	case google.API:
		return google.ListModels(ctx, at)
	case ollama.API:
		return ollama.ListModels(ctx, at)
	case anthropic.API:
		names, err := anthropic.ListModels(ctx, at)
		models := map[string]llm.Facts{}
		for _, name := range names {
			models[name] = llm.Facts{} // names are all it tells
		}
		return models, err
	}
	return openai.ListModels(ctx, at)
}
