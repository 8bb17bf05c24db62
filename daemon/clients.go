package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/anthropic"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/google"
	"github.com/seed-dec29ce4/eca/llm/ollama"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// providerClient is a provider's client with what it was made for: that changes with the
// configuration, and when somebody logs in or out in this process or in another.
type providerClient struct {
	llm.Model
	raw      llm.Model // without retries and recording
	provider config.Provider
	limits   llm.Limits
}

// client returns the provider's client, with retries and recording.
func (m *models) client(name string, p provider) (*providerClient, error) {
	limits := m.limits(p.Provider)
	if c, ok := m.clients[name]; ok && c.limits == limits && reflect.DeepEqual(c.provider, p.Provider) {
		return c, nil
	}
	raw, err := m.newClient(name, p.Provider)
	if err != nil {
		return nil, err
	}
	model := raw
	if name == copilot {
		model = copilotModel{raw}
	}
	retried := &remedied{llm.WithRetry(model, m.retryPolicy(p.Provider)), func(e *llm.Error) string { return m.remedy(name, e) }}
	c := &providerClient{m.recorded(retried), raw, p.Provider, limits}
	m.clients[name] = c
	return c, nil
}

// reads says whose earlier reasoning a model can be sent; nil if it is sent none of it, or
// nobody knows.
func (c *providerClient) reads(model config.Model, name string) func(api string) bool {
	r, ok := c.raw.(llm.Reader)
	if !ok || model.History == llm.HistoryOff || model.History == llm.HistoryTurn {
		return nil
	}
	return func(api string) bool { return r.Reads(name, api) }
}

func (m *models) recorded(c llm.Model) llm.Model {
	if m.recorder == nil {
		return c
	}
	return m.recorder.Wrap(c)
}

func (m *models) newClient(name string, p config.Provider) (llm.Model, error) {
	switch p.API {
	case openai.APIResponses, "openai": // the second is an older name of the first
		responses := m.endpoint(name, p)
		chat := responses
		responses.URL = openai.URL(p.URL, p.Path, openai.APIResponses)
		chat.URL = openai.URL(p.URL, "", openai.APIChat)
		if p.Path != "" || strings.HasPrefix(p.URL, "https://api.openai.com") {
			return openai.NewResponses(responses), nil
		}
		return openai.WithFallback(openai.NewResponses(responses), openai.NewChat(chat, m.chatOptions(name, p))), nil
	case openai.APIChat:
		e := m.endpoint(name, p)
		e.URL = openai.URL(p.URL, p.Path, openai.APIChat)
		return openai.NewChat(e, m.chatOptions(name, p)), nil
	case anthropic.API:
		e := m.endpoint(name, p)
		e.URL = anthropic.URL(p.URL, p.Path)
		return anthropic.NewMessages(e), nil
	case bedrock.API:
		return bedrock.New(m.endpoint(name, p), m.aws()), nil
	case google.API:
		return google.New(m.endpoint(name, p)), nil
	case ollama.API:
		return ollama.New(m.endpoint(name, p), p.Path), nil
	case apiCassette:
		data, err := os.ReadFile(p.URL)
		if err != nil {
			return nil, fmt.Errorf("provider %s: the cassette can not be read: %w", m.cfg.Spelled(name), err)
		}
		player, err := cassette.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %s: %w", m.cfg.Spelled(name), p.URL, err)
		}
		return player, nil
	}
	return nil, fmt.Errorf("provider %s: api %q is not known; this version speaks %s", m.cfg.Spelled(name), p.API, apis)
}

// apis names the wire formats for users.
const apis = "openai-responses, openai-chat, anthropic, google, ollama, bedrock and cassette"

// chatOptions says how a provider's models mark reasoning.
func (m *models) chatOptions(name string, p config.Provider) openai.ChatOptions {
	t := openai.DefaultThink()
	if name == googleProvider || strings.Contains(p.URL, "generativelanguage.googleapis.com") {
		t.Start, t.End = "<thought>", "</thought>"
	}
	t.Start, t.End = cmp.Or(p.ThinkStart, t.Start), cmp.Or(p.ThinkEnd, t.End)
	t.Steady = m.cfg.Env == config.EnvTest
	return openai.ChatOptions{Think: t}
}

