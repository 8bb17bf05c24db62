package server_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/editors/fake"
)

// promptAndAge prompts chats and makes the chats in old one month old.
func promptAndAge(t *testing.T, state, root string, chats []string, old ...string) {
	t.Helper()
	r := newRig(t, options{model: echoes, state: state, root: root, init: searchParams(), record: filepath.Join(state, "tapes")})
	for _, id := range chats {
		promptAndWait(t, r, id, "the secret of "+id+strings.Repeat(" is xylo"+id, 500)) // more than a page of a file
	}
	for _, id := range old {
		searchFor(t, r, "xylo"+id) // it is in the index too
	}
	s := store.New(state)
	defer s.Close()
	for _, id := range old {
		if _, err := s.ChangeMeta(t.Context(), id, func(m *chat.Meta) { m.Updated = time.Now().Add(-30 * 24 * time.Hour) }); err != nil {
			t.Fatal(err)
		}
	}
}

// chatsAfterStart starts a daemon with a setting, waits until its tasks have ended, and returns the
// remaining chats.
func chatsAfterStart(t *testing.T, state, root string, config map[string]any) (left []string) {
	t.Helper()
	r := newRig(t, options{state: state, root: root, config: config, init: searchParams()})
	r.Await(0, "the start", fake.Ready())
	_, left = listChats(t, r, nil)
	slices.Sort(left)
	return left
}

// Old chats are deleted, with every trace of their text in the files.
func TestRetention(t *testing.T) {
	t.Parallel()
	state, root := tempDir(t), tempDir(t)
	t.Run("before", func(t *testing.T) {
		promptAndAge(t, state, root, []string{"fresh", "old", "pinned", "used"}, "old", "pinned", "used")
		r := newRig(t, options{state: state, root: root})
		r.Call("chat/update", map[string]any{"chatId": "pinned", "pinned": true})
	})
	// Another process uses one of the chats, and has the files open: no cleanup happens because the
	// last process closed the files.
	other := store.New(state)
	defer other.Close()
	free, ok, err := other.Lock("used")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	defer free()
	if _, err := other.CountChats(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Run("after", func(t *testing.T) {
		if left := chatsAfterStart(t, state, root, map[string]any{"chatRetentionDays": 7}); fmt.Sprint(left) != "[fresh pinned used]" {
			t.Errorf("left: %v", left)
		}
	})
	found := map[string]bool{}
	err = filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, word := range []string{"xyloold", "xylofresh"} {
			if strings.Contains(string(raw), word) {
				found[word] = true
				if word == "xyloold" {
					t.Errorf("%s has the text of a chat that is gone", path)
				}
			}
		}
		return err
	})
	if err != nil || !found["xylofresh"] {
		t.Errorf("the test did not find the text of a chat that was kept, so its search does not work (%v)", err)
	}
	// The process that deleted the chat was started without --record.
	for id, kept := range map[string]bool{"fresh": true, "old": false, "pinned": true, "used": true} {
		if _, err := os.Stat(filepath.Join(state, "tapes", id+".yaml")); (err == nil) != kept {
			t.Errorf("the recording of %s is kept: %v", id, err == nil)
		}
	}
}

// With a chat, the recordings of its subagents are deleted.
func TestRecordingsOfSubagentsAreDeleted(t *testing.T) {
	t.Parallel()
	tapes := filepath.Join(tempDir(t), "tapes")
	model := "cassette: 1\nturns:\n  - user: part one\n    steps: [{text: Part.}]\n" +
		"  - user: work\n    steps:\n      - {calls: [" + spawn("call_1", "explorer", "part one", "") + "]}\n      - {text: Done.}\n"
	r := newRig(t, options{model: model, record: tapes})
	expect(t, ask(t, r, "c", "work"), "Done.")
	if files, _ := filepath.Glob(filepath.Join(tapes, "*.yaml")); len(files) != 2 {
		t.Fatalf("the recordings are %v, want one of the chat and one of the subagent", files)
	}
	r.Call("chat/delete", map[string]any{"chatId": "c"})
	if files, _ := filepath.Glob(filepath.Join(tapes, "*")); len(files) > 0 {
		t.Errorf("these recordings were not deleted: %v", files)
	}
}

// An invalid number of days deletes nothing, and neither does a setting of a workspace.
func TestRetentionOfWrongValues(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"zero": 0, "negative": -1, "a word": "often", "a list": []int{1}, "nothing": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state, root := tempDir(t), tempDir(t)
			promptAndAge(t, state, root, []string{"old"}, "old")
			if left := chatsAfterStart(t, state, root, map[string]any{"chatRetentionDays": value}); fmt.Sprint(left) != "[old]" {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("a workspace", func(t *testing.T) {
		t.Parallel()
		state, root := tempDir(t), tempDir(t)
		promptAndAge(t, state, root, []string{"old"}, "old")
		if err := os.MkdirAll(filepath.Join(root, ".eca"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, ".eca", "config.json"), []byte(`{"chatRetentionDays": 1}`), 0o600); err != nil {
			t.Fatal(err)
		}
		r := newRig(t, options{state: state, root: root})
		if err := r.daemon.Trust(r.daemon.Untrusted()); err != nil || r.daemon.Config().ChatRetentionDays != 0 {
			t.Fatalf("%v, or a workspace sets chatRetentionDays", err)
		}
		if left := chatsAfterStart(t, state, root, nil); fmt.Sprint(left) != "[old]" {
			t.Errorf("left: %v", left)
		}
	})
}

// An older eca, which does not know pins, can use the store: its version has not changed.
func TestPinning(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: echoes})
	promptAndWait(t, r, "a", "hello")
	s := store.New(r.state)
	defer s.Close()
	for _, c := range []struct {
		say  string
		want bool
	}{{"/pin", true}, {"/pin off", false}, {"/pin later", false}} {
		promptAndWait(t, r, "a", c.say)
		if got, err := s.Pinned(context.Background(), "a"); err != nil || got != c.want {
			t.Errorf("%s: pinned %v, %v", c.say, got, err)
		}
	}
}
