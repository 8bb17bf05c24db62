package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/llm"
)

// IsURL reports whether a target is the URL of a server. Other targets are command lines.
func IsURL(target string) bool {
	u, err := url.Parse(target)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// httpConn is a conn to a server: one POST for each call.
type httpConn struct {
	client      *http.Client
	target      string
	headers     http.Header
	strayOutput strayOutput
}

// newHTTP returns a conn to an endpoint. It does not follow redirects, because they would send the
// request to another server.
func newHTTP(target string, client *http.Client, headers http.Header) *httpConn {
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &httpConn{client: &own, target: target, headers: headers}
}

func (*httpConn) stderr() string { return "" }

func (c *httpConn) notes() []string { return c.strayOutput.list() }

func (*httpConn) close(bool) {}

// exchange implements conn.
func (c *httpConn) exchange(ctx context.Context, method string, message, id []byte) (ecp.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.target, bytes.NewReader(message))
	if err != nil {
		return ecp.Response{}, callError(kindHTTP, method, "%v", err)
	}
	req.Header = c.headers.Clone()
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := c.client.Do(req)
	if err != nil {
		return ecp.Response{}, c.requestError(ctx, method, err)
	}
	defer resp.Body.Close()
	r, err := c.read(resp, id)
	switch {
	case err == nil:
		return r, nil
	case ctx.Err() != nil:
		return r, c.requestError(ctx, method, err)
	}
	e := asCallError(err, kindHTTP, method)
	e.Method = method
	return r, e
}

// requestError returns the error of a call that got no answer.
func (c *httpConn) requestError(ctx context.Context, method string, err error) error {
	if ctx.Err() != nil {
		return stoppedError(ctx, method, "no answer within the time limit"+c.strayOutput.suffix())
	}
	var known *netclient.Error
	if errors.As(err, &known) {
		return callError(kindHTTP, method, "%s", known.Message)
	}
	return callError(kindHTTP, method, "%v", err)
}

func (c *httpConn) read(resp *http.Response, id []byte) (ecp.Response, error) {
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return ecp.Response{}, fmt.Errorf("the server redirects (%d) to %s; if that is the agent, name it as the target", resp.StatusCode, clip(resp.Header.Get("Location"), maxShown))
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return statusError(resp)
	case id == nil:
		return ecp.Response{}, nil
	}
	body := io.LimitReader(resp.Body, maxLine+1)
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); media == "text/event-stream" {
		return c.readEvents(body, id)
	}
	data, err := io.ReadAll(body)
	switch {
	case err != nil:
		return ecp.Response{}, fmt.Errorf("the answer was interrupted: %w", err)
	case len(data) > maxLine:
		return ecp.Response{}, fmt.Errorf("the answer is larger than %d MiB", maxLine>>20)
	case len(bytes.TrimSpace(data)) == 0:
		return ecp.Response{}, protocolError("the answer (%d) is empty", resp.StatusCode)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	r, isAnswer, err := matchAnswer(data, id, &c.strayOutput)
	switch text := clip(string(data[:min(len(data), 2*maxShown)]), maxShown); {
	case err != nil:
		return r, protocolError("%v: %s", err, text)
	case !isAnswer:
		return r, protocolError("the body is not the answer: %s", text)
	}
	return r, nil
}

// protocolError is the error for an answer that arrived but violates the protocol.
func protocolError(format string, args ...any) error {
	return callError(kindProtocol, "", format, args...)
}

// readEvents reads a stream up to the event with the answer. It accepts a last event without the blank
// line that should end it, because invalid JSON shows whether the event is incomplete.
func (c *httpConn) readEvents(body io.Reader, id []byte) (ecp.Response, error) {
	events := llm.NewSSEReader(io.MultiReader(body, strings.NewReader("\n\n")))
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) {
			return ecp.Response{}, protocolError("the stream ended without an answer%s", c.strayOutput.suffix())
		}
		if err != nil {
			return ecp.Response{}, fmt.Errorf("the stream was interrupted: %w", err)
		}
		data := bytes.TrimSpace(e.Data)
		if len(data) == 0 {
			continue
		}
		if !json.Valid(data) {
			c.strayOutput.add("events that are not JSON", data)
			continue
		}
		r, isAnswer, err := matchAnswer(data, id, &c.strayOutput)
		switch {
		case err != nil:
			return r, protocolError("%v", err)
		case isAnswer:
			return r, nil
		}
	}
}

// statusError returns the error for an HTTP status other than success. If the body is a JSON-RPC error, it
// returns that response too, because callers check its code.
func statusError(resp *http.Response) (ecp.Response, error) {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if r, _ := ecp.ParseResponse(data); r.Err != nil {
		return r, &CallError{Kind: kindHTTP, Method: "HTTP", Code: r.Err.Code, Message: fmt.Sprintf("the server answered %d with error %d: %s", resp.StatusCode, r.Err.Code, clip(r.Err.Message, maxShown))}
	}
	text := strings.TrimSpace(clip(string(data), maxShown))
	if text != "" {
		text = ": " + text
	}
	return ecp.Response{}, fmt.Errorf("the server answered %s%s", resp.Status, text)
}
