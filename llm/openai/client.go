// Package openai speaks OpenAI's two HTTP APIs: Responses (responses.go) and Chat
// Completions (chat.go, chat_stream.go), to OpenAI itself and to servers compatible with either.
//
// Requests to the Responses API use the official module's optional values; the conversation is
// encoded without reflection (responses_input.go). The stream is read with sse.Reader and small
// structs, because the module's stream union costs several times as much per delta and does not
// detect a truncated stream. Chat Completions has its own small types, which compatible servers
// need anyway.
//
// It guarantees: exactly one StopDelta or one error ends a stream; a stream that
// ends without its terminal event is an error of kind llm.ErrPrematureStop; when
// the consumer stops, the HTTP request is closed. It never retries.
package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/llm"
)

// Names of the two wire formats, as configured by providers.<name>.api.
const (
	APIResponses = "openai-responses"
	APIChat      = "openai-chat"
)

// origin identifies the provider that produced reasoning, because another provider cannot read it.
func origin(e llm.Endpoint, api string) string { return e.Provider + "/" + api }

// URL returns the URL for requests to an API. base is the provider's URL as users write it, with or
// without the version; path, if not empty, is the path that the user configured.
func URL(base, path, api string) string {
	base = strings.TrimRight(base, "/")
	if path != "" {
		return base + path
	}
	u, err := url.Parse(base)
	hasPath := err == nil && u.Path != ""
	switch {
	case api == APIResponses && strings.HasSuffix(base, "/v1"):
		return base + "/responses"
	case api == APIResponses:
		return base + "/v1/responses"
	case hasPath:
		return base + "/chat/completions"
	}
	return base + "/v1/chat/completions"
}

// WithFallback returns a model for compatible servers, which may not have the Responses API. It
// uses first until the server answers that it does not exist (404, 405), and from then on second.
func WithFallback(first, second llm.Model) llm.Model {
	return &withFallback{first: first, second: second}
}

type withFallback struct {
	first, second llm.Model

	mu        sync.Mutex // guards useSecond
	useSecond bool
}

// ReadsReasoning implements llm.ReasoningReader for the model in use.
func (f *withFallback) ReadsReasoning(model, api string) bool {
	f.mu.Lock()
	m := f.first
	if f.useSecond {
		m = f.second
	}
	f.mu.Unlock()
	r, ok := m.(llm.ReasoningReader)
	return ok && r.ReadsReasoning(model, api)
}

func (f *withFallback) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		f.mu.Lock()
		useSecond := f.useSecond
		f.mu.Unlock()
		if !useSecond {
			for d, err := range f.first.Stream(ctx, req) {
				if e, ok := errors.AsType[*llm.Error](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed) {
					useSecond = true
					break
				}
				if !yield(d, err) {
					return
				}
			}
			if !useSecond {
				return
			}
			f.mu.Lock()
			f.useSecond = true
			f.mu.Unlock()
		}
		f.second.Stream(ctx, req)(yield)
	}
}
