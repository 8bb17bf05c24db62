package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/remote"
)

// watch opens streams of the remote server, four per device, waits until they have shown the chat, and
// reads them until stop is called, which returns how many bytes they had then.
func watch(b *testing.B, url string, tokens []string, streams int) (stop func() int64) {
	b.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var reading, showing sync.WaitGroup
	var read atomic.Int64
	for i := range streams {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/api/v1/events", nil)
		if err != nil {
			b.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+tokens[i/4])
		transport := &http.Transport{}
		res, err := transport.RoundTrip(req)
		if err != nil || res.StatusCode != http.StatusOK {
			b.Fatalf("stream %d: %v", i, err)
		}
		body := bufio.NewReaderSize(res.Body, 64<<10)
		showing.Add(1)
		reading.Go(func() {
			for line := ""; line != "event: chat:cleared\n"; { // until the server has shown the chat
				var err error
				if line, err = body.ReadString('\n'); err != nil {
					b.Error(err)
					break
				}
			}
			showing.Done()
			defer transport.CloseIdleConnections()
			defer res.Body.Close()
			n, _ := io.Copy(io.Discard, body)
			read.Add(n)
		})
	}
	showing.Wait()
	time.Sleep(time.Second) // until the chat is shown, and it is quiet
	return func() int64 {
		cancel()
		reading.Wait()
		return read.Load()
	}
}

// BenchmarkWatchers: what 50 streams of the remote server, of 13 devices, cost while a chat streams
// 500 deltas per second: memory of eca, and the latency in the editor. The floor is the same chat
// without them.
func BenchmarkWatchers(b *testing.B) {
	const deltas, streams, devices = 1000, 50, 13
	src := newStreamingProvider(b, deltas, 2*time.Millisecond)
	here := newPlace(b, "OPENAI_API_KEY=sk-bench", "OPENAI_API_URL="+src.URL,
		`ECA_CONFIG={"chat":{"title":false},"lsp":false,"remote":{"enabled":true,"port":0},"providers":{"openai":{"fetchModels":false}}}`)
	state := filepath.Join(here.root, "..", "state", "eca")
	paired := remote.OpenDevices(state, time.Now)
	var tokens []string
	for range devices {
		token, _, err := paired.Pair("watcher", remote.Watch)
		if err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	p, cmd := startOpened(b, build(b, "."), here)
	p.Await(0, "the remote server", fake.Contains("$/progress", `"finish"`, `"remote-server"`))
	places, err := paired.Endpoints()
	if err != nil || len(places) != 1 {
		b.Fatal(places, err)
	}
	url := fmt.Sprintf("http://127.0.0.1:%d", places[0].Port)
	turn := func() (latencies []time.Duration) {
		mark := p.Mark()
		p.Watch(func(m fake.Message, at time.Time) {
			var c struct{ Content struct{ Type, Text string } }
			if json.Unmarshal(m.Params, &c) == nil && c.Content.Type == "text" {
				latencies = append(latencies, latenciesOf(c.Content.Text, at)...)
			}
		})
		p.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
		p.Await(mark, "the end", fake.Finished())
		p.Watch(nil)
		return latencies
	}
	turn()
	var with, without []time.Duration
	var before, after float64
	for b.Loop() {
		without = append(without, turn()...)
		first := before == 0 // later turns need memory for a longer chat
		if first {
			before = resident(b, cmd.Process.Pid)
		}
		stop := watch(b, url, tokens, streams)
		with = append(with, turn()...)
		if first {
			after = resident(b, cmd.Process.Pid)
		}
		// Each delta has a number of 19 digits.
		if read := stop(); read < streams*deltas*19 {
			b.Errorf("%d streams were shown only %d bytes", streams, read)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(quantile(with, 0.5), "p50-ms")
	b.ReportMetric(quantile(with, 0.99), "p99-ms")
	b.ReportMetric(quantile(without, 0.5), "floor-p50-ms")
	b.ReportMetric(quantile(without, 0.99), "floor-p99-ms")
	b.ReportMetric(after-before, "MB-more")
	b.ReportMetric(before, "floor-MB")
}
