package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/textproto"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/workspace"
)

// fill writes chats into the store of a test environment.
func fill(b *testing.B, here place, write func(s *store.Store) error) {
	b.Helper()
	s := store.New(filepath.Join(filepath.Dir(here.root), "state", "eca"))
	if err := write(s); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// turnEvents are one turn: a prompt, a tool call with an output of the given size, and an answer.
func turnEvents(seq event.Seq, output int) []event.Event {
	call := fmt.Sprintf("call-%d", seq)
	tool := event.Tool{CallID: call, Name: "read_file", Server: "eca", Origin: "native"}
	var out []event.Event
	previous := event.Kind("")
	for _, body := range []event.Body{
		event.UserMessage{ContentID: fmt.Sprintf("m-%d", seq), Text: "read it"},
		event.TurnStarted{Model: "m/m", Agent: "code"},
		event.ToolProposed{Tool: tool},
		event.ToolJudged{Tool: tool, Arguments: json.RawMessage(`{"path":"/a"}`)},
		event.ToolStarted{CallID: call},
		event.ToolFinished{CallID: call, Outputs: []string{strings.Repeat("all work and no play\n", output/21)}},
		event.TextDelta{Text: "It says so."},
		event.TurnFinished{Reason: event.FinishedDone},
	} {
		out = append(out, event.Event{Seq: seq, Turn: call, Time: time.UnixMilli(int64(seq)), Body: body, Begins: event.Begins(previous, body)})
		previous = event.KindOf(body)
		seq++
	}
	return out
}

// rawClient reads answers without decoding them, so that only the daemon's time counts.
type rawClient struct {
	in  io.Writer
	out *bufio.Reader
	id  int
}

// startClient starts a server and returns a client connected to it. The server stops when the
// benchmark ends.
func startClient(b *testing.B, bin string, here place) *rawClient {
	b.Helper()
	cmd := here.command("server")
	cmd.Path = bin
	in, out := startPiped(b, cmd)
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return &rawClient{in: in, out: bufio.NewReaderSize(out, 64<<10)}
}

// call sends a request and returns the size of its answer.
func (c *rawClient) call(b *testing.B, method, params string) int {
	b.Helper()
	c.id++
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params)
	if _, err := fmt.Fprintf(c.in, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		b.Fatal(err)
	}
	answer := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`, c.id)
	for {
		header, err := textproto.NewReader(c.out).ReadMIMEHeader()
		if err != nil {
			b.Fatal(err)
		}
		size, err := strconv.Atoi(header.Get("Content-Length"))
		if err != nil {
			b.Fatal(err)
		}
		head, err := c.out.Peek(min(size, len(answer)))
		if err != nil {
			b.Fatal(err)
		}
		isAnswer := bytes.Equal(head, answer)
		if _, err := c.out.Discard(size); err != nil {
			b.Fatal(err)
		}
		if isAnswer {
			return size
		}
	}
}

// BenchmarkChatList: chat/list with 10,000 chats, for all of them and for the newest 100. The floor
// is the response to chat/open for an unknown chat.
func BenchmarkChatList(b *testing.B) {
	bin, here := build(b, "."), newPlace(b)
	fill(b, here, func(s *store.Store) error {
		for i := range 10_000 {
			meta := chat.Meta{ID: fmt.Sprintf("chat-%d", i), Title: fmt.Sprintf("Some title of chat %d", i), Model: "openai/gpt-5.2", Created: time.UnixMilli(int64(i)), Updated: time.UnixMilli(int64(i)), Roots: []string{here.root}}
			if err := s.Append(context.Background(), meta, turnEvents(1, 100)); err != nil {
				return err
			}
		}
		return nil
	})
	c := startClient(b, bin, here)
	folders, err := json.Marshal(map[string]any{"workspaceFolders": []map[string]string{{"uri": workspace.ToURI(here.root), "name": "ws"}}})
	if err != nil {
		b.Fatal(err)
	}
	c.call(b, "initialize", string(folders))
	const initialized = `{"jsonrpc":"2.0","method":"initialized","params":{}}`
	fmt.Fprintf(c.in, "Content-Length: %d\r\n\r\n%s", len(initialized), initialized)
	var all, page, floor []time.Duration
	size := 0
	for b.Loop() {
		all = append(all, timed(func() { size = c.call(b, "chat/list", "{}") }))
		page = append(page, timed(func() { c.call(b, "chat/list", `{"limit":100}`) }))
		floor = append(floor, timed(func() { c.call(b, "chat/open", `{"chatId":"none"}`) }))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(all).Seconds()*1000, "all-ms")
	b.ReportMetric(float64(size), "bytes")
	b.ReportMetric(median(page).Seconds()*1000, "page-ms")
	b.ReportMetric(median(floor).Seconds()*1000, "floor-ms")
}

// BenchmarkChatOpen: a chat of 50 MB is opened completely, and with its last 20 messages. It
// measures the time to the first content and to the response, and the memory. The floor is the
// response to chat/open for an unknown chat.
func BenchmarkChatOpen(b *testing.B) {
	bin, here := build(b, "."), newPlace(b)
	const output = 50_000
	fill(b, here, func(s *store.Store) error {
		meta := chat.Meta{ID: "large", Roots: []string{here.root}, Created: time.UnixMilli(1), Updated: time.UnixMilli(1)}
		for seq := event.Seq(1); seq < 8*1000; seq += 8 {
			if err := s.Append(context.Background(), meta, turnEvents(seq, output)); err != nil {
				return err
			}
		}
		return nil
	})
	if info, err := os.Stat(filepath.Join(filepath.Dir(here.root), "state", "eca", "chats.db")); err != nil || info.Size() < 50_000_000 {
		b.Fatalf("the store is too small: %v, %v", info, err)
	}
	e := serveBuilt(b, bin, here)
	before := resident(b, e.cmd.Process.Pid)
	var first, window, whole, floor []time.Duration
	for b.Loop() {
		floor = append(floor, timed(func() { e.Call("chat/open", map[string]any{"chatId": "none"}) }))
		window = append(window, timed(func() { e.Call("chat/open", map[string]any{"chatId": "large", "limit": 20}) }))
		var at time.Time
		start := time.Now()
		e.Watch(func(m fake.Message, now time.Time) {
			if at.IsZero() && m.Method == "chat/contentReceived" {
				at = now
			}
		})
		e.Call("chat/open", map[string]any{"chatId": "large"})
		e.Watch(nil)
		first, whole = append(first, at.Sub(start)), append(whole, time.Since(start))
		e.Forget()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(first).Seconds()*1000, "first-ms")
	b.ReportMetric(median(whole).Seconds()*1000, "whole-ms")
	b.ReportMetric(median(window).Seconds()*1000, "window-ms")
	b.ReportMetric(median(floor).Seconds()*1000, "floor-ms")
	b.ReportMetric(before, "MB-before")
	b.ReportMetric(resident(b, e.cmd.Process.Pid), "MB-after")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// serveBuilt starts a built program in a test environment and opens its workspace.
func serveBuilt(b *testing.B, bin string, here place) *process {
	b.Helper()
	cmd := here.command("server")
	cmd.Path = bin
	p := connect(b, cmd)
	p.Open(here.root, nil)
	return p
}
