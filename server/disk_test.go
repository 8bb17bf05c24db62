package server_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// troubled is a store whose calls about a chat can be delayed or fail.
type troubled struct {
	chat.Store
	before func(ctx context.Context, call, id string) error
}

func (s troubled) Meta(ctx context.Context, id string) (chat.Meta, event.Seq, bool, error) {
	if err := s.before(ctx, "read", id); err != nil {
		return chat.Meta{}, 0, false, err
	}
	return s.Store.Meta(ctx, id)
}

func (s troubled) Events(ctx context.Context, id string, from event.Seq, limit int) ([]event.Event, error) {
	if err := s.before(ctx, "read", id); err != nil {
		return nil, err
	}
	return s.Store.Events(ctx, id, from, limit)
}

func (s troubled) Window(ctx context.Context, id string, w chat.Window) (chat.Span, error) {
	if err := s.before(ctx, "read", id); err != nil {
		return chat.Span{}, err
	}
	return s.Store.Window(ctx, id, w)
}

func (s troubled) Append(ctx context.Context, meta chat.Meta, events []event.Event) error {
	if err := s.before(ctx, "write", meta.ID); err != nil {
		return err
	}
	return s.Store.Append(ctx, meta, events)
}

func (s troubled) Extend(ctx context.Context, id string, events []event.Event) error {
	if err := s.before(ctx, "write", id); err != nil {
		return err
	}
	return s.Store.Extend(ctx, id, events)
}

func (s troubled) WriteAhead(ctx context.Context, id string, pieces []event.Event) error {
	if err := s.before(ctx, "write", id); err != nil {
		return err
	}
	return s.Store.WriteAhead(ctx, id, pieces)
}

func (s troubled) ChangeMeta(ctx context.Context, id string, change func(*chat.Meta)) (chat.Meta, error) {
	if err := s.before(ctx, "change", id); err != nil {
		return chat.Meta{}, err
	}
	return s.Store.ChangeMeta(ctx, id, change)
}

