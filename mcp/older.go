package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/internal/sse"
)

// olderHTTP is a transport over HTTP with SSE, as version 2024-11-05 has it: one stream for
// all that the server says, which begins with the address that messages are sent to.
type olderHTTP struct {
	client  *http.Client
	address *url.URL
	log     *slog.Logger

	hear func(envelope)
	over func(error)
	work sync.WaitGroup // the stream

	endpoint string // set once it is known; then read only
}

// start implements transport.
func (t *olderHTTP) start(life context.Context, hear func(envelope), over func(error)) error {
	t.hear, t.over = hear, over
	req, err := http.NewRequestWithContext(life, http.MethodGet, t.address.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", sse.ContentType)
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode >= http.StatusBadRequest || media != sse.ContentType {
		defer resp.Body.Close()
		return (&streamable{}).refused(envelope{}, resp, "")
	}
	events := newEvents(resp.Body)
	first, err := events.Next()
	if err == nil {
		err = t.found(first)
	}
	if err != nil {
		_ = resp.Body.Close()
		return err
	}
	t.work.Go(func() {
		defer resp.Body.Close()
		t.over(fmt.Errorf("the connection broke off: %w", t.read(events)))
	})
	return nil
}

// found takes the address for messages. It has to be at the host of the stream: what is
// sent there may be secret.
func (t *olderHTTP) found(e sse.Event) error {
	if e.Name != "endpoint" {
		return errors.New("the stream of the server does not begin with an endpoint")
	}
	to, err := t.address.Parse(strings.TrimSpace(string(e.Data)))
	if err != nil || to.Scheme != t.address.Scheme || !strings.EqualFold(to.Host, t.address.Host) {
		return errors.New("the server wants messages at another host than its own")
	}
	t.endpoint = to.String()
	return nil
}

func (t *olderHTTP) read(events *sse.Reader) error {
	for {
		e, err := events.Next()
		if err != nil && len(e.Data) == 0 {
			return err
		}
		if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
			continue
		}
		list, err := readEnvelopes(e.Data)
		if err != nil {
			t.log.Debug("MCP server sent what is no message", "err", err)
			continue
		}
		for _, one := range list {
			t.hear(one)
		}
	}
}

// send implements transport.
func (t *olderHTTP) send(ctx context.Context, e envelope) error {
	if t.endpoint == "" {
		return errNotStarted
	}
	body, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := t.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		return (&streamable{hear: t.hear}).refused(e, resp, "")
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusal))
	return nil
}

// agreed and listen implement transport: here all versions are the same.
func (t *olderHTTP) agreed(string)           {}
func (t *olderHTTP) listen() <-chan struct{} { return nil }

// close implements transport. The stream ends with the life that it has.
func (t *olderHTTP) close() { t.work.Wait() }
