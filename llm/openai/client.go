// Package openai speaks OpenAI's two HTTP APIs: Responses (responses.go) and Chat
// Completions (chat.go), to OpenAI itself and to servers compatible with either.
//
// Request bodies and terminal items of the Responses API are the official module's
// types; the stream is read with llm.SSEReader and small structs of our own,
// because the module's stream union costs several times as much per delta and does
// not notice a cut stream. Chat Completions has its own small types, which
// compatible servers need anyway.
//
// It guarantees: exactly one StopDelta or one error ends a stream; a stream that
// ends without its terminal event is an error of kind llm.ErrPrematureStop; when
// the consumer stops, the HTTP request is closed. It never retries.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// origin marks reasoning with who made it: another provider can not read it back.
func origin(e llm.Endpoint, api string) string { return e.Provider + "/" + api }

// URL returns where to send calls of an api, given a provider's URL as users write it,
// with and without the version; path, if not empty, is the user's own.
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

// WithFallback serves compatible servers that do not have the Responses API: when first
// is not there (404, 405), second takes over for good.
func WithFallback(first, second llm.Model) llm.Model {
	return &withFallback{first: first, second: second}
}

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
		f.second.Stream(ctx, req)(yield)
	}
}

// ListModels asks a server for the names of its models. e.URL is the provider's, as
// users write it.
func ListModels(ctx context.Context, e llm.Endpoint) ([]string, error) {
	// The list stands beside chat/completions.
	at := strings.TrimSuffix(URL(e.URL, "", APIChat), "/chat/completions") + "/models"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	for k, v := range e.Headers {
		req.Header.Set(k, v)
	}
	resp, err := e.Client.Do(req)
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
