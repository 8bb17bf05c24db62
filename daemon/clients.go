package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
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
	limits := m.limits(p)
	cfg := openai.Config{
		Provider: name, Key: p.Key, Headers: maps.Clone(p.ExtraHeaders), Limits: limits, Now: m.opts.Now,
	}
	if cfg.Headers == nil {
		cfg.Headers = map[string]string{}
	}
	cfg.Headers["User-Agent"] = "eca"
	cfg.Headers["X-Llm-Application-Name"] = "eca"
	switch p.API {
	case openai.APIResponses, "openai":
		cfg.Client = m.http(limits.Connect)
		chatCfg := cfg
		cfg.URL = endpoint(p, "/v1/responses")
		chatCfg.URL = endpoint(config.Provider{URL: p.URL}, "/v1/chat/completions")
		if p.Path != "" || strings.HasPrefix(p.URL, "https://api.openai.com") {
			return openai.NewResponses(cfg), nil
		}
		return &withFallback{first: openai.NewResponses(cfg), second: openai.NewChat(chatCfg)}, nil
	case openai.APIChat:
		cfg.Client = m.http(limits.Connect)
		cfg.URL = endpoint(p, "/v1/chat/completions")
		return openai.NewChat(cfg), nil
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

// endpoint appends the path of a call to a provider's URL. Users write the URL with
// and without the version.
func endpoint(p config.Provider, path string) string {
	base := strings.TrimRight(p.URL, "/")
	if p.Path != "" {
		return base + p.Path
	}
	u, err := url.Parse(base)
	hasPath := err == nil && u.Path != ""
	short := strings.TrimPrefix(path, "/v1")
	switch {
	case strings.HasSuffix(base, "/v1"):
		return base + short
	case hasPath && path == "/v1/chat/completions":
		return base + short
	}
	return base + path
}

// http returns a client whose connections must stand within a limit.
func (m *models) http(connect time.Duration) *http.Client {
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	c := &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: 90 * time.Second, ReadBufferSize: 32 << 10,
	}}
	m.https = append(m.https, c)
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

// withFallback serves compatible servers that do not have the Responses API: when it
// is not there, Chat Completions takes over for good.
type withFallback struct {
	first, second llm.Model

	mu     sync.Mutex // guards fallen
	fallen bool
}

func (f *withFallback) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		f.mu.Lock()
		fallen := f.fallen
		f.mu.Unlock()
		if !fallen {
			for d, err := range f.first.Stream(ctx, req) {
				var e *llm.Error
				if errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
					fallen = true
					break
				}
				if !yield(d, err) {
					return
				}
			}
			if !fallen {
				return
			}
			f.mu.Lock()
			f.fallen = true
			f.mu.Unlock()
		}
		for d, err := range f.second.Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
		}
	}
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
			names, err := m.fetch(ctx, p)
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

func (m *models) fetch(ctx context.Context, p config.Provider) ([]string, error) {
	m.mu.Lock()
	client := m.http(m.limits(p).Connect)
	m.mu.Unlock()
	path := "/v1/models"
	base := strings.TrimRight(p.URL, "/")
	if u, err := url.Parse(base); err == nil && u.Path != "" && p.API == openai.APIChat || strings.HasSuffix(base, "/v1") {
		path = "/models"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+path, nil)
	if err != nil {
		return nil, err
	}
	if p.Key != "" {
		req.Header.Set("Authorization", "Bearer "+p.Key)
	}
	req.Header.Set("User-Agent", "eca")
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	const limit = 4 << 20
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	var out []string
	for _, d := range list.Data {
		if d.ID != "" && !notForChat(d.ID) {
			out = append(out, d.ID)
		}
	}
	return out, nil
}

// notForChat recognises models that do something else.
func notForChat(id string) bool {
	for _, sign := range []string{"embedding", "whisper", "tts", "dall-e", "moderation", "-audio", "realtime", "-image", "transcribe", "davinci", "babbage", "sora"} {
		if strings.Contains(id, sign) {
			return true
		}
	}
	return false
}
