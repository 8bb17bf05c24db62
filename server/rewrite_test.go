package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/inline"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// inlineHost is a Host for rewrites. It runs resolve when the model is looked up, and stream when
// the model is called.
type inlineHost struct {
	Host
	resolve, stream func()
}

func (h *inlineHost) Resolve(string, string) (chat.Model, error) {
	h.resolve()
	return chat.Model{ID: "p/m", Client: h}, nil
}

func (h *inlineHost) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		h.stream()
		_ = yield(llm.Delta{Kind: llm.TextDelta, Text: "new"}, nil) && yield(llm.Delta{Kind: llm.StopDelta, Stop: llm.StopEnd}, nil)
	}
}

func (h *inlineHost) Inline() *inline.Engine {
	cfg := config.Load(config.Inputs{Getenv: func(string) string { return "" }})
	return inline.New(inline.Deps{Models: h, Config: func() *config.Loaded { return cfg }, Roots: func() []string { return nil }, Now: time.Now})
}

func newRewriteServer(t *testing.T, host *inlineHost) (*rewrites, protocol.Request[protocol.RewriteParams]) {
	t.Helper()
	var req protocol.Request[protocol.RewriteParams]
	if _, err := protocol.Decode(json.RawMessage(`{"id":"a","text":"old","prompt":"p"}`), &req.Params); err != nil {
		t.Fatal(err)
	}
	c := &connection{ctx: t.Context(), log: slog.New(slog.DiscardHandler)}
	return &rewrites{connection: c, host: host, unfinished: map[string]*rewrite{}}, req
}

// If a rewrite is cancelled before its answer, by its client or by a newer one, it never begins.
func TestRewriteCancelledWhilePending(t *testing.T) {
	t.Parallel()
	host := &inlineHost{}
	s, req := newRewriteServer(t, host)
	ctx, cancel := context.WithCancel(t.Context())
	for _, c := range []struct {
		name      string
		ctx       context.Context
		meanwhile func()
	}{
		{"cancelled", ctx, cancel},
		{"taken over", t.Context(), func() { s.end(s.begin("a")) }},
	} {
		host.resolve = c.meanwhile
		later, err := s.RewritePrompt(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := later(c.ctx); !errors.Is(err, context.Canceled) || len(s.unfinished) != 0 {
			t.Errorf("%s: %v, %d rewrites are unfinished", c.name, err, len(s.unfinished))
		}
	}
	s.work.Wait() // nothing is running
}

// A newer rewrite is not answered while messages of the older one may still be sent.
func TestRewriteWaitsForTheOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, req := newRewriteServer(t, &inlineHost{resolve: func() {}})
		older := s.begin("a")
		later, err := s.RewritePrompt(t.Context(), req)
		if err != nil || older.ctx.Err() == nil {
			t.Fatalf("the newer rewrite did not cancel the older one, or failed: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan error, 1)
		go func() {
			_, err := later(ctx)
			answer <- err
		}()
		synctest.Wait()
		if len(answer) > 0 {
			t.Error("the newer rewrite was answered before the older one had ended")
		}
		cancel()
		if err := <-answer; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		s.end(older)
	})
}

// No notification comes before the answer, and there is exactly one end in every case.
func TestRewriteNotifications(t *testing.T) {
	for end, stream := range map[string]func(){
		`"finished","totalTimeMs":0`:                func() {},
		`"error","message":"internal error: oh no"`: func() { panic("oh no") },
	} {
		synctest.Test(t, func(t *testing.T) {
			s, req := newRewriteServer(t, &inlineHost{resolve: func() {}, stream: stream})
			var wire bytes.Buffer
			s.conn = jsonrpc.NewConn(strings.NewReader(""), &wire, jsonrpc.Options{})
			answered := make(chan struct{})
			req.Answered = answered
			later, err := s.RewritePrompt(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := later(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if wire.Len() > 0 {
				t.Errorf("sent before the answer: %s", &wire)
			}
			close(answered)
			s.work.Wait()
			s.conn.Close()
			got := wire.String()
			if ends := strings.Count(got, `"finished"`) + strings.Count(got, `"error"`); ends != 1 || !strings.Contains(got, end) {
				t.Errorf("%d ends, want %s: %s", ends, end, got)
			}
		})
	}
}
