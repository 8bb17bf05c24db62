package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/editors/fake"
)

// BenchmarkPrompt: from writing chat/prompt to the request's first byte at the provider, in a chat
// of 200 messages and a workspace with AGENTS.md. The floor is the minimum work of any daemon: to
// read a prompt from a pipe and send as many bytes over the same kind of connection.
func BenchmarkPrompt(b *testing.B) {
	var arrived atomic.Pointer[time.Time]
	var body atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := time.Now()
		arrived.Store(&now)
		n, _ := io.Copy(io.Discard, r.Body)
		body.Store(n)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"x\"}\n\n"+
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n")
	}))
	b.Cleanup(srv.Close)

	here := newPlace(b, "OPENAI_API_KEY=sk-bench", "OPENAI_API_URL="+srv.URL, `ECA_CONFIG={"chat":{"title":false},"providers":{"openai":{"fetchModels":false}}}`)
	if err := os.WriteFile(filepath.Join(here.root, "AGENTS.md"), []byte(strings.Repeat("Follow this.\n", 500)), 0o600); err != nil {
		b.Fatal(err)
	}
	fill(b, here, func(s *store.Store) error {
		meta := chat.Meta{ID: "c", Roots: []string{here.root}, Created: time.UnixMilli(1), Updated: time.UnixMilli(1)}
		for turn := range 50 { // four messages each: prompt, call, result, answer
			if err := s.Append(context.Background(), meta, turnEvents(event.Seq(1+8*turn), 2000)); err != nil {
				return err
			}
		}
		return nil
	})
	e := serveBuilt(b, build(b, "."), here)
	e.Await(0, "the start", fake.Ready())
	prompt := func() time.Duration {
		mark := e.Mark()
		start := time.Now()
		e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go on"})
		e.Await(mark, "the end", fake.Finished())
		took := (*arrived.Load()).Sub(start)
		e.Forget()
		return took
	}
	first := prompt()
	roundTrip := relayPrompt(b, srv.URL, int(body.Load()))
	var ours, floor []time.Duration
	for b.Loop() {
		ours = append(ours, prompt())
		floor = append(floor, roundTrip(&arrived))
	}
	p50 := func(d []time.Duration) float64 { return median(d).Seconds() * 1000 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p50(ours), "p50-ms")
	b.ReportMetric(p50(floor), "floor-p50-ms")
	b.ReportMetric(p50(ours)/p50(floor), "x-floor")
	b.ReportMetric(first.Seconds()*1000, "first-ms")
	b.ReportMetric(float64(body.Load()), "bytes")
}

// relayPrompt is the floor: it sends a prompt through a pipe, and a body of the given size to the
// provider.
func relayPrompt(b *testing.B, url string, size int) func(arrived *atomic.Pointer[time.Time]) time.Duration {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	body := strings.Repeat("x", size)
	client := &http.Client{Transport: &http.Transport{}}
	done := make(chan error)
	go func() {
		buf := make([]byte, 512)
		for {
			if _, err := r.Read(buf); err != nil {
				return
			}
			resp, err := client.Post(url, "application/json", strings.NewReader(body))
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			done <- err
		}
	}()
	return func(arrived *atomic.Pointer[time.Time]) time.Duration {
		start := time.Now()
		if _, err := w.WriteString(`{"method":"chat/prompt"}`); err != nil {
			b.Fatal(err)
		}
		if err := <-done; err != nil {
			b.Fatal(err)
		}
		return (*arrived.Load()).Sub(start)
	}
}
