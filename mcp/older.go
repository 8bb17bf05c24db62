package mcp

import (
	"bytes"
	"context"
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

// olderHTTP is a transport over HTTP with SSE, as version 2024-11-05 defines it. One stream carries all
// messages of the server. Its first event contains the address to which eca sends messages.
type olderHTTP struct {
	client  *http.Client
	address *url.URL
	log     *slog.Logger

	receive func(envelope)
	lost    func(error)
	work    sync.WaitGroup // the stream

	endpoint string // set once it is known; read-only from then on
}

// start implements transport.
func (t *olderHTTP) start(life context.Context, receive func(envelope), lost func(error)) error {
	t.receive, t.lost = receive, lost
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
		return (&streamable{}).handleRefusal(envelope{}, resp, "")
	}
	events := newEvents(resp.Body)
	first, err := events.Next()
	if err == nil {
		err = t.handleEndpoint(first)
	}
	if err != nil {
		_ = resp.Body.Close()
		return err
	}
	t.work.Go(func() {
		defer resp.Body.Close()
		t.lost(fmt.Errorf("the connection was lost: %w", t.read(events)))
	})
	return nil
}

// handleEndpoint stores the address for messages. Its host must be the host of the stream, because
// messages may contain secrets.
func (t *olderHTTP) handleEndpoint(e sse.Event) error {
	if e.Name != "endpoint" {
		return errors.New("the server's stream does not begin with an endpoint")
	}
	to, err := t.address.Parse(strings.TrimSpace(string(e.Data)))
	if err != nil || to.Scheme != t.address.Scheme || !strings.EqualFold(to.Host, t.address.Host) {
		return errors.New("the server's endpoint is on another host")
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
		for _, one := range eventEnvelopes(e, t.log) {
			t.receive(one)
		}
	}
}

// send implements transport.
func (t *olderHTTP) send(ctx context.Context, e envelope) error {
	if t.endpoint == "" {
		return errNotStarted
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.endpoint, bytes.NewReader(e.Encode()))
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
		return (&streamable{receive: t.receive}).handleRefusal(e, resp, "")
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxRefusal))
	return nil
}

// setVersion and listen implement transport: all versions use the same stream here.
func (t *olderHTTP) setVersion(string)       {}
func (t *olderHTTP) listen() <-chan struct{} { return nil }

// endReason implements transport. It returns nil, because start's goroutine reports the end of the
// stream to lost.
func (*olderHTTP) endReason() error { return nil }

// close implements transport. It waits for the stream, which ends with the context life.
func (t *olderHTTP) close() { t.work.Wait() }
