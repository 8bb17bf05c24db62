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
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

// Names of the two wire formats, as configured by providers.<name>.api and as
// marked on stored reasoning.
const (
	APIResponses = "openai-responses"
	APIChat      = "openai-chat"
)

// origin marks reasoning with who made it: another provider can not read it back.
func (c Config) origin(api string) string { return c.Provider + "/" + api }

// maxErrorBody bounds how much of an error answer is read.
const maxErrorBody = 64 << 10

// Config is one provider's endpoint.
type Config struct {
	Provider string            // name for messages to the user
	URL      string            // full URL of the endpoint
	Key      string            // sent as a bearer token; empty sends none
	Headers  map[string]string // extra headers
	Client   *http.Client
	Limits   llm.Limits
	Now      func() time.Time
}

// stream posts body and hands the watched answer to read.
func (c Config) stream(ctx context.Context, body []byte, read func(*llm.SSEReader) error) error {
	ctx, dog := llm.Watch(ctx, c.Limits)
	defer dog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, bytes.NewReader(body))
	if err != nil {
		return &llm.Error{Kind: llm.ErrBadRequest, Message: fmt.Sprintf("%s: bad URL %q", c.Provider, c.URL), Cause: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.Key)
	}
	for k, v := range c.Headers {
		req.Header.Set(k, v)
	}
	resp, err := c.Client.Do(req)
	if err != nil {
		return c.transportError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return llm.StatusError(c.Provider, resp, errorText(text), c.Now())
	}
	watched := dog.Body(resp.Body)
	if ct := resp.Header.Get("Content-Type"); strings.HasPrefix(ct, "application/json") || strings.HasPrefix(ct, "text/html") {
		text, _ := io.ReadAll(io.LimitReader(watched, maxErrorBody))
		return &llm.Error{Kind: llm.ErrProtocol, Message: fmt.Sprintf("%s did not stream but answered with %s: %s", c.Provider, ct, errorText(text))}
	}
	err = read(llm.NewSSEReader(watched))
	var typed *llm.Error
	switch {
	case err == nil, errors.Is(err, errStopped):
		return err
	case errors.As(context.Cause(ctx), &typed):
		return c.transportError(ctx, err)
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, io.EOF):
		return &llm.Error{Kind: llm.ErrPrematureStop, Message: c.Provider + " ended the answer before it was complete", Cause: err}
	case errors.Is(err, llm.ErrEventTooLarge):
		return &llm.Error{Kind: llm.ErrProtocol, Message: c.Provider + ": " + err.Error(), Cause: err}
	}
	return c.transportError(ctx, err)
}

// transportError explains a request that failed below HTTP.
func (c Config) transportError(ctx context.Context, err error) error {
	var limit *llm.Error
	if errors.As(context.Cause(ctx), &limit) {
		limit.Message = strings.Replace(limit.Message, "The model", c.Provider, 1)
		return limit
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &llm.Error{Kind: llm.ErrNetwork, Cause: err, Message: fmt.Sprintf("%s: the connection failed: %v", c.Provider, unwrapURL(err))}
	var dns *net.DNSError
	var op *net.OpError
	switch {
	case errors.As(err, &dns):
		e.Message = fmt.Sprintf("%s: host %q was not found", c.Provider, dns.Name)
	case errors.As(err, &op) && op.Op == "dial":
		e.Message = fmt.Sprintf("%s: no connection to %s: %v", c.Provider, op.Addr, op.Err)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		e.Kind, e.Message = llm.ErrPrematureStop, c.Provider+" closed the connection in the middle of its answer"
	}
	return e
}

// unwrapURL drops the method and URL that net/http puts in front of a cause.
func unwrapURL(err error) error {
	if u := errors.Unwrap(err); u != nil {
		return u
	}
	return err
}

// errorText finds the human text in an error body.
func errorText(body []byte) string {
	var e struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &e) == nil {
		var inner struct {
			Message string `json:"message"`
		}
		var text string
		for _, raw := range []json.RawMessage{e.Error, e.Detail} {
			if json.Unmarshal(raw, &inner) == nil && inner.Message != "" {
				return inner.Message
			}
			if json.Unmarshal(raw, &text) == nil && text != "" {
				return text
			}
		}
		if e.Message != "" {
			return e.Message
		}
	}
	text := strings.Join(strings.Fields(string(body)), " ")
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	return text
}

// mergeExtra puts extra into a JSON object: objects merge deeply, other values
// replace, null removes (eca-features 6.3).
func mergeExtra(body []byte, extra map[string]any) ([]byte, error) {
	if len(extra) == 0 {
		return body, nil
	}
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := dec.Decode(&m); err != nil {
		return nil, err
	}
	return json.Marshal(deepMerge(m, extra))
}

func deepMerge(base, over map[string]any) map[string]any {
	out := maps.Clone(base)
	for k, v := range over {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			if b, ok := out[k].(map[string]any); ok {
				out[k] = deepMerge(b, v)
			} else {
				out[k] = v
			}
		default:
			out[k] = v
		}
	}
	return out
}

// errStopped ends reading when the consumer no longer wants deltas.
var errStopped = errors.New("consumer stopped")
