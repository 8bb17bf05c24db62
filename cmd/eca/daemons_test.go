package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Two daemons share a workspace. One writes 200 chats, many concurrently. The other is killed after it
// has begun 100. Afterwards, everything that either daemon showed is stored once, and neither showed
// an error about locks.
func TestTwoDaemonsManyChats(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, `
cassette: 1
default:
  steps:
    - text: "I read it."
      calls: [{id: call_1, tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}]
    - {text: "It says hello."}
turns: []
`)
	here := newPlace(t, p.env()...)
	if err := os.WriteFile(filepath.Join(here.root, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const chats, atOnce, killAfter = 200, 16, 100
	daemons := map[string]*process{"a": here.serve(t), "b": here.serve(t)}
	killed := make(chan struct{})
	var wg sync.WaitGroup
	for name, d := range daemons {
		d.Open(here.root, nil)
		turns := make(chan int)
		go func() {
			defer close(turns)
			for i := range chats {
				if name == "b" && i == killAfter {
					time.Sleep(5 * time.Millisecond) // in the middle of some turns
					d.kill9(t)
					close(killed)
					return
				}
				turns <- i
			}
		}()
		for range atOnce {
			wg.Go(func() {
				for i := range turns {
					id := fmt.Sprintf("%s-%d", name, i)
					if _, err := d.TryCall("chat/prompt", map[string]any{"chatId": id, "message": "read " + id}); err != nil {
						if name == "a" {
							t.Errorf("%s: %v", id, err)
						}
						continue
					}
					if name == "a" {
						d.Await(0, "the end of "+id, fake.Contains("chat/contentReceived", `"chatId":"`+id+`"`, `"finished"`))
					}
				}
			})
		}
	}
	wg.Wait()
	<-killed
	shutDown(t, daemons["a"])

	after := here.serve(t)
	after.Open(here.root, nil)
	checked, finished := 0, 0
	for name, d := range daemons {
		shown := map[string][]string{}
		for _, m := range d.Since(0) {
			if text := string(m.Params); m.Method == "chat/contentReceived" || m.Method == "$/showMessage" {
				for _, complaint := range []string{"cannot be saved", "is locked", "eca process"} {
					if strings.Contains(text, complaint) {
						t.Errorf("%s: the user was told %s", name, m)
					}
				}
			}
			if id, line := durableLine(m); line != "" {
				shown[id] = append(shown[id], line)
			}
		}
		for id, lines := range shown {
			mark := after.Mark()
			if res := string(after.Call("chat/open", map[string]any{"chatId": id})); !strings.Contains(res, `"found":true`) {
				t.Errorf("%s was shown, but is not stored: %s", id, res)
			}
			var kept []string
			for _, m := range after.Since(mark) {
				if _, line := durableLine(m); line != "" {
					kept = append(kept, line)
				}
			}
			want, got := strings.Join(lines, "\n"), strings.Join(kept, "\n")
			if !strings.HasPrefix(got, want) || name == "a" && got != want {
				t.Errorf("%s: the daemon showed\n%s\nstored is\n%s", id, want, got)
			}
			if count := map[string]int{}; true {
				for _, line := range kept {
					if count[line]++; count[line] > 1 {
						t.Errorf("%s: this line is stored twice: %s", id, line)
					}
				}
			}
			checked++
			if strings.Contains(got, "toolCalled") {
				finished++
			}
		}
	}
	if checked < chats+killAfter/2 || finished < chats {
		t.Errorf("only %d chats were checked, %d of them with a tool's result", checked, finished)
	}
	shutDown(t, after)
}

// durableLine renders the messages that must survive: user messages and results of tools.
func durableLine(m fake.Message) (chat, line string) {
	var p struct {
		ChatID, Role string
		Content      struct {
			Type, Text, ContentID, ID string
			Outputs                   []struct{ Text string }
		}
	}
	if json.Unmarshal(m.Params, &p) != nil {
		return "", ""
	}
	switch c := p.Content; {
	case p.Role == "user":
		return p.ChatID, "user " + c.ContentID + " " + c.Text
	case c.Type == "toolCalled":
		return p.ChatID, fmt.Sprint("toolCalled ", c.ID, c.Outputs)
	}
	return "", ""
}
