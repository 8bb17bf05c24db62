// Package bedrock speaks the ConverseStream API of Amazon Bedrock, which is one wire
// format for the models of many vendors.
//
//   - bedrock.go: the client;
//   - request.go, messages.go: the encoding of requests;
//   - model.go: facts about models that callers of Converse must know;
//   - eventstream.go, stream.go: the answer, a stream of binary messages;
//   - credentials.go, profile.go: authentication with an API key or an AWS signature.
//
// It guarantees: exactly one StopDelta or one error ends a stream; a stream that ends without a
// stop reason is an error of kind llm.ErrPrematureStop; when the consumer stops, the HTTP request
// is closed. It never retries, starts no program to get credentials, and does not log in with SSO.
package bedrock

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"net/http"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// API is the name of the wire format, as configured by providers.<name>.api.
const API = "bedrock"

// Converse is a model behind the ConverseStream operation.
type Converse struct {
	endpoint llm.Endpoint
	aws      AWS
}

var _ llm.Model = (*Converse)(nil)

// New returns a client for the runtime endpoint of a region (see URL). Without an Authorization
// header in the endpoint, requests are authenticated with the credentials of aws.
func New(endpoint llm.Endpoint, aws AWS) *Converse { return &Converse{endpoint, aws} }

// URL returns the runtime endpoint of a region.
func URL(region string) string {
	host := "https://bedrock-runtime." + region + ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		host += ".cn"
	}
	return host
}

// operation returns the URL of a request to a model. The model's id may be an ARN, whose slashes
// and colons must be escaped in the path.
func operation(base, model string) string {
	return strings.TrimRight(base, "/") + "/model/" + escape(model) + "/converse-stream"
}

// escape escapes exactly the characters that AWS's signature escapes, so that the signed path
// equals the path that is sent.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	var out strings.Builder
	for i := range len(s) {
		c := s[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0 {
			out.WriteByte(c)
			continue
		}
		out.Write([]byte{'%', hex[c>>4], hex[c&15]})
	}
	return out.String()
}

// ReadsReasoning implements llm.ReasoningReader.
func (c *Converse) ReadsReasoning(model, api string) bool { return api == c.origin(model) }

// Stream implements llm.Model.
func (c *Converse) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	req, names := llm.Conform(req, llm.Form{Name: 64})
	req.Messages = llm.Portable(req.Messages, "")
	return llm.Answer(func(yield func(llm.Delta, error) bool) error {
		return classify(c.stream(ctx, req, names.RestoreNames(yield)))
	})
}

func (c *Converse) stream(ctx context.Context, req llm.Request, yield func(llm.Delta, error) bool) error {
	from := c.origin(req.Model)
	body, err := encode(req, from)
	if err != nil {
		return llm.EncodeError(err)
	}
	at := c.endpoint
	at.URL = operation(at.URL, req.Model)
	if at.Headers, err = c.headers(ctx, at.URL, body); err != nil {
		return &llm.Error{Kind: llm.ErrAuth, Message: at.Name() + " cannot be reached: " + err.Error(), Cause: err}
	}
	return at.Post(ctx, body, req.Headers, func(answer io.Reader) error {
		s := stream{Emitter: llm.Emitter{Yield: yield, Origin: from}, provider: at.Name(), open: map[int]*block{}, ids: map[string]bool{}}
		return s.read(newEventReader(answer))
	})
}

// origin identifies the vendor that produced reasoning, because models of other vendors behind the
// same endpoint refuse it.
func (c *Converse) origin(model string) string {
	return c.endpoint.Provider + "/" + API + "/" + vendor(model)
}

// headers returns the endpoint's headers and those that authenticate this request. They are set on
// the endpoint, which keeps its headers out of error messages, because AWS repeats the signed text
// in the error for a wrong signature.
func (c *Converse) headers(ctx context.Context, at string, body []byte) (map[string]string, error) {
	out := maps.Clone(c.endpoint.Headers)
	if out == nil {
		out = map[string]string{}
	}
	out["Accept"] = "application/vnd.amazon.eventstream"
	if out["Authorization"] != "" {
		return out, nil
	}
	auth, err := c.aws.authenticate(ctx, at, body, c.endpoint.Now())
	maps.Copy(out, auth)
	return out, err
}

// classify corrects the kind of errors whose status alone is ambiguous.
func classify(err error) error {
	var e *llm.Error
	if !errors.As(err, &e) || e.Kind != llm.ErrBadRequest {
		return err
	}
	switch {
	case tooLong(e.Message):
		e.Kind = llm.ErrContextOverflow
	case e.Status == http.StatusFailedDependency: // the model failed
		e.Kind = llm.ErrOverloaded
	}
	return err
}

// tooLong reports whether an error message of Bedrock or its models means that a conversation does
// not fit.
func tooLong(message string) bool {
	return llm.Mentions(strings.ToLower(message),
		"input is too long", "prompt is too long", "input tokens exceeded", "exceed context limit", "exceeds the context",
		"maximum context length", "context window", "too many input tokens", "too many total text bytes", "reduce the length of the")
}
