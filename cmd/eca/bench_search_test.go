package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/workspace"
)

// prose makes texts whose words are as unevenly frequent as in a natural language.
type prose struct {
	words []string
	zipf  *rand.Zipf
}

func newProse() *prose {
	r := rand.New(rand.NewPCG(1, 2))
	p := &prose{zipf: rand.NewZipf(r, 1.1, 4, 49_999)}
	for range 50_000 {
		var w strings.Builder
		for range 2 + r.IntN(3) {
			w.WriteByte("bcdfghklmnprstvwz"[r.IntN(17)])
			w.WriteByte("aeiou"[r.IntN(5)])
		}
		p.words = append(p.words, w.String())
	}
	return p
}

func (p *prose) text(size int) string {
	var b strings.Builder
	for b.Len() < size {
		b.WriteString(p.words[p.zipf.Uint64()])
		b.WriteByte(' ')
	}
	return b.String()
}

// BenchmarkSearch: chat/search in ECA_SEARCH_CHATS chats of 100 KB (default: 200), by kind of
// query, and the time to index all of them. The floor is chat/open of an unknown chat.
func BenchmarkSearch(b *testing.B) {
	chats := 200
	if n, err := strconv.Atoi(os.Getenv("ECA_SEARCH_CHATS")); err == nil {
		chats = n
	}
	bin, here := build(b, "."), newPlace(b)
	p := newProse()
	state := filepath.Join(filepath.Dir(here.root), "state", "eca")
	fill(b, here, func(s *store.Store) error {
		for i := range chats {
			at := time.UnixMilli(int64(1_700_000_000_000 + i*60_000))
			meta := chat.Meta{ID: fmt.Sprintf("chat-%d", i), Title: fmt.Sprintf("Chat %d", i), Created: at, Updated: at, Roots: []string{here.root}}
			var events []event.Event
			for turn := range 10 {
				for _, e := range turnEvents(event.Seq(1+8*turn), 0) {
					switch body := e.Body.(type) {
					case event.UserMessage:
						body.Text = p.text(400)
						e.Body = body
					case event.ToolFinished:
						body.Outputs = []string{p.text(5500)}
						e.Body = body
					case event.TextDelta:
						e.Body = event.TextDelta{Text: p.text(1500)}
					default:
					}
					e.Time = at
					events = append(events, e)
				}
			}
			if err := s.Append(context.Background(), meta, events); err != nil {
				return err
			}
		}
		return nil
	})
	c := startClient(b, bin, here)
	folders, err := json.Marshal(map[string]any{
		"workspaceFolders": []map[string]string{{"uri": workspace.ToURI(here.root), "name": "ws"}},
		"capabilities":     map[string]any{"codeAssistant": map[string]any{"chatCapabilities": map[string]any{"search": true}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	c.call(b, "initialize", string(folders))
	start := time.Now()
	index := here.command("chats", "search", "nothing-like-this")
	index.Path = bin
	index.Stderr = io.Discard
	if err := index.Run(); err != nil {
		b.Fatal(err)
	}
	indexed := time.Since(start).Seconds()
	kinds := map[string]string{
		"common": p.words[3], "usual": p.words[300], "rare": p.words[49_000], "two": p.words[40] + " " + p.words[900],
		"phrase": `\"` + p.words[3] + " " + p.words[5] + `\"`, "prefix": p.words[700][:4] + "*", "role": p.words[300] + " role:user",
	}
	took, all, floor := map[string][]time.Duration{}, []time.Duration{}, []time.Duration{}
	for b.Loop() {
		for kind, query := range kinds {
			d := timed(func() { c.call(b, "chat/search", `{"query":"`+query+`"}`) })
			took[kind], all = append(took[kind], d), append(all, d)
		}
		floor = append(floor, timed(func() { c.call(b, "chat/open", `{"chatId":"none"}`) }))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(indexed, "index-s")
	for kind, d := range took {
		b.ReportMetric(median(d).Seconds()*1000, kind+"-ms")
	}
	slices.Sort(all)
	b.ReportMetric(median(all).Seconds()*1000, "p50-ms")
	b.ReportMetric(all[len(all)*99/100].Seconds()*1000, "p99-ms")
	b.ReportMetric(median(floor).Seconds()*1000, "floor-ms")
	for file, name := range map[string]string{"chats.db": "store-MB", "search.db": "index-MB"} {
		info, err := os.Stat(filepath.Join(state, file))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6, name)
	}
}