// endpoint is a provider's endpoint, with its key where its API wants it; the URL is the
// provider's own.
func (m *models) endpoint(name string, p config.Provider) llm.Endpoint {
	limits := m.limits(p)
	headers := map[string]string{"User-Agent": "eca", "X-Llm-Application-Name": "eca"}
	switch {
	case p.Key == "":
	case p.API == anthropic.API:
		headers[anthropic.KeyHeader] = p.Key
	case p.API == google.API:
		headers[google.KeyHeader] = p.Key
	default:
		headers["Authorization"] = "Bearer " + p.Key
	}
	for k, v := range p.ExtraHeaders {
		headers[http.CanonicalHeaderKey(k)] = v // the user's wins, however it is written
	}
	e := llm.Endpoint{Provider: name, Label: m.cfg.Spelled(name), URL: p.URL, Headers: headers, Client: m.http(p, limits.Connect), Limits: limits, Now: m.opts.Now}
	if p.Key == "" && p.Auth.ClientID != "" {
		e.Bearer = m.bearer(name, p)
	}
	if name == copilot {
		headers["Editor-Version"] = cmp.Or(headers["Editor-Version"], m.copilotVersion())
	}
	return e
}

// aws is where AWS's own tools keep credentials.
func (m *models) aws() bedrock.AWS { return bedrock.AWS{Getenv: m.opts.Getenv} }

// limits merges the time limits of a provider over the global ones.
func (m *models) limits(p config.Provider) llm.Limits {
	l := llm.DefaultLimits()
	for _, t := range []config.TimeLimits{m.cfg.TimeLimits, p.TimeLimits} {
		for dst, src := range map[*time.Duration]*float64{
			&l.Connect: t.ConnectTimeoutSeconds, &l.FirstByte: t.FirstByteTimeoutSeconds,
			&l.Idle: t.StreamIdleTimeoutSeconds, &l.Total: t.RequestTimeoutSeconds,
		} {
			if src != nil {
				*dst = time.Duration(*src * float64(time.Second))
			}
		}
	}
	if total := m.opts.RetryTotal; total > 0 && m.cfg.FirstByteTimeoutSeconds == nil && p.FirstByteTimeoutSeconds == nil {
		l.FirstByte = min(l.FirstByte, total)
	}
	return l
}

// fetchTimeout bounds asking one provider for its models.
const fetchTimeout = 10 * time.Second

// partlyAfter is how long providers are waited for before the models of those that have
// answered are shown.
const partlyAfter = 2 * time.Second

// sync asks providers which models they have, or only those that are named, all at once, except
// those that have answered already, and brings the catalogue up to date. A provider that does
// not answer keeps its configured models. Ollama is asked each time: its models come and go, and
// so does the server.
func (m *models) sync(ctx context.Context, only ...string) {
	m.mu.Lock()
	providers := m.providers()
	maps.DeleteFunc(providers, func(name string, p provider) bool {
		_, known := m.fetchedOf(name, p)
		return known && p.API != ollama.API || !listsModels(p.Provider) || only != nil && !slices.Contains(only, name)
	})
	m.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	timer := time.AfterFunc(partlyAfter, func() {
		select {
		case m.partly <- struct{}{}:
		default:
		}
	})
	defer timer.Stop()
	var wg sync.WaitGroup
	wg.Go(func() { m.refreshCatalog(limited) })
	for name, p := range providers {
		wg.Go(func() { _, _ = m.ask(ctx, limited, name, p) })
	}
	wg.Wait()
}

// AskLocalModels asks Ollama's servers for their models.
func (d *Daemon) AskLocalModels(ctx context.Context) {
	d.models.mu.Lock()
	providers := d.models.providers()
	d.models.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for name, p := range providers {
		if p.API == ollama.API && listsModels(p.Provider) {
			_, _ = d.models.ask(ctx, limited, name, p) // it may not run
		}
	}
}

// ask asks a provider for its models within the limits of a context, and keeps what came
// of it unless ctx was ended.
func (m *models) ask(ctx, limited context.Context, name string, p provider) (map[string]llm.Facts, error) {
	m.mu.Lock()
	at := m.endpoint(name, p.Provider)
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asking[name]--
	var failed *llm.Error
	if errors.Is(limited.Err(), context.DeadlineExceeded) && err != nil {
		err = fmt.Errorf("%s does not answer; try again, or set providers.%s.fetchModels to false", cmp.Or(hostOf(p.URL), name), m.cfg.Spelled(name))
	}
	if errors.As(err, &failed) {
		found.refused = failed.Status == http.StatusUnauthorized
		if remedy := m.remedyLocked(name, failed); remedy != "" {
			told := *failed
			told.Message += ". " + remedy
			err = &told
		}
	}
	if err != nil {
		found.failed = err.Error()
	}
	still := sameModels(m.providers()[name].Provider, p.Provider)
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
