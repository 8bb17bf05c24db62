package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// ErrStopped ends the reading of an answer whose consumer has stopped. Post returns it unchanged.
var ErrStopped = errors.New("consumer stopped")

// Endpoint is a URL of a provider, with the HTTP code that all wire formats share. Client must
// enforce Limits.Connect; Endpoint enforces the other limits.
type Endpoint struct {
	Provider string // the provider's id; it is also stored with reasoning
	Label    string // the provider's name for messages; empty: Provider
	URL      string
	Headers  map[string]string // including credentials
	Client   *http.Client
	Limits   Limits
	Now      func() time.Time

	// Bearer, if not nil, returns the token for one request. It is called before each request,
	// because tokens expire; "" means no token. If the server refuses the token (401), Bearer is
	// called once more with that token as rejected, and if it returns a different one, the request
	// is repeated. An Authorization header in Headers takes precedence. Errors of Bearer are
	// returned from the request; they should be *Error.
	Bearer func(ctx context.Context, rejected string) (token string, err error)

	// Explain, if not nil, refines the error for an answer that is not 2xx with details that are
	// specific to the wire format.
	Explain func(e *Error, body []byte)
}

// Name returns the provider's name for messages to the user.
func (e Endpoint) Name() string { return cmp.Or(e.Label, e.Provider) }

// maxErrorBody limits how much of an error answer is read, in bytes.
const maxErrorBody = 64 << 10

// Post sends a request and passes the body of the answer to read. It returns what read returns, and
// a typed *Error for everything else that can go wrong: a status that is not 2xx, an answer that is
// not a stream, a time limit, a lost connection. io.EOF from read means that the answer ended too
// early. When ctx ends, its error is returned.
func (e Endpoint) Post(ctx context.Context, body []byte, headers map[string]string, read func(io.Reader) error) error {
	return e.doAuthorized(ctx, func(e Endpoint) error {
		err := e.post(ctx, body, headers, read)
		if typed, ok := errors.AsType[*Error](err); ok {
			typed.Message, typed.Body = e.withoutSecrets(typed.Message), e.withoutSecrets(typed.Body)
		}
		return err
	})
}

// withoutSecrets removes the values of the headers from a text, because some servers repeat
// credentials in their errors.
func (e Endpoint) withoutSecrets(text string) string {
	var secrets []string
	for _, v := range e.Headers {
		secrets = append(secrets, strings.TrimPrefix(v, "Bearer "))
	}
	return redact.New(secrets...).String(text)
}

func (e Endpoint) post(ctx context.Context, body []byte, headers map[string]string, read func(io.Reader) error) error {
	ctx, watchdog := Watch(ctx, e.Limits)
	defer watchdog.Stop()
	req, err := e.request(ctx, http.MethodPost, body)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	for _, set := range []map[string]string{e.Headers, headers} {
		for k, v := range set {
			req.Header.Set(k, v)
		}
	}
	resp, err := e.sameOriginClient().Do(req)
	if err != nil {
		return e.transportError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return e.statusError(resp)
	}
	watched := watchdog.Body(resp.Body)
	if ct := resp.Header.Get("Content-Type"); strings.HasPrefix(ct, "application/json") || strings.HasPrefix(ct, htmlType) {
		text, _ := io.ReadAll(io.LimitReader(watched, maxErrorBody))
		if page, ok := webPage(resp, text); ok {
			return &Error{Kind: ErrProtocol, Address: e.address().String(), Page: true, Message: e.Name() + " answered with " + page}
		}
		if len(bytes.TrimSpace(text)) == 0 {
			return &Error{Kind: ErrProtocol, Address: e.address().String(), Message: fmt.Sprintf("%s did not stream but answered with %s, and no text", e.Name(), ct)}
		}
		whole := json.Valid(text) && !bytes.Contains(text, []byte(`"error"`))
		return &Error{Kind: ErrProtocol, Address: e.address().String(), NotStreamed: whole, Message: fmt.Sprintf("%s did not stream but answered with %s: %s", e.Name(), ct, ErrorText(text))}
	}
	counted := &countingReader{r: watched}
	err = read(counted)
	var typed *Error
	switch {
	case err == nil:
		e.drain(watchdog, watched)
		return nil
	case errors.Is(err, ErrStopped):
		return err
	case errors.As(context.Cause(ctx), &typed):
		return e.transportError(ctx, err)
	case errors.As(err, &typed):
		return typed
	case errors.Is(err, io.EOF) && counted.plainText():
		return &Error{Kind: ErrProtocol, Address: e.address().String(), Message: fmt.Sprintf("%s did not stream but answered %s: %q", e.Name(), resp.Status, shorten.Bytes(string(counted.begin), maxPageBegin))}
	case errors.Is(err, io.EOF) && counted.n == 0:
		return &Error{Kind: ErrPrematureStop, Message: fmt.Sprintf("%s answered %s with nothing: the body is empty", e.Name(), resp.Status), Cause: err}
	case errors.Is(err, io.EOF):
		return &Error{Kind: ErrPrematureStop, Message: e.Name() + " ended the answer before it was complete", Cause: err}
	case errors.Is(err, ErrEventTooLarge):
		return &Error{Kind: ErrProtocol, Message: e.Name() + ": " + err.Error(), Cause: err}
	}
	return e.transportError(ctx, err)
}