// While the disk does not answer for one chat, and the client sends requests about that chat,
// prompts, approvals and stops of other chats are not delayed.
func TestSlowChatHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	stuck, entered := make(chan struct{}), make(chan string, 1000)
	var once sync.Once
	release := func() { once.Do(func() { close(stuck) }) }
	r := newRig(t, options{
		model: `
cassette: 1
turns:
  - user: '^write'
    steps: [{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: x}}]}, {text: Wrote.}]
  - user: '^talk'
    steps: [{text: "on and on", hang: true}]
default: {steps: [{text: "slow at last"}]}
`,
		store: func(s chat.Store) chat.Store {
			return troubled{s, func(_ context.Context, call, id string) error {
				if strings.HasPrefix(id, "slow") {
					entered <- call
					<-stuck
				}
				return nil
			}}
		},
	})
	t.Cleanup(release)
	r.Await(0, "the start", fake.Ready())
	// The chat exists, and its first prompt waits to be stored.
	r.Begin("chat/prompt", map[string]any{"chatId": "slow", "message": "x"})
	<-entered
	for method, more := range map[string]map[string]any{
		"chat/prompt": {"message": "y"}, "chat/open": nil, "chat/history": nil, "chat/clear": {"messages": true},
		"chat/update": {"title": "t", "trust": true}, "chat/rollback": {"contentId": "1"},
		"chat/fork": {"contentId": "1"}, "chat/addFlag": {"contentId": "1", "text": "f"},
	} {
		for _, id := range []string{"slow", "slow-" + strings.TrimPrefix(method, "chat/")} { // one that is open, one that is not
			params := map[string]any{"chatId": id}
			merge(params, more)
			r.Begin(method, params)
		}
	}
	for _, method := range []string{"chat/promptStop", "chat/promptSteer", "chat/selectedAgentChanged", "chat/selectedModelChanged"} {
		r.Notify(method, map[string]any{"chatId": "slow", "message": "m", "agent": "plan", "model": "mock/m"})
		r.Notify(method, map[string]any{"chatId": "slow-unknown", "message": "m", "agent": "plan", "model": "mock/m"})
	}

	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "quick", "message": "write it"})
	r.Await(mark, "the question", fake.Content("toolCallRun", `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "quick", "toolCallId": "call_1"})
	r.Await(mark, "the answer", fake.Content("text", "Wrote."))
	r.Await(mark, "the end", ofChat("quick", `"finished"`))
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "quick", "message": "talk"})
	r.Await(mark, "the beginning", fake.Content("text", "on and on"))
	r.Notify("chat/promptStop", map[string]any{"chatId": "quick"})
	r.Await(mark, "the stop", ofChat("quick", `"finished"`))
	r.Call("chat/list", nil)
	for _, m := range r.Since(mark) {
		if strings.Contains(m.String(), "slow at last") {
			t.Error("the slow chat was not slow; the test tests nothing")
		}
	}
	release()
}

// If a chat cannot be read for long during an answer, the user is notified, and the client's chat
// becomes idle. The whole chat appears again as soon as it can be read, whether the turn continues
// or has ended.
func TestChatComesBackAfterFailedReads(t *testing.T) {
	needs.Long(t)
	for name, c := range map[string]struct {
		step string
		goes bool
	}{"ended": {`{text: kumquat}`, false}, "running": {`{text: kumquat, hang: true}`, true}} {
		t.Run(name, func(t *testing.T) {
			var away atomic.Bool
			r := newRig(t, options{
				model: "cassette: 1\nturns:\n  - steps: [" + c.step + "]\ndefault: {steps: [{text: onward}]}\n",
				store: func(s chat.Store) chat.Store {
					return troubled{s, func(_ context.Context, call, _ string) error {
						if away.Load() && call == "read" {
							return errors.New("the disk is away")
						}
						return nil
					}}
				},
			})
			r.Await(0, "the start", fake.Ready())
			away.Store(true)
			mark := r.Mark()
			long := strings.Repeat("a long message ", 20_000) // more than is kept in memory for readers
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": long})
			r.Await(mark, "the reason", fake.Content("text", `"c"`, "cannot be shown", "the disk is away"))
			r.Await(mark, "rest", fake.Contains("chat/statusChanged", "idle"))
			r.Await(mark, "the end", ofChat("c", `"finished"`))

			mark = r.Mark()
			away.Store(false)
			r.Await(mark, "the chat", fake.Contains("chat/cleared", `"c"`))
			r.Await(mark, "the message", fake.Content("text", `"user"`, "a long message"))
			r.Await(mark, "the answer", fake.Content("text", "kumquat"))
			if c.goes {
				r.Await(mark, "that it runs", fake.Contains("chat/statusChanged", "running"))
				r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
				r.Await(mark, "the stop", ofChat("c", `"finished"`))
			}
			mark = r.Mark()
			r.turn(t, map[string]any{"chatId": "c", "message": "go on"})
			r.Await(mark, "the next answer", fake.Content("text", "onward"))
		})
	}
}

// A failed change is reported, even if another change succeeded.
func TestChatUpdateTellsWhatFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{
		model: "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n",
		store: func(s chat.Store) chat.Store {
			return troubled{s, func(_ context.Context, call, _ string) error {
				if call == "change" {
					return errors.New("the disk is full")
				}
				return nil
			}}
		},
	})
	r.Await(0, "the start", fake.Ready())
	r.turn(t, map[string]any{"chatId": "c", "message": "hi"})
	if _, err := r.TryCall("chat/update", map[string]any{"chatId": "c", "title": "Pears", "trust": true}); err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("the answer is %v", err)
	}
}

// While a model generates a title, which may take long, another editor can continue the chat. The
// title appears later, and does not replace one of the user's.
func TestTitleRequestDoesNotHoldTheChat(t *testing.T) {
	t.Parallel()
	for _, named := range []bool{false, true} {
		t.Run(fmt.Sprintf("named by the user: %t", named), func(t *testing.T) {
			think := make(chan struct{})
			tape := "cassette: 1\ntitle: Of apples\ndefault: {steps: [{text: fine}]}\nturns: []\n"
			a := newRig(t, options{model: tape, config: map[string]any{"chat": map[string]any{"title": true}}, wrap: func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					if strings.Contains(string(body), "The conversation:") {
						<-think
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					h.ServeHTTP(w, r)
				})
			}})
			t.Cleanup(sync.OnceFunc(func() {
				select {
				case <-think:
				default:
					close(think)
				}
			}))
			b := newRig(t, options{model: tape, state: a.state, root: a.root})
			a.Await(0, "the start", fake.Ready())
			b.Await(0, "the start", fake.Ready())
			a.turn(t, map[string]any{"chatId": "c", "message": "one"})
			if res := string(b.Call("chat/prompt", map[string]any{"chatId": "c", "message": "two"})); !strings.Contains(res, `"prompting"`) {
				t.Fatalf("the second editor was answered %s", res)
			}
			b.Await(0, "the end", fake.Finished())
			if named {
				b.Call("chat/update", map[string]any{"chatId": "c", "title": "Mine"})
			}
			close(think)
			if !named {
				a.Await(0, "the title", fake.Content("metadata", "Of apples"))
			}
			a.turn(t, map[string]any{"chatId": "c", "message": "three"})
			want := map[bool]string{false: `"title":"Of apples"`, true: `"title":"Mine"`}[named]
			if list := string(a.Call("chat/list", nil)); !strings.Contains(list, want) {
				t.Errorf("%s is not in %s", want, list)
			}
		})
	}
}

// If the other chat cannot be copied completely, nothing changes, and the user is shown where the
// earlier messages are.
func TestResumeThatFailsChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault: {steps: [{text: fine}]}\nturns: []\n"})
	r.Await(0, "the start", fake.Ready())
	r.turn(t, map[string]any{"chatId": "other", "message": "about kumquats"})
	r.turn(t, map[string]any{"chatId": "c", "message": "about pears"})
	db, err := sql.Open("sqlite", filepath.Join(r.state, "chats.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER broken BEFORE INSERT ON events WHEN NEW.chat = 'c' AND NEW.kind = 'user_message' AND instr(NEW.body, 'kumquats')
		BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END`); err != nil {
		t.Fatal(err)
	}
	mark := r.Mark()
	r.turn(t, map[string]any{"chatId": "c", "message": "/resume other"})
	r.Await(mark, "the reason", fake.Content("text", "disk is full", "The earlier messages of this chat are saved as **"))
	var history struct{ Contents []json.RawMessage }
	if err := json.Unmarshal(r.Call("chat/history", map[string]any{"chatId": "c"}), &history); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf("%s", history.Contents); !strings.Contains(text, "about pears") || strings.Contains(text, "kumquats") {
		t.Errorf("the chat has changed: %s", text)
	}
}
