package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s := New(dir)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func atMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

func TestRoundTrip(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, dir)
	meta := chat.Meta{ID: "c1", Created: atMillis(1), Updated: atMillis(2), Title: "T", Model: "a/b", Agent: "code", Variant: "v", Trust: true, Roots: []string{"/w"}}
	cost := 0.5
	events := []event.Event{
		{Seq: 1, Turn: "t", Time: atMillis(5), Body: event.UserMessage{ContentID: "x", Text: "hi", Context: []event.Block{{Label: "l", Text: "t"}}}},
		{Seq: 3, Turn: "t", Time: atMillis(6), Body: event.UsageReported{InputTokens: 7, Cost: &cost}},
		{Seq: 4, Time: atMillis(7), Body: event.Unknown{Name: "from_the_future", Raw: []byte(`{"a":1}`)}},
	}
	if err := s.Append(ctx, meta, events); err != nil {
		t.Fatal(err)
	}
	meta.Title = "T2"
	if err := s.Append(ctx, meta, nil); err != nil {
		t.Fatal(err)
	}
	other := open(t, dir) // another daemon
	got, last, found, err := other.Meta(ctx, "c1")
	if err != nil || !found || last != 4 || !cmp.Equal(got, meta) {
		t.Errorf("%v %v %v\n%s", last, found, err, cmp.Diff(meta, got))
	}
	back, err := other.Events(ctx, "c1", 2, 10)
	if err != nil || !cmp.Equal(back, events[1:]) {
		t.Errorf("%v\n%s", err, cmp.Diff(events[1:], back))
	}
	if err := other.Append(ctx, meta, events[:1]); err == nil {
		t.Error("an event was overwritten")
	}
	if err := s.Sync(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Delete(ctx, "c1"); err != nil {
		t.Error(err)
	}
	if _, _, found, _ := other.Meta(ctx, "c1"); found {
		t.Error("the chat is still there")
	}
	if back, _ := other.Events(ctx, "c1", 1, 10); len(back) > 0 {
		t.Error("its events are still there")
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir), open(t, dir)
	free, ok, err := a.Lock("c")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, ok, _ := b.Lock("c"); ok {
		t.Error("two have the lock")
	}
	if other, ok, _ := b.Lock("d"); !ok {
		t.Error("another chat is locked too")
	} else {
		other()
	}
	free()
	if again, ok, _ := b.Lock("c"); !ok {
		t.Error("the lock was not freed")
	} else {
		again()
	}
}

func TestNewerStoreIsRefused(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := open(t, dir)
	if err := s.Append(ctx, chat.Meta{ID: "c"}, nil); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "chats.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	_ = db.Close()
	if _, _, _, err := open(t, dir).Meta(ctx, "c"); !errors.Is(err, ErrNewer) {
		t.Errorf("%v", err)
	}
}

// Two daemons write different chats at the same time: nothing is lost, and no error
// mentions locks. They open the store at the same moment too.
func TestTwoDaemons(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	var wg sync.WaitGroup
	const chats, n = 10, 20
	for d := range 2 {
		s := open(t, dir)
		wg.Go(func() {
			for i := range n {
				for c := range chats {
					id := fmt.Sprintf("%d-%d", d, c)
					e := event.Event{Seq: event.Seq(i + 1), Time: atMillis(1), Body: event.Notice{Text: fmt.Sprint(i)}}
					if err := s.Append(ctx, chat.Meta{ID: id}, []event.Event{e}); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	s := open(t, dir)
	for d := range 2 {
		for c := range chats {
			if back, err := s.Events(ctx, fmt.Sprintf("%d-%d", d, c), 1, 100); err != nil || len(back) != n {
				t.Errorf("chat %d-%d: %d events, %v", d, c, len(back), err)
			}
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s := open(b, b.TempDir())
	seq := event.Seq(0)
	for b.Loop() {
		seq++
		e := event.Event{Seq: seq, Body: event.TextDelta{Text: "some text"}}
		if err := s.Append(context.Background(), chat.Meta{ID: "c"}, []event.Event{e}); err != nil {
			b.Fatal(err)
		}
	}
}

// After Sync has checkpointed a long log, the next write truncates the log. Otherwise, each later Sync
// would run a checkpoint.
func TestLogIsShortAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, File+"-wal"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	add := func(seq event.Seq, text string) {
		e := event.Event{Seq: seq, Body: event.TextDelta{Text: text}}
		if err := s.Append(t.Context(), chat.Meta{ID: "c"}, []event.Event{e}); err != nil {
			t.Fatal(err)
		}
		if err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	add(1, strings.Repeat("x", 2*maxLog))
	if size() < maxLog {
		t.Fatal("the log is too short to test truncation")
	}
	add(2, "y")
	if n := size(); n >= maxLog {
		t.Errorf("the log was not truncated: it has %d bytes", n)
	}
}
