package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// The next process that reads a chat finds, once, the text that a killed process wrote ahead. No
// process takes the text of a process that is still running.
func TestUnsavedTextSurvives(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	at := time.UnixMilli(1).UTC()
	dying := New(dir)
	delta := func(seq event.Seq, text string) event.Event {
		return event.Event{Seq: seq, Turn: "t", Time: at, Body: event.TextDelta{Text: text}, Begins: true}
	}
	if err := dying.WriteAhead(ctx, "c", []event.Event{delta(2, "x")}); err == nil {
		t.Error("text was recorded without the chat's lock")
	}
	release, ok, err := dying.Lock("c")
	if !ok || err != nil {
		t.Fatal(ok, err)
	}
	steps := []error{
		dying.Append(ctx, chat.Meta{ID: "c", Created: at, Updated: at}, []event.Event{{Seq: 1, Turn: "t", Time: at, Body: event.UserMessage{Text: "hi"}, Begins: true}}),
		dying.WriteAhead(ctx, "c", []event.Event{delta(2, "old")}),
		dying.Extend(ctx, "c", []event.Event{delta(2, "old")}),
		dying.WriteAhead(ctx, "c", []event.Event{delta(3, "one ")}),
		dying.WriteAhead(ctx, "c", []event.Event{delta(3, "two "), delta(4, "three")}),
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	next := New(dir)
	defer next.Close()
	text := func() (out string) {
		t.Helper()
		events, err := next.Events(context.Background(), "c", 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			if d, ok := e.Body.(event.TextDelta); ok {
				out += d.Text + "|"
			}
		}
		return out
	}
	if got := text(); got != "old|" {
		t.Errorf("while the other process lives: %s", got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "unsaved", "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	left, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	release() // the system does so when the process dies, but leaves the file: it is written again
	if err := os.WriteFile(files[0], append(left, `{"seq":4,"turn":"t","kind":"te`...), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := text(); got != "old|one two |three|" {
			t.Errorf("after the other process died: %s", got)
		}
	}
	if _, last, _, err := next.Meta(ctx, "c"); err != nil || last != 4 {
		t.Errorf("the last event is %d, %v", last, err)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
	// The remains of a deleted chat belong to no process.
	if err := os.WriteFile(files[0], left, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := next.Delete(ctx, "c"); err != nil {
		t.Fatal(err)
	}
	if _, _, found, err := next.Meta(ctx, "c"); found || err != nil {
		t.Error(found, err)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the file of a deleted chat is left: %v", err)
	}
	if err := dying.Close(); err != nil {
		t.Error(err)
	}
}

// Readers that begin at the same time all see the text that a killed process wrote ahead, and a turn
// that begins meanwhile can lock the chat.
func TestUnsavedTextIsSeenByAllReaders(t *testing.T) {
	ctx := t.Context()
	for round := range 20 {
		dir := t.TempDir()
		dying := New(dir)
		release, ok, err := dying.Lock("c")
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		user := event.Event{Seq: 1, Turn: "t", Time: time.UnixMilli(1), Body: event.UserMessage{Text: "hi"}, Begins: true}
		text := event.Event{Seq: 2, Turn: "t", Time: time.UnixMilli(1), Body: event.TextDelta{Text: "text"}, Begins: true}
		if err := errors.Join(dying.Append(ctx, chat.Meta{ID: "c"}, []event.Event{user}), dying.WriteAhead(ctx, "c", []event.Event{text})); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(filepath.Join(dir, "unsaved", "*"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		left, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		release()
		if err := errors.Join(os.WriteFile(files[0], left, 0o600), dying.Close()); err != nil {
			t.Fatal(err)
		}
		next := New(dir)
		var readers sync.WaitGroup
		for i := range 8 {
			readers.Go(func() {
				if i == 7 {
					release, ok, err := next.Lock("c")
					if !ok || err != nil {
						t.Errorf("round %d: a turn could not lock the chat: %v", round, err)
						return
					}
					defer release()
				}
				if _, last, _, err := next.Meta(ctx, "c"); err != nil || last != 2 {
					t.Errorf("round %d: reader %d sees %d events, want 2; %v", round, i, last, err)
				}
			})
		}
		readers.Wait()
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