// countingReader counts the bytes read, and keeps the first ones.
type countingReader struct {
	r     io.Reader
	n     int64
	begin []byte
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.begin = append(c.begin, p[:min(n, maxPageBegin+1-len(c.begin))]...)
	return n, err
}

// plainText reports whether the answer begins with text that cannot be the beginning of a stream in
// any format.
func (c *countingReader) plainText() bool {
	text := bytes.TrimSpace(c.begin)
	if len(text) == 0 || !utf8.Valid(text) || bytes.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return false
	}
	return !slices.ContainsFunc([]string{"data:", "event:", "id:", "retry:", ":", "{", "["}, func(field string) bool { return bytes.HasPrefix(text, []byte(field)) })
}

// request returns a request with a JSON body. The error for an invalid URL is not retryable.
func (e Endpoint) request(ctx context.Context, method string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, e.URL, bytes.NewReader(body))
	if err != nil || req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
		// The URL is not shown, because it may contain a password.
		return nil, &Error{Kind: ErrBadRequest, Message: e.Name() + ": its url is invalid; begin it with http:// or https:// and name a host"}
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

// sameOriginClient returns a client that does not follow redirects to other servers, because the
// key and the conversation must not be sent there.
func (e Endpoint) sameOriginClient() *http.Client {
	c := *e.Client
	c.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		const maxRedirects = 10
		from := via[0].URL
		same := next.URL.Host == from.Host && next.URL.Scheme == from.Scheme
		if toTLS := next.URL.Hostname() == from.Hostname() && from.Scheme == "http" && next.URL.Scheme == "https"; !same && !toTLS || len(via) >= maxRedirects {
			return http.ErrUseLastResponse
		}
		return nil
	}
	return &c
}

// address returns the endpoint's URL without the parts that may be secret; empty if it cannot be parsed.
func (e Endpoint) address() *url.URL {
	u, err := url.Parse(e.URL)
	if err != nil {
		return &url.URL{}
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u
}

// drainTime and drainSize limit the reading of an answer after its last event.
const (
	drainTime = 50 * time.Millisecond
	drainSize = 4 << 10
)

// drain reads the rest of an answer after its last event, because a connection can be reused only
// after its answer has been read to the end.
func (e Endpoint) drain(watchdog *Watchdog, rest io.Reader) {
	timer := time.AfterFunc(drainTime, watchdog.Stop)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, rest, drainSize)
}

// statusError explains an answer that is not 2xx.
func (e Endpoint) statusError(resp *http.Response) *Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	text := ErrorText(body)
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		text = fmt.Sprintf("it redirects to %s://%s, but eca sends nothing there: if that is the right server, configure its url", to.Scheme, to.Host)
	}
	page, isPage := webPage(resp, body)
	if isPage {
		text = page
	}
	out := StatusError(e.Name(), resp, text, e.Now())
	out.Address, out.Page = e.address().String(), isPage
	out.Body = string(body)
	if out.Kind == ErrRateLimited && out.RetryAfter == 0 && out.OutOfCredit() {
		out.Kind = ErrBadRequest // waiting does not help
	}
	if e.Explain != nil {
		e.Explain(out, body)
	}
	return out
}

// maxDocument limits what Exchange reads, in bytes; descriptions of models can contain licenses.
const maxDocument = 16 << 20

// Exchange requests one JSON document, such as a list of models, and decodes it into answer. If
// question is not nil, it is posted as JSON. Errors contain neither the URL, which may contain a
// key, nor credentials. Only ctx limits the time.
func (e Endpoint) Exchange(ctx context.Context, question, answer any) error {
	return e.doAuthorized(ctx, func(e Endpoint) error { return e.exchange(ctx, question, answer) })
}

