package chat

import (
	"context"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
)

// chattyStore is a store during whose first write the chat goes on.
type chattyStore struct {
	eventlog.Store
	goOn func()
}

func (s *chattyStore) Append(context.Context, eventlog.Meta, []event.Event) error {
	if goOn := s.goOn; goOn != nil {
		s.goOn = nil
		goOn()
	}
	return nil
}

// Extend stores the end of the log.
func (*chattyStore) Extend(context.Context, string, []event.Event) error { return nil }

// A text that begins while another one is stored still grows, so it is not before the position.
func TestFlushedSeq(t *testing.T) {
	store := &chattyStore{}
	l := eventlog.New(store, eventlog.Meta{ID: "c"}, 0, false, time.Now, nil)
	defer l.Close()
	store.goOn = func() { l.Append("t", event.TextDelta{Text: "second"}) }
	l.Append("t", event.TextDelta{Text: "first"})
	r := chatReader{log: l}
	if at := r.FlushedSeq(); at != 2 || r.Next() != 3 {
		t.Errorf("%d of %d", at, r.Next())
	}
}
