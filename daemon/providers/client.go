package providers

import (
	"cmp"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/bedrock"
	"github.com/seed-dec29ce4/eca/llm/openai"
)

// providerClient is a provider's client together with the settings that it was created for. The
// settings change with the configuration, and with each login or logout in any process.
type providerClient struct {
	llm.Model
	raw      llm.Model // without retries and recording
	provider config.Provider
	limits   llm.Limits
}

// client returns the provider's client, with retries and recording.
func (v *view) client(name string, p provider) (*providerClient, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	limits := v.limits(p.Provider)
	if c, ok := v.clients[name]; ok && c.limits == limits && reflect.DeepEqual(c.provider, p.Provider) {
		return c, nil
	}
	raw, err := v.newClient(name, p.Provider)
	if err != nil {
		return nil, err
	}
	model := raw
	if name == copilot {
		model = copilotModel{raw}
	}
	retried := &remedyModel{llm.WithRetry(model, v.retryPolicy(p.Provider)), func(e *llm.Error) string {
		now := v.view()
		return withRetryLimit(now, name, e, now.remedy(name, e))
	}}
	c := &providerClient{v.withRecording(retried), raw, p.Provider, limits}
	v.clients[name] = c
	return c, nil
}

// readsReasoning returns a function that reports whether a model can be sent reasoning from an API; nil if
// it is sent no earlier reasoning, or if that is not known.
func (c *providerClient) readsReasoning(model config.Model, name string) func(api string) bool {
	r, ok := c.raw.(llm.ReasoningReader)
	if !ok || model.History == llm.HistoryOff || model.History == llm.HistoryTurn {
		return nil
	}
	return func(api string) bool { return r.ReadsReasoning(name, api) }
}

func (m *Models) withRecording(c llm.Model) llm.Model {
	if m.recorder == nil {
		return c
	}
	return m.recorder.Wrap(c)
}

func (v *view) newClient(name string, p config.Provider) (llm.Model, error) {
	if f := formatOf(p.API); f.client != nil {
		return f.client(v, name, p)
	}
	return nil, fmt.Errorf("provider %s: unknown api %q; this version supports %s", v.cfg.Spelled(name), p.API, wireFormats())
}

// wireFormats names the wire formats for users.
func wireFormats() string { return strings.Join(config.WireFormats(), ", ") }

// chatOptions returns how a provider's models mark reasoning.
func chatOptions(name string, p config.Provider, unmergedDeltas bool) openai.ChatOptions {
	t := openai.DefaultThink()
	if name == googleProvider || strings.Contains(p.URL, "generativelanguage.googleapis.com") {
		t.Start, t.End = "<thought>", "</thought>"
	}
	t.Start, t.End = cmp.Or(p.ThinkStart, t.Start), cmp.Or(p.ThinkEnd, t.End)
	t.ReferenceSplits = unmergedDeltas
	return openai.ChatOptions{Think: t}
}

// endpoint returns a provider's endpoint, with the key in the header that its API requires. The URL
// is the provider's base URL.
func (v *view) endpoint(name string, p config.Provider) llm.Endpoint {
	limits := v.limits(p)
	headers := map[string]string{"User-Agent": "eca", "X-Llm-Application-Name": "eca"}
	if header := formatOf(p.API).keyHeader; p.Key != "" && header != "" {
		headers[header] = p.Key
	} else if p.Key != "" {
		headers["Authorization"] = "Bearer " + p.Key
	}
	for k, v := range p.ExtraHeaders {
		headers[http.CanonicalHeaderKey(k)] = v // the user's header wins, in any spelling
	}
	e := llm.Endpoint{Provider: name, Label: v.cfg.Spelled(name), URL: p.URL, Headers: headers, Client: v.http(p, limits.Connect), Limits: limits, Now: v.opts.Now}
	if p.Key == "" && p.Auth.ClientID != "" {
		e.Bearer = logins{v}.bearer(name, p)
	}
	if name == copilot {
		headers["Editor-Version"] = cmp.Or(headers["Editor-Version"], v.copilotVersion())
	}
	return e
}

// aws returns access to the credentials of AWS's own tools.
func (m *Models) aws() bedrock.AWS { return bedrock.AWS{Getenv: m.opts.Getenv} }

// limits merges the time limits of a provider over the global ones.
func (v *view) limits(p config.Provider) llm.Limits {
	l := llm.DefaultLimits()
	for _, t := range []config.TimeLimits{v.cfg.TimeLimits, p.TimeLimits} {
		for dst, src := range map[*time.Duration]*float64{
			&l.Connect: t.ConnectTimeoutSeconds, &l.FirstByte: t.FirstByteTimeoutSeconds,
			&l.Idle: t.StreamIdleTimeoutSeconds, &l.Total: t.RequestTimeoutSeconds,
		} {
			if src != nil {
				*dst = time.Duration(*src * float64(time.Second))
			}
		}
	}
	global, _ := v.cfg.Origin("firstByteTimeoutSeconds")
	if total := v.opts.RetryTotal; total > 0 && global.IsDefault() && p.FirstByteTimeoutSeconds == nil {
		l.FirstByte = min(l.FirstByte, total)
	}
	return l
}
