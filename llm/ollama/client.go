// Package ollama speaks Ollama's own HTTP API: /api/chat, one JSON document per line. Unlike
// Ollama's OpenAI-compatible API, it lets the client set the context size of a model. Without that,
// the size is a few thousand tokens, and the server silently drops the rest.
//
//   - request.go: a request's body;
//   - stream.go: the answer;
//   - models.go: the models a server has, and what they can do.
//
// It guarantees: exactly one StopDelta or one error ends a stream; a stream without its last line
// is an error of kind llm.ErrPrematureStop; a conversation that is too long is an error, never cut
// by the server; when the consumer stops, the HTTP request is closed. It never retries. It does not
// send a model tools, images or thinking that the model does not support, because the server
// refuses such requests.
package ollama

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/llm"
)

// API is the name of the wire format, as configured by providers.<name>.api.
const API = "ollama"

// Model is a model behind an Ollama server.
type Model struct {
	endpoint llm.Endpoint
	server   llm.Endpoint

	mu     sync.Mutex // guards traits
	traits map[string]traits
}

var _ llm.Model = (*Model)(nil)

// New returns a client. The URL of the endpoint is the server's; path, if not empty, replaces
// /api/chat.
func New(server llm.Endpoint, path string) *Model {
	server.URL = strings.TrimRight(server.URL, "/")
	if path == "" {
		path = "/api/chat"
	}
	at := server
	at.URL += path
	at.Explain = func(e *llm.Error, _ []byte) { explain(e) }
	return &Model{endpoint: at, server: server, traits: map[string]traits{}}
}

// origin identifies the provider that produced reasoning.
func (m *Model) origin() string { return m.endpoint.Provider + "/" + API }

// ReadsReasoning implements llm.ReasoningReader.
func (m *Model) ReadsReasoning(_, api string) bool { return api == m.origin() }

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		req.Messages = llm.Portable(req.Messages, "")
		body, err := encode(req, m.traitsOf(ctx, req.Model), m.origin())
		if err != nil {
			return llm.EncodeError(err)
		}
		err = m.endpoint.Post(ctx, body, req.Headers, func(answer io.Reader) error {
			s := stream{Emitter: llm.Emitter{Yield: yield, Origin: m.origin()}, provider: m.endpoint.Name()}
			return s.read(llm.NewNDJSONReader(answer))
		})
		if err != nil && !errors.Is(err, llm.ErrStopped) {
			m.forget(req.Model)
		}
		return err
	})
}

// traitsOf returns the traits of a model. It asks the server once. If the server does not answer, all
// traits are unknown and requests are not adapted.
func (m *Model) traitsOf(ctx context.Context, model string) traits {
	m.mu.Lock()
	t, known := m.traits[model]
	m.mu.Unlock()
	if known {
		return t
	}
	t, err := show(ctx, m.server, model)
	if err != nil {
		return traits{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.traits[model] = t
	return t
}

// forget makes the next request ask for the traits of a model again: the model may have been
// replaced.
func (m *Model) forget(model string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.traits, model)
}

// explain refines errors by their text, because Ollama answers 400, 404 and 500 for many causes.
func explain(e *llm.Error) {
	text := strings.ToLower(e.Message)
	switch {
	case llm.Mentions(text, "context length", "context size", "exceeds the available context", "prompt is too long"):
		e.Kind = llm.ErrContextOverflow
	case llm.Mentions(text, "system memory", "out of memory", "failed to allocate"):
		e.Kind = llm.ErrBadRequest
		e.Message += ". Choose a smaller model, or a smaller limit.context for it in the configuration."
	case e.Status == http.StatusNotFound && strings.Contains(text, "model") && strings.Contains(text, "not found"):
		e.Message += " (ollama pull gets a model)"
	}
}
