package importer

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat/event"
)

var update = flag.Bool("update", false, "rewrite the goldens in testdata")

// check fails if the events are not a complete chat: each call has one result, each turn has one end,
// and the events of a turn are between its beginning and its end.
func check(t *testing.T, events []event.Event) {
	t.Helper()
	turn, ended := "", true
	ids, open := map[string]bool{}, map[string]bool{}
	for i, e := range events {
		if e.Seq != event.Seq(i+1) {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		if _, _, err := event.EncodeBody(e.Body); err != nil {
			t.Error(err)
		}
		result := func(id string) {
			if !open[id] {
				t.Errorf("a result for %q, which waits for none", id)
			}
			delete(open, id)
		}
		switch b := e.Body.(type) {
		case event.UserMessage:
			if b.Text == "" || b.ContentID == "" || e.Turn == "" || !ended {
				t.Errorf("message in the turn %q after %q: %+v", e.Turn, turn, b)
			}
			turn, ended = e.Turn, false
		case event.ToolProposed:
			if ids[b.CallID] || b.CallID == "" || b.Name == "" {
				t.Errorf("call %+v", b)
			}
			ids[b.CallID], open[b.CallID] = true, true
		case event.ToolJudged:
			var args map[string]any
			if err := json.Unmarshal(b.Arguments, &args); err != nil || args == nil {
				t.Errorf("arguments %s: %v", b.Arguments, err)
			}
		case event.ToolFinished:
			result(b.CallID)
		case event.ToolRejected:
			result(b.CallID)
		case event.TurnFinished:
			if ended || len(open) > 0 {
				t.Errorf("turn %q ends with open calls %v, ended %v", e.Turn, open, ended)
			}
			ended = true
		default:
		}
		if e.Turn != "" && e.Turn != turn {
			t.Errorf("event %d of the turn %q is in the turn %q", e.Seq, e.Turn, turn)
		}
	}
	if !ended || len(open) > 0 {
		t.Errorf("the chat ends with open calls %v, its last turn %v", open, ended)
	}
}

// The golden files show the events of the samples and of a chat with all roles, and what `read-chat`
// prints for them.
func TestConvert(t *testing.T) {
	for _, name := range []string{"all-roles", "several-chats", "subagent-and-jobs", "tool-call", "two-tools"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join("testdata", name)
			files, _ := filepath.Glob(filepath.Join(dir, "*"+suffix))
			var b strings.Builder
			for _, path := range files {
				if filepath.Base(path) != indexFile {
					fmt.Fprintf(&b, "== %s\n", filepath.Base(path))
					render(t, &b, path)
				}
			}
			golden := dir + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil || b.String() != string(want) {
				t.Errorf("%v\n%s", err, cmp.Diff(string(want), b.String()))
			}
		})
	}
}

func render(t *testing.T, b *strings.Builder, path string) {
	t.Helper()
	doc, err := read(path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := convert(doc.chats[0], []string{"/w"}, time.UnixMilli(77))
	if err != nil {
		t.Fatal(err)
	}
	check(t, c.events)
	meta, _ := json.Marshal(c.meta)
	fmt.Fprintf(b, "%s\n", meta)
	for _, e := range c.events {
		_, body, _ := event.EncodeBody(e.Body)
		fmt.Fprintf(b, "%d %s %d %s %s\n", e.Seq, e.Turn, e.Time.UnixMilli(), event.KindOf(e.Body), body)
		if e.Begins {
			fmt.Fprintf(b, "    begins %q\n", event.ClientID(e.Body))
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(c.omitted)) {
		fmt.Fprintf(b, "left out: %s: %d\n", kind, c.omitted[kind])
	}
	lines := []Record{Summary(c.meta, 0)}
	for r := range Messages(eachEvent(c.events)) {
		lines = append(lines, r)
	}
	for _, r := range lines {
		line, err := json.Marshal(r)
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(b, "%s\n", line)
	}
}

func eachEvent(events []event.Event) func(func(event.Event, error) bool) {
	return func(yield func(event.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// `read-chat` prints an imported chat as it prints the file of the reference server, except for the
// parts that comparable drops.
func TestMessagesReverseConvert(t *testing.T) {
	for _, path := range []string{
		"testdata/tool-call/e6f58bce-3f05-4d31-a39b-6a4a8c5d76e8.transit.json", "testdata/two-tools/3f4c54fb-a134-421d-96b5-62e2fb5b4782.transit.json",
		"testdata/several-chats/50d4095d-19ba-452f-b373-d939fcad5271.transit.json",
	} {
		doc, err := read(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := doc.chats[0].messages()
		if err != nil {
			t.Fatal(err)
		}
		c, err := convert(doc.chats[0], nil, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		var got []Record
		for r := range Messages(eachEvent(c.events)) {
			got = append(got, r)
		}
		if d := cmp.Diff(comparable(t, want), comparable(t, got)); d != "" {
			t.Errorf("%s: -reference +ours\n%s", path, d)
		}
	}
}

// comparable decodes records and drops what only the reference's providers need.
func comparable(t *testing.T, rs []Record) (out []map[string]any) {
	t.Helper()
	for _, r := range rs {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if content, ok := m["content"].(map[string]any); ok {
			for k, v := range content {
				if k == "api" || k == "item-id" || v == nil {
					delete(content, k)
				}
			}
		}
		out = append(out, m)
	}
	return out
}

// For each input, the importer returns complete chats or an error.
func FuzzConvert(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*" + suffix)
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, data string) {
		doc, err := parse(strings.NewReader(data), "x")
		if err != nil {
			return
		}
		for _, p := range doc.chats {
			if c, err := convert(p, nil, time.Time{}); err == nil {
				check(t, c.events)
				for r := range Messages(eachEvent(c.events)) {
					if _, err := json.Marshal(r); err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
}
