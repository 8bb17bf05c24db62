// Package anthropic speaks the Anthropic Messages API, to Anthropic itself and to
// servers compatible with it.
//
//   - anthropic.go: the client, its URL, headers and list of models;
//   - request.go: an llm.Request as a request body, with its cache breakpoints;
//   - thinking.go: which form of thinking a model uses, and thinking that is sent back;
//   - stream.go: the events of an answer as deltas;
//   - search.go: the API's own web search.
//
// The package defines its own wire types, with only the fields that are used, because the official
// module makes the program 9 MB larger and its start 1 ms slower.
//
// It guarantees: exactly one StopDelta or one error ends a stream; a stream that ends before the
// stop reason is an error of kind llm.ErrPrematureStop; when the consumer stops, the HTTP request
// is closed; equal requests produce equal bytes. It never retries.
package anthropic

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// API is the wire format's name, as configured by providers.<name>.api.
const API = "anthropic"

// KeyHeader is the header a key is sent in.
const KeyHeader = "X-Api-Key"

// version of the API, which is sent with every request.
const version = "2023-06-01"

// Messages is a model behind the Messages endpoint.
type Messages struct{ endpoint llm.Endpoint }

var _ llm.Model = (*Messages)(nil)

// NewMessages returns a client for the Messages endpoint.
func NewMessages(endpoint llm.Endpoint) *Messages { return &Messages{endpoint} }

// origin identifies the provider that produced reasoning, because another provider cannot read it.
func (m *Messages) origin() string { return m.endpoint.Provider + "/" + API }

// ReadsReasoning implements llm.ReasoningReader.
func (m *Messages) ReadsReasoning(_, api string) bool { return api == m.origin() }

// Stream implements llm.Model.
func (m *Messages) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		body, tools, err := encode(req, m.origin())
		if err != nil {
			return llm.EncodeError(err)
		}
		return m.endpoint.Post(ctx, body, m.headers(req), func(answer io.Reader) error {
			s := stream{Emitter: llm.Emitter{Yield: yield, Origin: m.origin()}, provider: m.endpoint.Name(), tools: tools, retention: req.Retention}
			return s.answer(answer)
		})
	})
}

// headers returns the headers of a request. The user's configuration takes precedence, except
// that betas are combined.
func (m *Messages) headers(req llm.Request) map[string]string {
	// Compressed streams arrive in large chunks.
	out := map[string]string{"Anthropic-Version": version, "Accept-Encoding": "identity"}
	beta := ""
	if bindsThinking(req.Model) {
		beta = betaBinding
		out["Anthropic-Beta"] = beta
	}
	for _, set := range []map[string]string{m.endpoint.Headers, req.Headers} {
		for k, v := range set {
			k = http.CanonicalHeaderKey(k)
			if k == "Anthropic-Beta" && beta != "" {
				v += "," + beta
			}
			out[k] = v
		}
	}
	return out
}

// URL returns the URL for requests. base is the provider's URL as users write it, with or without
// the version; path, if not empty, is the path that the user configured.
func URL(base, path string) string {
	base = strings.TrimRight(base, "/")
	switch {
	case path != "":
		return base + path
	case strings.HasSuffix(base, "/v1"):
		return base + "/messages"
	}
	return base + "/v1/messages"
}

// maxPages limits how many pages of a list of models are fetched.
const maxPages = 20

// ListModels asks a server for its models, of which it returns only the names. e.URL is the provider's URL as users write
// it. Errors are those of llm.Endpoint.Exchange.
func ListModels(ctx context.Context, e llm.Endpoint) (map[string]llm.Facts, error) {
	at := strings.TrimSuffix(URL(e.URL, ""), "/messages") + "/models?limit=1000"
	headers := map[string]string{"Anthropic-Version": version}
	for k, v := range e.Headers {
		headers[http.CanonicalHeaderKey(k)] = v // the user's headers take precedence
	}
	e.URL, e.Headers = at, headers
	out := map[string]llm.Facts{}
	for range maxPages {
		var page struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
			HasMore bool   `json:"has_more"`
			LastID  string `json:"last_id"`
		}
		if err := e.Exchange(ctx, nil, &page); err != nil {
			return nil, err
		}
		for _, d := range page.Data {
			if d.ID != "" {
				out[d.ID] = llm.Facts{}
			}
		}
		if !page.HasMore || page.LastID == "" {
			break
		}
		e.URL = at + "&after_id=" + url.QueryEscape(page.LastID)
	}
	return out, nil
}
