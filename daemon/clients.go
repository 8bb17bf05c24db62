package daemon

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/cassette"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// client returns the provider's client, with retries and recording.
func (m *models) client(name string, p config.Provider) (llm.Model, error) {
	if c, ok := m.clients[name]; ok {
		return c, nil
	}
	raw, err := m.newClient(name, p)
	if err != nil {
		return nil, err
	}
	c := m.recorded(llm.WithRetry(raw, retryPolicy(p)))
	m.clients[name] = c
	return c, nil
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
		return openai.WithFallback(openai.NewResponses(responses), openai.NewChat(chat)), nil
	case openai.APIChat:
		e := m.endpoint(name, p)
		e.URL = openai.URL(p.URL, p.Path, openai.APIChat)
		return openai.NewChat(e), nil
	case apiCassette:
		data, err := os.ReadFile(p.URL)
		if err != nil {
			return nil, fmt.Errorf("provider %s: the cassette can not be read: %w", name, err)
		}
		player, err := cassette.Parse(data)
		if err != nil {
			return nil, fmt.Errorf("provider %s: %s: %w", name, p.URL, err)
		}
		return player, nil
	}
	return nil, fmt.Errorf("provider %s: api %q is not known; this version speaks openai-responses, openai-chat and cassette", name, p.API)
}

// endpoint is a provider's endpoint for the wire formats that take a bearer token; the
// URL is the provider's own.
func (m *models) endpoint(name string, p config.Provider) llm.Endpoint {
	limits := m.limits(p)
	headers := map[string]string{"User-Agent": "eca", "X-Llm-Application-Name": "eca"}
	if p.Key != "" {
		headers["Authorization"] = "Bearer " + p.Key
	}
	maps.Copy(headers, p.ExtraHeaders)
	return llm.Endpoint{Provider: name, URL: p.URL, Headers: headers, Client: m.http(limits.Connect), Limits: limits, Now: m.opts.Now}
}

// http returns the client whose connections must stand within a limit.
func (m *models) http(connect time.Duration) *http.Client {
	if c, ok := m.httpClients[connect]; ok {
		return c
	}
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	c := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, ReadBufferSize: 32 << 10,
	}}
	m.httpClients[connect] = c
	return c
}

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
	return l
}

func retryPolicy(p config.Provider) llm.RetryPolicy {
	r := llm.DefaultRetry()
	if v := p.Retry.MaxRetries; v != nil {
		r.MaxRetries = *v
	}
	if v := p.Retry.BaseDelayMs; v != nil {
		r.BaseDelay = time.Duration(*v) * time.Millisecond
	}
	if v := p.Retry.BackoffMultiplier; v != nil {
		r.Multiplier = *v
	}
	if v := p.Retry.MaxDelayMs; v != nil {
		r.MaxDelay = time.Duration(*v) * time.Millisecond
	}
	if v := p.RateLimit; v != nil {
		r.MaxWait = time.Duration(*v * float64(time.Second))
	}
	return r
}

// fetchTimeout bounds asking one provider for its models.
const fetchTimeout = 10 * time.Second

// sync asks providers which models they have, all at once. A provider that does not
// answer keeps its configured models.
func (m *models) sync(ctx context.Context) {
	m.mu.Lock()
	providers := maps.Clone(m.cfg.Providers)
	m.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for name, p := range providers {
		if !usable(p) || p.API == apiCassette || p.FetchModels != nil && !*p.FetchModels {
			continue
		}
		wg.Go(func() {
			m.mu.Lock()
			at := m.endpoint(name, p)
			m.mu.Unlock()
			names, err := openai.ListModels(ctx, at)
			if err != nil {
				m.opts.Log.Debug("models could not be listed", "provider", name, "err", err)
				return
			}
			m.mu.Lock()
			m.fetched[name] = names
			m.mu.Unlock()
		})
	}
	wg.Wait()
}
