// Package google speaks Google's Gemini API natively: streamGenerateContent over server-sent
// events. The key is sent in a header, never in a URL.
//
//   - request.go, schema.go: a request's body, and the part of JSON Schema that the API accepts;
//   - stream.go: the answer, with the signatures of reasoning that must be sent back;
//   - servercalls.go: generated images, and the API's own search;
//   - models.go: the list of models.
//
// It guarantees: exactly one StopDelta or one error ends a stream; a stream without a finish reason
// is an error of kind llm.ErrPrematureStop; when the consumer stops, the HTTP request is closed. It
// never retries. The API caches prompts automatically if the history only grows, so no cache marks
// are sent.
package google

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"maps"
	"net/url"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

// API is the name of the wire format, as configured by providers.<name>.api.
const API = "google"

// KeyHeader is the header of the key. It is in canonical form, so that a header with the same name
// in the user's configuration replaces it.
const KeyHeader = "X-Goog-Api-Key"

// Model is a model behind the Gemini API.
type Model struct{ endpoint llm.Endpoint }

var _ llm.Model = (*Model)(nil)

// New returns a client. The URL of the endpoint is the provider's URL as users write it, with the
// version or without any path.
func New(at llm.Endpoint) *Model {
	at.Explain = explain
	return &Model{at}
}

// origin identifies the provider that produced reasoning, because another provider cannot read it.
func (m *Model) origin() string { return m.endpoint.Provider + "/" + API }

// ReadsReasoning implements llm.ReasoningReader.
func (m *Model) ReadsReasoning(_, api string) bool { return api == m.origin() }

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	req, names := llm.Conform(req, llm.Form{Name: 64, LetterFirst: true})
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		yield = names.RestoreNames(yield)
		at := m.endpoint
		body, err := encode(req, m.origin())
		if err == nil {
			at.URL, err = endpoint(m.endpoint.URL, url.Values{"alt": {"sse"}}, modelPath(req.Model)+":streamGenerateContent")
		}
		if err != nil {
			return llm.EncodeError(err)
		}
		return at.Post(ctx, body, req.Headers, func(answer io.Reader) error {
			s := stream{Emitter: llm.Emitter{Yield: yield, Origin: m.origin()}, provider: m.endpoint.Name()}
			return s.read(llm.NewSSEReader(answer))
		})
	})
}

// modelPath returns the path of a model below the API's version. The name may include its
// collection.
func modelPath(model string) string {
	for _, collection := range []string{"models/", "tunedModels/"} {
		if name, ok := strings.CutPrefix(model, collection); ok {
			return collection + url.PathEscape(name)
		}
	}
	return "models/" + url.PathEscape(model)
}

// endpoint appends an escaped path and a query to a provider's URL.
func endpoint(base string, query url.Values, path string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", errors.New("the provider's url cannot be parsed")
	}
	if strings.Trim(u.Path, "/") == "" {
		u = u.JoinPath("v1beta")
	}
	u = u.JoinPath(path)
	q := u.Query()
	maps.Copy(q, query)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// explain refines an error with the details that are specific to Google: how long to wait, and
// invalid arguments that have an error kind of their own.
func explain(e *llm.Error, body []byte) {
	var b struct {
		Error struct {
			Message string `json:"message"`
			Details []struct {
				Reason     string `json:"reason"`     // google.rpc.ErrorInfo
				RetryDelay string `json:"retryDelay"` // google.rpc.RetryInfo
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &b) != nil {
		return
	}
	if strings.Contains(b.Error.Message, "input token count") {
		e.Kind = llm.ErrContextOverflow
	}
	for _, d := range b.Error.Details {
		if delay, err := time.ParseDuration(d.RetryDelay); err == nil && delay > 0 && e.RetryAfter == 0 {
			e.SetRetryAfter(delay)
		}
		if d.Reason == "API_KEY_INVALID" {
			e.Kind = llm.ErrAuth
		}
	}
}