func (e Endpoint) exchange(ctx context.Context, question, answer any) error {
	method, body := http.MethodGet, []byte(nil)
	if question != nil {
		var err error
		method = http.MethodPost
		if body, err = json.Marshal(question); err != nil {
			return err
		}
	}
	req, err := e.request(ctx, method, body)
	if err != nil {
		return err
	}
	for k, v := range e.Headers {
		req.Header.Set(k, v)
	}
	resp, err := e.sameOriginClient().Do(req)
	if err != nil {
		return e.transportError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		err := e.statusError(resp)
		err.Message, err.Body = e.withoutSecrets(err.Message), e.withoutSecrets(err.Body)
		return err
	}
	begin := bufio.NewReaderSize(io.LimitReader(resp.Body, maxDocument), maxErrorBody)
	if text, _ := begin.Peek(1); len(text) > 0 && text[0] != '{' && text[0] != '[' { // inspect the beginning without consuming it
		text, _ = begin.Peek(maxErrorBody)
		if page, ok := webPage(resp, text); ok {
			return &Error{Kind: ErrProtocol, Address: e.address().String(), Page: true, Message: e.Name() + " answered with " + page}
		}
	}
	if err := json.NewDecoder(begin).Decode(answer); err != nil {
		return fmt.Errorf("%s: the answer cannot be read: %w", e.Name(), err)
	}
	return nil
}

const htmlType = "text/html"

// webPage describes an answer that is a web page, for example of a proxy or a login.
func webPage(resp *http.Response, body []byte) (text string, ok bool) {
	begin := strings.ToLower(string(bytes.TrimSpace(body[:min(len(body), maxPageBegin)])))
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), htmlType) && !strings.HasPrefix(begin, "<!doctype html") && !strings.HasPrefix(begin, "<html") {
		return "", false
	}
	const shown = 100
	content := body
	if m := regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`).FindSubmatch(body); m != nil {
		content = m[1]
	}
	plain := regexp.MustCompile(`(?s)<(script|style).*?</(script|style)>|<[^>]*>`).ReplaceAllString(string(content), " ")
	text = "a web page (" + htmlType + "), which is not its API"
	if plain = strings.Join(strings.Fields(html.UnescapeString(plain)), " "); plain != "" {
		text += fmt.Sprintf(": %q", shorten.Bytes(plain, shown))
	}
	return text, true
}

// maxPageBegin is how many bytes at the beginning identify a web page.
const maxPageBegin = 200

// transportError explains a request that failed below HTTP.
func (e Endpoint) transportError(ctx context.Context, err error) error {
	if limit, ok := errors.AsType[*Error](context.Cause(ctx)); ok {
		limit.Message = strings.Replace(limit.Message, "The model", e.Name(), 1)
		return limit
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	explanation := netclient.Explain(err, "")
	out := &Error{Kind: ErrNetwork, Cause: err, Message: e.Name() + ": " + explanation.Message}
	switch {
	case explanation.Permanent():
		out.Kind = ErrUnreachable
	case errors.Is(err, io.EOF): // before the answer began; later, the error is ErrUnexpectedEOF
		out.Kind, out.Message = ErrPrematureStop, e.Name()+": "+e.address().Host+" closed the connection without an answer"
		if e.address().Scheme == "http" {
			out.Message += netclient.PerhapsTLS
		}
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.Kind, out.Message = ErrPrematureStop, e.Name()+" closed the connection in the middle of its answer"
	}
	return out
}

// ErrorText returns the human-readable text in an error body.
func ErrorText(body []byte) string {
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0] // Google's compatible API wraps its errors
	}
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
	return shorten.Bytes(strings.Join(strings.Fields(string(body)), " "), 500)
}

// Authorize returns the endpoint with a valid token in its headers, for requests that do not use
// Post or Exchange.
func (e Endpoint) Authorize(ctx context.Context) (Endpoint, error) {
	var out Endpoint
	err := e.doAuthorized(ctx, func(e Endpoint) error {
		out = e
		return nil
	})
	return out, err
}

// doAuthorized makes a request with a token, and repeats it once with a new token if the first one is
// refused.
func (e Endpoint) doAuthorized(ctx context.Context, do func(Endpoint) error) error {
	if e.Bearer == nil || e.Headers["Authorization"] != "" {
		return do(e)
	}
	token, err := e.Bearer(ctx, "")
	if err != nil {
		return err
	}
	err = do(e.withToken(token))
	var refused *Error
	if token == "" || !errors.As(err, &refused) || refused.Status != http.StatusUnauthorized {
		return err
	}
	next, failed := e.Bearer(ctx, token)
	switch {
	case failed != nil:
		return failed
	case next == "" || next == token:
		return err
	}
	return do(e.withToken(next))
}

// withToken returns the endpoint with a token.
func (e Endpoint) withToken(token string) Endpoint {
	e.Bearer = nil
	if token != "" {
		e.Headers = maps.Clone(e.Headers)
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers["Authorization"] = "Bearer " + token
	}
	return e
}
